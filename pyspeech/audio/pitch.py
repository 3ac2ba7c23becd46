"""Fundamental frequency of voices, by autocorrelation (Boersma 1993).

For statistics of corpora, noisy radio included: what counts are medians over phrases, not single frames. The autocorrelation
is that of the power spectrum in a band that every radio passes, less the fall that the window makes. A multiple of the period
correlates as well as the period, so longer lags have to be higher by an octave cost.
"""

from functools import lru_cache

import numpy as np

RANGE = (55.0, 600.0)  # Hz
STEPS = 48  # lags in an octave
WINDOW_SECONDS, SHIFT_SECONDS = 0.064, 0.016
BAND = (100.0, 2000.0)  # Hz, of the harmonics that count
OCTAVE_COST = 0.02  # of the correlation, for each octave of the lag
VOICED = 0.5  # least correlation of a voiced frame
LOUD_DB = 25.0  # quieter frames, relative to the loudest, are not voiced
CHUNK = 1000  # frames at a time
LEAST = 5  # voiced frames of a recording that has a pitch


def pitch_track(samples: np.ndarray, sampling_rate: int) -> np.ndarray:
    """F0 of samples (N,) every SHIFT_SECONDS, Hz, 0 where unvoiced: float64 (T,); T is 0 for less than a window."""
    window, bins, correlate, pitches = _tables(sampling_rate)
    hop = round(SHIFT_SECONDS * sampling_rate)
    if len(samples) < len(window):
        return np.zeros(0)
    frames = np.lib.stride_tricks.sliding_window_view(np.asarray(samples, np.float64), len(window))[::hop]
    energies, places, heights = [], [], []
    for first in range(0, len(frames), CHUNK):
        spectrum = np.square(np.abs(np.fft.rfft(frames[first : first + CHUNK] * window, 2 * len(window))[:, bins]))
        correlation = spectrum @ correlate / np.maximum(spectrum.sum(axis=1, keepdims=True), 1e-20)
        place = _best_peak(correlation)
        places.append(place)
        heights.append(correlation[np.arange(len(place)), place])
        energies.append(spectrum.sum(axis=1))
    energy, height = np.concatenate(energies), np.concatenate(heights)
    voiced = (height > VOICED) & (energy > energy.max() * 10.0 ** (-LOUD_DB / 10))
    return np.where(voiced, pitches[np.concatenate(places)], 0.0)


def median_pitch(samples: np.ndarray, sampling_rate: int) -> float:
    """Median F0 of the voiced frames of samples (N,), Hz; nan where there are fewer than LEAST of them."""
    track = pitch_track(samples, sampling_rate)
    voiced = track[track > 0]
    return float(np.median(voiced)) if len(voiced) >= LEAST else float("nan")


def _best_peak(correlation):
    """The lag of each row (T, L), the shortest first, whose peak is highest after the octave cost: indices (T,)."""
    inner = correlation[:, 1:-1]
    peak = (inner >= correlation[:, :-2]) & (inner > correlation[:, 2:])
    cost = OCTAVE_COST / STEPS * np.arange(1, correlation.shape[1] - 1)
    return 1 + np.where(peak, inner - cost, -1.0).argmax(axis=1)


@lru_cache(maxsize=4)
def _tables(sampling_rate):
    """The window (W,), the bins of its spectrum that count (F,), their weights for the lags (F, L), the pitches (L,)."""
    size = round(WINDOW_SECONDS * sampling_rate)
    frequency = np.arange(size + 1) * sampling_rate / (2 * size)
    bins = np.flatnonzero((frequency >= BAND[0]) & (frequency <= min(BAND[1], sampling_rate / 2)))
    pitches = RANGE[1] * 2.0 ** (-np.arange(-1, np.ceil(STEPS * np.log2(RANGE[1] / RANGE[0])) + 1) / STEPS)
    window = np.hanning(size)
    fall = np.interp(
        sampling_rate / pitches, np.arange(size), np.correlate(window, window, "full")[size - 1 :] / np.sum(window**2)
    )
    return window, bins, np.cos(2.0 * np.pi * frequency[bins, None] / pitches) / fall, pitches
