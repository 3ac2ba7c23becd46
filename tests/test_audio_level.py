"""pyspeech/audio/level.py: how much a recording hisses."""

import math

import numpy as np
import pytest
from scipy.signal import get_window

from pyspeech.audio.level import Hiss

RATE = 16000


def speech_like(seconds=4.0):
    """Harmonics up to 3.5 kHz, of an RMS of 1 where they sound, with pauses: (N,) float64."""
    times = np.arange(int(seconds * RATE)) / RATE
    sound = sum(np.sin(2 * np.pi * hertz * times) for hertz in range(150, 3500, 150)) * (times % 1 < 0.6)
    return sound / sound.std()


def with_hiss(decibels, seed=0):
    """White noise so far below."""
    samples = speech_like()
    return samples + 10 ** (-decibels / 20) * np.random.default_rng(seed).standard_normal(len(samples))


def level_of(blocks, rate=RATE):
    hiss = Hiss(blocks, rate)
    read = list(hiss)
    assert all(given is taken for given, taken in zip(blocks, read)) and len(read) == len(blocks)
    return hiss.level


@pytest.mark.parametrize("decibels", [10, 25, 40, 60])
@pytest.mark.parametrize("gain", [1e-3, 1.0])
def test_white_noise_has_the_level_it_has(decibels, gain):
    assert level_of([gain * with_hiss(decibels)]) == pytest.approx(-decibels, abs=2)


def test_as_plainly_written():
    """Frame by frame, with numpy's quantile; to the step that levels are counted in."""
    samples, window, powers = with_hiss(30), get_window("hann", 256, fftbins=False), []
    for start in range(0, len(samples) - 255, 128):
        powers.append(np.abs(np.fft.rfft(samples[start : start + 256] * window)) ** 2)
    powers, hertz = np.array(powers), np.arange(129) * RATE / 256
    quiet = np.quantile(powers[:, (hertz >= 4500) & (hertz <= 7000)].mean(axis=1), 0.1)
    assert level_of([samples]) == pytest.approx(10 * np.log10(quiet / powers.mean()), abs=0.5)


@pytest.mark.parametrize("size", [37, 128, 1000, 16000])
def test_blocks_of_any_length_say_the_same(size):
    samples = with_hiss(20).astype(np.float32)
    blocks = [samples[start : start + size] for start in range(0, len(samples), size)]
    assert level_of(blocks) == pytest.approx(level_of([samples]), abs=0.01)


def test_where_there_is_nothing_to_hear():
    for blocks in ([], [np.zeros(0)], [np.zeros(5000)], [np.ones(100)]):
        assert level_of(blocks) == -math.inf
    assert level_of([with_hiss(10)], 8000) == -math.inf  # has nothing above 4 kHz
    padded = np.concatenate([with_hiss(10), np.zeros(RATE)])  # pauses without any sound
    assert level_of([padded]) == -math.inf
