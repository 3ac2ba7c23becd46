"""The level of audio: root mean square about the mean, as an offset of the recorder is no sound."""

import collections
import math
from collections.abc import Iterable, Iterator

import numpy as np

from pyspeech.audio.silence import RANGE

STEP = 2.0**-15  # of 16 bit: within it, nothing is left of channels that cancel each other when mixed


def rms(samples: np.ndarray) -> float:
    """Of samples (N,); 0 for N = 0 and for a constant."""
    return math.sqrt(np.var(samples, dtype=np.float64)) if len(samples) else 0.0


def scaled(samples: np.ndarray, level: float) -> np.ndarray:
    """Samples (N,) made louder or quieter as a whole, so that their `rms` is at `level` dB of full scale; silence as it is."""
    found = rms(samples)
    return samples * np.float32(10 ** (level / 20) / found) if found else samples


class Watched:
    """The blocks of an iterable as they come; then `count`, of their samples, and their range from `lowest` to `highest`."""

    def __init__(self, blocks: Iterable[np.ndarray]) -> None:
        self._blocks, self.count, self.lowest, self.highest = blocks, 0, math.inf, -math.inf

    def __iter__(self) -> Iterator[np.ndarray]:
        for block in self._blocks:
            self.count += len(block)
            self.lowest = min(self.lowest, float(block.min(initial=math.inf)))
            self.highest = max(self.highest, float(block.max(initial=-math.inf)))
            yield block

    @property
    def peak(self) -> float:
        """The largest magnitude; 0 of no samples."""
        return max(-self.lowest, self.highest, 0.0)

    @property
    def silent(self) -> bool:
        """Whether there is no sound: no samples, or digital silence alone."""
        return self.highest - self.lowest < RANGE


def is_silent(blocks: Iterable[np.ndarray]) -> bool:
    """Whether blocks (n,) hold no sound."""
    watched = Watched(blocks)
    collections.deque(watched, maxlen=0)
    return watched.silent


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
