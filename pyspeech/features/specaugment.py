"""SpecAugment (Park et al. 2019, section 2) without time warping: random stretches of time and of mel bins are masked.

It acts on normalised log-mel frames before they are stacked; what is masked becomes 0, the mean of the training set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyspeech.features.config import SpecAugmentConfig  # noqa: F401 (belongs to this module)

if TYPE_CHECKING:
    import torch


def spec_augment(frames: torch.Tensor, config: SpecAugmentConfig) -> torch.Tensor:
    """A copy of the normalised log-mel frames (F, num_bins), with masks as SpecAugmentConfig says.

    Widths and places are uniform: a width from 0 to the limit (both included), a place where the mask lies inside.
    Draws from numpy's global generator, always twice a mask, so that the draws do not depend on what came out before.
    """
    frames = frames.clone()
    num_frames, num_bins = frames.shape
    for _ in range(config.frequency_masks):
        begin, end = _stretch(num_bins, config.frequency_width)
        frames[:, begin:end] = 0
    for _ in range(config.time_masks):
        begin, end = _stretch(num_frames, min(config.time_width, int(config.time_fraction * num_frames)))
        frames[begin:end] = 0
    return frames


def _stretch(size, max_width):
    width = np.random.randint(0, min(max_width, size) + 1)
    begin = np.random.randint(0, size - width + 1)
    return begin, begin + width
