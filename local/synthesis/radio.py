"""Building blocks of a simulated radio and tape channel, for streams that resemble the Apollo recordings at 8 kHz.

What the recordings show (Heitkaemper et al. 2020, section 4.1; Hansen et al. 2018): band-limited, clipped and
level-controlled speech, noise that changes in kind and level and comes and goes with the carrier, talkers whose
levels differ by several tens of dB, hum, tones, and tape. Each function does one of these to float64 samples at full
scale 1.

Every random draw is `rng.random()` or `rng.standard_normal()` of a numpy Generator(PCG64): streams that have not
changed in any numpy version, so that a seed gives the same corpus everywhere.
"""

from typing import TypeVar

import numpy as np
from numpy.random import Generator

RATE = 8000  # Hz, of all samples here
Decibel = TypeVar("Decibel", float, np.ndarray)


def uniform(rng: Generator, low: float, high: float) -> float:
    """A number between `low` and `high`."""
    return low + (high - low) * rng.random()


def chance(rng: Generator, probability: float) -> bool:
    """True with the given probability."""
    return rng.random() < probability


def amplitude(decibel: Decibel) -> Decibel:
    """Decibels to an amplitude factor, of one number or of each in an array."""
    return 10.0 ** (decibel / 20.0)  # pyright: ignore[reportReturnType]


def level(samples: np.ndarray) -> float:
    """Level of samples (N,) in dB relative to full scale; -120 for silence and for none."""
    return 10.0 * np.log10(np.mean(np.square(samples)) + 1e-12) if len(samples) else -120.0


def add(track: np.ndarray, piece: np.ndarray, start: int) -> None:
    """Add `piece` (M,) to `track` (N,), in place, from sample `start`; what falls outside is dropped."""
    first, last = max(start, 0), min(start + len(piece), len(track))
    if last > first:
        track[first:last] += piece[first - start : last - start]


def convolve(samples: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Linear-phase filter without its delay: samples (N,), odd symmetric kernel (K,) -> (N,)."""
    from scipy.signal import oaconvolve

    if len(samples) == 0:
        return np.zeros(0)
    half = len(kernel) // 2
    return oaconvolve(samples, kernel, mode="full")[half : half + len(samples)]


def band_kernel(low: float, high: float, taps: int = 129) -> np.ndarray:
    """Plain band pass between `low` and `high` Hz (high above 3950: high pass only): (taps,)."""
    from scipy.signal import firwin

    if high >= RATE / 2 - 50:
        return firwin(taps, low, pass_zero=False, fs=RATE)  # pyright: ignore[reportReturnType]
    return firwin(taps, [low, high], pass_zero=False, fs=RATE)  # pyright: ignore[reportReturnType]


def channel_kernel(rng: Generator, low: float, high: float, taps: int = 257) -> np.ndarray:
    """Response of a microphone, line and receiver: (taps,).

    A band pass between `low` and `high` Hz with soft edges, a tilt and two resonances of up to 8 dB.
    """
    from scipy.signal import firwin2

    frequencies = np.linspace(0.0, RATE / 2, 129)
    octaves = np.log2(np.maximum(frequencies, 50.0) / 1000.0)
    decibel = uniform(rng, -4.0, 5.0) * octaves
    for _ in range(2):
        centre, width = uniform(rng, 400.0, 3000.0), uniform(rng, 0.15, 0.5)
        decibel += uniform(rng, -6.0, 8.0) * np.exp(-0.5 * ((octaves - np.log2(centre / 1000.0)) / width) ** 2)
    decibel -= uniform(rng, 12.0, 40.0) * np.maximum(np.log2(low / np.maximum(frequencies, 20.0)), 0.0)
    decibel -= uniform(rng, 30.0, 150.0) * np.maximum(np.log2(np.maximum(frequencies, 20.0) / high), 0.0)
    gain = amplitude(np.maximum(decibel, -80.0))
    gain[[0, -1]] = 0.0
    return firwin2(taps, frequencies, gain, fs=RATE)  # pyright: ignore[reportReturnType]


def noise(rng: Generator, length: int, kernel: np.ndarray) -> np.ndarray:
    """Gaussian noise of unit power with the spectrum of `kernel`: (length,)."""
    from scipy.signal import oaconvolve

    if length <= 0:
        return np.zeros(0)
    white = rng.standard_normal(length + len(kernel) - 1)
    return oaconvolve(white, kernel / np.sqrt(np.sum(np.square(kernel))), mode="valid")


def sloped_kernel(slope: float, low: float, high: float, order: float = 4.0, taps: int = 513) -> np.ndarray:
    """Kernel (taps,) for noise whose power falls as frequency^-slope between `low` and `high` Hz.

    slope: 0 white, 1 pink, 2 rumble. order: of the edges beyond, 6 dB an octave each.
    """
    frequencies = np.maximum(np.arange(taps) * (RATE / 2.0 / (taps - 1)), 1.0)
    edges = (1.0 + (low / frequencies) ** (2.0 * order)) * (1.0 + (frequencies / high) ** (2.0 * order))
    gain = np.maximum(frequencies, 20.0) ** (-slope / 2.0) / np.sqrt(edges)
    kernel = np.roll(np.fft.irfft(gain), taps - 1)[taps - 1 - taps // 2 : taps + taps // 2]
    return kernel * np.hanning(taps)


def wander(rng: Generator, length: int, spread: float, knot: float) -> np.ndarray:
    """A smooth random curve in dB: (length,), Gaussian knots of standard deviation `spread` every `knot` seconds."""
    count = int(length / RATE / knot) + 3
    knots = rng.standard_normal(count) * spread
    return np.interp(np.arange(length), (np.arange(count) - rng.random()) * knot * RATE, knots)


def steps(rng: Generator, length: int, spread: float, interval: float) -> np.ndarray:
    """Level jumps in dB: (length,), a new Gaussian value about every `interval` seconds, reached within 50 ms."""
    times, values = [0.0], [0.0]
    while times[-1] < length / RATE:
        start = times[-1] + uniform(rng, 0.3, 1.7) * interval
        value = spread * rng.standard_normal()
        times += [start, start + 0.05]
        values += [values[-1], value]
    return np.interp(np.arange(length) / RATE, times, values)


def envelope(samples: np.ndarray, attack: float, release: float, block: int = 20) -> np.ndarray:
    """Level in dB of each block of samples: (N,) -> (ceil(N / block),), time constants `attack` and `release` in seconds."""
    count = -(-len(samples) // block)
    padded = np.zeros(count * block)
    padded[: len(samples)] = samples
    power = np.mean(np.square(padded).reshape(count, block), axis=1).tolist()
    rise, fall = np.exp(-block / RATE / attack), np.exp(-block / RATE / release)
    track, state = np.empty(count), power[0] if power else 0.0
    for index, value in enumerate(power):
        keep = rise if value > state else fall
        state = keep * state + (1.0 - keep) * value
        track[index] = state
    return 10.0 * np.log10(track + 1e-12)


def gain_control(
    samples: np.ndarray, target: float, strength: float, attack: float, release: float, limit: float, block: int = 20
) -> np.ndarray:
    """Gain of a level control, a factor for each sample: (N,) -> (N,).

    The voice-operated gain amplifiers of the loops, or a recorder's automatic level. The level moves towards `target` dB by
    the share `strength` (0 off, 1 constant level), by at most `limit` dB upwards. attack, release: seconds.
    """
    if len(samples) == 0:
        return np.zeros(0)
    track = envelope(samples, attack, release, block)
    gain = amplitude(np.minimum(strength * (target - track), limit))
    return np.interp(np.arange(len(samples)), np.arange(len(track)) * block + block / 2.0, gain)


def clip_softly(samples: np.ndarray, limit: float) -> np.ndarray:
    """Samples (N,) with peaks bent at `limit` (amplitude), as by an overdriven amplifier or a speech clipper."""
    return limit * np.tanh(samples / limit)


def tone(length: int, frequency: float, amount: float, edge: float = 0.005) -> np.ndarray:
    """Sine of RMS `amount`: (length,), with edges of `edge` seconds. A Quindar tone is 2525 or 2475 Hz for 250 ms."""
    time = np.arange(length) / RATE
    return amount * np.sqrt(2.0) * tone_edges(length, edge) * np.sin(2.0 * np.pi * (frequency * time))


def sine(frequency: np.ndarray) -> np.ndarray:
    """Sine of unit power whose frequency may change: Hz (N,) -> (N,)."""
    return np.sqrt(2.0) * np.sin(2.0 * np.pi * np.cumsum(frequency) / RATE)


def tone_edges(length: int, edge: float) -> np.ndarray:
    """Gain (length,) that rises and falls within `edge` seconds at the ends."""
    time = np.arange(length) / RATE
    return np.clip(np.minimum(time, time[::-1]) / edge, 0.0, 1.0)


def hum(rng: Generator, length: int, base: float) -> np.ndarray:
    """Mains or inverter hum of unit power: (length,).

    Up to ten harmonics of `base` Hz, each with its own amplitude, slowly swelling.
    """
    time = np.arange(length) / RATE
    total = np.zeros(length)
    for harmonic in range(1, int(uniform(rng, 2, 11))):
        if base * harmonic < RATE / 2 - 200:
            total += rng.random() / harmonic**0.7 * np.sin(2.0 * np.pi * (base * harmonic * time + rng.random()))
    total *= amplitude(wander(rng, length, 1.5, 8.0))
    return total / np.sqrt(np.mean(np.square(total)) + 1e-12) if length else total


def keyed_tones(rng: Generator, length: int) -> np.ndarray:
    """Two-tone data keying of unit power, as of a teletype: (length,), 45 to 300 baud, continuous phase."""
    baud, low = uniform(rng, 45.0, 300.0), uniform(rng, 600.0, 2000.0)
    shift = uniform(rng, 80.0, 800.0)
    count = int(length / RATE * baud) + 2
    bits = np.array([rng.random() < 0.5 for _ in range(count)], dtype=np.float64)
    frequency = low + shift * bits[(np.arange(length) * baud / RATE).astype(np.int64)]
    return sine(frequency)


def crackle(rng: Generator, length: int, rate: float) -> np.ndarray:
    """Impulses of random height (heavy-tailed, mostly near 1) and ring, `rate` a second: (length,)."""
    total = np.zeros(length)
    for _ in range(int(length / RATE * rate)):
        size = int(uniform(rng, 8, 200))
        start = int(rng.random() * max(length - size, 1))
        size = min(size, length - start)
        ring = np.exp(-np.arange(size) / uniform(rng, 2.0, 40.0)) * rng.standard_normal(size)
        total[start : start + size] += ring * np.exp(0.8 * rng.standard_normal())
    return total


def rustle(rng: Generator, length: int) -> np.ndarray:
    """Handling noise, paper, breath: coloured noise in bursts at 2 to 15 a second, unit power: (length,)."""
    low = uniform(rng, 50.0, 900.0)
    body = noise(rng, length, band_kernel(low, uniform(rng, low * 2.0, 3800.0)))
    body *= np.exp(wander(rng, length, uniform(rng, 0.5, 1.5), 1.0 / uniform(rng, 2.0, 15.0)))
    return body / np.sqrt(np.mean(np.square(body)) + 1e-12) if length else body


def coder_holes(samples: np.ndarray, floor: float, block: int = 512, bands: int = 8) -> np.ndarray:
    """Samples (N,) with the spectral holes of a perceptual coder: lines too far below what masks them are removed.

    A line goes when it is more than `floor` dB below the mean, in dB, of the loudest line of its block and the
    loudest of its band (one of `bands` of equal width). Blocks of `block` samples with half overlap and sine windows:
    what is kept is unchanged.
    """
    half = block // 2
    count = len(samples) // half + 2
    padded = np.zeros((count + 1) * half)
    padded[half : half + len(samples)] = samples
    window = np.sin(np.pi * (np.arange(block) + 0.5) / block)
    frames = np.lib.stride_tricks.sliding_window_view(padded, block)[::half] * window
    spectrum = np.fft.rfft(frames, axis=1)
    power = (np.square(spectrum.real) + np.square(spectrum.imag))[:, :half].reshape(len(frames), bands, half // bands)
    loudest = power.max(axis=2, keepdims=True)
    masker = np.sqrt(loudest * loudest.max(axis=1, keepdims=True))
    spectrum[:, :half] *= (power >= masker * 10.0 ** (-floor / 10.0)).reshape(len(frames), half)
    frames = np.fft.irfft(spectrum, block, axis=1) * window
    out = np.zeros(len(padded))
    out[: len(frames) * half] += frames[:, :half].reshape(-1)
    out[half : half + len(frames) * half] += frames[:, half:].reshape(-1)
    return out[half : half + len(samples)]
