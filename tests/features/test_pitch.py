"""Fundamental frequency: signals of known pitch, a plain slow version, noise, silence, levels, lengths."""

import numpy as np
import pytest
import torch
from tiny_zerospeech import RATE, VOICES, phone_sound

from pyspeech.features.config import MfccConfig
from pyspeech.features.pitch import autocorrelation, fundamental_frequency

CONFIG = MfccConfig().log_mel


def time(seconds):
    return np.arange(int(seconds * RATE)) / RATE


@pytest.mark.parametrize("pitch", [65, 80, 110, 220, 330, 440])
def test_harmonics_of_a_known_pitch(pitch):
    signal = sum(np.sin(2 * np.pi * h * pitch * time(0.5)) / h for h in range(1, 20)) + 0.3  # and an offset
    found = fundamental_frequency(signal, CONFIG)
    assert len(found) == CONFIG.num_frames(8000)
    inside = found[3:-3]  # whole windows
    np.testing.assert_allclose(inside, pitch, rtol=0.005)


@pytest.mark.parametrize("voice", VOICES.values())
def test_pulses_through_formants(voice, rng):
    for phone in "aiu":
        found = fundamental_frequency(phone_sound(phone, 0.5, voice, rng), CONFIG)
        assert (found > 0).double().mean() > 0.9
        assert found[found > 0].median() == pytest.approx(voice[0], rel=0.06)  # the glide is drawn within 5 %


def test_follows_a_glide():
    pitch = np.linspace(100, 200, RATE)
    signal = sum(np.sin(h * 2 * np.pi * np.cumsum(pitch) / RATE) / h for h in range(1, 15))
    found = fundamental_frequency(signal, CONFIG).numpy()
    centres = np.arange(len(found)) * CONFIG.shift + CONFIG.window // 2
    np.testing.assert_allclose(found[3:-3], pitch[centres][3:-3], rtol=0.02)


def test_noise_and_silence_have_none(rng):
    assert (fundamental_frequency(rng.standard_normal(RATE), CONFIG) > 0).double().mean() < 0.02
    assert not fundamental_frequency(np.zeros(RATE), CONFIG).any()
    assert not fundamental_frequency(np.full(RATE, 0.5), CONFIG).any()


def test_the_level_does_not_matter_but_within_the_recording(rng):
    voice = phone_sound("a", 0.5, VOICES["V001"], rng)
    found = fundamental_frequency(voice, CONFIG)
    np.testing.assert_allclose(fundamental_frequency(1e-3 * voice, CONFIG), found, rtol=1e-4)
    both = fundamental_frequency(np.concatenate([voice, 0.01 * voice]), CONFIG)  # 40 dB below: an echo, a neighbour
    assert (both[:45] > 0).double().mean() > 0.9 and not both[55:].any()


@pytest.mark.parametrize("length", [0, 1, 399, 400, 401, 560, 1520])
def test_as_many_frames_as_features(length, rng):
    found = fundamental_frequency(rng.standard_normal(length).astype(np.float32), CONFIG)
    assert found.shape == (CONFIG.num_frames(length),) and found.dtype == torch.float32 and torch.isfinite(found).all()


def test_blocks_of_frames_change_nothing(monkeypatch, rng):
    signal = phone_sound("a", 0.5, VOICES["V002"], rng)
    whole = fundamental_frequency(signal, CONFIG)
    monkeypatch.setattr("pyspeech.features.pitch.BLOCK", 7)
    np.testing.assert_allclose(fundamental_frequency(signal, CONFIG), whole, rtol=1e-5)


def testautocorrelation_is_the_plain_sum(rng):
    frames = rng.standard_normal((2, 50))
    expected = [[sum(frame[i] * frame[i + lag] for i in range(50 - lag)) for lag in range(50)] for frame in frames]
    np.testing.assert_allclose(autocorrelation(torch.tensor(frames)), expected, atol=1e-10)


def test_other_rates():
    config = MfccConfig(sampling_rate=8000).log_mel
    signal = np.sign(np.sin(2 * np.pi * 123 * np.arange(4000) / 8000))
    np.testing.assert_allclose(fundamental_frequency(signal, config)[3:-3], 123, rtol=0.01)
