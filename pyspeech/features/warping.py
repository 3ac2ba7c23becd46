"""Vocal tract length perturbation (Jaitly and Hinton 2013): the features of a voice with a longer or a shorter vocal tract.

All frequencies are multiplied by one factor. On log-mel frames that takes each filter's value from the filter below or above,
interpolated between the two nearest; beyond the lowest and the highest filter their values are repeated. For cepstra it is a
linear transformation too (Pitz and Ney 2005): back to log-mel frames, as far as the cepstra say, warped, and to cepstra
again. Deltas are warped as the cepstra that they are differences of. So features are perturbed without their audio.
"""

import functools
import math

import numpy as np
import torch

from pyspeech.features.config import FbankConfig, MfccConfig  # noqa: F401 (belongs to this module; imports fast where it stands)
from pyspeech.features.mel import LOWEST, to_hertz, to_mel
from pyspeech.features.mfcc import cosine_transform


def warp(frames: torch.Tensor, factor: float, config: MfccConfig) -> torch.Tensor:
    """Warp frames (F, config.dim) from `raw_features` as if all frequencies were `factor` > 0 times as high."""
    if config.kind == "log_mel":
        return warp_log_mel(frames, factor, config.log_mel)
    matrix = _filters_matrix(config.log_mel.num_bins, config.sampling_rate, factor)
    forth, back = _transforms(config.mel_filters, config.cepstra)
    parts = frames.double().view(len(frames), 3, config.cepstra) @ (back @ matrix @ forth)
    return parts.flatten(1).float()


def warp_log_mel(frames: torch.Tensor, factor: float, config: FbankConfig) -> torch.Tensor:
    """Log-mel frames (F, num_bins), also relative to a mean -> the same with all frequencies `factor` > 0 times as high."""
    return (frames.double() @ _filters_matrix(config.num_bins, config.sampling_rate, factor, config.kind)).float()


def draw_factor(largest: float) -> float:
    """A factor from 1 / largest to largest, whose logarithm is uniform, drawn from numpy's global generator."""
    return math.exp(np.random.uniform(-1, 1) * math.log(largest))


def _filters_matrix(num_bins, sampling_rate, factor, kind="kaldi"):
    """(num_bins, num_bins) float64: log-mel frames times this are warped."""
    low, high = to_mel(torch.tensor([LOWEST[kind], sampling_rate / 2], dtype=torch.float64), kind)
    step = (high - low) / (num_bins + 1)
    centres = low + step * torch.arange(1, num_bins + 1, dtype=torch.float64)
    sources = to_mel(to_hertz(centres, kind) / factor, kind)  # what lands at a centre comes from there
    places = ((sources - low) / step - 1).clamp(0, num_bins - 1)
    below = places.long().clamp(max=num_bins - 2)
    share, columns = places - below, torch.arange(num_bins)
    matrix = torch.zeros(num_bins, num_bins, dtype=torch.float64)
    matrix[below, columns] = 1 - share
    matrix[below + 1, columns] = share
    return matrix


@functools.lru_cache(maxsize=8)
def _transforms(filters, cepstra):
    """Log-mel frames to cepstra (filters, cepstra), and the least squares way back (cepstra, filters)."""
    forth = cosine_transform(filters, cepstra)
    return forth, torch.linalg.pinv(forth)
