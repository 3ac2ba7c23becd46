"""Front ends of the detector of fake audio: from samples to frames; one module each, and one entry in ../registry.py.

samples -> augmentation, such as McAdams -> front end -> SpecAugment (in training) -> network
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any

import torch

from pyspeech.spoof.registry import FRONT_ENDS

if TYPE_CHECKING:
    from pyspeech.spoof.config import LogMelConfig


class FrontEnd(torch.nn.Module):
    """Properties of a front end; the defaults are those of one that computes config.num_bins values every config.shift.

    Attributes:
        frozen: Whether no pretrained weight of it changes in training.
    """

    frozen = True

    def __init__(self, config: LogMelConfig, saved: dict[str, Any] | None = None) -> None:
        """Make a front end; saved: what `saved` gave of the one whose weights this is to get, None for a new one."""
        super().__init__()
        config.check()
        self.config = config

    @property
    def sampling_rate(self) -> int:
        """Hz of the samples."""
        return self.config.sampling_rate

    @property
    def shift(self) -> int:
        """Samples from frame to frame."""
        return self.config.shift

    @property
    def num_features(self) -> int:
        """Values of a frame, at least 16."""
        return self.config.num_bins

    def num_frames(self, num_samples: int) -> int:
        """Count the frames of a piece."""
        return self.config.num_frames(num_samples)

    def saved(self) -> dict[str, Any]:
        """Return what a model file has to hold beside options and weights, as plain data."""
        return {}

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        """samples (B, N) -> frames (B, num_frames(N), num_features) float32."""
        raise NotImplementedError


def make_front_end(config: LogMelConfig, saved: dict[str, Any] | None = None) -> FrontEnd:
    """Make the front end that config.front_end names; saved: as of FrontEnd."""
    config.check()
    return pkgutil.resolve_name(FRONT_ENDS[config.front_end].place)(config, saved)
