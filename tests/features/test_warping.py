"""Vocal tract length perturbation: against interpolation filter by filter, and against sounds of longer and shorter tracts."""

import numpy as np
import pytest
import torch

from pyspeech.features.config import FbankConfig, MfccConfig
from pyspeech.features.fbank import fbank
from pyspeech.features.mel import to_hertz, to_mel
from pyspeech.features.mfcc import add_deltas, cosine_transform, raw_features
from pyspeech.features.warping import warp, warp_log_mel

RATE = 16000


def noise_through_resonances(factor, seconds=1.0):
    """Noise with three formants, `factor` times as high: (N,) float64."""
    size = int(seconds * RATE)
    spectrum = np.fft.rfft(np.random.default_rng(0).standard_normal(size))
    frequencies = np.fft.rfftfreq(size, 1 / RATE) / factor
    gain = sum(np.exp(-0.5 * ((frequencies - centre) / 150) ** 2) for centre in (600, 1400, 2600)) + 0.01
    return 0.1 * np.fft.irfft(spectrum * gain, size)


@pytest.mark.parametrize("factor", [0.6, 0.85, 1.0, 1.2, 1.7])
def test_log_mel_equals_interpolation_of_each_frame(factor):
    config = MfccConfig(kind="log_mel", log_mel_bins=40)
    frames = raw_features(noise_through_resonances(1.0, 0.2), config)
    mel = np.linspace(1127 * np.log(1 + 20 / 700), 1127 * np.log(1 + 8000 / 700), 42)[1:-1]
    sources = 1127 * np.log(1 + (700 * np.exp(mel / 1127) - 700) / factor / 700)
    expected = np.stack([np.interp(sources, mel, frame) for frame in frames.numpy().astype(np.float64)])
    np.testing.assert_allclose(warp(frames, factor, config).numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("factor", [0.85, 1.2])
def test_a_warped_tone_of_slaneys_filters_is_a_tone_elsewhere(factor):
    config, time = FbankConfig(kind="nemo"), np.arange(RATE) / RATE
    here, there = (fbank(0.5 * np.sin(2 * np.pi * tone * time), config) for tone in (1500.0, 1500.0 * factor))
    assert abs(int(warp_log_mel(here, factor, config)[50].argmax()) - int(there[50].argmax())) <= 1


def test_slaneys_scale():
    hertz = torch.tensor([0.0, 200.0, 1000.0, 6400.0], dtype=torch.float64)
    mel = to_mel(hertz, "nemo")
    np.testing.assert_allclose(mel, [0, 3, 15, 42], atol=1e-9)
    np.testing.assert_allclose(to_hertz(mel, "nemo"), hertz, atol=1e-9)


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_cepstra_that_keep_all_are_those_of_warped_log_mel(factor):
    config, filters = MfccConfig(cepstra=23), MfccConfig(kind="log_mel", log_mel_bins=23)
    samples = noise_through_resonances(1.0, 0.3)
    expected = add_deltas((warp(fbank(samples, filters.log_mel), factor, filters).double() @ cosine_transform(23, 23)).float())
    assert torch.allclose(warp(raw_features(samples, config), factor, config), expected, atol=1e-3)


@pytest.mark.parametrize("kind", ["mfcc", "log_mel"])
@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_a_warped_voice_is_the_voice_of_the_other_tract(kind, factor):
    config = MfccConfig(kind=kind)
    here, there = (raw_features(noise_through_resonances(value), config).mean(dim=0) for value in (1.0, factor))
    warped = warp(here[None], factor, config)[0]
    assert (warped - there).norm() < 0.4 * (here - there).norm()
    assert (warp(here[None], 1 / factor, config)[0] - there).norm() > 2 * (warped - there).norm()


@pytest.mark.parametrize("kind", ["mfcc", "log_mel"])
def test_edges(kind):
    config = MfccConfig(kind=kind)
    assert warp(raw_features(torch.zeros(0), config), 1.3, config).shape == (0, config.dim)
    one = raw_features(torch.ones(10), config)
    assert warp(one, 1.3, config).shape == (1, config.dim) and torch.allclose(warp(one, 1.0, config), one, atol=1e-4)
    silence = raw_features(torch.zeros(RATE), config)
    assert torch.allclose(warp(silence, 1.4, config), silence, atol=1e-3)
