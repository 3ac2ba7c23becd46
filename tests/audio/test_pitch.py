"""The pitch tracker: known pitches, clean and in noise; what has none."""

import numpy as np
import pytest

from pyspeech.audio.pitch import SHIFT_SECONDS, WINDOW_SECONDS, median_pitch, pitch_track

RATE = 8000


def vowel(pitch, seconds=0.6, rate=RATE):
    """Harmonics of a pitch through three formants: (N,)."""
    time = np.arange(int(seconds * rate)) / rate
    frequencies = pitch * np.arange(1, int(0.48 * rate / pitch) + 1)
    strength = sum(1 / (1 + ((frequencies - centre) / 120) ** 2) for centre in (600, 1200, 2400)) + 0.02
    return (strength[:, None] * np.cos(2 * np.pi * frequencies[:, None] * time + frequencies[:, None])).sum(axis=0)


@pytest.mark.parametrize("rate", [8000, 16000])
@pytest.mark.parametrize("pitch", [65, 80, 105, 150, 220, 350, 500])
def test_known_pitch(pitch, rate):
    samples = vowel(pitch, rate=rate)
    assert median_pitch(samples, rate) == pytest.approx(pitch, rel=0.03)
    noise = np.random.default_rng(0).standard_normal(len(samples))
    assert median_pitch(samples + 0.1 * samples.std() * noise, rate) == pytest.approx(pitch, rel=0.03)


def test_level_does_not_matter():
    samples = vowel(120)
    assert median_pitch(1e-4 * samples, RATE) == median_pitch(samples, RATE)


def test_track_follows_a_change():
    track = pitch_track(np.concatenate([vowel(100), vowel(200)]), RATE)
    assert len(track) == round((1.2 - WINDOW_SECONDS) / SHIFT_SECONDS) + 1
    assert track[2:30] == pytest.approx(100, rel=0.03) and track[-28:] == pytest.approx(200, rel=0.03)


def test_noise_silence_and_nothing_have_none():
    for samples in (np.random.default_rng(0).standard_normal(RATE), np.zeros(RATE), np.zeros(100), np.zeros(0)):
        assert np.isnan(median_pitch(samples, RATE))
    assert pitch_track(np.zeros(0), RATE).shape == (0,)
