"""A made-up voice that the bundled speech detector takes for speech."""

import numpy as np
from scipy.signal import lfilter

VOWELS = [(700, 1200, 2500), (300, 2200, 2900), (350, 800, 2300), (500, 1800, 2500)]  # Hz of formants
STEP = 0.12  # seconds from vowel to vowel


def voice(seconds, rate=16000, seed=0, pitch=120):
    """float32 (N,): pulses of a pitch that moves around `pitch` Hz, through formants of one vowel after the other; hiss."""
    rng, size, step = np.random.default_rng(seed), round(seconds * rate), round(STEP * rate)
    times = np.arange(size) / rate
    phase = np.cumsum(pitch * (1 + 0.15 * np.sin(2 * np.pi * 0.7 * times) + 0.05 * np.sin(2 * np.pi * 2.3 * times))) / rate
    source = lfilter([1], [1, -0.95], np.diff(np.floor(phase), prepend=0) + 0.02 * rng.standard_normal(size))
    spoken = np.zeros(size)
    for begin in range(0, size, step):
        piece = source[begin : begin + 2 * step]
        for frequency, width in zip(VOWELS[rng.integers(len(VOWELS))], (80, 100, 150), strict=True):
            radius = np.exp(-np.pi * width / rate)
            angle = 2 * np.pi * frequency / rate
            piece = lfilter([1 - radius], [1, -2 * radius * np.cos(angle), radius**2], piece)
        spoken[begin : begin + 2 * step] += piece * np.hanning(2 * step)[: len(piece)] * rng.uniform(0.3, 1)
    return (0.2 * spoken / np.abs(spoken).max() + 3e-4 * rng.standard_normal(size)).astype(np.float32)
