"""A SAD network for scoring: a piece of a recording in, the scores of its frames out (see pieces.py).

`PieceNetwork` computes with tensors alone, so that the same code runs in torch and, traced, in ONNX (onnx_export.py). So does
`ChunkNetwork`, of a causal network: a chunk of new frames and a state in, scores and a state out.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Sequence

import numpy as np
import torch

from pyspeech.features.stft import MatrixStft
from pyspeech.sad.networks import SadNetwork
from pyspeech.sad.normalisation import normalise, normalise_on
from pyspeech.sad.pieces import Geometry, first_state, state_shapes
from pyspeech.sad.registry import NETWORKS

# How scores of the lowered spectrum count, in log odds; chosen on dev, simulated and real.
LOWERED_MARGIN = 0.5  # less than they are
LOWERED_RISE = 4.0  # at most so much above those of the spectrum as it is: of tones, such as Morse, the latter are very low
LOWERED_CONTEXT = 1.0  # seconds of it to either side of a window, or all there are: as good as 4 s, and two fifths of the work


def scoring_network(model: SadNetwork) -> PieceNetwork | ChunkNetwork:
    """A copy of a network for scoring: in evaluation mode, batch normalisation made part of the convolutions."""
    return (ChunkNetwork if NETWORKS[model.config.temporal].causal else PieceNetwork)(model)


class ScoringNetwork(torch.nn.Module):
    """See `scoring_network`; what the two forms have in common."""

    stft: torch.nn.Module
    workers = 1

    def __init__(self, model: SadNetwork) -> None:
        super().__init__()
        model = fuse(model)
        self.network, self.stft_config = model.config, model.stft.config
        self.geometry = Geometry.of(self.network, self.stft_config)
        self.stft, self.cnn, self.temporal, self.context = model.stft, model.cnn, model.temporal, model.context


class PieceNetwork(ScoringNetwork):
    """See `scoring_network`; of a network that is not causal."""

    causal = in_chunks = False

    def __init__(self, model: SadNetwork) -> None:
        super().__init__(model)
        self.in_windows = None
        if NETWORKS[self.network.temporal].reach is None:
            own = getattr(self.temporal, "in_windows", None)
            self.in_windows = own() if own else functools.partial(score_windows, self.temporal)
        self.lowered = None
        if self.network.lowered:
            device = next(model.parameters()).device
            self.lowered = MatrixStft(self.stft_config, self.network.lowered).to(device)

    def forward(self, samples: torch.Tensor, span: torch.Tensor) -> torch.Tensor:
        """samples (1, N), at least a window of them; span (3,) int64, on the CPU: the frames that they are, the first one to
        be scored, and how many are -> scores (span[2],).

        The frames before and behind those are all within the geometry's margin, as far as the recording goes.
        """
        scores = self._scores(self.stft(samples, span[0]), span, self.geometry.context)
        if self.lowered is None:
            return scores
        context = min(self.geometry.context, round(LOWERED_CONTEXT / self.stft_config.frame_shift))
        return with_lowered(scores, self._scores(self.lowered(samples, span[0]), span, context))

    def _scores(self, magnitudes, span, context):
        """`forward` of the magnitudes (1, frames, bins) of one spectrum; context: frames to either side of a window."""
        frames, first, count = span[0], span[1], span[2]
        features = normalise(magnitudes, None, self.context, self.network.compress)
        low = (first - self.geometry.reach).clamp(min=0)
        high = torch.minimum(first + count + self.geometry.reach, frames)
        hidden, begin = self.cnn(features[:, low:high]), first - low
        if self.in_windows:
            return self.in_windows(hidden, begin, count, context, self.geometry.hop)
        return self.temporal(hidden)[0, begin : begin + count]

    def score_piece(
        self, samples: np.ndarray, num_frames: int, first: int, count: int, state: None = None
    ) -> tuple[np.ndarray, None]:
        """Score a piece, see `Scorer`."""
        device = next(self.parameters()).device
        recurrent = NETWORKS[self.network.temporal].recurrent
        with torch.inference_mode(), _one_thread(recurrent and device.type == "cpu"):
            batch = torch.from_numpy(np.ascontiguousarray(samples))[None].to(device)
            span = torch.tensor([num_frames, first, count])
            return self(batch, span).float().cpu().numpy(), None


class ChunkNetwork(ScoringNetwork):
    """See `scoring_network`; of a causal network."""

    causal = in_chunks = True

    def forward(self, frames: torch.Tensor, last: torch.Tensor, *state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """frames (1, T, window), samples of each new frame; last (1,) int64, on the CPU: 1 at the end of the recording, else 0;
        state: as of `state_shapes`, in its order
        -> scores (n,) of the next frames that are known now, and the state behind the new ones.
        """
        before = dict(zip(state_shapes(self.network, self.stft_config), state, strict=True))
        magnitudes = self.stft.magnitudes(frames)  # pyright: ignore[reportCallIssue]
        features, after = normalise_on(magnitudes, before, self.context, self.network.compress)
        maps = [name for name in before if name.startswith("maps")]
        hidden, kept = self.cnn.advance(features, [before[name] for name in maps], last[0])
        after.update(zip(maps, kept, strict=True))
        scores, after["features"], after["gru"] = self.temporal.advance(hidden, before["features"], before["gru"], last[0])
        return (scores[0], *(after[name] for name in before))

    def score_piece(
        self, frames: np.ndarray, last: int, state: Sequence[np.ndarray] | None = None
    ) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """Score a chunk, see `Scorer`."""
        device = next(self.parameters()).device
        with torch.inference_mode(), _one_thread(device.type == "cpu"):
            before = first_state(self.network, self.stft_config) if state is None else state
            batch, *before = (torch.from_numpy(one).to(device) for one in (frames[None], *before))
            outputs = self(batch, torch.tensor([last]), *before)
            scores, *after = (output.cpu().numpy() for output in outputs)
            return scores, after


def score_windows(
    layer: torch.nn.Module, hidden: torch.Tensor, first: torch.Tensor, count: torch.Tensor, context: int, hop: int
) -> torch.Tensor:
    """Scores (count,) of the frames from `first` on of hidden (1, T, D), by `layer` over windows as a batch.

    A layer that does it faster has its own way: `in_windows()`, see networks/rnn.py.

    Each window is `hop` frames and `context` to either side. It ends, and so the backward direction starts, where the recording
    does.
    """
    size = 2 * context + hop
    num_hops = (count + hop - 1).div(hop, rounding_mode="floor")
    hops = first + torch.arange(num_hops) * hop  # pyright: ignore[reportCallIssue, reportArgumentType]
    begin = (hops - context).clamp(min=0)
    frames = begin[:, None] + torch.arange(size)
    there = hidden.shape[1]
    valid = (frames < there) & (frames < (hops + hop + context)[:, None])
    windows = hidden[0][frames.clamp(max=there - 1).to(hidden.device)]
    scores = layer(windows, valid.to(hidden.device))
    wanted = (hops - begin)[:, None] + torch.arange(hop)
    return scores.gather(1, wanted.to(hidden.device)).flatten()[:count]


def with_lowered(scores: torch.Tensor, lowered: torch.Tensor) -> torch.Tensor:
    """Scores (T,), raised where those of the lowered spectrum (T,) are surer of speech; all above 0 and below 1."""
    odds, others = ((one / (1 - one)).log() for one in (scores, lowered))
    return torch.maximum(scores, torch.minimum(others - LOWERED_MARGIN, odds + LOWERED_RISE).sigmoid())


@contextlib.contextmanager
def _one_thread(wanted):
    """torch computes in a single thread within this block: the steps of a recurrent network are too short to share."""
    threads = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if wanted:
            torch.set_num_threads(threads)


def fuse(model: SadNetwork) -> SadNetwork:
    """A copy for scoring: in evaluation mode, batch normalisation made part of the convolutions (equal up to rounding)."""
    fused = copy.deepcopy(model).eval()
    for block in fused.cnn.blocks:
        _fuse_block(block)
    return fused.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def _fuse_block(block):
    for index, (convolution, norm) in enumerate(zip(block.convolutions, block.norms, strict=True)):
        block.convolutions[index] = torch.nn.utils.fusion.fuse_conv_bn_eval(convolution, norm)
        block.norms[index] = torch.nn.Identity()
