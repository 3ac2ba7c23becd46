"""The autoencoder: lengths, padding, the parts of the loss against plain loops, jitter, gradients."""

import pytest
import torch

from pyspeech.errors import UserError
from pyspeech.units.config import VqVaeConfig
from pyspeech.units.layers import TransformerLayer, add_positions, length_mask
from pyspeech.units.vqvae import VqVae, jitter_indices

KINDS = ("transformer", "conv")


def make_model(kind="transformer", seed=0, **options):
    torch.manual_seed(seed)
    sizes = dict(kind=kind, features=5, dim=16, heads=2, feedforward=24, codes=9, code_dim=6, speaker_dim=4, quantise_after=0)
    return VqVae(VqVaeConfig(**{**sizes, **options}), num_speakers=3)


def make_batch(lengths, seed=1, behind=0.0):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor(lengths)
    features = torch.randn(len(lengths), int(lengths.max()), 5, generator=generator)
    features[~length_mask(lengths, features.shape[1])] = behind
    return features, lengths, torch.arange(len(lengths)) % 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 11])
def test_any_length_has_codes(kind, length):
    model = make_model(kind).eval()
    features, lengths, speakers = make_batch([length])
    codes, code_lengths = model.encode(features, lengths)
    assert codes.shape == (1, -(-length // 4)) == (1, int(code_lengths[0])) and codes.dtype == torch.int64
    assert 0 <= codes.min() <= codes.max() < 9
    reconstruction, parts = model(features, lengths, speakers)
    assert reconstruction.shape == features.shape
    assert all(torch.isfinite(torch.as_tensor(value)) for value in parts.values())
    assert model.decode(codes, code_lengths, speakers).shape == (1, 4 * codes.shape[1], 5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("behind", [0.0, 1e4, float("nan")])
def test_an_utterance_is_the_same_alone_and_in_a_batch(kind, behind):
    model = make_model(kind).eval()
    sizes = [23, 1, 8, 40, 14, 3, 37]
    features, lengths, speakers = make_batch(sizes, behind=behind)
    latents, _ = model.latents(features, lengths)
    codes, code_lengths = model.encode(features, lengths)
    reconstruction, _ = model(features, lengths, speakers)
    for row, size in enumerate(sizes):
        alone = features[row : row + 1, :size], lengths[row : row + 1]
        count = int(code_lengths[row])
        own_latents, own_lengths = model.latents(*alone)
        assert own_lengths.tolist() == [count] and own_latents.shape[1] == count
        torch.testing.assert_close(latents[row, :count], own_latents[0], rtol=0, atol=1e-5)
        assert torch.equal(model.encode(*alone)[0][0], codes[row, :count]) and not codes[row, count:].any()
        own_reconstruction, _ = model(*alone, speakers[row : row + 1])
        torch.testing.assert_close(reconstruction[row, :size], own_reconstruction[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_training_on_a_padded_batch_ignores_the_padding(kind):
    """Same loss, gradients and codebook whatever stands behind the ends, and however much."""
    found = []
    for behind, more in ((0.0, 0), (float("nan"), 6)):
        model = make_model(kind, dropout=0.0).train()
        features, lengths, speakers = make_batch([13, 6, 21], behind=behind)
        features = torch.nn.functional.pad(features, (0, 0, 0, more), value=3.0)
        torch.manual_seed(5)
        _, parts = model(features, lengths, speakers)
        sum(parts[name] for name in ("reconstruction", "commitment", "smoothing")).backward()
        found.append(
            {
                **{name: parameter.grad for name, parameter in model.named_parameters()},
                "codebook": model.codebook,
                **{name: torch.as_tensor(value) for name, value in parts.items()},
            }
        )
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-4, atol=1e-4, msg=name)


def test_parts_equal_plain_loops():
    model = make_model().eval()
    features, lengths, speakers = make_batch([13, 6, 2])
    assert model(features, lengths, speakers)[1]["used_codes"] == 0  # no codebook yet
    model.quantizer.initialised.fill_(True)
    reconstruction, parts = model(features, lengths, speakers)
    latents, code_lengths = model.latents(features, lengths)
    codes, _ = model.encode(features, lengths)
    errors, commitments, differences = [], [], []
    for row in range(3):
        for t in range(int(lengths[row])):
            errors.append(((features[row, t] - reconstruction[row, t]) ** 2).sum().item())
        for t in range(int(code_lengths[row])):
            commitments.append(((latents[row, t] - model.codebook[codes[row, t]]) ** 2).sum().item())
            if t:
                differences.append(((latents[row, t] - latents[row, t - 1]) ** 2).sum().item())
    for name, values in (("reconstruction", errors), ("commitment", commitments), ("smoothing", differences)):
        assert parts[name].item() == pytest.approx(sum(values) / len(values), rel=1e-4), name
    assert parts["used_codes"] == len({int(codes[row, t]) for row in range(3) for t in range(int(code_lengths[row]))})


def test_decoding_codes_is_what_evaluation_reconstructs():
    model = make_model().eval()
    features, lengths, speakers = make_batch([13, 6])
    codes, code_lengths = model.encode(features, lengths)
    decoded = model.decode(codes, code_lengths, speakers)
    reconstruction, _ = model(features, lengths, speakers)
    for row, length in enumerate([13, 6]):
        torch.testing.assert_close(decoded[row, :length], reconstruction[row, :length], rtol=0, atol=1e-5)
    assert (model.decode(codes, code_lengths, (speakers + 1) % 3) - decoded).abs().max() > 1e-3


def test_gradients_go_straight_through_to_the_encoder():
    model = make_model(dropout=0.0).train()
    features, lengths, speakers = make_batch([13, 6])
    _, parts = model(features, lengths, speakers)
    parts["reconstruction"].backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.encoder.parameters())
    assert not model.codebook.requires_grad


def test_jitter_takes_neighbours_of_the_utterance():
    mask = length_mask(torch.tensor([1, 2, 900, 0]), 1000)
    torch.manual_seed(0)
    indices = torch.stack([jitter_indices(mask, 0.05) for _ in range(200)])
    moves = indices - torch.arange(1000)
    assert moves.abs().max() == 1 and not moves[:, ~mask].any()
    assert not moves[:, 0].any()  # a single code has no neighbour
    assert set(moves[:, 1, 0].tolist()) == {0, 1} and set(moves[:, 1, 1].tolist()) == {0, -1}
    inside = moves[:, 2, 1:899].float()
    for side in (-1, 1):  # 5 % on each side: 180,000 draws have a standard deviation of 0.05 %
        assert (inside == side).float().mean().item() == pytest.approx(0.05, abs=0.003)
    assert torch.equal(jitter_indices(mask, 0.0), torch.arange(1000).expand(4, -1))


def test_jitter_is_for_training_alone():
    features, lengths, speakers = make_batch([40, 33])
    model = make_model(jitter=0.5, dropout=0.0).eval()
    assert torch.equal(model(features, lengths, speakers)[0], model(features, lengths, speakers)[0])
    first, second = (make_model(jitter=jitter, dropout=0.0).train()(features, lengths, speakers) for jitter in (0.5, 0.0))
    assert not torch.allclose(first[0], second[0])
    assert first[1]["commitment"] == second[1]["commitment"]  # of the codes as they were


def test_attention_equals_torch():
    torch.manual_seed(0)
    layer = TransformerLayer(16, 4, 24, 0.0).eval()
    peer = torch.nn.TransformerEncoderLayer(16, 4, 24, 0.0, batch_first=True, norm_first=True)  # training: no fast path
    names = {
        "attention_norm": "norm1",
        "feedforward_norm": "norm2",
        "inputs": "self_attn.in_proj_",
        "output": "self_attn.out_proj",
        "feedforward.0": "linear1",
        "feedforward.3": "linear2",
    }
    with torch.no_grad():
        for name, value in layer.state_dict().items():
            module, part = name.rsplit(".", 1)
            place = names[module] + ("" if names[module].endswith("_") else ".") + part
            dict(peer.named_parameters())[place].copy_(value)
    sequence, mask = torch.randn(3, 1200, 16), length_mask(torch.tensor([1200, 3, 700]), 1200)
    ours, theirs = layer(sequence, mask), peer(sequence, src_key_padding_mask=~mask)
    torch.testing.assert_close(ours[mask], theirs[mask], rtol=1e-4, atol=1e-5)


def test_positions_equal_the_definition():
    positions = add_positions(torch.zeros(1, 7, 6))[0]
    for t in range(7):
        for pair in range(3):
            angle = torch.tensor(t / 10000 ** (2 * pair / 6))
            torch.testing.assert_close(positions[t, 2 * pair : 2 * pair + 2], torch.stack([angle.sin(), angle.cos()]))


def test_positions_are_added_to_the_scaled_input():
    model, heard = make_model(layers=0).eval(), []
    model.encoder.halvings[0].register_forward_pre_hook(lambda module, inputs: heard.append(inputs[0]))
    features, lengths, _ = make_batch([8])
    model.latents(features, lengths)
    expected = 4.0 * model.encoder.input(features) + add_positions(torch.zeros(1, 8, 16))  # 4: the root of dim
    assert torch.allclose(heard[0], expected, atol=1e-5)


def test_paper_sizes():
    config = VqVaeConfig()
    assert config.stride == 4 and [config.num_codes(frames) for frames in (1, 4, 5, 100)] == [1, 1, 2, 25]
    assert VqVae(config, 2).codebook.shape == (128, 64)


def test_errors_are_one_line():
    model = make_model()
    features, lengths, speakers = make_batch([4, 2])
    for call in (
        lambda: model.encode(features[:, :, :4], lengths),
        lambda: model.encode(features, lengths * 0),
        lambda: model.encode(features, lengths + 1),
        lambda: VqVae(VqVaeConfig(), 0),
    ):
        with pytest.raises(UserError, match="expect"):
            call()
    for options in ({"kind": "lstm"}, {"heads": 3}, {"jitter": 0.6}, {"ema_decay": 1.0}, {"codes": 1}, {"dropout": 1.0}):
        with pytest.raises(UserError, match="^vqvae option"):
            VqVaeConfig(**options).check()
