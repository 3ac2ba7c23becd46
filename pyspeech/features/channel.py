"""Utterances as another microphone, line or distance would give them: a random gain that differs over frequency.

A fixed linear filter adds a constant to each log-mel bin. Here that is a straight line over the bins, between two gains
that are drawn for each utterance: its level, and how bright or dull it is. (Nam et al. 2022, "FilterAugment", draw more
corners.) What has no energy at all, such as the band above 4 kHz of telephone speech, stays so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from pyspeech.features.fbank import FLOOR

if TYPE_CHECKING:
    from pyspeech.features.config import FbankConfig

ROUNDING = 0.02  # of frames of that size that are stored in half precision
PER_DECIBEL = math.log(10) / 10  # natural log of the energy ratio


def random_channel(frames: torch.Tensor, decibels: float, config: FbankConfig) -> torch.Tensor:
    """Log-mel frames (F, num_bins) -> the same with gains from -decibels to decibels at the lowest and the highest bin.

    Energies at the floor stay there. Draws from numpy's global generator, always two numbers.
    """
    low, high = np.random.uniform(-decibels, decibels, 2) * PER_DECIBEL
    gains = torch.linspace(low, high, config.num_bins)
    floor = math.log(FLOOR)
    return torch.where(frames > floor + ROUNDING, (frames + gains).clamp(min=floor), frames)
