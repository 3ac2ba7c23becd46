"""Scores of whole recordings from a trained SAD network, in torch or in ONNX Runtime, in bounded memory.

A recording is scored in pieces (see pieces.py), each as soon as all that it depends on is there. The scores are those of the
whole recording, up to rounding, however it is cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pyspeech.sad.collectors import ChunkCollector, PieceCollector
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
    in_chunks: bool  # its pieces are those of `ChunkCollector`

    def score_piece(self, samples: np.ndarray, *numbers: int, state: Any = None) -> tuple[np.ndarray, Any]:
        """samples float32 (N,), numbers: of a piece, see `PieceCollector` and `ChunkCollector` -> scores float32 (n,), and the
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
    pieces = collector(scorer, piece)
    workers = scorer.workers if workers is None else workers

    def jobs() -> Iterator[Any]:
        for block in blocks:
            yield from pieces.add(np.asarray(block, dtype=np.float32))
        yield from pieces.finish()

    if workers == 1 or scorer.causal:
        state = None
        for job in jobs():
            scores, state = scorer.score_piece(*job, state=state)
            yield scores
    else:
        yield from _in_order(lambda *job: scorer.score_piece(*job)[0], jobs(), workers)


def collector(scorer: Scorer, piece: int | None = None) -> PieceCollector | ChunkCollector:
    """Collector of what a scorer scores at a time; piece: as of `score_blocks`."""
    return (ChunkCollector if scorer.in_chunks else PieceCollector)(scorer.geometry, scorer.stft_config, piece)


def as_scorer(model: SadNetwork | Scorer) -> Scorer:
    """Return the scorer of this model."""
    if hasattr(model, "score_piece"):
        return model  # pyright: ignore[reportReturnType]
    from pyspeech.sad.piece_network import scoring_network

    return scoring_network(model)  # pyright: ignore[reportArgumentType, reportReturnType]


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
