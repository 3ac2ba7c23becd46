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
    """Yield (place, samples (n,)): what is left of audio in blocks (n,) of any lengths without its silent stretches.

    place: of the first of the samples in the audio. Little more than a block is kept in memory, however long the silence.
    """
    size = max(1, shortest // FRAMES)
    rest, place = np.zeros(0, np.float32), 0  # `rest` begins at sample `place`, a multiple of a frame
    for block in blocks:
        rest = np.concatenate([rest, np.asarray(block, dtype=np.float32)])
        end = _last_sound(rest, size)
        yield from _between(rest[:end], place, silent_stretches(rest, shortest))
        waiting = max(end, len(rest) // size * size - FRAMES * size)  # of a longer stretch the end is enough
        rest, place = rest[waiting:], place + waiting
    whole = len(rest) // size * size  # all of it silent
    if whole < FRAMES * size:
        whole = 0
    elif whole < len(rest) and np.ptp(rest[whole:]) < RANGE:
        whole = len(rest)
    if whole < len(rest):
        yield place + whole, rest[whole:]


def _last_sound(samples, size):
    """Where the silent frames begin that samples end in."""
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    loud = np.flatnonzero(np.ptp(frames, axis=1) >= RANGE) if len(frames) else []
    return size * (int(loud[-1]) + 1) if len(loud) else 0


def _between(samples, place, stretches):
    """What lies between stretches."""
    begin = 0
    for first, last in [*stretches.tolist(), [len(samples), len(samples)]]:
        if begin < min(first, len(samples)):
            yield place + begin, samples[begin : min(first, len(samples))]
        begin = last
