"""Decisions from frame scores: threshold and temporal smoothing (Heitkaemper et al. 2020, section 4.2, Figure 6).

A network's decisions are smoothed by a median filter of fixed length or by the HMM of the statistical SAD (section 2). The
segment RNN needs neither: its any-segment rule is part of its scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.errors import UserError
from pyspeech.sad.config import SMOOTHINGS, OperatingPoint
from pyspeech.sad.segments import decided_segments

MEDIAN_FRAMES = 25


def find_speech(
    scores: ArrayLike, point: OperatingPoint, frame_shift: float, duration: float | None = None, offset: float = 0.0
) -> np.ndarray:
    """Speech segments (n, 2), seconds, of frame scores (T,) at an operating point; the others as of `frames_to_segments`."""
    decisions = decide_at(scores, point, frame_shift)
    return decided_segments(decisions, point, frame_shift, duration, offset, scores)


def decide_at(scores: ArrayLike, point: OperatingPoint, frame_shift: float) -> np.ndarray:
    """`decide` for the frame scores (T,) of a whole recording at an operating point; frame_shift: seconds."""
    return decide(scores, point.threshold, point.smoothing, point.peak_of(np.size(scores) * frame_shift))


def decide(scores: ArrayLike, threshold: float, smoothing: str = "none", peak: float = 0.0) -> np.ndarray:
    """Frame scores (T,) in (0, 1) to decisions (T,) bool: speech where the score exceeds `threshold`, then smoothed, then
    without the stretches of speech that have no score above `peak` (0: all stay).

    UserError for scores that are NaN, and for an unknown smoothing.
    """
    decisions = _smooth(scores, threshold, smoothing)
    return decisions if peak <= 0 else keep_peaks(decisions, np.asarray(scores) > peak)


def keep_peaks(decisions: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Decisions (T,) bool without the stretches of speech that have no frame in which `high`, bool (T,), is true.

    That a stretch begins and ends at a low threshold and has to reach a high one is hysteresis. Noise that resembles a voice
    for a moment scores above a low threshold, but seldom far above.
    """
    starts, ends = np.flatnonzero(np.diff(decisions, prepend=False, append=False)).reshape(-1, 2).T
    reached = np.concatenate(([0], np.cumsum(high)))
    kept = decisions.copy()
    for start, end in zip(starts, ends, strict=True):
        kept[start:end] = reached[end] > reached[start]
    return kept


def _smooth(scores, threshold, smoothing):
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


def hmm_smooth(scores: ArrayLike, threshold: float) -> np.ndarray:
    """Most likely speech frames (T,) bool under the HMM of the statistical SAD, for posteriors (T,) in (0, 1).

    The log-likelihood ratio of a frame is logit(score) - logit(threshold): by itself, a frame is speech where its score
    exceeds the threshold.
    """
    from pyspeech.sad.hmm import viterbi

    return viterbi(_logit(scores) - _logit(threshold))


def hmm_smooth_thresholds(scores: ArrayLike, thresholds: ArrayLike) -> Iterator[np.ndarray]:
    """Yield `hmm_smooth(scores, threshold)` for each of the thresholds (n,): many are decoded at once."""
    from pyspeech.sad.hmm import viterbi_thresholds

    yield from viterbi_thresholds(_logit(scores), _logit(thresholds))


class OnlineDecisions:
    """`decide` while the scores come in; joined, what `add` and `finish` return is what `decide` returns.

    Without smoothing a frame is decided at once, by the median filter after half its length of further frames, and by the
    HMM as soon as the best paths agree (see hmm.OnlineViterbi). With a peak, a stretch of speech waits until it is reached, or
    until the stretch is over.
    """

    def __init__(self, threshold: float, smoothing: str = "none", peak: float = 0.0) -> None:
        self.threshold, self.smoothing, self.peak = threshold, smoothing, peak
        self._high = np.zeros(0, bool)  # whether the peak is reached: of the frames that are not given out yet
        self._waiting = np.zeros(0, bool)  # decisions of a stretch of speech that has not reached it
        self._speaking = False  # whether the last frame given out was speech
        self._before = None  # the decisions that the median of the next frame begins with; None at the start
        self._viterbi = None
        if smoothing == "hmm":
            from pyspeech.sad.hmm import OnlineViterbi

            self._viterbi = OnlineViterbi()

    def add(self, scores: ArrayLike) -> np.ndarray:
        """Decisions, bool (n,), of the next frames that are decided with further scores (T,). UserError as of `decide`."""
        decisions = self._smooth(scores)
        if self.peak <= 0:
            return decisions
        self._high = np.concatenate([self._high, np.asarray(scores) > self.peak])
        return self._confirm(decisions)

    def finish(self) -> np.ndarray:
        """Return the decisions of the remaining frames."""
        decisions = self._finish_smoothing()
        return decisions if self.peak <= 0 else self._confirm(decisions, last=True)

    def _confirm(self, decisions, last=False):
        """`keep_peaks` of what waits and of further decisions, but for a stretch at their end that may still reach it."""
        held = np.concatenate([self._waiting, decisions])
        high = self._high[: len(held)].copy()
        if self._speaking and len(high):
            high[0] = True  # the stretch that goes on has reached it
        kept = keep_peaks(held, high)
        count = len(held)
        if not last and count and held[-1] and not kept[-1]:
            count -= int(np.argmin(held[::-1])) if not held.all() else len(held)
        self._waiting, self._high = held[count:], self._high[count:]
        self._speaking = bool(kept[count - 1]) if count else self._speaking
        return kept[:count]

    def _smooth(self, scores):
        check_scores(scores)
        if self._viterbi is not None:
            return self._viterbi.add(_logit(scores) - _logit(self.threshold))
        decisions = decide(scores, self.threshold, "none" if self.smoothing == "median" else self.smoothing)
        return self._median(decisions, last=False) if self.smoothing == "median" else decisions

    def _finish_smoothing(self):
        if self._viterbi is not None:
            return self._viterbi.finish()
        return self._median(np.zeros(0, bool), last=True) if self.smoothing == "median" else np.zeros(0, bool)

    def _median(self, decisions, last):
        half = MEDIAN_FRAMES // 2
        if self._before is None:
            if len(decisions) == 0:
                return decisions
            self._before = np.repeat(decisions[:1], half)
        held = np.concatenate(
            [self._before, decisions, np.repeat((decisions if len(decisions) else self._before)[-1:], half * last)]
        )
        count = max(0, len(held) - 2 * half)
        self._before = held[count:]
        return median_filter(held)[half : half + count]


def _logit(probability):
    """Finite also at 0 and 1, and there far beyond any score of a network (1e-3 to 1 - 1e-3)."""
    probability = np.clip(np.asarray(probability, dtype=np.float64), 1e-9, 1 - 1e-9)
    return np.log(probability) - np.log1p(-probability)
