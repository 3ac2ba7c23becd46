"""A SAD network for scoring: a piece of a recording in, the scores of its frames out (see pieces.py).

`PieceNetwork` computes with tensors alone, so that the same code runs in torch and, traced, in ONNX (onnx_export.py).
"""

from __future__ import annotations

import contextlib
import copy

import numpy as np
import torch

from pyspeech.sad.networks import SadNetwork
from pyspeech.sad.normalisation import normalise
from pyspeech.sad.pieces import Geometry, state_shape
from pyspeech.sad.registry import NETWORKS


class PieceNetwork(torch.nn.Module):
    """A copy of a SadNetwork for scoring: in evaluation mode, batch normalisation made part of the convolutions."""

    stft: torch.nn.Module
    workers = 1

    def __init__(self, model: SadNetwork) -> None:
        super().__init__()
        model = fuse(model)
        self.network, self.stft_config = model.config, model.stft.config
        self.geometry = Geometry.of(self.network, self.stft_config)
        self.stft, self.cnn, self.temporal, self.context = model.stft, model.cnn, model.temporal, model.context
        kind = NETWORKS[self.network.temporal]
        self.in_windows, self.causal, self.ahead = kind.reach is None, kind.causal, model.ahead

    def forward(
        self, samples: torch.Tensor, span: torch.Tensor, state: torch.Tensor | None = None
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """samples (1, N), at least a window of them; span (3,) int64, on the CPU: the frames that they are, the first one to
        be scored, and how many are; state (1, 1, H), of a causal network alone: behind the frames before, zeros at first
        -> scores (span[2],); of a causal network with the state behind them.

        The frames before and behind those are all within the geometry's margin, as far as the recording goes.
        """
        frames, first, count = span[0], span[1], span[2]
        magnitudes = self.stft(samples, frames)
        features = normalise(magnitudes, None, self.context, self.network.compress, ahead=self.ahead)
        low = (first - self.geometry.reach).clamp(min=0)
        high = torch.minimum(first + count + self.geometry.reach, frames)
        hidden, begin = self.cnn(features[:, low:high]), first - low
        if self.in_windows:
            return score_windows(self.temporal, hidden, begin, count, self.geometry)
        if self.causal:
            ahead = hidden[:, begin : begin + count + self.network.lookahead]
            scores, after = self.temporal.advance(ahead, count, state)
            return scores[0], after
        return self.temporal(hidden)[0, begin : begin + count]

    def score_piece(
        self, samples: np.ndarray, num_frames: int, first: int, count: int, state: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Score a piece, see `Scorer`."""
        device = next(self.parameters()).device
        recurrent = NETWORKS[self.network.temporal].recurrent
        with torch.inference_mode(), _one_thread(recurrent and device.type == "cpu"):
            batch = torch.from_numpy(np.ascontiguousarray(samples))[None].to(device)
            span = torch.tensor([num_frames, first, count])
            if not self.causal:
                return self(batch, span).float().cpu().numpy(), None
            before = np.zeros(state_shape(self.network), np.float32) if state is None else state
            scores, after = self(batch, span, torch.from_numpy(before).to(device))
            return scores.float().cpu().numpy(), after.float().cpu().numpy()


def score_windows(
    layer: torch.nn.Module, hidden: torch.Tensor, first: torch.Tensor, count: torch.Tensor, geometry: Geometry
) -> torch.Tensor:
    """Scores (count,) of the frames from `first` on of hidden (1, T, D), by `layer` over windows as a batch.

    Each window is a hop and the context of it. It ends, and so the backward direction starts, where the recording does.
    """
    context, hop = geometry.context, geometry.hop
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
