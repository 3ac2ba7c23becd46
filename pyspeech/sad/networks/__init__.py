"""Neural speech activity detection (Heitkaemper et al. 2020, section 3, Figure 4, Table 1).

    samples -> magnitude STFT -> normalisation -> CNN blocks -> temporal layer -> sigmoid -> maximum over the outputs

A CNN block is two 3x3 convolutions, each with batch normalisation and ReLU, and max pooling by 4 along frequency; time is
never pooled. The temporal layer is what networks differ in: one module each here, and one entry in pyspeech/sad/registry.py.

Normalisation is over a sliding window of the recording (`normalise`), so that a 4 s crop in training, whose batch brings
the frames around it along, and an hour in testing are normalised alike.
"""

from collections.abc import Sequence

import torch
from torch.nn import functional

from pyspeech.features.stft import MagnitudeStft, StftConfig
from pyspeech.sad.config import NetworkConfig
from pyspeech.sad.normalisation import normalise
from pyspeech.sad.pieces import POOLING, context_frames
from pyspeech.sad.registry import NETWORKS


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
        self.ahead = 0 if NETWORKS[self.config.temporal].causal else None
        self.cnn = CnnFrontEnd(stft.num_bins, self.config.channels)
        self.temporal = NETWORKS[self.config.temporal].layer_class()(self.cnn.num_features, self.config)

    def forward(self, samples: torch.Tensor, valid: torch.Tensor | None = None, left: int = 0, right: int = 0) -> torch.Tensor:
        """Score every frame of a batch of recordings, or of pieces cut out of recordings.

        samples  (B, N) float; their gain does not matter
        valid    (B, T) bool: which frames exist; zeros stand in for the others, which lie behind a recording's end or, within
                 `left`, before its start. Given, N may be up to (T - 1) * shift + window. None: all ceil(N / shift) do.
        left, right   frames at the start and at the end that take part in the normalisation alone
        Returns scores (B, T - left - right), SQUASH to 1 - SQUASH (output.py); 0 for frames that do not exist. Those change no
        others'.
        """
        magnitudes = self.stft(samples, None if valid is None else valid.shape[1])
        if magnitudes.shape[1] <= left + right:
            return magnitudes.new_zeros(len(magnitudes), 0)
        features = normalise(magnitudes, valid, self.context, self.config.compress, left, right, self.ahead)
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

    def advance(
        self, features: torch.Tensor, before: Sequence[torch.Tensor], last: torch.Tensor
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """More frames of a recording: features (1, T, bins) -> (1, T', num_features), those that are known by now.

        before: for each convolution the frames (1, C, 1 or 2, F) before those that it is given, a zero frame at first.
        last: 1 at the end of the recording, where zeros follow, else 0.
        Returns also what is `before` of the frames that follow.
        """
        maps, after = features[:, None], []
        for number, block in enumerate(self.blocks):
            maps, kept = block.advance(maps, before[2 * number : 2 * number + 2], last)  # pyright: ignore[reportCallIssue]
            after += kept
        return maps.permute(0, 2, 3, 1).flatten(2), after


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

    def advance(
        self, maps: torch.Tensor, before: Sequence[torch.Tensor], last: torch.Tensor
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """See `CnnFrontEnd.advance`; of a network whose batch normalisation is part of its convolutions."""
        after = []
        for convolution, past in zip(self.convolutions, before, strict=True):
            maps = torch.cat([past, maps, 0 * past[:, :, :last]], 2)
            after.append(maps[:, :, -2:])
            weight, bias = convolution.get_parameter("weight"), convolution.get_parameter("bias")
            maps = functional.relu(functional.conv2d(maps, weight, bias, padding=(0, 1)))
        return functional.max_pool2d(maps, (1, self.pooling)), after
