"""The decision threshold, tuned on a development set (Heitkaemper et al. 2020, section 4.2, Figure 6): the DCF of 201.

The scored seconds of speech and non-speech in every frame are worked out once, for each collar. Without smoothing, or with
the median filter (which may as well be applied to the scores), the DCF at all thresholds then follows from histograms of the
scores; other decisions, such as those of an HMM, are made once for each threshold, for all collars together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pyspeech.sad.scoring import FALSE_ALARM_WEIGHT, MISS_WEIGHT, scored_time
from pyspeech.sad.smoothing import check_scores, decide_thresholds, median_filter

NUM_THRESHOLDS = 201
NEARLY = 0.05  # of the lowest DCF: what is above it by less is nearly as good

Reference = Sequence[tuple[float, float, str]]


@dataclass
class Sweep:
    thresholds: np.ndarray  # (n,)
    dcf: np.ndarray  # (n,), fractions, the official mean over the recordings
    threshold: float  # to be taken: in the middle of those around the best that are nearly as good
    best_dcf: float  # the lowest
    p_miss: np.ndarray | None = None  # (n,), fractions, means over the recordings, as the DCF is; None where not kept
    p_fa: np.ndarray | None = None


def sweep(
    scores: Iterable[np.ndarray],
    references: Sequence[Reference],
    durations: Sequence[float],
    smoothing: str = "none",
    collars: Sequence[float] = (0.0,),
    frame_shift: float = 0.01,
    frame_offset: float = 0.0,
    num_thresholds: int = NUM_THRESHOLDS,
) -> list[Sweep]:
    """DCF against the threshold, on recordings with reference labels: a Sweep for each of the collars (seconds).

    scores: (T,) frame scores, 0 to 1, of each recording. references: (start, end, label) lists as `read_reference` gives
    them. durations: seconds of audio. smoothing: "none", "median" or "hmm". frame_shift, frame_offset: seconds, see
    segments.py. The DCF is what the official scorer gives for the segments that the decisions make (to rounding of float
    sums). UserError for NaN scores.
    """
    thresholds = np.linspace(0, 1, num_thresholds)

    def called(frame_scores, weigh):
        check_scores(frame_scores)
        if smoothing == "hmm":
            return _seconds_called(decide_thresholds(frame_scores, thresholds, smoothing), weigh)
        smooth = median_filter(frame_scores) if smoothing == "median" else frame_scores
        return [_seconds_above(smooth, weight, thresholds) for weight in weigh(len(smooth))]

    return _sweep(thresholds, called, scores, references, durations, collars, frame_shift, frame_offset)


def sweep_decisions(
    recordings: Iterable[Iterable[np.ndarray]],
    thresholds: np.ndarray,
    references: Sequence[Reference],
    durations: Sequence[float],
    collars: Sequence[float] = (0.0,),
    frame_shift: float = 0.01,
    frame_offset: float = 0.0,
) -> list[Sweep]:
    """Sweep thresholds for any way to decide. recordings: for each, its decisions, bool (T,), at each of the thresholds
    (n,)."""
    return _sweep(thresholds, _seconds_called, recordings, references, durations, collars, frame_shift, frame_offset)


def _sweep(thresholds, called, recordings, references, durations, collars, frame_shift, frame_offset):
    """called(recording, weigh): the seconds called speech at each threshold, (n,) for each row of weigh(T), which gives
    the scored seconds of T frames: of speech and of non-speech, for each collar in turn."""
    totals = np.zeros((len(collars), 3, len(thresholds)))  # of DCF, Pmiss and Pfa
    for recording, reference, duration in zip(recordings, references, durations, strict=True):
        kinds = [kind for collar in collars for kind in scored_time(reference, collar)]

        def weigh(num_frames):
            borders = _frame_borders(num_frames, duration, frame_shift, frame_offset)
            return [_seconds_between(kind, borders) for kind in kinds]

        rates = [_rate(seconds, kind) for seconds, kind in zip(called(recording, weigh), kinds, strict=True)]
        for total, speech, hits, false_alarms in zip(totals, kinds[::2], rates[::2], rates[1::2], strict=True):
            miss = 1 - hits if len(speech) else 0.0
            dcf = np.round(MISS_WEIGHT * miss + FALSE_ALARM_WEIGHT * false_alarms, 5)
            total += np.stack(np.broadcast_arrays(dcf, miss, false_alarms))
    return [_best(thresholds, *means) for means in totals / len(references)]


def _best(thresholds, dcf, p_miss, p_fa):
    """The lowest DCF has its place by chance where its neighbours are nearly as low: the middle of these carries over better
    (from halves of dev's streams to the other halves)."""
    lowest = int(dcf.argmin())
    worse = np.flatnonzero(dcf > (1 + NEARLY) * dcf[lowest])
    below, above = worse[worse < lowest], worse[worse > lowest]
    first, last = below.max(initial=-1) + 1, above.min(initial=len(dcf)) - 1
    return Sweep(thresholds, dcf, float(thresholds[(first + last) // 2]), float(dcf[lowest]), p_miss, p_fa)


def together(recordings: Sequence[Sequence[Sweep]]) -> list[Sweep]:
    """The Sweeps of some recordings, from those of each by itself: a Sweep for each collar. Added in their order, so that
    it is, to the last bit, what one sweep of all gives."""
    by_collar = zip(*recordings, strict=True)
    return [
        _best(sweeps[0].thresholds, *(_mean([getattr(sweep, name) for sweep in sweeps]) for name in ("dcf", "p_miss", "p_fa")))
        for sweeps in by_collar
    ]


def _mean(arrays):
    """None where one is None: of a recording that an older version has swept."""
    return None if any(array is None for array in arrays) else sum(arrays) / len(arrays)


def _frame_borders(num_frames, duration, frame_shift, frame_offset):
    """The times (T + 1,) that `frames_to_segments` takes frames for: the first from 0 on, the last up to `duration`."""
    borders = np.minimum(np.arange(num_frames + 1) * frame_shift + frame_offset, duration)
    borders[0], borders[-1] = 0.0, duration
    return borders


def _seconds_between(segments, borders):
    """Seconds of the disjoint segments (n, 2) between each two of the borders (T + 1,), (T,)."""
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


def _seconds_called(decisions, weigh):
    """For each of the decisions (T,), one a threshold, the weights of the frames that are called speech."""
    rows, weights = [], None
    for decided in decisions:
        weights = np.stack(weigh(len(decided))) if weights is None else weights
        rows.append(weights @ decided)
    return np.array(rows).T


def _rate(seconds, segments):
    total = float(np.sum(segments[:, 1] - segments[:, 0]))
    return seconds / total if total > 0 else np.zeros_like(seconds)
