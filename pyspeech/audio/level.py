"""The level of audio: root mean square about the mean, as an offset of the recorder is no sound."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

STEP = 2.0**-15  # of 16 bit: within it, nothing is left of channels that cancel each other when mixed
HISS_BAND = (4500.0, 7000.0)  # Hz: above most of speech, below what codecs and microphones cut off
HISS_FRAMES = 0.1  # share of frames that are the quietest: pauses
HISS_STEPS = np.arange(-160.0, 200.0, 0.5)  # dB; levels of frames are counted, so that hours need no more memory than seconds


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


class Hiss:
    """The blocks of an iterable as they come; then `level`, of the hiss in them.

    The level is the power density from 4.5 to 7 kHz that a tenth of the frames (16 ms, Hann) stays below, against that of all
    frames at all frequencies, in dB: white noise N dB below speech has about -N. -inf where nothing is in this band, as in
    audio of less than 14 kHz or with digital silence in a tenth of it, or without a whole frame.
    """

    def __init__(self, blocks: Iterable[np.ndarray], sampling_rate: int) -> None:
        size = 2 * round(0.008 * sampling_rate)
        self._blocks, self._window, self._rest = blocks, np.hanning(size), np.zeros(0, np.float32)
        frequencies = np.fft.rfftfreq(size, 1 / sampling_rate)
        self._band = (frequencies >= HISS_BAND[0]) & (frequencies <= HISS_BAND[1])
        self._audible = sampling_rate >= 2 * HISS_BAND[1]
        self._counts, self._frames, self._power = np.zeros(len(HISS_STEPS) + 1, dtype=np.int64), 0, 0.0

    def __iter__(self) -> Iterator[np.ndarray]:
        for block in self._blocks:
            self._take(block)
            yield block

    def _take(self, block):
        size = len(self._window)
        samples = np.concatenate([self._rest, block])
        count = max(0, (len(samples) - size) // (size // 2) + 1)
        self._rest = samples[count * (size // 2) :]
        if count and self._audible:
            frames = np.lib.stride_tricks.sliding_window_view(samples, size)[:: size // 2][:count]
            power = np.square(np.abs(np.fft.rfft(frames * self._window)))
            self._frames, self._power = self._frames + count, self._power + float(power.mean(axis=1).sum())
            with np.errstate(divide="ignore"):
                levels = 10 * np.log10(power[:, self._band].mean(axis=1))
            self._counts += np.bincount(np.searchsorted(HISS_STEPS, levels), minlength=len(self._counts))

    @property
    def level(self) -> float:
        if not self._power:
            return -math.inf
        place = int(np.searchsorted(np.cumsum(self._counts), HISS_FRAMES * self._frames))
        return float(HISS_STEPS[place - 1]) - 10 * math.log10(self._power / self._frames) if place else -math.inf
