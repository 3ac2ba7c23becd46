"""Combo-SAD: voicing measures and spectral flux, their first principal component, and a Gaussian mixture with two components.

The unsupervised baseline that the neural systems of Fearless Steps were first compared with ("two Gaussian mixture models
applied to the one-dimensional principal component analysis of a concatenation of multiple noise robust features",
Heitkaemper et al. 2020, section 1). After Sadjadi and Hansen, "Unsupervised speech activity detection using voicing measures
and perceptual spectral flux" (IEEE Signal Processing Letters 20, 2013), and Ziaei et al. (Interspeech 2014), who used it on
Apollo 11 recordings. Five features of a frame:

    harmonicity      the highest autocorrelation in the range of pitch, as a ratio of harmonic to other energy, in dB
    clarity          the depth of the deepest valley of the average magnitude difference function below its highest peak
    prediction gain  energy over that of the residual of linear prediction, in dB
    periodicity      the highest peak of the harmonic product spectrum in the range of pitch, in nats
    spectral flux    the change of the mel spectrum, of unit sum, from the frame before

Each is normalised over its recording. Their first principal component, smoothed, is modelled by two Gaussians for each
recording; the threshold lies between their means. Its direction is that of all recordings of a set, for a single one may vary
most by a tone that comes and goes. What the papers leave open (sizes, order, smoothing) is ours.
"""

from collections.abc import Sequence

import numpy as np
from numpy.fft import irfft, rfft
from scipy.ndimage import uniform_filter1d

from pyspeech.sad import gmm

WINDOW_SECONDS, HOP_SECONDS = 0.032, 0.01
PITCH = (62.5, 400.0)  # Hz
HIGH_PASS = 300.0  # Hz: radio carries no more of a voice, and hum is as harmonic as one
NUM_FFT = 1024
HARMONICS = 8  # of the harmonic product spectrum
ORDER = 10  # of linear prediction
MELS = 24
SMOOTHED_FRAMES = 49  # over which the component is averaged: 0.48 s, as the energies of the statistical SAD
CHUNK = 1000  # frames at a time
FLOOR = 1e-9  # of the recording's mean power: keeps the logarithms of digital silence finite


def combo_scores(features: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """The place of each frame between the two means, 0 (not speech) to 1 (speech): float32 (T,).

    features: of `combo_features`; direction: of `principal_direction`. Frames of digital silence have 0, and so has all of a
    recording that is the same everywhere.
    """
    scores, heard = np.zeros(len(features), np.float32), ~np.isnan(features).any(axis=1)
    if not heard.any():
        return scores
    component = uniform_filter1d(features[heard] @ direction, SMOOTHED_FRAMES, mode="nearest")
    low, high = np.sort(gmm.fit(*gmm.histogram(component), variance_floor=1e-4).means)
    if high > low:
        scores[heard] = np.clip((component - low) / (high - low), 0, 1)
    return scores


def principal_direction(recordings: Sequence[np.ndarray]) -> np.ndarray:
    """The direction (5,), of length 1, in which the features (T, 5) of the recordings vary most; harmonicity rises in it."""
    heard = [features[~np.isnan(features[:, 0])] for features in recordings]
    _, directions = np.linalg.eigh(np.sum([features.T @ features for features in heard], axis=0))
    return directions[:, -1] * (1 if directions[0, -1] >= 0 else -1)


def combo_features(samples: np.ndarray, sampling_rate: int) -> np.ndarray:
    """The five features of each frame, less their means, by their deviations: samples (N,) -> float64 (ceil(N / hop), 5).

    Frame t stands for [t, t + 1) HOP_SECONDS; its window is centred there. NaN for frames of digital silence.
    """
    window, hop = round(WINDOW_SECONDS * sampling_rate), round(HOP_SECONDS * sampling_rate)
    num_frames = -(-len(samples) // hop)
    left = (window - hop) // 2
    padded = np.pad(np.asarray(samples, np.float64), (left, window + hop))
    floor = FLOOR * (np.mean(np.square(samples)) if len(samples) else 0.0) + 1e-20
    frames = np.lib.stride_tricks.sliding_window_view(padded, window)[::hop][:num_frames]
    parts, mels = [np.zeros((0, 5))], np.zeros((0, MELS))
    for first in range(0, num_frames, CHUNK):
        measured, mel = _measure(frames[first : first + CHUNK] * np.hanning(window), sampling_rate, floor)
        before = mels[-1:] if first else mel[:1]
        mels = mel
        flux = np.abs(np.diff(np.concatenate([before, mel]), axis=0)).sum(axis=1)
        parts.append(np.column_stack([measured, flux]))
    features = np.concatenate(parts)
    heard = np.add.accumulate(np.append(0, padded != 0))
    begin = np.arange(num_frames) * hop
    heard = heard[begin + window] > heard[begin]
    features[~heard] = np.nan
    if not heard.any():
        return features
    deviation = features[heard].std(axis=0)
    return (features - features[heard].mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1)


def _measure(frames, sampling_rate, floor):
    """Windowed frames (T, W) -> harmonicity, clarity, prediction gain and periodicity (T, 4), and mel spectra (T, MELS)."""
    power = np.abs(rfft(frames, NUM_FFT)) ** 2
    power[:, : int(HIGH_PASS * NUM_FFT / sampling_rate)] = 0
    power += floor * frames.shape[1]
    correlation = irfft(power)  # long enough for all lags used here: window + longest lag < NUM_FFT
    lags = np.arange(int(sampling_rate / PITCH[1]), int(sampling_rate / PITCH[0]) + 1)
    window = irfft(np.abs(rfft(np.hanning(frames.shape[1]), NUM_FFT)) ** 2)
    # Without the fall that the window makes (Boersma 1993).
    normal = correlation[:, lags] / correlation[:, :1] / (window[lags] / window[0])
    highest = np.clip(normal.max(axis=1), 1e-3, 1 - 1e-3)
    difference = np.sqrt(np.maximum(1 - normal, 0))
    measured = [
        10 * np.log10(highest / (1 - highest)),
        1 - difference.min(axis=1) / np.maximum(difference.max(axis=1), 1e-9),
        prediction_gain(correlation[:, : ORDER + 1]),
        _harmonic_product(np.log(power), sampling_rate),
    ]
    mel = power @ mel_filters(sampling_rate)
    return np.column_stack(measured), mel / mel.sum(axis=1, keepdims=True)


def prediction_gain(correlation: np.ndarray) -> np.ndarray:
    """Gain of linear prediction of order P in dB, (T,), by Levinson and Durbin, from autocorrelations (T, P + 1)."""
    count, order = correlation.shape[0], correlation.shape[1] - 1
    # A little white noise, so that the residual of a pure tone is more than rounding.
    error = first = correlation[:, 0] * (1 + 1e-6)
    coefficients = np.zeros((count, order + 1))
    coefficients[:, 0] = 1
    for step in range(1, order + 1):
        reflection = -(coefficients[:, :step] * correlation[:, step:0:-1]).sum(axis=1) / error
        reversed_part = coefficients[:, step - 1 :: -1] if step > 1 else coefficients[:, :1]
        coefficients[:, 1 : step + 1] += reflection[:, None] * reversed_part[:, :step]
        error = error * (1 - reflection**2)
    return 10 * np.log10(first / np.maximum(error, 1e-12 * first))


def _harmonic_product(logs, sampling_rate):
    """The highest mean of the log power at HARMONICS multiples of a pitch, less the mean of the frame's: (T, bins) -> (T,)."""
    bins = np.arange(int(PITCH[0] * NUM_FFT / sampling_rate), int(PITCH[1] * NUM_FFT / sampling_rate) + 1)
    multiples = bins[:, None] * np.arange(1, HARMONICS + 1)
    inside = multiples < logs.shape[1]
    values = logs[:, np.where(inside, multiples, 0)] * inside
    return (values.sum(axis=2) / inside.sum(axis=1)).max(axis=1) - logs.mean(axis=1)


def mel_filters(sampling_rate: int) -> np.ndarray:
    """Triangles, evenly spaced in mel up to half the sampling rate: (bins, MELS)."""
    top = 1127 * np.log1p(sampling_rate / 2 / 700)
    centres = np.linspace(0, top, MELS + 2)
    mel = 1127 * np.log1p(np.arange(NUM_FFT // 2 + 1) * sampling_rate / NUM_FFT / 700)
    rising = (mel[:, None] - centres[:-2]) / np.diff(centres)[:-1]
    falling = (centres[2:] - mel[:, None]) / np.diff(centres)[1:]
    return np.maximum(0, np.minimum(rising, falling))
