"""Pieces of the length that the detector is trained with, cut out of utterances of any length (Li et al. 2022, section
3.2).

In training a piece is a random crop; in detection it is the utterance as a whole, up to CropConfig.whole, or windows go over
it. What is shorter than in training is followed by zeros, or repeated (CropConfig.short).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from pyspeech.audio.speed import play

if TYPE_CHECKING:
    from pyspeech.spoof.config import CropConfig


def random_crop(samples: np.ndarray, size: int, rng: np.random.Generator, speed: int = 0) -> np.ndarray:
    """A random piece (size,) of samples (N,), or all that there is where that is less. rng: numpy Generator.

    speed: percent by which it is played faster or slower at most, each as likely; 0: as it is.
    """
    percent = 100 + int(rng.integers(-speed, speed + 1)) if speed else 100
    length = -(-size * percent // 100)
    start = rng.integers(max(0, len(samples) - length) + 1)
    return play(samples[start : start + length], percent)[:size]


def fill(samples: np.ndarray, size: int, short: str) -> np.ndarray:
    """samples (N,), 0 < N <= size, as (size,): followed by zeros, or repeated (short: zeros, repeat)."""
    if short == "repeat":
        return np.resize(samples, size)
    return np.pad(samples, (0, size - len(samples)))


def windows(blocks: Iterable[np.ndarray], config: CropConfig) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (start, piece (config.samples,) or, with config.whole, up to (config.whole,)) of an utterance that comes in
    blocks (n,) of any lengths.

    config: CropConfig. start: the place of the piece's first sample. Windows are config.hop apart (with config.whole as many
    times that as it holds config.samples), but for the last one, which ends where the utterance does. An utterance that is no
    longer than a window has one, filled up to config.samples; nothing has none.
    """
    size, hop = max(config.samples, config.whole), config.hop * max(1, config.whole // config.samples)
    before, rest, start = np.zeros(0, np.float32), np.zeros(0, np.float32), 0  # `rest` begins at sample `start`
    for block in blocks:
        rest = np.concatenate([rest, np.asarray(block, dtype=np.float32)])
        while len(rest) > size:
            yield start, rest[:size]
            before, rest, start = rest[:hop], rest[hop:], start + hop
    if len(rest) and start == 0:
        yield 0, rest if len(rest) > config.samples else fill(rest, config.samples, config.short)
    elif len(rest):
        yield start + len(rest) - size, np.concatenate([before, rest])[-size:]
