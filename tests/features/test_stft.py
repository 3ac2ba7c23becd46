"""The STFT against a plain sum over the samples, and at its edges."""

import numpy as np
import pytest
import torch

from pyspeech.errors import UserError
from pyspeech.features.stft import MagnitudeStft, StftConfig


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
