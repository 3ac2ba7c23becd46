"""Scores of whole recordings from a trained SAD network, in torch or in ONNX Runtime, in bounded memory.

A recording is scored in pieces (see pieces.py), each as soon as all that it depends on is there. The scores are those of the
whole recording, up to rounding, however it is cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pyspeech.sad.config import NetworkConfig, StftConfig
from pyspeech.sad.pieces import Geometry

if TYPE_CHECKING:
    from pyspeech.sad.networks import SadNetwork


class Scorer(Protocol):
    """Scorer of pieces: a PieceNetwork in torch, or an OnnxNetwork."""

    network: NetworkConfig
    stft_config: StftConfig
    geometry: Geometry
    workers: int  # pieces that it scores at a time
    causal: bool  # it scores the pieces of a recording in order

    def score_piece(
        self, samples: np.ndarray, num_frames: int, first: int, count: int, state: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """samples float32 (N,), num_frames, first, count: of a piece, see `PieceCollector` -> scores float32 (count,), and the
        state that a causal network takes with the next piece; state: what came with the piece before, None at the start."""
        ...


def score_samples(model: SadNetwork | Scorer, samples: np.ndarray) -> np.ndarray:
    """Speech score of every frame: samples (N,) float, at the model's sampling rate -> float32 (ceil(N / shift),)."""
    return score_stream(model, [samples])


def score_stream(model: SadNetwork | Scorer, blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Score an iterable of blocks (n,) of samples of any lengths, as from `stream_audio`, in little memory."""
    return np.concatenate([np.zeros(0, np.float32), *score_blocks(model, blocks)])


def score_blocks(
    model: SadNetwork | Scorer, blocks: Iterable[np.ndarray], piece: int | None = None, workers: int | None = None
) -> Iterator[np.ndarray]:
    """Yield the scores (n,) of consecutive pieces of frames while the blocks of samples come in.

    piece: frames, rounded up to hops; None: as many as there is memory for. workers: pieces that are scored at a time, each
    by one thread; None: one for each core in ONNX Runtime, one in torch, which has threads of its own. A causal network has its
    pieces one by one.
    """
    scorer = as_scorer(model)
    pieces = PieceCollector(scorer.geometry, scorer.stft_config, piece)
    workers = scorer.workers if workers is None else workers

    def jobs():
        for block in blocks:
            yield from pieces.add(np.asarray(block, dtype=np.float32))
        yield from pieces.finish()

    if workers == 1 or scorer.causal:
        state = None
        for job in jobs():
            scores, state = scorer.score_piece(*job, state)
            yield scores
    else:
        yield from _in_order(lambda *job: scorer.score_piece(*job)[0], jobs(), workers)


def as_scorer(model: SadNetwork | Scorer) -> Scorer:
    """Return the scorer of this model."""
    if hasattr(model, "score_piece"):
        return model  # pyright: ignore[reportReturnType]
    from pyspeech.sad.piece_network import PieceNetwork

    return PieceNetwork(model)  # pyright: ignore[reportArgumentType, reportReturnType]


def _in_order(function: Callable, jobs: Iterable[tuple], workers: int) -> Iterator[np.ndarray]:
    """Yield function(*job) of each job, of which `workers` are computed at a time and no more than these wait."""
    pending: deque[Future] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for job in jobs:
            pending.append(pool.submit(function, *job))
            if len(pending) > workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


class PieceCollector:
    """Collects samples, gives a piece out as soon as all that it depends on is there, and forgets what no later one needs.

    A piece is (samples, frames that they are, first frame to be scored, number of frames to be scored).
    """

    def __init__(self, geometry: Geometry, stft: StftConfig, piece: int | None = None) -> None:
        self.stft, self.margin, self.ahead = stft, geometry.margin, geometry.ahead
        self.piece = geometry.largest if piece is None else max(1, -(-piece // geometry.hop)) * geometry.hop
        self.samples, self.first = [], 0  # samples from frame `first` on
        self.num_samples = 0
        self.done = 0  # frames in pieces that were given out

    def add(self, block: np.ndarray) -> Iterator[tuple[np.ndarray, int, int, int]]:
        """Yield the pieces that are complete with a further block of samples, float32 (n,)."""
        self.samples.append(block)
        self.num_samples += len(block)
        while self._missing(self.done + self.piece + self.ahead) <= 0:
            yield self._take(self.done + self.piece, self.done + self.piece + self.ahead)

    def finish(self) -> Iterator[tuple[np.ndarray, int, int, int]]:
        """Yield the pieces up to the end of the recording."""
        num_frames = self.stft.num_frames(self.num_samples)
        while self.done < num_frames:
            end = min(self.done + self.piece, num_frames)
            yield self._take(end, min(end + self.ahead, num_frames))

    def _missing(self, num_frames):
        """Samples still needed before `num_frames` frames are whole."""
        return (num_frames - 1) * self.stft.shift + self.stft.window - self.num_samples

    def _take(self, end, known):
        """The piece of the frames done to end, with the frames up to `known`."""
        held = self.samples[0] if len(self.samples) == 1 else np.concatenate([np.zeros(0, np.float32), *self.samples])
        count = known - self.first
        samples = held[: (count - 1) * self.stft.shift + self.stft.window]
        samples = np.pad(samples, (0, max(0, self.stft.window - len(samples))))
        piece = samples, count, self.done - self.first, end - self.done
        self.done, start = end, max(0, end - self.margin)
        self.samples, self.first = [held[(start - self.first) * self.stft.shift :]], start
        return piece
