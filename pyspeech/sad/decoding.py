"""Scores of whole recordings from a trained SAD network, in bounded memory.

A recording is scored in chunks. Each chunk is given the frames around it that its scores depend on: those of the
normalisation window (twice over for log magnitudes: the level of their floor, then their mean), of the convolutions (2 a
block) and of the segments, so that the chunks' scores are those of the whole recording. The bidirectional GRU over all
frames ("rnn") depends on every frame; it is given RNN_CONTEXT_SECONDS to either side, so its scores are close, not exact
(training shows it 4 s at a time).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from pyspeech.sad.networks import SadNetwork

CHUNK_SECONDS = 20.0
RNN_CONTEXT_SECONDS = 4.0


def score_samples(model: SadNetwork, samples: np.ndarray) -> np.ndarray:
    """Speech score of every frame: samples (N,) float, at the model's sampling rate -> float32 (ceil(N / shift),)."""
    return np.concatenate([np.zeros(0, np.float32), *score_blocks(model, [samples])])


def score_stream(model: SadNetwork, blocks: Iterable[np.ndarray]) -> np.ndarray:
    """The same for an iterable of blocks (n,) of samples, of any lengths, as of `stream_audio`: hours in little memory."""
    return np.concatenate([np.zeros(0, np.float32), *score_blocks(model, blocks)])


def score_blocks(model: SadNetwork, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the scores (n,) of consecutive chunks of frames while the blocks of samples come in."""
    scorer = _ChunkScorer(model)
    for block in blocks:
        yield from scorer.add(np.asarray(block, dtype=np.float32))
    yield from scorer.finish()


class _ChunkScorer:
    """Collects samples, scores a chunk as soon as all that it depends on is there, and forgets what no later one needs."""

    def __init__(self, model):
        self.model = fuse(model)
        self.device = next(model.parameters()).device
        self.stft = stft = model.stft.config
        beyond_cnn = model.temporal.reach
        if beyond_cnn is None:
            beyond_cnn = round(RNN_CONTEXT_SECONDS / stft.frame_shift)
        self.reach = model.cnn.reach + beyond_cnn
        # Chunks start where a segment does.
        grid = model.config.segment_shift
        self.chunk = max(1, round(CHUNK_SECONDS / stft.frame_shift / grid)) * grid
        self.reach = -(-self.reach // grid) * grid
        windows = 2 if model.config.compress == "log" else 1  # that normalise applies one after the other
        self.margin = self.reach + windows * model.context
        self.pieces, self.first = [], 0  # samples from frame `first` on
        self.num_samples = 0
        self.done = 0  # frames scored

    def add(self, block):
        self.pieces.append(block)
        self.num_samples += len(block)
        if self._missing(self.done + self.chunk + self.margin) <= 0:
            self.pieces = [np.concatenate(self.pieces)]
            while self._missing(self.done + self.chunk + self.margin) <= 0:
                yield self._score(self.done + self.chunk, self.done + self.chunk + self.margin)

    def finish(self):
        num_frames = self.stft.num_frames(self.num_samples)
        self.pieces = [np.concatenate([np.zeros(0, np.float32), *self.pieces])]
        while self.done < num_frames:
            end = min(self.done + self.chunk, num_frames)
            yield self._score(end, min(end + self.margin, num_frames))

    def _missing(self, num_frames):
        """Samples still needed before `num_frames` frames are whole."""
        return (num_frames - 1) * self.stft.shift + self.stft.window - self.num_samples

    def _score(self, end, known):
        """Scores of frames done to end, from the frames up to `known`."""
        samples = self.pieces[0]
        start = max(0, self.done - self.margin)
        if start > self.first:
            samples = samples[(start - self.first) * self.stft.shift :]
            self.pieces, self.first = [samples], start
        count = known - start
        samples = samples[: (count - 1) * self.stft.shift + self.stft.window]
        left = max(0, self.done - self.reach) - start
        right = known - min(known, end + self.reach)
        with torch.inference_mode():
            batch = torch.from_numpy(np.ascontiguousarray(samples))[None].to(self.device)
            valid = torch.ones(1, count, dtype=torch.bool, device=self.device)
            scores = self.model(batch, valid, left, right)[0].float().cpu().numpy()
        skipped = self.done - start - left
        scores = scores[skipped : skipped + end - self.done]
        self.done = end
        return scores


def fuse(model: SadNetwork) -> SadNetwork:
    """A copy for scoring: in evaluation mode, batch normalisation made part of the convolutions (equal up to rounding)."""
    fused = copy.deepcopy(model).eval()
    for block in fused.cnn.blocks:
        _fuse_block(block)
    return fused.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def _fuse_block(block):
    for index, (convolution, norm) in enumerate(zip(block.convolutions, block.norms)):
        block.convolutions[index] = torch.nn.utils.fusion.fuse_conv_bn_eval(convolution, norm)
        block.norms[index] = torch.nn.Identity()
