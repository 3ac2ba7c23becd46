"""Digital silence: stretches in which samples stay where they are, as zeros that fill a file up or a muted microphone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

RANGE = 1e-4  # samples that lie this close together, of a full scale of -1 to 1, are silent: three steps of 16 bit
FRAMES = 5  # of a stretch


def silent_stretches(samples: np.ndarray, shortest: int) -> np.ndarray:
    """(n, 2) first and last (excluded) sample of the silent stretches in samples (N,).

    A stretch consists of FRAMES or more frames, which are `shortest` // FRAMES samples long and begin at a multiple of that.
    """
    size = max(1, shortest // FRAMES)
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    silent = np.ptp(frames, axis=1) < RANGE if len(frames) else np.zeros(0, dtype=bool)
    edges = np.flatnonzero(np.diff(silent, prepend=False, append=False)).reshape(-1, 2)
    return size * edges[edges[:, 1] - edges[:, 0] >= FRAMES]


def without_silence(blocks: Iterable[np.ndarray], shortest: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (place, samples (n,)): what `SilenceCutter` leaves of audio in blocks (n,) of any lengths."""
    cutter = SilenceCutter(shortest)
    for block in blocks:
        yield from cutter.add(block)
    yield from cutter.finish()


class SilenceCutter:
    """Cut silent stretches out of audio while it comes in; of them little is kept in memory, however long they are.

    `add` and `finish` give what is left: (place of the first sample in the audio, samples (n,)).
    """

    def __init__(self, shortest: int) -> None:
        self._shortest, self._size = shortest, max(1, shortest // FRAMES)
        self._rest, self._place = np.zeros(0, np.float32), 0  # `rest` begins at sample `place`, a multiple of a frame

    def add(self, block: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Add a block (n,) and return the parts that are certainly kept so far."""
        rest, size = np.concatenate([self._rest, np.asarray(block, dtype=np.float32)]), self._size
        end = _last_sound(rest, size)
        found = _between(rest[:end], self._place, silent_stretches(rest, self._shortest))
        waiting = max(end, len(rest) // size * size - FRAMES * size)  # of a longer stretch the end is enough
        self._rest, self._place = rest[waiting:], self._place + waiting
        return found

    def finish(self) -> list[tuple[int, np.ndarray]]:
        """Return the remaining parts at the end of the audio."""
        rest, size = self._rest, self._size
        whole = len(rest) // size * size  # all of it silent
        if whole < FRAMES * size:
            whole = 0
        elif whole < len(rest) and np.ptp(rest[whole:]) < RANGE:
            whole = len(rest)
        return [(self._place + whole, rest[whole:])] if whole < len(rest) else []


def _last_sound(samples, size):
    """Where the silent frames begin that samples end in."""
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    loud = np.flatnonzero(np.ptp(frames, axis=1) >= RANGE) if len(frames) else []
    return size * (int(loud[-1]) + 1) if len(loud) else 0


def _between(samples, place, stretches):
    """What lies between stretches."""
    found, begin = [], 0
    for first, last in [*stretches.tolist(), [len(samples), len(samples)]]:
        first = min(first, len(samples))
        if begin < first:
            found.append((place + begin, samples[begin:first]))
        begin = last
    return found
