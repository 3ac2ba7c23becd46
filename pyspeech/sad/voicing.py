"""Voicing of a recording: what tells a voice from the noise of a receiver that opens and closes.

Energies alone (Heitkaemper et al. 2020, section 2) take for speech whatever rises and falls by 20 dB. A voice is periodic
besides. Of windows of 50 ms, 20 ms apart, of the band from 200 to 1800 Hz, which every radio passes:

    harmonicity   the highest autocorrelation at lags of 60 to 400 Hz, less the fall that the window makes (Boersma 1993)
    tonality      the mean square of the autocorrelation at all these lags, over that of its peak: half for a tone, whose
                  autocorrelation is a cosine; a voice has few peaks
    shares        of the energy, in sub-bands of 200 Hz

Over about a second they make one likelihood ratio (`voicing_llr`). Noise too has some harmonicity, by chance: a window of
bandwidth B and length T has about BT independent values, so its autocorrelation varies by about 1 / sqrt(BT). What counts
is the ratio of the harmonicity to that chance level, for the bandwidth that the shares tell. Unvoiced sounds last less
than a second, and the power mean over it is near its highest values, so they keep the voicing of the sounds around them.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.fft import rfft
from scipy.ndimage import uniform_filter1d

WINDOW_SECONDS = 0.05
SHIFT_SECONDS = 0.02  # about; see voicing_step
BAND = (200.0, 1800.0)  # Hz
NUM_BANDS = 8
PITCH = (60.0, 400.0)  # Hz
LAG_STEP = 1 / 8000  # seconds
FFT_FRAMES = 128  # windows at a time: their spectra stay in the processor's cache
POWER = 8  # of the mean over a second: near the maximum, but one frame alone does not decide
CHANCE = 0.327  # that mean of the harmonicity of white noise, ...
WHITE_BANDS = 6.7  # ... whose shares have this bandwidth, in sub-bands
FEWEST_BANDS = 3.5  # a voice far from its microphone is often as narrow as this; no less is taken for a noise's bandwidth
RATIOS = (1.08, 1.2, 1.67)  # harmonicity over chance: of noise, of neither and of a voice; of noise 1 in 100 exceeds 1.1
TONALITIES = (0.38, 0.42)  # what speech does not exceed, and a tone's
TINY = np.float32(1e-37)


@dataclass
class VoicingTracks:
    """Numbers of each of V windows, whose window v stands for `step` frames of the caller, from v `step` on."""

    harmonicity: np.ndarray  # float32 (V,), 0 to 1
    lag: np.ndarray  # float32 (V,), seconds, that of the highest autocorrelation: one or several periods of a voice
    tonality: np.ndarray  # float32 (V,), 0 to 0.5
    amplitude: np.ndarray  # float32 (V,), square root of the energy in the band
    shares: np.ndarray  # float32 (V, NUM_BANDS), sum 1, or 0 in silence


def voicing_step(frame_shift: float) -> int:
    """Frames of `frame_shift` seconds from window to window: a power of two, so that chunks hold whole numbers of them."""
    return 2 ** max(0, round(np.log2(SHIFT_SECONDS / frame_shift)))


def voicing_window(sampling_rate: int) -> int:
    """Samples of a window."""
    return round(WINDOW_SECONDS * sampling_rate)


def voicing_tracks(samples: np.ndarray, hop: int, sampling_rate: int) -> VoicingTracks:
    """VoicingTracks of the windows that lie whole in `samples` (N,), `hop` samples apart; the first begins with the first."""
    window, bins, correlate, to_bands = _tables(sampling_rate)
    frames = np.lib.stride_tricks.sliding_window_view(samples, len(window))[::hop]
    count = len(frames)
    harmonicity, lag, tonality, amplitude = np.empty((4, count), np.float32)
    tracks = VoicingTracks(harmonicity, lag, tonality, amplitude, np.empty((count, NUM_BANDS), np.float32))
    windowed = np.empty(
        (FFT_FRAMES, len(window)), np.float32
    )  # once: memory that is new each time takes longer than the product
    for start in range(0, count, FFT_FRAMES):
        rows = slice(start, start + FFT_FRAMES)
        spectrum = rfft(np.multiply(frames[rows], window, out=windowed[: len(frames[rows])]))[:, bins]  # pyright: ignore[reportIndexIssue,reportCallIssue,reportArgumentType]
        power = np.square(np.real(spectrum)) + np.square(np.imag(spectrum))
        shares = power @ to_bands
        energy = shares.sum(axis=1)
        over_energy = 1 / np.maximum(energy, TINY)
        correlation = power @ correlate
        correlation *= over_energy[:, None]
        place, highest = _highest(correlation)
        square = np.einsum("vl,vl->v", correlation, correlation) / correlation.shape[1]
        tracks.harmonicity[rows] = np.clip(highest, 0, 1)
        tracks.lag[rows] = (place + round(1 / PITCH[1] / LAG_STEP)) * LAG_STEP
        tracks.tonality[rows] = square / np.maximum(highest, 0.2) ** 2
        tracks.amplitude[rows] = np.sqrt(energy)
        tracks.shares[rows] = shares * over_energy[:, None]
    return tracks


def voicing_llr(tracks: VoicingTracks, heard: np.ndarray, length: int, against: float, favour: float) -> np.ndarray:
    """log p(voicing | speech) - log p(voicing | noise) of each window, float64 (V,), natural logarithm.

    heard: bool (V,), windows that tell something; length: windows of the mean. -against where noise alone would be as
    harmonic, or for tones; 0 at a ratio that both have; at most `favour`, as music and hum are harmonic too, so that
    voicing alone makes no speech of a quiet frame. 0 where no window within reach tells something.
    """
    told = _mean(heard.astype(np.float64), length)
    # A running sum, whose rounding can leave less than nothing.
    power_mean = np.maximum(_mean(np.float64(tracks.harmonicity) ** POWER * heard, length), 0)
    harmonicity = (power_mean / np.maximum(told, TINY)) ** (1 / POWER)
    shares = _mean(tracks.shares * heard[:, None].astype(np.float64), length)
    bands = shares.sum(axis=1) ** 2 / np.maximum((shares**2).sum(axis=1), TINY)
    chance = CHANCE * np.sqrt(WHITE_BANDS / np.clip(bands, FEWEST_BANDS, WHITE_BANDS))
    amplitude = tracks.amplitude * heard.astype(np.float64)
    # Frames that are much quieter than others within reach count for little: tones are told by their own frames.
    weight = np.maximum(_mean(amplitude, length), TINY)
    tonality = _mean(tracks.tonality * amplitude, length) / weight
    llr = np.interp(harmonicity / chance, RATIOS, (-against, 0.0, favour)) + np.interp(tonality, TONALITIES, (0.0, -against))
    return np.where(told * length > 0.5, llr, 0.0)


def _highest(rows):
    """Where each row (L,) is highest, in columns, by a parabola through that one and its neighbours, and how high its highest
    column is: (V, L) -> float32 (V,), (V,)."""
    column = rows.argmax(axis=1)
    begin, flat = np.arange(0, rows.size, rows.shape[1]), rows.ravel()
    inside = np.minimum(np.maximum(column, 1), rows.shape[1] - 2)
    highest, before, middle, after = flat[begin + np.stack([column, inside - 1, inside, inside + 1])]
    bend = 2 * middle - before - after
    shift = np.where((inside == column) & (bend > 0), 0.5 * (after - before) / np.maximum(bend, TINY), 0)
    return column + np.minimum(np.maximum(shift, -0.5), 0.5), highest


def _mean(rows, length):
    """Mean over `length` rows around each, nothing beyond the ends: (V, ...) -> float64 (V, ...)."""
    return uniform_filter1d(rows, length, axis=0, mode="constant", output=np.float64)


@lru_cache(maxsize=4)
def _tables(sampling_rate):
    """The window (W,), the slice of its F bins, their weights for the lags (F, L) and for the sub-bands (F, NUM_BANDS)."""
    size = voicing_window(sampling_rate)
    window = np.hanning(size + 1)[:-1]
    frequency = np.arange(size // 2 + 1) * sampling_rate / size
    inside = np.flatnonzero((frequency >= BAND[0]) & (frequency <= min(BAND[1], sampling_rate / 2)))
    bins = slice(inside[0], inside[-1] + 1)
    # Soft edges of the band: hard ones would make the autocorrelation of noise ring.
    taper = np.sqrt(np.hanning(len(inside) + 2)[1:-1])
    lags = np.arange(round(1 / PITCH[1] / LAG_STEP), round(1 / PITCH[0] / LAG_STEP) + 1) * LAG_STEP
    own = np.abs(np.fft.rfft(window)) ** 2  # its inverse is the window's circular autocorrelation, as that of the frames is
    turns = np.arange(len(own)) * sampling_rate / size * lags[:, None]
    fall = (np.cos(2 * np.pi * turns) * own * np.where(np.arange(len(own)) == 0, 1, 2)).sum(axis=1)
    fall /= own[0] + 2 * own[1:].sum()
    correlate = np.cos(2 * np.pi * frequency[inside, None] * lags) * taper[:, None] / fall
    band = np.minimum(np.arange(len(inside)) * NUM_BANDS // len(inside), NUM_BANDS - 1)
    to_bands = taper[:, None] * (band[:, None] == np.arange(NUM_BANDS))
    return window.astype(np.float32), bins, correlate.astype(np.float32), to_bands.astype(np.float32)
