"""The level of audio: root mean square about the mean, as an offset of the recorder is no sound."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from pyspeech.audio.silence import RANGE

LIMIT_MS = 5  # before and after a peak, until which a limiter's gain is back
MOST_GAIN = 2.0
STEP = 2.0**-15  # of 16 bit: within it, nothing is left of channels that cancel each other when mixed


def rms(samples: np.ndarray) -> float:
    """Root mean square of samples (N,); 0 for N = 0 and for a constant."""
    return math.sqrt(np.var(samples, dtype=np.float64)) if len(samples) else 0.0


def scaled(samples: np.ndarray, level: float) -> np.ndarray:
    """Samples (N,) made louder or quieter as a whole, so that their `rms` is at `level` dB of full scale; silence as it is."""
    found = rms(samples)
    return samples * np.float32(10 ** (level / 20) / found) if found else samples


def power(samples: np.ndarray) -> float:
    """Mean square of samples (N,); 0 of none."""
    return float(np.mean(np.square(samples, dtype=np.float64))) if len(samples) else 0.0


def fit(piece: np.ndarray, length: int, rng: np.random.Generator) -> np.ndarray:
    """`length` samples of a piece (n,) from a random place on, begun again where it ends; zeros of an empty one."""
    if len(piece) == 0:
        return np.zeros(length, dtype=np.float32)
    begin = rng.integers(len(piece) - length + 1) if len(piece) >= length else rng.integers(len(piece))
    return np.take(piece, np.arange(begin, begin + length), mode="wrap")


def mix(samples: np.ndarray, noise: np.ndarray, snr: float, spoken: np.ndarray | None = None) -> np.ndarray:
    """Samples (N,) with noise (N,) `snr` dB below them, by their powers over all N; nothing is added to silence.

    spoken: bool (N,), the samples whose power counts, instead of all.
    """
    signal, added = power(samples if spoken is None else samples[spoken]), power(noise)
    if signal == 0 or added == 0:
        return samples
    return samples + np.float32(np.sqrt(signal / added) * 10 ** (-snr / 20)) * noise.astype(np.float32)


def limited(samples: np.ndarray, most: float, rate: int) -> np.ndarray:
    """Samples (C, N) at `rate` Hz with no magnitude above `most`, by a gain that is lower around their peaks alone.

    What the peaks lose the rest gains, so that the level stays: by MOST_GAIN at most.
    """
    from scipy.ndimage import minimum_filter1d, uniform_filter1d

    size, gain, result = 2 * (rate * LIMIT_MS // 1000) + 1, 1.0, samples
    wanted = np.mean(np.square(samples, dtype=np.float64))
    for _ in range(8):
        needed = most / np.maximum(gain * np.abs(samples).max(axis=0), most)
        # The mean of minima that all have seen a peak is no higher than the peak wants it.
        envelope = uniform_filter1d(minimum_filter1d(needed, size), size, mode="nearest")
        result = np.clip(samples * (gain * envelope).astype(samples.dtype), -most, most)
        missing = math.sqrt(wanted / max(float(np.mean(np.square(result, dtype=np.float64))), 1e-30))
        if missing < 1.001 or gain == MOST_GAIN:
            break
        gain = min(gain * missing, MOST_GAIN)
    return result


class Watched:
    """The blocks of an iterable as they come; then `count`, of their samples, and their range from `lowest` to `highest`.

    error: what the iterable raised, if it did.
    """

    def __init__(self, blocks: Iterable[np.ndarray]) -> None:
        self._blocks, self.count, self.lowest, self.highest = blocks, 0, math.inf, -math.inf
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[np.ndarray]:
        for block in self._all():
            self.count += len(block)
            self.lowest = min(self.lowest, float(block.min(initial=math.inf)))
            self.highest = max(self.highest, float(block.max(initial=-math.inf)))
            yield block

    def _all(self):
        try:
            yield from self._blocks
        except Exception as error:
            self.error = error
            raise

    @property
    def peak(self) -> float:
        """The largest magnitude; 0 of no samples."""
        return max(-self.lowest, self.highest, 0.0)

    @property
    def silent(self) -> bool:
        """True if there is no sound: no samples, or only digital silence."""
        return self.highest - self.lowest < RANGE


class Measured:
    """The blocks of an iterable as they come; then `count`, of their samples, and `rms`, as `rms` of all of them."""

    def __init__(self, blocks: Iterable[np.ndarray]) -> None:
        self.count, self._blocks, self._total, self._squares = 0, blocks, 0.0, 0.0

    def __iter__(self) -> Iterator[np.ndarray]:
        for block in self._blocks:
            self.count += len(block)
            self._total += float(np.sum(block, dtype=np.float64))
            self._squares += float(np.square(block, dtype=np.float64).sum())
            yield block

    @property
    def rms(self) -> float:
        count = max(self.count, 1)
        variance = self._squares / count - (self._total / count) ** 2
        return math.sqrt(variance) if variance > 1e-12 * self._squares / count else 0.0  # below that: rounding


class Mixture:
    """The mean of channels, block by block; then `cancels`: whether they cancel each other in it."""

    CANCELLED = 0.25  # of the power that the mean has of channels which have nothing to do with each other
    EVERY = 32  # so manieth frames are enough to measure power

    def __init__(self) -> None:
        self._count, self._channels, self._mean = 0, np.zeros(1), 0.0  # frames; energies about the mean of each block

    def add(self, frames: np.ndarray) -> np.ndarray:
        """Frames float32 (n, channels) -> their mean (n,)."""
        mean = frames @ np.full(frames.shape[1], 1 / frames.shape[1], dtype=np.float32)
        some = np.ascontiguousarray(frames[:: self.EVERY].T, dtype=np.float64)
        if np.abs(some).max(initial=0.0) < np.inf:
            count = some.shape[1]
            self._count, self._channels = self._count + count, self._channels + count * some.var(axis=1)
            self._mean += count * float(some.mean(axis=0).var())
        return mean

    @property
    def cancels(self) -> bool:
        """False of silence."""
        energy = float(self._channels.sum())
        return energy > STEP**2 * self._count and self._mean < self.CANCELLED * energy / len(self._channels) ** 2
