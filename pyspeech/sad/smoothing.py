"""From frame scores to frame decisions: threshold and temporal smoothing (Heitkaemper et al. 2020, section 4.2, Figure 6).

A network's decisions are smoothed by a median filter of fixed length or by the HMM of the statistical SAD (section 2). The
segment RNN needs neither: its any-segment rule is part of its scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.sad.hmm import HmmConfig

SMOOTHINGS = ("none", "median", "hmm")
MEDIAN_FRAMES = 25


def decide(scores: ArrayLike, threshold: float, smoothing: str = "none") -> np.ndarray:
    """Frame scores (T,) in (0, 1) to decisions (T,) bool: speech where the score exceeds `threshold`, then smoothed.

    UserError for scores that are NaN, and for an unknown smoothing.
    """
    check_scores(scores)
    if smoothing == "hmm":
        return hmm_smooth(scores, threshold)
    decisions = np.asarray(scores, dtype=np.float64) > threshold
    if smoothing == "median":
        return median_filter(decisions)
    if smoothing != "none":
        raise UserError(f"smoothing {smoothing!r}: expected one of {', '.join(SMOOTHINGS)}")
    return decisions


def decide_thresholds(scores: ArrayLike, thresholds: ArrayLike, smoothing: str = "none") -> Iterator[np.ndarray]:
    """Yield `decide(scores, threshold, smoothing)` for each of the thresholds (n,); with the HMM, many at once."""
    if smoothing == "hmm":
        check_scores(scores)
        yield from hmm_smooth_thresholds(scores, thresholds)
    else:
        yield from (decide(scores, threshold, smoothing) for threshold in np.asarray(thresholds).tolist())


def majority(decisions: Sequence[np.ndarray]) -> np.ndarray:
    """Frames that more than half of the detectors call speech (section 4.3): decisions, bool (T,) of each -> bool (T,)."""
    return 2 * np.sum(decisions, axis=0) > len(decisions)


def check_scores(scores: ArrayLike) -> None:
    """UserError where scores are NaN, which is what a network makes of samples that are not finite numbers."""
    bad = np.isnan(scores)
    if bad.any():
        raise UserError(
            f"{bad.sum()} of {len(bad)} scores are NaN, the first that of frame {np.argmax(bad)}; expected "
            "a number for each frame (are all samples finite?)"
        )


def median_filter(values: ArrayLike, length: int = MEDIAN_FRAMES) -> np.ndarray:
    """Running median over `length` (odd) frames: values (T,) bool or float; the first and last value continue outside.

    Filtering scores and then applying a threshold gives the same decisions as filtering the decisions.
    """
    if length < 1 or length % 2 == 0:
        raise ValueError(f"median filter of {length} frames; expected an odd number")
    values = np.asarray(values)
    if len(values) == 0:
        return values
    if values.dtype == bool:
        half = length // 2
        counts = np.cumsum(np.pad(values, (half + 1, half), mode="edge"))
        # The first value is padded once more than it takes part: a running sum needs something to subtract.
        return counts[length:] - counts[:-length] > half
    from scipy.ndimage import median_filter as running_median

    # Continued by hand: scipy 1.15 returns zeros for a signal shorter than the filter.
    half = length // 2
    return running_median(np.pad(values, half, mode="edge"), length)[half : half + len(values)]


def hmm_smooth(scores: ArrayLike, threshold: float, config: HmmConfig | None = None) -> np.ndarray:
    """Most likely speech frames (T,) bool under the HMM of the statistical SAD, for posteriors (T,) in (0, 1).

    The log-likelihood ratio of a frame is logit(score) - logit(threshold): by itself, a frame is speech where its score
    exceeds the threshold. config: HmmConfig.
    """
    from pyspeech.sad.hmm import HmmConfig, viterbi

    return viterbi(_logit(scores) - _logit(threshold), config or HmmConfig())


def hmm_smooth_thresholds(scores: ArrayLike, thresholds: ArrayLike, config: HmmConfig | None = None) -> Iterator[np.ndarray]:
    """Yield `hmm_smooth(scores, threshold, config)` for each of the thresholds (n,): many are decoded at once."""
    from pyspeech.sad.hmm import viterbi_thresholds

    yield from viterbi_thresholds(_logit(scores), _logit(thresholds), config)


def _logit(probability):
    """Finite also at 0 and 1, and there far beyond any score of a network (1e-3 to 1 - 1e-3)."""
    probability = np.clip(np.asarray(probability, dtype=np.float64), 1e-9, 1 - 1e-9)
    return np.log(probability) - np.log1p(-probability)
