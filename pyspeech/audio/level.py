"""The level of audio: root mean square about the mean, as an offset of the recorder is no sound."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

STEP = 2.0**-15  # of 16 bit: within it, nothing is left of channels that cancel each other when mixed


def rms(samples: np.ndarray) -> float:
    """Of samples (N,); 0 for N = 0 and for a constant."""
    return math.sqrt(np.var(samples, dtype=np.float64)) if len(samples) else 0.0


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

    def __init__(self) -> None:
        self._count, self._sums, self._squares = 0, np.zeros(1), np.zeros(1)

    def add(self, frames: np.ndarray) -> np.ndarray:
        """Frames float32 (n, channels) -> their mean (n,)."""
        mean = frames @ np.full(frames.shape[1], 1 / frames.shape[1], dtype=np.float32)
        values = np.nan_to_num(np.column_stack([mean, frames]).astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        self._count += len(values)
        self._sums = self._sums + values.sum(axis=0)
        self._squares = self._squares + np.square(values).sum(axis=0)
        return mean

    @property
    def cancels(self) -> bool:
        """False of silence, and of a single channel."""
        count = max(self._count, 1)
        mean, *channels = self._squares / count - np.square(self._sums / count)
        return len(channels) > 1 and sum(channels) > STEP**2 and mean < self.CANCELLED * sum(channels) / len(channels) ** 2
