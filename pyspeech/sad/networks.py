"""Neural speech activity detection (Heitkaemper et al. 2020, section 3, Figure 4, Table 1).

    samples -> magnitude STFT -> normalisation -> CNN blocks -> temporal layer -> sigmoid -> maximum over the outputs

A CNN block is two 3x3 convolutions, each with batch normalisation and ReLU, and max pooling by 4 along frequency; time is
never pooled. The temporal layer is a 1-D CNN ("cnn"), a bidirectional GRU with a linear classifier ("rnn"), or the same GRU
over short segments with the any-segment rule ("seg_rnn", see segment_rnn.py).

Normalisation is over a sliding window of the recording (`normalise`), so that a 4 s crop in training, whose batch brings
the frames around it along, and an hour in testing are normalised alike.
"""

from collections.abc import Sequence

import torch
from torch.nn import functional

from pyspeech.compat import autocast, full_precision, is_autocast, run_recurrent
from pyspeech.features.stft import MagnitudeStft, StftConfig
from pyspeech.sad import gru, segment_rnn
from pyspeech.sad.config import NetworkConfig
from pyspeech.sad.normalisation import normalise
from pyspeech.sad.pieces import context_frames

SQUASH = 1e-3  # scores lie in SQUASH to 1 - SQUASH: the loss stays finite whatever the labels
POOLING = 4


class SadNetwork(torch.nn.Module):
    """Speech scores of frames.

    config: NetworkConfig, stft: StftConfig; the defaults are the paper's.
    """

    def __init__(self, config: NetworkConfig | None = None, stft: StftConfig | None = None) -> None:
        super().__init__()
        self.config = config or NetworkConfig()
        self.config.check()
        stft = stft or StftConfig()
        self.stft = MagnitudeStft(stft)
        self.context = context_frames(self.config, stft)
        self.cnn = CnnFrontEnd(stft.num_bins, self.config.channels)
        layers = {"cnn": CnnLayer, "rnn": RnnLayer, "seg_rnn": SegmentRnnLayer}
        self.temporal = layers[self.config.temporal](self.cnn.num_features, self.config)

    def forward(self, samples: torch.Tensor, valid: torch.Tensor | None = None, left: int = 0, right: int = 0) -> torch.Tensor:
        """Score every frame of a batch of recordings, or of pieces cut out of recordings.

        samples  (B, N) float; their gain does not matter
        valid    (B, T) bool: which frames exist; zeros stand in for the others, which lie behind a recording's end or, within
                 `left`, before its start. Given, N may be up to (T - 1) * shift + window. None: all ceil(N / shift) do.
        left, right   frames at the start and at the end that take part in the normalisation alone
        Returns scores (B, T - left - right), SQUASH to 1 - SQUASH; 0 for frames that do not exist. Those change no others'.
        """
        magnitudes = self.stft(samples, None if valid is None else valid.shape[1])
        if magnitudes.shape[1] <= left + right:
            return magnitudes.new_zeros(len(magnitudes), 0)
        features = normalise(magnitudes, valid, self.context, self.config.compress, left, right)
        if valid is not None:
            valid = valid[:, left : valid.shape[1] - right]
            valid = None if valid.all() else valid
        scores = self.temporal(self.cnn(features, valid), valid)
        return scores if valid is None else scores * valid


class CnnFrontEnd(torch.nn.Module):
    """Blocks of two convolutions and a pooling: (B, T, bins) -> (B, T, num_features)."""

    def __init__(self, num_bins: int, channels: Sequence[int]) -> None:
        super().__init__()
        blocks, inputs = [], 1
        for outputs in channels:
            blocks.append(CnnBlock(inputs, outputs, min(POOLING, num_bins)))
            num_bins //= min(POOLING, num_bins)
            inputs = outputs
        self.blocks = torch.nn.ModuleList(blocks)
        self.num_features = inputs * num_bins
        # Twice as fast as the default on a CPU.
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def forward(self, features: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        # Frames that do not exist are zeros before each convolution, as is what lies beyond the tensor's edge.
        mask = None if valid is None else valid[:, None, :, None]
        maps = features[:, None] if mask is None else features[:, None] * mask
        maps = maps.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            maps = block(maps, mask)
        return maps.permute(0, 2, 3, 1).flatten(2)


class CnnBlock(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, pooling: int) -> None:
        super().__init__()
        self.convolutions = torch.nn.ModuleList(torch.nn.Conv2d(size, outputs, 3, padding=1) for size in (inputs, outputs))
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(outputs) for _ in range(2))
        self.pooling = pooling

    def forward(self, maps: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """maps (B, C, T, F), mask None or (B, 1, T, 1) -> (B, C', T, F // pooling)."""
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            maps = functional.relu(norm(convolution(maps)), inplace=True)
            maps = maps if mask is None else maps * mask
        return functional.max_pool2d(maps, (1, self.pooling))


class CnnLayer(torch.nn.Module):
    """Table 1, first row: two 1-D convolutions."""

    def __init__(self, inputs: int, config: NetworkConfig) -> None:
        super().__init__()
        self.hidden = torch.nn.Conv1d(inputs, config.cnn_channels, 3, padding=1)
        self.output = torch.nn.Conv1d(config.cnn_channels, config.outputs, 3, padding=1)

    def forward(self, features: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        hidden = functional.relu(self.hidden(features.transpose(1, 2)), inplace=True)
        hidden = hidden if valid is None else hidden * valid[:, None]
        return highest_score(self.output(hidden).transpose(1, 2))


class RnnLayer(torch.nn.Module):
    """Table 1, second row: a bidirectional GRU over all frames and a linear classifier."""

    def __init__(self, inputs: int, config: NetworkConfig) -> None:
        super().__init__()
        self.merge = config.rnn_merge
        size = config.rnn_size // 2 if self.merge == "concat" else config.rnn_size
        self.gru = torch.nn.GRU(inputs, size, batch_first=True, bidirectional=True)
        self.classifier = torch.nn.Linear(config.rnn_size, config.outputs)

    def forward(self, features: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        if valid is None and torch.is_grad_enabled() and features.device.type == "cpu" and not is_autocast(features.device):
            return self.classify(*gru.outputs(self.gru, features))
        if valid is None:
            outputs, _ = run_recurrent(self.gru, features)
        else:
            # The backward direction has to start at each recording's own end.
            lengths = valid.sum(1).cpu().clamp(min=1)
            packed = torch.nn.utils.rnn.pack_padded_sequence(features, lengths, batch_first=True, enforce_sorted=False)
            # The GRU's own initial state would be one of a fixed number of recordings once traced.
            state = features.new_zeros(2, features.shape[0], self.gru.hidden_size)
            outputs, _ = torch.nn.utils.rnn.pad_packed_sequence(
                run_recurrent(self.gru, packed, state)[0], batch_first=True, total_length=features.shape[1]
            )
        return self.classify(*outputs.chunk(2, dim=2))

    def classify(self, forward: torch.Tensor, backward: torch.Tensor) -> torch.Tensor:
        """Scores (B, T) from the outputs of the two directions, (B, T, H) each."""
        merged = torch.cat([forward, backward], dim=2) if self.merge == "concat" else forward + backward
        return highest_score(self.classifier(merged))


class SegmentRnnLayer(RnnLayer):
    """The GRU and classifier over segments of L frames, S frames apart, and the any-segment rule."""

    def __init__(self, inputs: int, config: NetworkConfig) -> None:
        super().__init__(inputs, config)
        self.length, self.shift = config.segment_length, config.segment_shift

    def forward(self, features: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        with autocast(features.device, enabled=False):  # as run_recurrent
            outputs = segment_rnn.last_outputs(full_precision(features), self.gru, self.length, self.shift)
        scores = self.classify(*outputs)
        if valid is not None:
            counts = segment_rnn.num_segments(valid.sum(1, keepdim=True), self.length, self.shift)
            scores = scores * (torch.arange(scores.shape[1], device=scores.device) < counts)
        return segment_rnn.any_segment(scores, self.length, self.shift, features.shape[1])


def highest_score(logits: torch.Tensor) -> torch.Tensor:
    """(B, T, outputs) -> (B, T): the highest output's sigmoid, squashed to SQUASH to 1 - SQUASH.

    In bf16 the sigmoid of 6.3 would be 1, and its gradient 0.
    """
    return SQUASH + (1 - 2 * SQUASH) * torch.sigmoid(full_precision(logits).amax(dim=2))
