"""Samples of a recording, in blocks of any lengths, to the pieces of it that a network scores (see pieces.py).

What no later piece needs is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyspeech.sad.config import StftConfig
from pyspeech.sad.pieces import Geometry


class _Collector:
    """Samples that came in, from frame `first` on."""

    def __init__(self, geometry: Geometry, stft: StftConfig, piece: int | None = None) -> None:
        self.stft, self.ahead = stft, geometry.ahead
        self.piece = geometry.largest if piece is None else max(1, -(-piece // geometry.hop)) * geometry.hop
        self.samples, self.first = [], 0
        self.num_samples = 0

    def _hold(self, block):
        self.samples.append(block)
        self.num_samples += len(block)

    def _missing(self, num_frames):
        """Samples still needed before `num_frames` frames are whole."""
        return (num_frames - 1) * self.stft.shift + self.stft.window - self.num_samples

    def _take(self, count, start):
        """The samples of the next `count` frames; those before frame `start` are then forgotten."""
        held = self.samples[0] if len(self.samples) == 1 else np.concatenate([np.zeros(0, np.float32), *self.samples])
        samples = held[: (count - 1) * self.stft.shift + self.stft.window]
        self.samples, self.first = [held[(start - self.first) * self.stft.shift :]], start
        return np.pad(samples, (0, self.stft.window - len(samples))) if len(samples) < self.stft.window else samples


class PieceCollector(_Collector):
    """Gives a piece out as soon as all that it depends on is there.

    A piece is (samples, frames that they are, first frame to be scored, number of frames to be scored).
    """

    def __init__(self, geometry: Geometry, stft: StftConfig, piece: int | None = None) -> None:
        super().__init__(geometry, stft, piece)
        self.margin = geometry.margin
        self.done = 0  # frames in pieces that were given out

    def add(self, block: np.ndarray) -> Iterator[tuple[np.ndarray, int, int, int]]:
        """Yield the pieces that are complete with a further block of samples, float32 (n,)."""
        self._hold(block)
        while self._missing(self.done + self.piece + self.ahead) <= 0:
            yield self._piece(self.done + self.piece, self.done + self.piece + self.ahead)

    def finish(self) -> Iterator[tuple[np.ndarray, int, int, int]]:
        """Yield the pieces up to the end of the recording."""
        num_frames = self.stft.num_frames(self.num_samples)
        while self.done < num_frames:
            end = min(self.done + self.piece, num_frames)
            yield self._piece(end, min(end + self.ahead, num_frames))

    def _piece(self, end, known):
        """The piece of the frames done to end, with the frames up to `known`."""
        count, first, before = known - self.first, self.done - self.first, self.done
        self.done = end
        return self._take(count, max(0, end - self.margin)), count, first, end - before


class ChunkCollector(_Collector):
    """Gives a chunk of new frames out as soon as they are there, for a causal network.

    A chunk is (samples of each new frame (T, window), 1 at the end of the recording and else 0).
    """

    def __init__(self, geometry: Geometry, stft: StftConfig, piece: int | None = None) -> None:
        super().__init__(geometry, stft, piece)
        self.known = 0  # frames in chunks that were given out
        self._window = np.arange(stft.window)

    def add(self, block: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
        """Yield the chunks that are complete with a further block of samples, float32 (n,)."""
        self._hold(block)
        while self._missing(self.known + self._due()) <= 0:
            yield self._chunk(self._due(), 0)

    def finish(self) -> Iterator[tuple[np.ndarray, int]]:
        """Yield the last chunk, with all frames that are left."""
        if self.num_samples:
            yield self._chunk(self.stft.num_frames(self.num_samples) - self.known, 1)

    def _due(self):
        return self.piece if self.known else self.piece + self.ahead

    def _chunk(self, count, last):
        first = self.known - self.first
        self.known += count
        # The frame before is held, as those at the end of a recording repeat the last whole one.
        samples = self._take(first + count, self.known - 1)
        whole = 1 + (len(samples) - self.stft.window) // self.stft.shift
        starts = np.minimum(np.arange(first, first + count), whole - 1) * self.stft.shift
        return samples[starts[:, None] + self._window], last
