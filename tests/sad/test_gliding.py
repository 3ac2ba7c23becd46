"""Gliding pitch: against plain definitions, at its edges, and what it is for: music and modems are no speech."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_corpora import RATE, voiced

from local.synthesis import radio
from pyspeech.sad.config import StatisticalConfig
from pyspeech.sad.gliding import gliding, voice_llr
from pyspeech.sad.segments import segments_to_frames
from pyspeech.sad.statistical import detect
from pyspeech.sad.voicing import VoicingTracks, voicing_tracks

CONFIG = StatisticalConfig()
ANYTHING_VOICED = replace(CONFIG, glide_nats=0.0, prior_nats=0.0)  # energies and voicing alone
SHIFT = 0.02


def tracks(lag, harmonicity):
    lag, harmonicity = (np.asarray(values, np.float32) for values in (lag, harmonicity))
    return VoicingTracks(harmonicity, lag, np.zeros_like(lag), np.ones_like(lag), np.ones((len(lag), 8), np.float32))


def complex_tone(frequency, partials=12):
    """Harmonics of a frequency (N,), Hz, that may change, without those above 3500 Hz."""
    phase = 2 * np.pi * np.cumsum(frequency) / RATE
    return sum(np.sin(n * phase) * (n * frequency < 3500) / n for n in range(1, partials + 1))


def melody(seconds, rng):
    """Two voices of held notes that die away, from 110 Hz up, with rests."""
    total = np.zeros(int(seconds * RATE))
    for octave in (1, 2):
        position = 0
        while position < len(total):
            size = min(int(rng.uniform(0.15, 0.6) * RATE), len(total) - position)
            note = complex_tone(np.full(size, 110.0 * octave * 2 ** (rng.integers(0, 13) / 12)))
            total[position : position + size] += note * np.exp(-np.arange(size) / (0.2 * RATE)) * (rng.random() < 0.7)
            position += size
    return 0.1 * total


@pytest.mark.parametrize("frequency", [75.0, 101.3, 163.0, 240.5])
def test_lag_is_a_multiple_of_the_period(frequency):
    """To a tenth of a sample, between samples too."""
    found = voicing_tracks(complex_tone(np.full(RATE, frequency), 20).astype(np.float32), 160, RATE).lag * RATE
    period = RATE / frequency
    multiples = np.round(found / period)
    assert np.abs(found / multiples - period).max() < 0.1 and multiples.min() >= 1
    assert found.min() >= 20 and found.max() <= 133


@pytest.mark.parametrize(
    "octaves_a_second, expected", [(0.0, 0.0), (0.8, 0.0), (-0.8, 0.0), (3.0, 1.0), (-3.0, 1.0), (20.0, 0.0)]
)
def test_pitch_that_moves_and_neither_stands_nor_jumps(octaves_a_second, expected):
    place = np.abs((np.arange(200) * SHIFT * octaves_a_second + 1) % 2 - 1)  # up and down
    found = gliding(tracks(0.005 * 2.0**place, np.ones(200)), SHIFT)
    if octaves_a_second in (3.0, -3.0):  # it turns three times a second
        assert found.mean() > 0.8
    else:
        assert found.mean() == expected


@pytest.mark.parametrize("shift", [0.016, 0.02])
def test_glides_one_by_one(rng, shift):
    lag = 0.006 * np.exp(np.cumsum(rng.normal(0, 0.04, 500)))
    lag = np.clip(np.where(rng.random(500) < 0.1, 2 * lag, lag), 0.0025, 0.0167)
    harmonicity = rng.uniform(0.25, 1.0, 500)
    found = gliding(tracks(lag, harmonicity), shift)
    for v in range(500):
        if 0 < v < 499:
            first, middle, last = (float(np.log(np.float32(lag[v + k]))) for k in (-1, 0, 1))
            steps = max(abs(middle - first), abs(last - middle)) < 5.0 * shift
            assert found[v] == (steps and abs(last - first) > 1.5 * shift and min(np.float32(harmonicity[v - 1 : v + 2])) > 0.3)
        else:
            assert not found[v]
    assert 20 < found.sum() < 400


def test_ratio_is_the_higher_of_two_sums(rng):
    lag, harmonicity, called = rng.uniform(0.004, 0.0042, 300), rng.uniform(0.3, 1.0, 300), rng.random(300) < 0.7
    given = tracks(lag, harmonicity)
    found = voice_llr(given, called, SHIFT, (0.5, 3.0), 0.2, 250.0, 5.0)
    counted = 5.0 * (gliding(given, SHIFT) & called) - 1.0 * ((harmonicity > 0.4) & called)  # nats of 20 ms
    for v in range(300):
        near, far = (counted[max(0, v - length // 2) : v - length // 2 + length].sum() for length in (25, 150))
        assert found[v] == pytest.approx(min(max(near, far) - 5.0, 0.0), abs=1e-6)
    assert (found < 0).any() and (found == 0).any()


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_edges(count):
    given = tracks(np.full(count, 0.005), np.ones(count))
    assert not gliding(given, SHIFT).any()
    found = voice_llr(given, np.ones(count, bool), SHIFT, (6.0, 60.0), 0.06, 250.0, 5.0)
    np.testing.assert_allclose(found, -5.0 - 0.3 * count)


def test_music_is_no_speech(rng):
    samples = melody(60.0, rng) + 1e-4 * rng.standard_normal(60 * RATE)
    assert detect(samples, RATE, ANYTHING_VOICED).decisions.mean() > 0.3
    assert detect(samples, RATE).decisions.mean() < 0.02


def whistle(rng, length):
    """Of six harmonics, which drifts by a tenth of an octave."""
    return complex_tone(150.0 * 2.0 ** (0.1 * np.sin(2 * np.pi * 0.3 * np.arange(length) / RATE)), 6)


@pytest.mark.parametrize("sound", [radio.keyed_tones, whistle])
def test_most_of_modems_and_whistles_is_no_speech(rng, sound):
    """Switched on and off, so that they rise over their floor as speech does."""
    shares = []
    for _ in range(5):
        gate = np.repeat(rng.random(60) < 0.4, RATE // 2)
        samples = 0.1 * gate * sound(rng, len(gate)) + 1e-3 * rng.standard_normal(len(gate))
        shares.append([detect(samples, RATE, config).decisions.mean() for config in (ANYTHING_VOICED, CONFIG)])
    before, now = np.mean(shares, axis=0)
    assert before > 0.3 and now < 0.35 * before


def test_speech_after_music(rng):
    """A minute away from each other: one is speech, the other is not."""
    samples = 1e-4 * rng.standard_normal(150 * RATE)
    samples[: 50 * RATE] += melody(50.0, rng)
    segments = [(start, start + 2.0) for start in (112.0, 118.0, 125.0, 133.0)]
    for start, _ in segments:
        samples[int(start * RATE) : int((start + 2) * RATE)] += 0.3 * voiced(2.0, rng)
    found = detect(samples, RATE).decisions
    assert found[segments_to_frames(segments, 15000)].mean() > 0.95
    assert found[:6000].mean() < 0.02


def test_a_monotonous_talker(rng):
    """Whose pitch moves by an octave or so a second at most, half of what that of others does."""
    samples = 1e-4 * rng.standard_normal(30 * RATE)
    spoken = np.zeros(3000, bool)
    for start in range(2, 28, 3):
        time = np.arange(2 * RATE) / RATE
        pitch = 110.0 * 2.0 ** (0.12 * np.sin(2 * np.pi * 1.7 * time))  # at most 1.3 octaves a second
        syllables = np.maximum(np.sin(2 * np.pi * 2 * time), 0)
        samples[start * RATE : (start + 2) * RATE] += 0.3 * complex_tone(pitch) * syllables
        spoken[100 * start : 100 * start + 175] = True
    assert detect(samples, RATE).decisions[spoken].mean() > 0.8


def test_a_held_word_is_speech_where_others_glide(rng):
    """Talk within a minute speaks for a held sound, which alone is no speech."""
    time = np.arange(5 * RATE // 2) / RATE
    held = 0.3 * complex_tone(np.full(len(time), 120.0)) * np.sin(2 * np.pi * 2 * time) ** 2  # syllables
    alone = 1e-3 * rng.standard_normal(40 * RATE)
    alone[30 * RATE : 65 * RATE // 2] += held
    talk = alone.copy()
    for start in (12, 17, 21):
        talk[start * RATE : (start + 2) * RATE] += 0.3 * voiced(2.0, rng)
    assert detect(alone, RATE, ANYTHING_VOICED).decisions[3000:3250].mean() > 0.8
    assert not detect(alone, RATE).decisions.any()
    assert detect(talk, RATE).decisions[3000:3250].mean() > 0.8
