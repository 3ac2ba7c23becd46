"""The STFT against a plain sum over the samples, and at its edges."""

import numpy as np
import pytest
import torch

from pyspeech.errors import UserError
from pyspeech.features.stft import MagnitudeStft, MatrixStft, StftConfig


def plain_stft(samples, config):
    """Definition: one frame, one bin at a time."""
    num_frames = -(-len(samples) // config.shift)
    whole = max(1, (len(samples) - config.window) // config.shift + 1)
    padded = np.concatenate([samples, np.zeros(config.window)])
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(config.window) / config.window)
    magnitudes = np.zeros((num_frames, config.num_bins))
    for t in range(num_frames):
        frame = padded[min(t, whole - 1) * config.shift :][: config.window] * window
        for f in range(config.num_bins):
            wave = np.exp(-2j * np.pi * f * np.arange(config.window) / config.n_fft)
            magnitudes[t, f] = abs(np.sum(frame * wave))
    return magnitudes


@pytest.mark.parametrize("rate", [0, -8000])
def test_a_rate_that_makes_no_sense(rate):
    with pytest.raises(UserError, match=f"^features option sampling_rate={rate}: expected 1000 to 192000 Hz"):
        StftConfig(sampling_rate=rate).check()


@pytest.mark.parametrize("config", [StftConfig(), StftConfig(n_fft=64, window=50, shift=20)])
@pytest.mark.parametrize("num_samples", [1, 79, 80, 81, 1003])
def test_equals_the_definition(config, num_samples):
    samples = np.random.default_rng(0).standard_normal((2, num_samples))
    magnitudes = MagnitudeStft(config)(torch.from_numpy(samples).float())
    for row in range(2):
        np.testing.assert_allclose(magnitudes[row], plain_stft(samples[row], config), atol=1e-3)


def test_no_samples_no_frames():
    assert MagnitudeStft(StftConfig())(torch.zeros(3, 0)).shape == (3, 0, 257)


def test_a_piece_of_a_signal_gives_the_frames_of_the_whole():
    stft = MagnitudeStft(StftConfig())
    samples = torch.randn(1, 8000)
    piece = samples[:, 20 * 80 : 49 * 80 + 400]
    assert torch.allclose(stft(piece, num_frames=30), stft(samples)[:, 20:50], atol=1e-5)


def test_scales_with_the_signal():
    stft = MagnitudeStft(StftConfig())
    samples = torch.randn(1, 4000)
    assert torch.allclose(stft(1e-4 * samples), 1e-4 * stft(samples), rtol=1e-4, atol=1e-8)


def test_impossible_sizes_are_named():
    with pytest.raises(UserError, match="window=600.*n_fft=512"):
        MagnitudeStft(StftConfig(window=600))


def test_as_a_matrix_it_is_the_same():
    config = StftConfig(n_fft=64, window=50, shift=20)
    samples = torch.randn(1, 1003)
    magnitudes = MagnitudeStft(config)(samples)
    assert torch.allclose(MatrixStft(config)(samples, torch.tensor(magnitudes.shape[1])), magnitudes, atol=1e-4)


@pytest.mark.parametrize("hertz", [300, 1000, 2500])
def test_what_is_lowered_is_as_much_lower(hertz):
    config = StftConfig(sampling_rate=8000, n_fft=256, window=256, shift=160)
    tone = torch.sin(2 * np.pi * hertz / 8000 * torch.arange(4000, dtype=torch.float64)).float()[None]
    magnitudes = MatrixStft(config, 0.7)(tone, torch.tensor(20))[0]
    assert ((magnitudes.argmax(dim=1) * 8000 / 256 - 0.7 * hertz).abs() < 16).all()


def test_above_what_is_lowered_is_its_mirror():
    config = StftConfig(sampling_rate=8000, n_fft=256, window=256, shift=160)
    magnitudes = MatrixStft(config, 0.5)(torch.randn(1, 4000), torch.tensor(20))[0]
    assert torch.allclose(magnitudes, magnitudes.flip(1), atol=1e-3)
