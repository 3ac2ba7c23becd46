"""Pieces of the length that the detector is trained with, cut out of utterances of any length (Li et al. 2022, section
3.2).

In training a piece is a random crop; in detection it is the utterance as a whole, up to CropConfig.whole, or windows go over
it. What is shorter than in training is followed by zeros, or repeated (CropConfig.short). Where CropConfig says so, digital
silence is cut out of the utterance before, and pieces are scaled to one level.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from pyspeech.audio.level import scaled
from pyspeech.audio.silence import without_silence
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


def prepared(samples: np.ndarray, config: CropConfig) -> np.ndarray:
    """A piece of samples (N,), N > 0, as a network takes it: at the level of config, and filled up to config.samples."""
    if config.level is not None:
        samples = scaled(samples, config.level)
    return samples if len(samples) >= config.samples else fill(samples, config.samples, config.short)


def fill(samples: np.ndarray, size: int, short: str) -> np.ndarray:
    """Fill samples (N,), 0 < N <= size, up to (size,) with zeros or by repeating them (short: zeros, repeat)."""
    if short == "repeat":
        return np.resize(samples, size)
    return np.pad(samples, (0, size - len(samples)))


def windows(blocks: Iterable[np.ndarray], config: CropConfig) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield (start, end, piece (config.samples,) or, with config.whole, up to (config.whole,)) of an utterance that comes in
    blocks (n,) of any lengths.

    config: CropConfig. start, end: the places of the piece's first sample and behind its last. Windows are config.hop apart
    (with config.whole as many times that as it holds config.samples), but for the last one, which ends where the utterance
    does. An utterance that is no longer than a window has one, filled up to config.samples; nothing has none, and neither has
    digital silence with config.silence.
    """
    places = Places()
    sound = places.of(without_silence(blocks, config.silence)) if config.silence else blocks
    for start, piece in _windows(sound, config):
        yield places[start], places[start + len(piece) - 1] + 1, prepared(piece, config)


def _windows(blocks, config):
    """(start, piece) of `windows`, as they are."""
    size, hop = max(config.samples, config.whole), config.hop * max(1, config.whole // config.samples)
    before, rest, start = np.zeros(0, np.float32), np.zeros(0, np.float32), 0  # `rest` begins at sample `start`
    for block in blocks:
        rest = np.concatenate([rest, np.asarray(block, dtype=np.float32)])
        while len(rest) > size:
            yield start, rest[:size]
            before, rest, start = rest[:hop], rest[hop:], start + hop
    if len(rest) and start == 0:
        yield 0, rest
    elif len(rest):
        yield start + len(rest) - size, np.concatenate([before, rest])[-size:]


class Places:
    """places[n]: where in an utterance the sample lies that is sample n of what is left of it."""

    def __init__(self) -> None:
        self._kept, self._given = [0], [0]  # the beginnings of what is left, there and in the utterance

    def of(self, stretches: Iterable[tuple[int, np.ndarray]]) -> Iterator[np.ndarray]:
        """The blocks of (place, samples (n,)), which are noted."""
        count = 0
        for place, samples in stretches:
            if place - count != self._given[-1] - self._kept[-1]:
                self._kept.append(count)
                self._given.append(place)
            count += len(samples)
            yield samples

    def __getitem__(self, sample: int) -> int:
        index = bisect.bisect_right(self._kept, sample) - 1
        return self._given[index] + sample - self._kept[index]
