"""Scores of whole recordings from a trained SAD network, in bounded memory, and the network's file.

A recording is scored in chunks. Each chunk is given the frames around it that its scores depend on: those of the
normalisation window (twice over for log magnitudes: the level of their floor, then their mean), of the convolutions (2 a
block) and of the segments, so that the chunks' scores are those of the whole recording. The bidirectional GRU over all
frames ("rnn") depends on every frame; it is given RNN_CONTEXT_SECONDS to either side, so its scores are close, not exact
(training shows it 4 s at a time).
"""

import copy
import dataclasses
from pathlib import Path

import numpy as np
import torch

from pyspeech.compat import load_checkpoint, save_checkpoint
from pyspeech.errors import UserError
from pyspeech.sad.config import NetworkConfig, StftConfig
from pyspeech.sad.networks import SadNetwork
from pyspeech.sad.smoothing import SMOOTHINGS

CHUNK_SECONDS = 20.0
RNN_CONTEXT_SECONDS = 4.0
MODEL_FILE = "model.pt"


def score_samples(model, samples):
    """Speech score of every frame: samples (N,) float, at the model's sampling rate -> float32 (ceil(N / shift),)."""
    return np.concatenate([np.zeros(0, np.float32), *score_blocks(model, [samples])])


def score_stream(model, blocks):
    """The same for an iterable of blocks (n,) of samples, of any lengths, as of `stream_audio`: hours in little memory."""
    return np.concatenate([np.zeros(0, np.float32), *score_blocks(model, blocks)])


def score_blocks(model, blocks):
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


def fuse(model):
    """A copy for scoring: in evaluation mode, batch normalisation made part of the convolutions (equal up to rounding)."""
    fused = copy.deepcopy(model).eval()
    for block in fused.cnn.blocks:
        for index, (convolution, norm) in enumerate(zip(block.convolutions, block.norms)):
            block.convolutions[index] = torch.nn.utils.fusion.fuse_conv_bn_eval(convolution, norm)
            block.norms[index] = torch.nn.Identity()
    return fused.to(memory_format=torch.channels_last)


def save_model(folder, model, threshold=0.5, smoothing="none"):
    """Write `folder`/model.pt: weights, configuration, and how scores become decisions (see smoothing.decide)."""
    content = {
        "model": {name: value.cpu() for name, value in model.state_dict().items()},
        "network": dataclasses.asdict(model.config),
        "stft": dataclasses.asdict(model.stft.config),
        "threshold": float(threshold),
        "smoothing": smoothing,
    }
    content["network"]["channels"] = list(content["network"]["channels"])
    save_checkpoint(Path(folder) / MODEL_FILE, content)


def load_model(folder, device="cpu"):
    """The SadNetwork of `folder`/model.pt, in evaluation mode, with `threshold` and `smoothing` as attributes."""
    path = Path(folder) / MODEL_FILE
    content = load_checkpoint(path, map_location="cpu")
    try:
        model = SadNetwork(NetworkConfig(**content["network"]), StftConfig(**content["stft"]))
        model.load_state_dict(content["model"])
        model.threshold, model.smoothing = content["threshold"], content["smoothing"]
    except (KeyError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path}: not a SAD network of this version ({type(error).__name__}: {reason}); "
            "train it again, or use the version of the code that made it"
        ) from error
    if model.smoothing not in SMOOTHINGS:
        raise UserError(f"{path}: smoothing {model.smoothing!r}; expected one of {', '.join(SMOOTHINGS)}")
    return model.to(device).eval()
