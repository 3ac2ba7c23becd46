"""The inverter: lengths, padding, voices, the loss against a plain loop; it learns made-up magnitudes."""

import pytest
import torch
from tiny_training import descend

from pyspeech.errors import UserError
from pyspeech.units.config import InverterConfig, VqVaeConfig
from pyspeech.units.inverter import Inverter, compress
from pyspeech.units.layers import MultiscaleConvolution, length_mask
from pyspeech.units.training import InverterTraining, compute_loss
from pyspeech.units.vqvae import VqVae

SIZES = dict(bins=33, dim=16, heads=2, feedforward=24)


def make_inverter(voices=2, seed=0, **options):
    torch.manual_seed(seed)
    return Inverter(InverterConfig(**{**SIZES, **options}), torch.randn(10, 6), voices)


def make_codes(lengths, seed=1):
    codes = torch.randint(10, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(seed))
    return codes, torch.tensor(lengths), torch.arange(len(lengths)) % 2


@pytest.mark.parametrize("voices", [1, 2])
def test_each_code_has_its_frames_alone_and_in_a_batch(voices):
    inverter = make_inverter(voices).eval()
    lengths = [5, 1, 9, 2]
    codes, code_lengths, speakers = make_codes(lengths)
    speakers = speakers % voices
    magnitudes = inverter.magnitudes(codes, code_lengths, speakers)
    assert magnitudes.shape == (4, 36, 33) and (magnitudes >= 0).all()
    for row, length in enumerate(lengths):
        alone = inverter.magnitudes(codes[row : row + 1, :length], code_lengths[row : row + 1], speakers[row : row + 1])
        assert alone.shape == (1, 4 * length, 33)
        torch.testing.assert_close(magnitudes[row, : 4 * length], alone[0], rtol=1e-4, atol=1e-5)
        assert not magnitudes[row, 4 * length :].any()


def test_voices_differ():
    inverter = make_inverter().eval()
    codes, lengths, _ = make_codes([6])
    first, second = (inverter(codes, lengths, torch.tensor([voice])) for voice in (0, 1))
    assert (first - second).abs().max() > 1e-3
    assert make_inverter(1).speakers is None


def test_magnitudes_are_the_power_undone():
    inverter = make_inverter(power=0.5).eval()
    codes, lengths, speakers = make_codes([6])
    compressed = inverter(codes, lengths, speakers)
    torch.testing.assert_close(inverter.magnitudes(codes, lengths, speakers), compressed.clamp(min=0) ** 2)
    values = torch.tensor([0.0, 1e-4, 1.0, 50.0])
    torch.testing.assert_close(compress(values, inverter.config), values.sqrt())
    assert torch.equal(compress(values, InverterConfig(power=1)), values)


def test_multiscale_convolution_has_kernels_of_all_widths():
    layer = MultiscaleConvolution(6, 16, 9)
    assert [module.conv.kernel_size for module in layer.convolutions] == [(1,), (3,), (5,), (7,), (9,)]
    assert layer(torch.randn(2, 7, 6), torch.ones(2, 7, dtype=torch.bool)).shape == (2, 7, 16)


def make_training(**options):
    torch.manual_seed(3)
    vqvae = VqVae(VqVaeConfig(features=5, dim=8, heads=2, feedforward=8, codes=10, code_dim=6, speaker_dim=2), 2)
    inverter = Inverter(InverterConfig(**{**SIZES, "dropout": 0.0, **options}), vqvae.codebook, 2)
    return InverterTraining(inverter, vqvae), vqvae


def make_batch(lengths=(13, 6, 3), seed=4):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor(lengths)
    mask = length_mask(lengths, int(lengths.max()))[:, :, None]
    return {
        "features": torch.randn(len(lengths), int(lengths.max()), 5, generator=generator) * mask,
        "lengths": lengths,
        "speakers": torch.tensor([0, 1, 0]),
        "seconds": float(lengths.sum()) / 100,
        "magnitudes": torch.rand(len(lengths), int(lengths.max()), 33, generator=generator) * 4 * mask,
    }


def test_loss_equals_a_plain_loop():
    training, vqvae = make_training()
    training.eval()
    batch = make_batch()
    loss, values = compute_loss(training, batch)
    codes, code_lengths = vqvae.encode(batch["features"], batch["lengths"])
    predicted = training.inverter(codes, code_lengths, batch["speakers"])
    errors = [
        (batch["magnitudes"][row, t, k] ** 0.3 - predicted[row, t, k]).item() ** 2
        for row, length in enumerate([13, 6, 3])
        for t in range(length)
        for k in range(33)
    ]
    assert loss.item() == pytest.approx(sum(errors) / len(errors), rel=1e-4)
    assert values["audio_seconds"] == 0.22 and -100 <= values["spectral_db"] < 10


def test_only_the_inverter_is_trained_and_saved():
    training, vqvae = make_training()
    training.train()
    compute_loss(training, make_batch())[0].backward()
    assert not vqvae.training
    assert all(parameter.grad is None for parameter in vqvae.parameters())
    assert all(name.startswith("inverter.") for name in training.state_dict())
    assert "inverter.codebook" in training.state_dict()


def test_learns_made_up_magnitudes():
    training, vqvae = make_training()
    training.train()
    vqvae.quantizer.initialised.fill_(True)
    batch = make_batch((40, 40, 40))
    codes, _ = vqvae.encode(batch["features"], batch["lengths"])
    spectra = torch.rand(2, 10, 33, generator=torch.Generator().manual_seed(6)) * 9  # one for each voice and code
    batch["magnitudes"] = spectra[batch["speakers"][:, None], codes].repeat_interleave(4, dim=1)
    losses, values = descend(training, compute_loss, batch, steps=80, lr=3e-3)
    assert losses[-1] < 0.2 * losses[0] and values["spectral_db"] < -6


def test_errors_are_one_line():
    inverter = make_inverter()
    with pytest.raises(UserError, match="code 10: the inverter knows 0 to 9"):
        inverter(torch.tensor([[10]]), torch.tensor([1]), torch.tensor([0]))
    with pytest.raises(UserError, match="repeat=2: expected 4"):
        make_training(repeat=2)
    for options in ({"widest_kernel": 4}, {"power": 0.0}, {"heads": 3}, {"repeat": 0}):
        with pytest.raises(UserError, match="^inverter option"):
            InverterConfig(**options).check()
