"""A residual network for the detector of fake audio; not of the paper, whose LCNN-BLSTM is networks.LcnnBlstm.

    front end -> residual blocks (He et al. 2016) with squeeze and excitation (Hu et al. 2018)
              -> attentive statistics pooling over time (Okabe et al. 2018) -> linear layer of two outputs

1.1 million parameters with 80 features. The pooling weighs frames: an artefact of a moment counts as much as the
network finds it telling, where the LCNN-BLSTM takes the mean over all frames.
"""

from __future__ import annotations

import torch
from torch import nn

from pyspeech.spoof.networks import DetectorNetwork

CHANNELS = (24, 48, 96, 128)  # of the stages, each of which but the first halves time and features
BLOCKS = 2  # of a stage
SQUEEZED = 8  # times fewer channels in squeeze and excitation
ATTENTION = 64  # values between the layers that weigh the frames
FLOOR = 1e-4  # of variances


class ResNet(DetectorNetwork):
    """Residual network; arguments as of DetectorNetwork. Of its options, dropout counts."""

    def add_layers(self) -> None:
        stem, size = CHANNELS[0], self.front_end.num_features
        layers = [nn.Conv2d(1, stem, 5, stride=(2, 1), padding=2, bias=False), nn.BatchNorm2d(stem), nn.ReLU()]
        for index, (inputs, outputs) in enumerate(zip((stem, *CHANNELS[:-1]), CHANNELS, strict=True)):
            layers += [
                Block(*((inputs, 2 if index else 1) if block == 0 else (outputs, 1)), outputs) for block in range(BLOCKS)
            ]
            size = (size + 1) // 2 if index else size
        self.cnn = nn.Sequential(*layers)
        self.pooling = AttentiveStatistics(CHANNELS[-1] * size)
        self.output = nn.Sequential(nn.Dropout(self.config.dropout), nn.Linear(2 * CHANNELS[-1] * size, 2))
        self.cnn.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def classify(self, features: torch.Tensor) -> torch.Tensor:
        """features (B, T, num_features), T at least FEWEST_FRAMES -> outputs (B, 2)."""
        maps = self.cnn(features[:, None].contiguous(memory_format=torch.channels_last))
        return self.output(self.pooling(maps.permute(0, 1, 3, 2).flatten(1, 2)))


class Block(nn.Module):
    """Two convolutions whose sum with the input goes on: (B, inputs, T, F) -> (B, outputs, T / stride, F / stride)."""

    def __init__(self, inputs: int, stride: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.gate = nn.Sequential(
            nn.Linear(outputs, outputs // SQUEEZED), nn.ReLU(), nn.Linear(outputs // SQUEEZED, outputs), nn.Sigmoid()
        )
        same = inputs == outputs and stride == 1
        self.shortcut = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        new = self.layers(maps)
        return torch.relu(self.shortcut(maps) + new * self.gate(new.mean(dim=(2, 3)))[:, :, None, None])


class AttentiveStatistics(nn.Module):
    """Weighted mean and standard deviation over time, the weights learnt: (B, size, T) -> (B, 2 size)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weigh = nn.Sequential(nn.Conv1d(size, ATTENTION, 1), nn.Tanh(), nn.Conv1d(ATTENTION, size, 1))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        weights = self.weigh(frames).float().softmax(dim=2)
        frames = frames.float()
        mean = (weights * frames).sum(dim=2)
        variance = (weights * frames.square()).sum(dim=2) - mean.square()
        return torch.cat([mean, variance.clamp(min=FLOOR).sqrt()], dim=1)
