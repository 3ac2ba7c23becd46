"""Common parts of all networks of the fake audio detector, and the LCNN-BLSTM (Li et al. 2022, section 2.2, Table 1).

    samples -> front end (log-mel spectrogram) -> light CNN -> two BLSTM layers -> mean over time -> linear layer of two outputs

A max-feature-map takes the larger of the two halves of a convolution's channels, in place of a ReLU. Batch
normalisation has no parameters of its own (affine=False), which is what gives the 467,586 parameters of the table.
Outputs are those of a softmax over (fake, genuine); their difference is the score, the log odds of genuine speech as
they were in training.
"""

import pkgutil
from typing import Any

import numpy as np
import torch
from torch import nn

from pyspeech.compat import run_recurrent
from pyspeech.errors import UserError
from pyspeech.spoof.config import DetectorConfig, LogMelConfig
from pyspeech.spoof.front_ends import make_front_end
from pyspeech.spoof.front_ends.spectra import LogMel
from pyspeech.spoof.registry import NETWORKS

FAKE, GENUINE = 0, 1  # the outputs, and the targets
HIDDEN = 80  # of a direction of the BLSTM
FEWEST_FRAMES = 16  # of which four poolings by 2 leave one


class DetectorNetwork(nn.Module):
    """A front end and what classifies its frames; config: DetectorConfig, features: LogMelConfig; the defaults are the paper's.

    front_end: as of FrontEnd.saved.
    """

    def __init__(
        self,
        config: DetectorConfig | None = None,
        features: LogMelConfig | None = None,
        front_end: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.config = config or DetectorConfig()
        self.config.check()
        self.front_end = make_front_end(features or LogMelConfig(), front_end)
        self.add_layers()

    def add_layers(self) -> None:
        """Make the layers behind the front end, for frames of self.front_end.num_features values."""
        raise NotImplementedError

    @property
    def sampling_rate(self) -> int:
        """Hz of the samples."""
        return self.front_end.sampling_rate

    @property
    def log_mel(self) -> LogMel:
        """The front end, for what can do with no other; UserError where it is another."""
        if type(self.front_end) is not LogMel:
            raise UserError(f"features.front_end={self.front_end.config.front_end}: expected a detector with logmel")
        return self.front_end

    def check_pieces(self, samples: int) -> None:
        """Raise UserError where pieces of so many samples have too few frames."""
        frames = self.front_end.num_frames(samples)
        if frames < FEWEST_FRAMES:
            raise UserError(
                f"data.samples={samples}: {frames} frames, one every {self.front_end.shift} samples; expected at least "
                f"{FEWEST_FRAMES}: more samples"
            )

    def score_batch(self, samples: np.ndarray) -> list[float]:
        """Log odds of pieces of one length, samples (B, N) float32, without gradients."""
        with torch.inference_mode():
            inputs = torch.from_numpy(samples).to(next(self.parameters()).device)
            return log_odds(self(inputs)).double().cpu().tolist()

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        """samples (B, N) float, N at least FEWEST_FRAMES -> outputs (B, 2), of which log_odds makes the scores."""
        return self.classify(self.front_end(samples))

    def classify(self, features: torch.Tensor) -> torch.Tensor:
        """features (B, T, num_features), T at least FEWEST_FRAMES -> outputs (B, 2)."""
        raise NotImplementedError


def make_network(
    config: DetectorConfig | None = None, features: LogMelConfig | None = None, front_end: dict[str, Any] | None = None
) -> DetectorNetwork:
    """Make the network that config.kind names, with random weights; arguments as of DetectorNetwork."""
    config = config or DetectorConfig()
    config.check()
    return pkgutil.resolve_name(NETWORKS[config.kind])(config, features, front_end)


class LcnnBlstm(DetectorNetwork):
    """The network of the paper; arguments as of DetectorNetwork."""

    def add_layers(self) -> None:
        self.cnn = light_cnn(self.config.dropout)
        size = 32 * (self.front_end.num_features // 16)
        self.blstm = nn.ModuleList([nn.LSTM(size, HIDDEN, bidirectional=True), nn.LSTM(2 * HIDDEN, HIDDEN, bidirectional=True)])
        self.output = nn.Linear(2 * HIDDEN, 2)
        fits = size == 2 * HIDDEN or not self.config.residual  # of 80 to 95 features, as in Table 1
        self.shortcut = nn.Identity() if fits else nn.Linear(size, 2 * HIDDEN)
        # Twice as fast as the default on a CPU.
        self.cnn.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def classify(self, features: torch.Tensor) -> torch.Tensor:
        """features (B, T, num_features), T at least FEWEST_FRAMES -> outputs (B, 2)."""
        maps = self.cnn(features[:, None].contiguous(memory_format=torch.channels_last))
        # Channels and bins become the values of a frame: (B, C, T / 16, bins / 16) -> (T / 16, B, C * bins / 16).
        frames = maps.permute(2, 0, 1, 3).flatten(2)
        hidden = frames
        for layer in self.blstm:
            hidden = run_recurrent(layer, hidden)[0]
        if self.config.residual:
            hidden = hidden + self.shortcut(frames)
        return self.output(hidden.mean(dim=0))


def log_odds(outputs: torch.Tensor) -> torch.Tensor:
    """(B, 2) -> (B,): log P(genuine) - log P(fake)."""
    return outputs[:, GENUINE] - outputs[:, FAKE]


def light_cnn(dropout: float) -> nn.Sequential:
    """The layers of Table 1 up to Dropout_28, in its order; (B, 1, T, bins) -> (B, 32, T // 16, bins // 16)."""
    layers = []
    for inputs, outputs, size, pooled, normalised in (
        (1, 64, 5, True, False),
        (32, 64, 1, False, True),
        (32, 96, 3, True, True),
        (48, 96, 1, False, True),
        (48, 128, 3, True, False),
        (64, 128, 1, False, True),
        (64, 64, 3, False, True),
        (32, 64, 1, False, True),
        (32, 64, 3, True, False),
    ):
        layers += [nn.Conv2d(inputs, outputs, size, padding=size // 2), MaxFeatureMap2d()]
        layers += [nn.MaxPool2d(2)] * pooled + [nn.BatchNorm2d(outputs // 2, affine=False)] * normalised
    return nn.Sequential(*layers, nn.Dropout(dropout))


class MaxFeatureMap2d(nn.Module):
    """(B, 2 C, ...) -> (B, C, ...): the larger of the two halves of the channels."""

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return _LargerHalf.apply(maps)


class _LargerHalf(torch.autograd.Function):
    """torch.maximum of the halves, whose own backward pass takes twice as long, a third of a training step.

    Where both are equal the first half gets the gradient.
    """

    @staticmethod
    def forward(ctx, maps):
        first, second = maps.chunk(2, dim=1)
        ctx.save_for_backward(second - first)
        return torch.maximum(first, second)

    @staticmethod
    def backward(ctx, gradient):
        (difference,) = ctx.saved_tensors
        channels_last = gradient.is_contiguous(memory_format=torch.channels_last)
        both = torch.empty(
            (len(gradient), 2 * gradient.shape[1], *gradient.shape[2:]),
            dtype=gradient.dtype,
            device=gradient.device,
            memory_format=torch.channels_last if channels_last else torch.contiguous_format,
        )
        # Written where they belong: joining the halves afterwards would take as long again.
        first, second = both.chunk(2, dim=1)
        torch.ops.aten.threshold_backward.grad_input(gradient, difference, 0, grad_input=second)
        torch.sub(gradient, second, out=first)
        return both
