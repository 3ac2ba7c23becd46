"""The SAD networks: sizes of the paper, edges, padding, gain, steady signals; chunked scoring against the whole; the file."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch

from pyspeech.errors import UserError
from pyspeech.features.stft import MatrixStft
from pyspeech.sad import piece_network
from pyspeech.sad.checkpoint import load_model, save_model
from pyspeech.sad.collectors import ChunkCollector, PieceCollector
from pyspeech.sad.config import NetworkConfig, StftConfig
from pyspeech.sad.decoding import score_blocks, score_samples, score_stream
from pyspeech.sad.networks import SadNetwork
from pyspeech.sad.normalisation import normalise, normalise_on
from pyspeech.sad.piece_network import fuse, scoring_network
from pyspeech.sad.pieces import Geometry

SYSTEMS = ("cnn", "rnn", "seg_rnn", "causal_rnn")


def make_model(temporal, seed=0, **options):
    """A small untrained network whose scores vary, with batch normalisation that does something."""
    torch.manual_seed(seed)
    options = {"channels": [4, 8], "rnn_size": 16, "cnn_channels": 12, "context_seconds": 0.5, **options}
    model = SadNetwork(NetworkConfig(temporal=temporal, **options), StftConfig(n_fft=128, window=128)).eval()
    for block in model.cnn.blocks:
        for norm in block.norms:
            norm.running_mean.normal_(0, 0.1)
            norm.running_var.uniform_(0.2, 0.5)
    last = model.temporal.output if temporal == "cnn" else model.temporal.classifier
    logits = []
    hook = last.register_forward_hook(lambda layer, inputs, outputs: logits.append(outputs))
    score_whole(model, radio(10))
    hook.remove()
    scale = 2 / logits[0].std()
    last.bias.data = scale * (last.bias.data - logits[0].mean())
    last.weight.data *= scale
    return model


def radio(seconds, seed=0):
    """Noise whose level jumps by tens of dB, float32."""
    rng = np.random.default_rng(seed)
    samples = rng.standard_normal(int(seconds * 8000))
    gains = 10 ** rng.uniform(-2, 0, size=int(seconds * 4) + 1)
    return (0.1 * samples * np.repeat(gains, 2000)[: len(samples)]).astype(np.float32)


@torch.no_grad()
def score_whole(model, samples):
    return model(torch.from_numpy(samples)[None])[0].numpy()


@pytest.mark.parametrize(
    "temporal, parameters",
    [
        ("cnn", (64 * 3 + 1) * 128 + (128 * 3 + 1) * 10),
        ("rnn", 2 * 3 * 128 * (64 + 128 + 2) + 257 * 10),
        ("seg_rnn", 2 * 3 * 128 * (64 + 128 + 2) + 257 * 10),
        ("causal_rnn", (64 * 6 + 1) * 64 + 3 * 256 * (64 + 256 + 2) + 257 * 10),
    ],
)
def test_sizes_of_the_paper(temporal, parameters):
    model = SadNetwork(NetworkConfig(temporal=temporal))
    assert model.cnn.num_features == 64
    assert sum(parameter.numel() for parameter in model.temporal.parameters()) == parameters


def test_summed_directions_have_the_full_size():
    model = SadNetwork(NetworkConfig(rnn_merge="sum"))
    assert model.temporal.gru.hidden_size == 256 and model.temporal.classifier.in_features == 256
    assert score_whole(model.eval(), radio(0.5)).shape == (50,)


@pytest.mark.parametrize("temporal", SYSTEMS)
@pytest.mark.parametrize("num_samples", [0, 1, 79, 80, 81, 500, 8001])
def test_short_recordings(temporal, num_samples):
    model = make_model(temporal)
    samples = radio(2)[:num_samples]
    scores = score_samples(model, samples)
    assert scores.shape == (-(-num_samples // 80),) and scores.dtype == np.float32
    assert np.all((scores >= 1e-3) & (scores <= 1 - 1e-3))
    np.testing.assert_allclose(scores, score_whole(model, samples), atol=1e-5)


@pytest.mark.parametrize("temporal", SYSTEMS)
def test_padding_changes_nothing(temporal):
    model = make_model(temporal, segment_length=10, segment_shift=3)
    recordings = [radio(seconds, seed=i) for i, seconds in enumerate((3.0, 1.23, 0.05))]
    samples = torch.zeros(3, 299 * 80 + 128)
    valid = torch.zeros(3, 300, dtype=torch.bool)
    for row, recording in enumerate(recordings):
        samples[row, : len(recording)] = torch.from_numpy(recording)
        valid[row, : -(-len(recording) // 80)] = True
    with torch.no_grad():
        together = model(samples, valid).numpy()
    for row, count in enumerate(valid.sum(1).tolist()):
        with torch.no_grad():
            alone = model(samples[row : row + 1, : (count - 1) * 80 + 128], valid[row : row + 1, :count])[0].numpy()
        np.testing.assert_allclose(together[row, :count], alone, atol=1e-5)
        assert not together[row, len(alone) :].any()


@pytest.mark.parametrize(
    "temporal, options",
    [
        ("cnn", {"compress": "log"}),
        ("cnn", {"compress": "none"}),
        ("seg_rnn", {"compress": "log"}),
        ("seg_rnn", {"compress": "none", "segment_length": 25, "segment_shift": 10}),
        ("causal_rnn", {"compress": "none"}),
        ("causal_rnn", {"compress": "log", "lookahead": 0}),
    ],
)
def test_pieces_score_like_the_whole(temporal, options):
    model = make_model(temporal, **options)
    samples = radio(67.123)
    for signal in (samples, samples * (np.arange(len(samples)) % 120000 > 80000)):  # the second has gaps of 10 s
        whole = score_whole(model, signal)
        assert whole.std() > 0.01
        np.testing.assert_allclose(score_samples(model, signal), whole, atol=1e-5)
        for piece in (333, 2000):
            np.testing.assert_allclose(score_in_pieces(model, signal, piece), whole, atol=1e-5)


def test_a_causal_network_hears_no_further_ahead_than_it_says():
    model, samples, frame = make_model("causal_rnn", lookahead=3), radio(30.0), 1440
    geometry = Geometry.of(model.config, model.stft.config)
    assert geometry.ahead == 2 * 2 + 3  # two convolutions a block
    heard = (frame + geometry.ahead) * 80 + 128  # samples
    scores = score_whole(model, samples)
    for end, same in ((heard, True), (heard - 60, False)):
        changed = np.concatenate([samples[:end], radio(30.0, seed=1)[end:]])
        assert np.allclose(score_whole(model, changed)[: frame + 1], scores[: frame + 1], atol=1e-6) == same


def test_a_causal_network_in_short_pieces_scores_like_the_whole():
    model, samples = make_model("causal_rnn"), radio(5.0)
    np.testing.assert_allclose(score_in_pieces(model, samples, 3), score_whole(model, samples), atol=1e-5)


def score_in_pieces(model, samples, piece):
    return np.concatenate(list(score_blocks(model, [samples], piece)))


def test_the_rnn_in_windows_scores_like_the_whole_where_it_forgets():
    model = make_model("rnn")
    for name, bias in model.temporal.gru.named_parameters():
        if name.startswith("bias_ih"):
            bias.data[8:16] = -2.0  # update gates that forget within some frames, as trained on 4 s crops
    samples = radio(67.123)
    whole = score_whole(model, samples)
    assert whole.std() > 1e-3
    np.testing.assert_allclose(score_samples(model, samples), whole, atol=1e-5)


def test_where_the_rnn_is_cut_does_not_matter():
    """Also to one that never forgets, and so is not the same in windows as over the whole."""
    model, samples = model_that_never_forgets(), radio(20.0)
    scores = score_samples(model, samples)
    assert np.abs(scores - score_whole(model, samples)).max() > 1e-3
    for piece in (200, 1000):
        np.testing.assert_allclose(score_in_pieces(model, samples, piece), scores, atol=1e-5)


@pytest.mark.parametrize("merge, size", [("concat", 16), ("sum", 8)])
def test_each_direction_of_the_rnn_hears_all_that_counts(merge, size):
    """As if both were computed over the whole of each window."""
    network = scoring_network(model_that_never_forgets(rnn_merge=merge, rnn_size=size, lowered=0.7))
    plain = scoring_network(model_that_never_forgets(rnn_merge=merge, rnn_size=size, lowered=0.7))
    del plain.in_windows  # a module, whose name nothing else could have
    plain.in_windows = functools.partial(piece_network.score_windows, plain.temporal)
    for seconds in (0.01, 1.3, 2.0, 5.99, 6.01, 20.3):
        samples = radio(seconds)
        np.testing.assert_allclose(score_samples(network, samples), score_samples(plain, samples), atol=1e-6)


def model_that_never_forgets(**options):
    model = make_model("rnn", **options)
    for name, bias in model.temporal.gru.named_parameters():
        if name.startswith("bias_ih"):
            bias.data[8:16] = 4.0
    return model


@pytest.mark.parametrize("temporal", SYSTEMS)
def test_a_score_depends_on_no_more_than_the_geometry_says(temporal):
    model = make_model(temporal, segment_length=10, segment_shift=3)
    geometry = Geometry.of(model.config, model.stft.config)
    samples, frame = radio(30.0), 1440
    scores = score_samples(model, samples)
    if temporal != "causal_rnn":  # whose state may hold what has been long ago
        samples[: (frame - geometry.margin - geometry.hop) * 80] = 0
    samples[(frame + geometry.ahead + geometry.hop) * 80 + 128 :] = 0
    assert scores[frame] == pytest.approx(score_samples(model, samples)[frame], abs=1e-6)


@pytest.mark.parametrize("block", [1000, 12345, 10**6])
def test_blocks_of_any_length_score_like_one(block):
    model = make_model("seg_rnn")
    samples = radio(45.0)
    blocks = (samples[start : start + block] for start in range(0, len(samples), block))
    np.testing.assert_array_equal(score_stream(model, blocks), score_samples(model, samples))


def test_a_stream_is_not_held_in_memory():
    for collector in (PieceCollector, ChunkCollector):
        pieces = collector(Geometry(2, 10, 60, 60, 4, 2000), StftConfig())
        held = []
        for _ in range(40):
            list(pieces.add(radio(5)))
            held.append(sum(map(len, pieces.samples)) / 8000)
        assert max(held) < 30  # of the 200 s


@pytest.mark.parametrize("num_samples", [0, 1, 79, 80, 128, 129, 4000, 4001])
def test_chunks_are_all_frames_once(rng, num_samples):
    stft = StftConfig(n_fft=128, window=128, shift=80)
    collector = ChunkCollector(Geometry(2, 10, 60, 5, 1, 2000), stft, 3)
    samples, chunks = radio(2)[:num_samples], []
    for block in np.array_split(samples, np.sort(rng.integers(0, num_samples + 1, 30))):
        chunks += collector.add(block)
    chunks += collector.finish()
    assert [last for _, last in chunks] == ([0] * (len(chunks) - 1) + [1] if num_samples else [])
    assert all(len(frames) == (3 if number else 8) for number, (frames, last) in enumerate(chunks) if not last)
    count = stft.num_frames(num_samples)
    padded = np.pad(samples, (0, max(0, 128 - num_samples)))
    whole = [padded[start : start + 128] for start in range(0, len(padded) - 127, 80)]
    expected = np.array([whole[min(number, len(whole) - 1)] for number in range(count)]).reshape(count, 128)
    np.testing.assert_array_equal(np.concatenate([np.zeros((0, 128), np.float32), *(frames for frames, _ in chunks)]), expected)


@pytest.mark.parametrize("temporal", SYSTEMS)
def test_scores_do_not_depend_on_gain(temporal):
    model = make_model(temporal)
    samples = radio(6)
    scores = score_samples(model, samples)
    for gain in (1e-4, 10.0):
        np.testing.assert_allclose(score_samples(model, gain * samples), scores, atol=1e-4)


@pytest.mark.parametrize("compress", ["log", "none"])
@pytest.mark.parametrize("kind", ["silence", "DC", "tone"])
def test_steady_signals_are_zeros_to_the_network(kind, compress):
    time = np.arange(32000) / 8000
    samples = {"silence": 0 * time, "DC": 0 * time + 0.3, "tone": 0.5 * np.sin(2 * np.pi * 1000 * time)}[kind]
    magnitudes = SadNetwork().stft(torch.from_numpy(samples.astype(np.float32))[None])
    features = normalise(magnitudes, None, 100, compress)
    assert features.abs().max() < 0.05


@pytest.mark.parametrize("compress", ["log", "none"])
def test_frames_that_only_count_for_others_change_nothing(compress):
    torch.manual_seed(0)
    magnitudes, valid = torch.rand(2, 30, 3) + 0.1, torch.rand(2, 30) > 0.2
    whole = normalise(magnitudes, valid, 5, compress)
    assert torch.equal(normalise(magnitudes, valid, 5, compress, left=4, right=7), whole[:, 4:23])


@pytest.mark.parametrize("temporal", ["rnn", "causal_rnn"])
def test_training_scores_as_evaluation_does_without_gradients(temporal):
    """The way of the GRU that training takes."""
    model, samples = make_model(temporal), torch.from_numpy(radio(3))[None]
    assert torch.allclose(model(samples), torch.from_numpy(score_whole(model, samples[0].numpy()))[None], atol=1e-5)


def test_normalisation_is_the_mean_over_the_frames_around():
    torch.manual_seed(0)
    magnitudes = torch.rand(1, 30, 3) + 0.5
    valid = torch.ones(1, 30, dtype=torch.bool)
    valid[0, :4] = valid[0, 27:] = False
    logs = normalise(magnitudes, valid, 5, "log")
    linear = normalise(magnitudes, valid, 5, "none")
    past = normalise(magnitudes, valid, 5, "log", ahead=0)
    for t in range(4, 27):
        around = magnitudes[0, max(4, t - 5) : min(27, t + 6)]
        expected = (magnitudes[0, t].log() - around.log().mean(0)) / np.log(10)
        assert torch.allclose(logs[0, t], expected, atol=1e-5)
        expected = (magnitudes[0, t].log() - magnitudes[0, max(4, t - 5) : t + 1].log().mean(0)) / np.log(10)
        assert torch.allclose(past[0, t], expected, atol=1e-5)
        mean, deviation = around.mean(0), around.std(0, unbiased=False)
        assert torch.allclose(linear[0, t], (magnitudes[0, t] - mean) / (deviation + 0.1 * mean), atol=1e-4)


@pytest.mark.parametrize("compress", ["log", "none"])
def test_rounding_of_hours_does_not_add_up(compress):
    """Normalised chunk by chunk, levels from 1e-2 to 1e2, with digital silence in between."""
    torch.manual_seed(0)
    levels = (10.0 ** torch.randint(-2, 3, (1000, 1))) * (torch.rand(1000, 1) > 0.2)
    magnitudes = (levels.repeat_interleave(200, 0) * (0.1 + torch.rand(200000, 3)))[None]
    sums = torch.zeros(1, 1, 3, dtype=torch.float64)
    before, found = {"powers": torch.zeros(1, 51, 2), "values": torch.zeros(1, 51, 3), "sums": sums}, []
    for chunk in magnitudes.split(977, 1):
        features, before = normalise_on(chunk, before, 50, compress)
        found.append(features)
    found = torch.cat(found, 1).double()
    for at in range(150, 200000, 9973):
        near = normalise(magnitudes[:, at - 150 : at + 1].double(), None, 50, compress, 150, ahead=0)
        assert torch.allclose(found[:, at : at + 1], near, atol=1e-4)


def test_batch_normalisation_is_fused_exactly():
    model = make_model("cnn")
    samples = radio(3)
    np.testing.assert_allclose(score_whole(fuse(model), samples), score_whole(model, samples), atol=1e-5)
    assert any(isinstance(layer, torch.nn.BatchNorm2d) for layer in model.modules())  # the model itself is as it was


def test_a_model_comes_back_from_its_file(tmp_path):
    model = make_model("seg_rnn", segment_length=7)
    save_model(tmp_path, model, threshold=0.35, smoothing="hmm")
    loaded = load_model(tmp_path)
    assert loaded.config == model.config and loaded.stft.config == model.stft.config
    assert (loaded.threshold, loaded.smoothing) == (0.35, "hmm")
    np.testing.assert_array_equal(score_samples(loaded, radio(2)), score_samples(model, radio(2)))


def test_what_the_lowered_spectrum_adds():
    """0.5 less than it says, in log odds, and no more than 4 above the spectrum as it is."""
    plain, lowered = torch.tensor([[0.9, 0.1], [0.1, 0.8], [0.002, 0.998]]).T.logit()
    found = piece_network.with_lowered(plain.sigmoid(), lowered.sigmoid()).logit()
    torch.testing.assert_close(found, torch.stack([plain[0], lowered[1] - 0.5, plain[2] + 4]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("temporal", ["cnn", "rnn", "seg_rnn"])
def test_a_network_hears_the_lowered_spectrum_too(temporal, monkeypatch):
    """As a network that hears it alone; what is surer counts."""
    monkeypatch.setattr(piece_network, "LOWERED_MARGIN", 0.02)  # untrained networks hear little difference
    model, samples = make_model(temporal), radio(2.5)
    plain, both = score_samples(model, samples), score_samples(with_lowered(model, 0.7), samples)
    alone = scoring_network(model)
    alone.stft = MatrixStft(model.stft.config, 0.7)
    odds = 1 / (1 / score_samples(alone, samples) - 1) / np.exp(0.02)
    assert 0 < (both > plain).sum() < len(both)
    np.testing.assert_allclose(both, np.maximum(plain, odds / (1 + odds)), atol=1e-5)


def test_the_lowered_spectrum_is_on_the_device_of_the_network():
    network = scoring_network(make_model("cnn", lowered=0.7).to("meta"))
    assert {buffer.device.type for buffer in network.buffers()} == {"meta"}


def with_lowered(model, factor):
    """The same network, which scores the lowered spectrum too."""
    other = SadNetwork(replace(model.config, lowered=factor), model.stft.config).eval()
    other.load_state_dict(model.state_dict())
    return other


@pytest.mark.parametrize(
    "option, value",
    [
        ("temporal", "lstm"),
        ("compress", "sqrt"),
        ("channels", []),
        ("rnn_size", 3),
        ("rnn_merge", "mean"),
        ("segment_shift", 6),
        ("lowered", 0.4),
        ("lowered", 1.0),
    ],
)
def test_impossible_options_are_named(option, value):
    with pytest.raises(UserError, match=option):
        SadNetwork(NetworkConfig(**{option: value}))


def test_a_causal_network_has_no_lowered_spectrum():
    with pytest.raises(UserError, match="lowered=0.7: expected 0 for causal_rnn, which is causal"):
        NetworkConfig(temporal="causal_rnn", lowered=0.7).check()
