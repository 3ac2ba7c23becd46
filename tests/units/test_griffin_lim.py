"""Griffin-Lim: how near the magnitudes of what it makes are to those given; lengths, snippets, silence, repeatability."""

import numpy as np
import pytest
import scipy.signal
import torch

from pyspeech.features.config import MfccConfig, StftConfig
from pyspeech.features.stft import MagnitudeStft
from pyspeech.units.griffin_lim import griffin_lim, spectral_snr

CONFIG = MfccConfig().magnitudes


def speech_like(seconds, seed=0):
    """Harmonics of a gliding pitch through three formants, syllable by syllable, some of noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * 16000)) / 16000
    pitch = 120 + 30 * np.sin(2 * np.pi * 0.7 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / 16000
    voiced = sum(np.sin(h * phase) / h for h in range(1, 40))
    noise = rng.standard_normal(len(time))
    signal = np.where(np.sin(2 * np.pi * 2.1 * time) > -0.4, voiced, 0.3 * noise)
    signal = signal * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * time))
    for frequency in (500, 1500, 2500):
        signal = signal + 2 * scipy.signal.lfilter(*scipy.signal.iirpeak(frequency, 5, fs=16000), signal)
    return torch.tensor(0.1 * signal + 1e-3 * noise, dtype=torch.float32)


def magnitudes_of(samples, config=CONFIG):
    return MagnitudeStft(config)(samples[None], 1 + max(0, len(samples) - config.window) // config.shift)[0]


def test_magnitudes_are_kept():
    signal = speech_like(3)
    given = magnitudes_of(signal)
    made = griffin_lim(given, CONFIG)
    assert made.dtype == torch.float32 and len(made) == (len(given) - 1) * 160 + 400 <= len(signal) < len(made) + 160
    assert spectral_snr(given, magnitudes_of(made)) >= 22
    # against the plain start of a random phase
    rng = np.random.default_rng(0)
    assert spectral_snr(given, magnitudes_of(torch.tensor(rng.standard_normal(len(made)) * 0.1, dtype=torch.float32))) < 5


def test_in_time_with_the_magnitudes():
    """A click in the middle of frame 50 stays where it was."""
    signal = torch.zeros(16000)
    signal[50 * 160 + 200] = 1.0
    made = griffin_lim(magnitudes_of(signal), CONFIG)
    energy = made.square()
    centre = (energy * torch.arange(len(made))).sum() / energy.sum()
    assert abs(centre - 50 * 160 - 200) < 16


def test_same_samples_each_time_and_nothing_drawn():
    given = magnitudes_of(speech_like(0.5))
    state = torch.get_rng_state()
    first = griffin_lim(given, CONFIG)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert torch.equal(griffin_lim(given, CONFIG), first)
    assert not torch.equal(griffin_lim(given, CONFIG, seed=1), first)


@pytest.mark.parametrize("frames", [1, 2, 3, 5])
def test_snippets(frames):
    signal = speech_like(1)[4000 : 4000 + 400 + 160 * (frames - 1)]
    made = griffin_lim(magnitudes_of(signal), CONFIG)
    assert len(made) == len(signal) and torch.isfinite(made).all()
    assert 0.2 < made.square().mean() / signal.square().mean() < 5


def test_silence_and_nothing():
    assert torch.equal(griffin_lim(torch.zeros(20, 513), CONFIG), torch.zeros(19 * 160 + 400))
    assert griffin_lim(torch.zeros(0, 513), CONFIG).shape == (0,)
    with pytest.raises(ValueError, match="expected .frames, 513"):
        griffin_lim(torch.zeros(20, 257), CONFIG)


@pytest.mark.parametrize(
    "config", [StftConfig(8000, 256, 200, 80), StftConfig(16000, 1024, 800, 200), StftConfig(16000, 2048, 1200, 300)]
)
def test_other_framings(config):
    signal = speech_like(1)
    given = magnitudes_of(signal, config)
    made = griffin_lim(given, config)
    assert spectral_snr(given, magnitudes_of(made, config)) >= 15
    for frames in (1, 2):
        assert len(griffin_lim(given[:frames], config)) == config.window + (frames - 1) * config.shift


def test_spectral_snr():
    given = torch.ones(4, 5)
    assert spectral_snr(given, 0.9 * given) == pytest.approx(20, abs=1e-4)
