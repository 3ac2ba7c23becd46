"""Disturbances of training crops that a simulated radio corpus does not have enough of: bands, levels, noise, tones, overdrive.

All numbers are drawn from numpy's global generator, which the loader seeds by epoch and batch. A fixed gain or a gentle
frequency response needs none of this: the networks' normalisation removes both, but not what it does to voices that noise
fills the missing bands.
"""

from collections.abc import Callable

import numpy as np

BAND_LOW_HZ = (50.0, 500.0)
BAND_HIGH = (0.22, 0.47)  # of the sampling rate
GAIN_STEP_DB = 15.0
NOISE_SNR_DB = (0.0, 30.0)
NOISE_POLE = (-0.3, 0.95)  # of a first-order filter on white noise: a little blue to brown
TONE_LEVEL_DB = (-30.0, 0.0)
DRIVE_DB = (0.0, 20.0)


def augment(
    samples: np.ndarray, sampling_rate: int, probability: float, take_noise: Callable[[int], np.ndarray] | None = None
) -> np.ndarray:
    """Disturb samples (N,) float32, each way with `probability`: a new array, same length, same labels.

    What is called speech stays speech: it is never removed, only made harder. take_noise(N) gives recorded noise (N,) at any
    level, one more way.
    """
    level = np.sqrt(np.mean(np.square(samples)))
    if level == 0:
        return samples
    for disturb in (_limit_band, _step_gain, _add_noise, _add_tone, _overdrive):
        if np.random.random() < probability:
            samples = disturb(samples, level, sampling_rate)
    if take_noise is not None and np.random.random() < probability:
        samples = _add_recorded(samples, level, take_noise(len(samples)))
    return samples.astype(np.float32)


def _limit_band(samples, level, sampling_rate):
    """A narrower line."""
    from scipy.signal import butter, sosfilt

    low, high = np.random.uniform(*BAND_LOW_HZ), np.random.uniform(*BAND_HIGH) * sampling_rate
    filters = butter(3, [low, high], "bandpass", fs=sampling_rate, output="sos")
    return np.asarray(sosfilt(filters, samples))


def _step_gain(samples, level, sampling_rate):
    """One or two sudden changes of level."""
    borders = np.sort(np.random.randint(0, len(samples) + 1, size=np.random.randint(1, 3)))
    gains = _ratio(np.random.uniform(-GAIN_STEP_DB, GAIN_STEP_DB, size=len(borders) + 1))
    lengths = np.diff(np.concatenate(([0], borders, [len(samples)])))
    return samples * np.repeat(gains, lengths)


def _add_noise(samples, level, sampling_rate):
    """Coloured Gaussian noise."""
    from scipy.signal import lfilter

    # A first-order filter: pole near 1 is brown, near 0 is white, below 0 is blue.
    white = np.random.standard_normal(len(samples)).astype(np.float32)
    noise = np.asarray(lfilter([1.0], [1.0, -np.random.uniform(*NOISE_POLE)], white), np.float32)
    return _add_recorded(samples, level, noise)


def _add_recorded(samples, level, noise):
    """Noise (N,) that is brought to a level below that of the samples; digital silence stays as it is."""
    loudness = np.sqrt(np.mean(np.square(noise)))
    return samples + noise * (level / loudness if loudness > 0 else 0.0) * _ratio(-np.random.uniform(*NOISE_SNR_DB))


def _add_tone(samples, level, sampling_rate):
    """A whistle or hum, steady or gliding, with or without harmonics, for all of the crop or a part of it."""
    length = len(samples)
    start, end = np.random.uniform(30, 0.35 * sampling_rate) * np.array([1, 1 + 0.3 * np.random.choice([0, 0, 1, -1])])
    cycles = np.cumsum(np.linspace(start, end, length)) / sampling_rate
    tone = sum(
        _sine(harmonic * cycles) / harmonic
        for harmonic in range(1, np.random.randint(2, 5))
        if harmonic * max(start, end) < sampling_rate / 2
    )
    on, off = np.sort(np.random.randint(0, length + 1, size=2)) if np.random.random() < 0.5 else (0, length)
    tone[:on] = tone[off:] = 0  # pyright: ignore[reportIndexIssue]
    return samples + tone * level * _ratio(np.random.uniform(*TONE_LEVEL_DB))


def _sine(cycles):
    """The angle in double precision, its sine in single, which takes a sixth of the time."""
    return np.sin(((cycles - np.floor(cycles)) * (2 * np.pi)).astype(np.float32))


def _overdrive(samples, level, sampling_rate):
    """Saturation of an amplifier that is driven too hard."""
    drive = _ratio(np.random.uniform(*DRIVE_DB)) / (4 * level)
    return np.tanh(samples * drive) / drive


def _ratio(decibels):
    return 10 ** (np.asarray(decibels) / 20)
