"""The decision threshold, tuned on a development set (Heitkaemper et al. 2020, section 4.2, Figure 6): the DCF of 201.

The scored seconds of speech and non-speech in every frame are worked out once. Without smoothing, or with the median filter
(which may as well be applied to the scores), the DCF at all thresholds then follows from two histograms of the scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyspeech.sad.scoring import FALSE_ALARM_WEIGHT, MISS_WEIGHT, scored_time
from pyspeech.sad.smoothing import check_scores, hmm_smooth_thresholds, median_filter

NUM_THRESHOLDS = 201


@dataclass
class Sweep:
    thresholds: np.ndarray  # (n,), 0 to 1
    dcf: np.ndarray  # (n,), fractions, the official mean over the recordings
    threshold: float  # the best one
    best_dcf: float


def sweep(
    scores: Sequence[np.ndarray],
    references: Sequence[Sequence[tuple[float, float, str]]],
    durations: Sequence[float],
    smoothing: str = "none",
    collar: float = 0.0,
    frame_shift: float = 0.01,
    num_thresholds: int = NUM_THRESHOLDS,
) -> Sweep:
    """DCF against the threshold, on recordings with reference labels.

    scores: list of (T,) frame scores. references: list of (start, end, label) lists as `read_reference` gives them.
    durations: list of seconds of audio. smoothing: "none", "median" or "hmm". collar: seconds. The DCF is what the
    official scorer gives for the segments that the decisions make (to rounding of float sums).
    UserError for NaN scores.
    """
    thresholds = np.linspace(0, 1, num_thresholds)
    total = np.zeros(num_thresholds)
    for frame_scores, reference, duration in zip(scores, references, durations):
        check_scores(frame_scores)
        speech, nonspeech = scored_time(reference, collar)
        weights = [_seconds_per_frame(kind, len(frame_scores), duration, frame_shift) for kind in (speech, nonspeech)]
        if smoothing == "hmm":
            called = _seconds_called_by_hmm(frame_scores, weights, thresholds)
        else:
            smooth = median_filter(frame_scores) if smoothing == "median" else frame_scores
            called = [_seconds_above(smooth, weight, thresholds) for weight in weights]
        hits, false_alarms = (_rate(seconds, kind) for seconds, kind in zip(called, (speech, nonspeech)))
        miss = 1 - hits if len(speech) else 0.0
        total += np.round(MISS_WEIGHT * miss + FALSE_ALARM_WEIGHT * false_alarms, 5)
    dcf = total / len(scores)
    best = int(np.argmin(dcf))
    return Sweep(thresholds, dcf, float(thresholds[best]), float(dcf[best]))


def _seconds_per_frame(segments, num_frames, duration, frame_shift):
    """Seconds of the disjoint segments (n, 2) in each frame [t * shift, (t + 1) * shift), the last one cut at `duration`."""
    borders = np.minimum(np.arange(num_frames + 1) * frame_shift, duration)
    # Covered time up to t: over the ends of the segments before t, plus what of the current one lies before t.
    starts, ends = segments[:, 0], segments[:, 1]
    before = np.concatenate(([0.0], np.cumsum(ends - starts)))
    index = np.searchsorted(starts, borders, side="right")
    beyond = np.where(index > 0, np.maximum(0.0, ends[index - 1] - borders), 0.0) if len(segments) else 0.0
    return np.maximum(0.0, np.diff(before[index] - beyond))


def _seconds_above(scores, weights, thresholds):
    """For each threshold, the weights of the frames whose score exceeds it."""
    exceeded = np.searchsorted(thresholds, scores, side="left")  # the number of thresholds below the score
    histogram = np.bincount(exceeded, weights, len(thresholds) + 1)
    return np.cumsum(histogram[::-1])[::-1][1:]


def _seconds_called_by_hmm(scores, weights, thresholds):
    called = [[weight[decided].sum() for weight in weights] for decided in hmm_smooth_thresholds(scores, thresholds)]
    return np.array(called).T


def _rate(seconds, segments):
    total = float(np.sum(segments[:, 1] - segments[:, 0]))
    return seconds / total if total > 0 else np.zeros_like(seconds)
