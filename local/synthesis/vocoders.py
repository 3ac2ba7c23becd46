"""Fakes made from recordings: speech taken apart into parameters and put together again, or changed on the way.

    world          WORLD (Morise et al. 2016): F0 by DIO and StoneMask, CheapTrick, D4C; copied as it is
    world_convert  the same with another F0 and another length of the vocal tract: a simple voice conversion
    griffin_lim    80 mel bands, their least-squares spectrum, phases by Griffin and Lim (1984), 32 iterations
    lpc            linear prediction, pulses or noise for excitation, as in the vocoder of Atal and Hanauer (1971)
    sinusoidal     harmonics of F0 with phases that begin at zero, and shaped noise (Stylianou 2001, much simplified)
    phase_vocoder  pitch moved by the phase vocoder (Flanagan and Golden 1966): stretched in time, then resampled

All take samples (N,) float64 at 16 kHz, N > 0, and a numpy Generator; they return (N,) float64. The same samples and
generator give the same result.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

RATE = 16000
SHIFT_MS = 5.0
SHIFT = 80  # samples of SHIFT_MS
N_FFT, HOP, MELS, ITERATIONS = 1024, 256, 80, 32
ORDER = 18  # of linear prediction
LEVEL = 10 ** (-20 / 20)  # root mean square of the speech that neural vocoders have learnt from, about
HARMONICS_UP_TO = 5500.0  # Hz: above it the sinusoidal model has noise alone


def copy_world(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """WORLD analysis and synthesis."""
    return _world(samples, 1.0, 1.0)


def convert_world(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """WORLD with F0 0.75 to 0.9 or 1.1 to 1.35 times as high and formants moved the same way by 4 to 12 %."""
    up = rng.random() < 0.5
    return _world(
        samples, rng.uniform(1.1, 1.35) if up else rng.uniform(0.75, 0.9), 1.0 + rng.uniform(0.04, 0.12) * (1 if up else -1)
    )


def _world(samples, pitch, formants):
    return analyse(samples).say(pitch, formants)


@dataclass(frozen=True)
class Analysis:
    """Parameters of speech by WORLD. f0 (T,) in Hz, 0 where unvoiced; envelope and aperiodicity (T, 513); length in samples."""

    f0: np.ndarray
    envelope: np.ndarray
    aperiodicity: np.ndarray
    length: int

    def say(self, pitch: float = 1.0, formants: float = 1.0) -> np.ndarray:
        """Synthesise the speech (length,) with F0 and formants that many times as high."""
        import pyworld

        envelope = warp(self.envelope, formants)
        return fit(pyworld.synthesize(self.f0 * pitch, envelope, self.aperiodicity, RATE, SHIFT_MS), self.length)


def analyse(samples: np.ndarray) -> Analysis:
    """Take speech (N,) apart by WORLD."""
    import pyworld

    f0, times, envelope = _envelope(samples)
    return Analysis(f0, envelope, pyworld.d4c(samples, f0, times, RATE), len(samples))


def warp(envelope: np.ndarray, factor: float) -> np.ndarray:
    """Formants `factor` times as high: spectral envelopes (T, F) -> (T, F), the last bin continued."""
    if factor == 1.0:
        return envelope
    bins = np.minimum(np.arange(envelope.shape[1]) / factor, envelope.shape[1] - 1)
    below = np.minimum(bins.astype(np.int64), envelope.shape[1] - 2)
    share = bins - below
    return np.ascontiguousarray(envelope[:, below] * (1 - share) + envelope[:, below + 1] * share)


def _pitch(samples):
    """F0 in Hz (0: unvoiced) and times in seconds, every 5 ms."""
    import pyworld

    f0, times = pyworld.dio(samples, RATE, frame_period=SHIFT_MS)
    return pyworld.stonemask(samples, f0, times, RATE), times


def _envelope(samples):
    """F0, times and the power spectrum's envelope (T, 513)."""
    import pyworld

    f0, times = _pitch(samples)
    return f0, times, pyworld.cheaptrick(samples, f0, times, RATE)


def fit(samples: np.ndarray, length: int) -> np.ndarray:
    """Cut or continued by zeros to `length`."""
    return np.concatenate([samples[:length], np.zeros(max(0, length - len(samples)))])


def resample(samples: np.ndarray, rate: int, sampling_rate: int) -> np.ndarray:
    """Samples (N,) at `rate` Hz resampled to `sampling_rate` with a polyphase filter."""
    from scipy.signal import resample_poly

    divisor = np.gcd(rate, sampling_rate)
    return resample_poly(samples, sampling_rate // divisor, rate // divisor) if rate != sampling_rate else samples


def copy_by(vocode: Callable[[np.ndarray], np.ndarray], rate: int, samples: np.ndarray, pace: float = 1.0) -> np.ndarray:
    """A recording by a neural vocoder: (N,) at 16 kHz -> (N,) at its level. vocode(samples at `rate` Hz, of the level that
    such networks have learnt from) -> samples at that rate. pace: how many times slower and lower the vocoder hears it, which
    moves in frequency what its upsampling leaves, as if it were one of another rate."""
    rate = 100 * round(pace * rate / 100) if pace != 1 else rate
    if not samples.any():
        return np.zeros(len(samples))
    level = np.sqrt(np.mean(np.square(samples)))
    made = vocode(resample(samples * (LEVEL / level), RATE, rate)).astype(np.float64)
    made = fit(resample(made, rate, RATE), len(samples))
    return made * level / np.sqrt(np.mean(np.square(made)) + 1e-20)


# Short-time spectra


@functools.cache
def _window(size):
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)


def stft(samples: np.ndarray, size: int = N_FFT, hop: int = HOP) -> np.ndarray:
    """(N,) -> (T, size // 2 + 1) complex, centred frames, T = 1 + ceil(N / hop)."""
    frames = 1 + -(-len(samples) // hop)
    padded = np.concatenate([np.zeros(size // 2), samples, np.zeros(size // 2 + hop)])
    return np.fft.rfft(np.lib.stride_tricks.sliding_window_view(padded, size)[::hop][:frames] * _window(size), axis=1)


def istft(spectra: np.ndarray, length: int, size: int = N_FFT, hop: int = HOP) -> np.ndarray:
    """Least-squares inverse of `stft`: (T, bins) -> (length,)."""
    frames = np.fft.irfft(spectra, size, axis=1) * _window(size)
    total = np.zeros((len(frames) - 1) * hop + size)
    weight = np.zeros_like(total)
    for part in range(0, size, hop):  # overlap-add, one hop of all frames at a time
        width = min(hop, size - part)
        _add_hops(total, frames[:, part : part + width], part, hop)
        _add_hops(weight, np.broadcast_to(np.square(_window(size)[part : part + width]), (len(frames), width)), part, hop)
    samples = total / np.maximum(weight, 1e-8)
    return fit(samples[size // 2 :], length)


def _add_hops(total, pieces, start, hop):
    """total[start + k * hop:][:width] += pieces[k] for all k."""
    count, width = pieces.shape
    rest = total[start : start + count * hop]
    padded = np.zeros(count * hop)
    padded.reshape(count, hop)[:, :width] = pieces
    rest += padded[: len(rest)]


@functools.cache
def mel_filters() -> tuple[np.ndarray, np.ndarray]:
    """(filters (513, 80), what solves for the spectrum (80, 513))."""

    def mel(hertz):
        return 2595.0 * np.log10(1.0 + hertz / 700.0)

    edges = 700.0 * (10.0 ** (np.linspace(mel(20.0), mel(RATE / 2), MELS + 2) / 2595.0) - 1.0)
    frequencies = np.arange(N_FFT // 2 + 1) * RATE / N_FFT
    rise = (frequencies[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - frequencies[:, None]) / (edges[2:] - edges[1:-1])
    filters = np.maximum(0.0, np.minimum(rise, fall))
    return filters, np.linalg.pinv(filters)


def griffin_lim(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Through magnitudes of 80 mel bands; phases begin at random."""
    filters, inverse = mel_filters()
    magnitudes = np.maximum((np.abs(stft(samples)) @ filters) @ inverse, 1e-7)
    spectra = magnitudes * np.exp(2j * np.pi * rng.random(magnitudes.shape))
    for _ in range(ITERATIONS):
        again = stft(istft(spectra, len(samples)))
        spectra = magnitudes * again / np.maximum(np.abs(again), 1e-12)
    return istft(spectra, len(samples))


def phase_vocoder(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Pitch and formants up or down by 1.5 to 4 semitones, duration kept."""
    from scipy.signal import resample_poly

    ratio = 2.0 ** (rng.choice([-1, 1]) * rng.uniform(1.5, 4.0) / 12.0)
    up, down = 100, round(100 * ratio)  # stretched by down / up, then played as much faster
    hop = N_FFT // 4
    spectra = stft(samples, N_FFT, hop)
    places = np.arange(0, len(spectra) - 1, up / down)
    before = np.minimum(places.astype(np.int64), len(spectra) - 2)
    share = (places - before)[:, None]
    magnitudes = (1 - share) * np.abs(spectra[before]) + share * np.abs(spectra[before + 1])
    expected = 2 * np.pi * hop * np.arange(spectra.shape[1]) / N_FFT
    steps = np.angle(spectra[before + 1]) - np.angle(spectra[before]) - expected
    steps += expected - 2 * np.pi * np.round(steps / (2 * np.pi))
    phases = np.angle(spectra[0]) + np.concatenate([np.zeros((1, len(expected))), np.cumsum(steps[:-1], axis=0)])
    stretched = istft(magnitudes * np.exp(1j * phases), int(len(samples) * down / up), N_FFT, hop)
    return fit(resample_poly(stretched, up, down), len(samples))


# Source and filter


def lpc(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Filters of order 18 every 5 ms, excited by pulses where there is an F0 and by noise elsewhere."""
    from scipy.signal import lfilter

    f0, _ = _pitch(samples)
    coefficients, gains = linear_prediction(samples, len(f0))
    pulses = np.diff(np.floor(np.concatenate([[0.0], np.cumsum(_per_sample(f0, len(samples)) / RATE)])))
    height = np.sqrt(RATE / np.maximum(_per_sample(f0, len(samples)), 50.0))  # unit power
    voiced = np.repeat(f0 > 0, SHIFT)[: len(samples)]
    excitation = np.where(voiced, pulses * height, rng.standard_normal(len(samples)))
    made, state = np.zeros(len(samples)), np.zeros(ORDER)
    for index in range(len(f0)):
        part = slice(index * SHIFT, min((index + 1) * SHIFT, len(samples)))
        if part.start < part.stop:
            made[part], state = lfilter([gains[index]], coefficients[index], excitation[part], zi=state)
    return made


def _per_sample(frames, length):
    """Values (T,) every 5 ms held for 5 ms each: (length,)."""
    held = np.repeat(frames, SHIFT)
    return np.concatenate([held, np.full(max(0, length - len(held)), held[-1])])[:length]


def linear_prediction(samples: np.ndarray, frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Prediction filters (frames, ORDER + 1), 1 first, and gains (frames,) of windows of 30 ms, by Levinson's
    recursion over all frames at once."""
    size = 480
    padded = np.concatenate([np.zeros(size // 2), samples, np.zeros(size + frames * SHIFT)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, size)[::SHIFT][:frames] * _window(size)
    power = np.square(np.abs(np.fft.rfft(windows, 1024, axis=1)))
    correlation = np.fft.irfft(power, axis=1)[:, : ORDER + 1] / np.sum(np.square(_window(size)))
    correlation[:, 0] = correlation[:, 0] * 1.0001 + 1e-10
    filters = np.zeros((frames, ORDER + 1))
    filters[:, 0] = 1.0
    error = correlation[:, 0].copy()
    for order in range(1, ORDER + 1):
        reflection = -np.sum(filters[:, :order] * correlation[:, order:0:-1], axis=1) / error
        filters[:, 1 : order + 1] += reflection[:, None] * filters[:, order - 1 :: -1][:, :order]
        error *= 1.0 - np.square(reflection)
    return filters, np.sqrt(np.maximum(error, 0.0))


def sinusoidal(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Harmonics up to 5.5 kHz under WORLD's envelope where there is an F0; noise under it elsewhere and above."""
    f0, _, envelope = _envelope(samples)
    length = len(samples)
    pitch = _per_sample(np.where(f0 > 0, f0, 0.0), length)
    phase = 2 * np.pi * np.cumsum(pitch / RATE)
    frames, moments = np.arange(len(f0)), np.arange(length) / SHIFT
    made = np.zeros(length)
    for harmonic in range(1, int(HARMONICS_UP_TO / max(f0[f0 > 0].min(), 60.0)) + 1 if f0.any() else 1):
        frequency = harmonic * f0
        used = (f0 > 0) & (frequency < HARMONICS_UP_TO)
        bins = np.minimum(np.rint(frequency / RATE * 1024).astype(np.int64), envelope.shape[1] - 1)
        # A pulse train of power p in a spectrum of density p has harmonics of power 2 p f0 / rate.
        amplitude = np.where(used, 2.0 * np.sqrt(envelope[frames, bins] * f0 / RATE), 0.0)
        made += np.interp(moments, frames, amplitude) * np.cos(harmonic * phase)
    noise = stft(rng.standard_normal(length), 256, 64) / np.sqrt(np.sum(np.square(_window(256))))
    every = np.minimum(np.arange(len(noise)) * 64 // SHIFT, len(f0) - 1)
    shape = np.sqrt(envelope[every][:, ::4][:, : noise.shape[1]])
    shape[(f0[every] > 0)[:, None] & (np.arange(noise.shape[1]) * RATE / 256 < HARMONICS_UP_TO)[None]] *= 0.1
    return made + istft(noise * shape, length, 256, 64) * np.sqrt(np.sum(np.square(_window(256))))


ENGINES = {
    "world": copy_world,
    "world_convert": convert_world,
    "griffin_lim": griffin_lim,
    "lpc": lpc,
    "sinusoidal": sinusoidal,
    "phase_vocoder": phase_vocoder,
}
