"""Utterances as another microphone, line or distance would give them: a random gain that differs over frequency.

A fixed linear filter adds a constant to each log-mel bin. Here that is straight lines over the bins, between gains that
are drawn for each utterance at corners: two make its level, and how bright or dull it is; more give it a colour of its
own. ("FilterAugment", Nam et al. 2022, with corners at equal distances in mel.) What has no energy at all, such as the band
above 4 kHz of telephone speech, stays so.
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


def random_channel(frames: torch.Tensor, decibels: float, config: FbankConfig, corners: int = 2) -> torch.Tensor:
    """Log-mel frames (F, num_bins) -> the same with gains from -decibels to decibels at the corners, the outermost of which
    are the lowest and the highest bin.

    Energies at the floor stay there. Draws from numpy's global generator, always as many numbers as corners, 2 or more.
    """
    drawn = np.random.uniform(-decibels, decibels, corners) * PER_DECIBEL
    places = np.linspace(0, corners - 1, config.num_bins)
    gains = torch.from_numpy(np.interp(places, np.arange(corners), drawn)).float()
    floor = math.log(FLOOR)
    return torch.where(frames > floor + ROUNDING, (frames + gains).clamp(min=floor), frames)
