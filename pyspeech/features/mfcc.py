"""Features for unit discovery (Tjandra et al. 2020, section 5.1): 13 MFCC with deltas and delta-deltas, or log-mel frames.

MFCC are Kaldi's: the cosine transform of log-mel energies (pyspeech.features.fbank; 23 filters), liftered, C0 first. They
are computed from samples of -1 to 1, so that C0 is lower than Kaldi's by a constant; normalisation takes it off. Deltas are
Kaldi's too: the slope of the line through five frames, delta-deltas the same of deltas, with the first and the last frame
repeated beyond the ends.

Normalisation brings every value to mean 0 and variance 1: over the utterance, which takes off speaker and channel, or over
the corpus. In a snippet of a few frames the utterance's own mean is the sound itself. With `prior_frames` the corpus's mean
and variance are mixed in as if the utterance had so many frames more of them: snippets lean on the corpus, sentences hardly.

The end of the audio is treated as in pyspeech.features.fbank: any signal of at least one sample has at least one frame.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import torch

from pyspeech.features.config import MfccConfig  # noqa: F401 (belongs to this module; imports fast where it stands)
from pyspeech.features.fbank import GlobalStats, fbank

if TYPE_CHECKING:
    import numpy as np

LIFTER = 22  # Kaldi's cepstral lifter
DELTA_REACH = 2  # frames to either side that a slope is taken over
MIN_STD = 0.01  # of a value within an utterance: rounding errors in digital silence must not become variance 1


def compute_features(samples: np.ndarray | torch.Tensor, config: MfccConfig, stats: GlobalStats | None = None) -> torch.Tensor:
    """Compute features: samples (N,) float, numpy or torch, from -1 to 1 -> (F, config.dim) float32, normalised as in
    `config`.

    stats: GlobalStats of frames that are not normalised, where config.needs_stats. F is 0 for N = 0, at least 1 else.
    """
    return normalise(raw_features(samples, config), config, stats)


def raw_features(samples: np.ndarray | torch.Tensor, config: MfccConfig) -> torch.Tensor:
    """Compute features like `compute_features`, but not normalised, for the statistics of a corpus."""
    if config.kind == "log_mel":
        return fbank(samples, config.log_mel)
    cepstra = mfcc(samples, config)
    return add_deltas(cepstra)


def mfcc(samples: np.ndarray | torch.Tensor, config: MfccConfig) -> torch.Tensor:
    """Cepstra alone: samples (N,) -> (F, cepstra) float32."""
    log_mel = fbank(samples, config.log_mel).double()
    return (log_mel @ cosine_transform(config.mel_filters, config.cepstra).to(log_mel.device)).float()


def add_deltas(frames: torch.Tensor) -> torch.Tensor:
    """Append deltas: frames (F, n) -> (F, 3 n): the frames, their slopes, and the slopes of the slopes."""
    if len(frames) == 0:
        return frames.new_zeros(0, 3 * frames.shape[1])
    slope = torch.arange(-DELTA_REACH, DELTA_REACH + 1, dtype=torch.float64, device=frames.device)
    slope = slope / slope.square().sum()
    # Beyond the ends frames are repeated, not slopes: delta-deltas are one filter of nine frames, as Kaldi's are.
    curvature = torch.nn.functional.conv1d(slope[None, None], slope.flip(0)[None, None], padding=2 * DELTA_REACH)[0, 0]
    parts = [frames] + [_filter(frames.double(), weights).float() for weights in (slope, curvature)]
    return torch.cat(parts, dim=1)


def normalise(frames: torch.Tensor, config: MfccConfig, stats: GlobalStats | None = None) -> torch.Tensor:
    """Normalise frames (F, n) from `raw_features` to mean 0 and variance 1, as in `config.normalise`."""
    if config.normalise == "none" or len(frames) == 0:
        return frames
    if config.needs_stats and stats is None:
        raise ValueError(f"normalise={config.normalise} with prior_frames={config.prior_frames} needs a corpus's statistics")
    if config.normalise == "corpus":
        return stats.apply(frames)  # pyright: ignore[reportOptionalMemberAccess]
    total, squares, count = frames.double().sum(dim=0), frames.double().square().sum(dim=0), len(frames)
    if config.prior_frames:
        corpus = (stats.mean, stats.std)  # pyright: ignore[reportOptionalMemberAccess]
        mean, std = (total.new_tensor(values) for values in corpus)
        total = total + config.prior_frames * mean
        squares = squares + config.prior_frames * (mean.square() + std.square())
        count += config.prior_frames
    mean = total / count
    variance = (squares / count - mean.square()).clamp(min=MIN_STD**2)
    return ((frames - mean) / variance.sqrt()).float()


def _filter(frames, weights):
    """sum_j weights[j] * frames[t + j - reach], with the ends repeated: (F, n) -> (F, n)."""
    reach = len(weights) // 2
    padded = torch.cat([frames[:1].expand(reach, -1), frames, frames[-1:].expand(reach, -1)])
    return padded.unfold(0, len(weights), 1) @ weights


@functools.lru_cache(maxsize=8)
def cosine_transform(filters: int, cepstra: int) -> torch.Tensor:
    """(filters, cepstra) float64: the orthonormal DCT-II, its columns times the lifter's weights."""
    columns, rows = torch.arange(cepstra, dtype=torch.float64), torch.arange(filters, dtype=torch.float64)
    matrix = math.sqrt(2 / filters) * torch.cos(math.pi / filters * (rows[:, None] + 0.5) * columns)
    matrix[:, 0] = math.sqrt(1 / filters)
    return matrix * (1 + LIFTER / 2 * torch.sin(math.pi * columns / LIFTER))
