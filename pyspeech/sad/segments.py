"""Speech segments and frame decisions: conversion both ways, union, complement, clean-up of a detector's output.

Segments are float64 arrays of shape (n, 2): start and end in seconds, sorted, disjoint. Frame t stands for the time
[offset + t * frame_shift, offset + (t + 1) * frame_shift), in the middle of the window that its score is of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from pyspeech.sad.config import OperatingPoint

# Times are rounded to 1e-9 s, so that 7 * 0.01 is 0.07 and prints as such; no audio is sampled finer than that.
DECIMALS = 9


def as_segments(segments: ArrayLike) -> np.ndarray:
    """Return `segments` (any sequence of pairs, or empty) as a float64 array (n, 2), or raise ValueError."""
    array = np.asarray(segments, dtype=np.float64)
    if array.size == 0:
        return np.zeros((0, 2))
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"segments have shape {array.shape}; expected (n, 2): start and end in seconds")
    if not np.isfinite(array).all() or (array[:, 1] < array[:, 0]).any():
        raise ValueError("a segment ends before it starts, or has a time that is not a finite number")
    return array


def union(segments: ArrayLike, gap: float = 0.0) -> np.ndarray:
    """Sort segments and merge those that overlap, touch, or lie at most `gap` seconds apart; empty segments go.

    segments: (n, 2) seconds, any order. Returns (m, 2), sorted and disjoint.
    """
    segments = as_segments(segments)
    segments = segments[segments[:, 1] > segments[:, 0]]
    if len(segments) == 0:
        return segments
    segments = segments[np.argsort(segments[:, 0], kind="stable")]
    reach = np.maximum.accumulate(segments[:, 1])  # the latest end so far
    opens = np.concatenate(([True], segments[1:, 0] > reach[:-1] + gap))  # a segment that starts a merged one
    closes = np.concatenate((opens[1:], [True]))
    return np.stack([segments[opens, 0], reach[closes]], axis=1)


def clip(segments: ArrayLike, duration: float) -> np.ndarray:
    """Cut segments (n, 2) to [0, duration] seconds; what lies outside is dropped."""
    return union(np.clip(as_segments(segments), 0.0, duration))


def complement(segments: ArrayLike, duration: float) -> np.ndarray:
    """Return the time in [0, duration] that no segment covers, as segments (m, 2) in seconds."""
    inside = clip(segments, duration)
    bounds = np.concatenate(([0.0], inside.reshape(-1), [duration])).reshape(-1, 2)
    return bounds[bounds[:, 1] > bounds[:, 0]]


def frames_to_segments(
    decisions: ArrayLike, frame_shift: float = 0.01, duration: float | None = None, offset: float = 0.0
) -> np.ndarray:
    """Turn frame decisions into speech segments.

    decisions: bool (T,). frame_shift, offset: seconds. The first frame's decision holds from 0 on. duration: the
    recording's length in seconds, where known: nothing goes beyond it, and the last frame's decision holds until it (the
    end of a file is shorter than a window and has no frame of its own). Returns float64 (n, 2).
    """
    decisions = np.asarray(decisions, dtype=bool).reshape(-1)
    padded = np.concatenate(([False], decisions, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1])  # starts and ends in turn
    segments = np.round(edges.reshape(-1, 2) * frame_shift + offset, DECIMALS)
    if len(segments) and decisions[0]:
        segments[0, 0] = 0.0
    if duration is None or len(segments) == 0:
        return segments
    if decisions[-1]:
        segments[-1, 1] = max(segments[-1, 1], duration)
    return clip(segments, duration)


def segments_to_frames(segments: ArrayLike, num_frames: int, frame_shift: float = 0.01) -> np.ndarray:
    """Turn speech segments into frame decisions, the inverse of `frames_to_segments`.

    segments: (n, 2) seconds, overlaps allowed; start and end are rounded to the nearest frame border, and what lies
    beyond the last frame is cut. Returns bool (num_frames,).
    """
    borders = np.clip(np.rint(as_segments(segments) / frame_shift), 0, num_frames).astype(np.int64)
    steps = np.zeros(num_frames + 1, dtype=np.int64)
    np.add.at(steps, borders[:, 0], 1)
    np.add.at(steps, borders[:, 1], -1)
    return np.cumsum(steps[:num_frames]) > 0


def tidy(
    segments: ArrayLike,
    duration: float,
    min_speech: float = 0.0,
    min_silence: float = 0.0,
    pad: float | tuple[float, float] = 0.0,
) -> np.ndarray:
    """Clean a detector's segments up, in this order: fill short silences, drop short speech, pad.

    segments: (n, 2) seconds. duration: the recording's length in seconds. min_silence: a pause between two speech
    segments that is shorter is filled. min_speech: a segment that is then shorter is dropped. pad: seconds added at
    both sides, or before and after; cut at the recording's ends, overlaps merged. Returns (m, 2).
    """
    segments = clip(segments, duration)
    if len(segments) and min_silence > 0:
        pauses = np.round(segments[1:, 0] - segments[:-1, 1], DECIMALS)
        keep = pauses >= min_silence
        starts, ends = segments[np.append(True, keep), 0], segments[np.append(keep, True), 1]
        segments = np.stack([starts, ends], axis=1)
    if min_speech > 0:
        segments = segments[np.round(segments[:, 1] - segments[:, 0], DECIMALS) >= min_speech]
    before, after = _both(pad)
    if before > 0 or after > 0:
        segments = clip(np.round(segments + [-before, after], DECIMALS), duration)
    return segments


def _both(pad):
    return pad if isinstance(pad, tuple) else (pad, pad)


def split(segments: ArrayLike, longest: float, scores: ArrayLike, frame_shift: float, offset: float = 0.0) -> np.ndarray:
    """Cut segments (n, 2), seconds, that are longer than `longest` seconds: the frame with the lowest score is left out.

    Each piece ends in the second half of the longest that it may be, where as much is left that no scrap remains. scores (T,),
    frame_shift and offset: of the frames, as of `frames_to_segments`.
    """
    scores, pieces = np.asarray(scores), []
    for start, end in as_segments(segments).tolist():
        while end - start > longest:
            last = min(start + longest, end - longest / 4)
            first, behind = (int(round((time - offset) / frame_shift)) for time in (start + longest / 2, last))
            first = min(max(first, 0), len(scores) - 1)
            lowest = first + int(np.argmin(scores[first : max(behind, first + 1)]))
            cut = round(offset + lowest * frame_shift, DECIMALS)
            if not start < cut < end:  # frames as long as the segments
                break
            pieces.append((start, cut))
            start = round(cut + frame_shift, DECIMALS)
        pieces.append((start, end))
    return as_segments(pieces)


def decided_segments(
    decisions: ArrayLike,
    point: OperatingPoint,
    frame_shift: float,
    duration: float | None = None,
    offset: float = 0.0,
    scores: ArrayLike = (),
) -> np.ndarray:
    """`frames_to_segments`, then `tidy` and `split` with the lengths and pads of an operating point: (n, 2) seconds.

    scores: of the frames (T,), for a point that limits the length of segments.
    """
    segments = frames_to_segments(decisions, frame_shift, duration, offset)
    segments = tidy(segments, float("inf") if duration is None else duration, point.min_speech, point.min_silence, point.pads)
    return split(segments, point.max_speech, scores, frame_shift, offset) if point.max_speech else segments


def total(segments: ArrayLike) -> float:
    """Return the summed length of disjoint segments (n, 2), in seconds."""
    segments = as_segments(segments)
    return float(np.sum(segments[:, 1] - segments[:, 0]))


class OnlineSegments:
    """`tidy(frames_to_segments(...), ...)` while the decisions come in: a segment is given out once nothing can join it.

    frame_shift, offset: seconds, as of `frames_to_segments`; min_speech, min_silence, pad: as of `tidy`.
    """

    def __init__(
        self,
        frame_shift: float,
        offset: float = 0.0,
        min_speech: float = 0.0,
        min_silence: float = 0.0,
        pad: float | tuple[float, float] = 0.0,
    ) -> None:
        self.frame_shift, self.offset = frame_shift, offset
        self._tidying = min_speech, min_silence, _both(pad)
        self._count = 0  # frames decided
        self._open = None  # the first frame of a stretch of speech that goes on
        self._closed = []  # (first frame, first one behind it) of stretches that a further one may join

    def add(self, decisions: ArrayLike) -> np.ndarray:
        """Segments (n, 2), seconds, that are final with further decisions, bool (T,)."""
        self._collect(decisions)
        _, min_silence, pads = self._tidying
        final = 0
        for index, (_, end) in enumerate(self._closed):
            following = self._closed[index + 1][0] if index + 1 < len(self._closed) else self._open
            pause = round(((self._count if following is None else following) - end) * self.frame_shift, DECIMALS)
            if pause >= min_silence and pause > sum(pads):
                final = index + 1
        return self._give(final)

    def finish(self, duration: float) -> np.ndarray:
        """Return the remaining segments of a recording that is `duration` seconds long."""
        going_on = self._open is not None
        if going_on:
            self._closed.append((self._open, self._count))
            self._open = None
        return self._give(len(self._closed), duration, going_on)

    def _collect(self, decisions):
        for decided in _runs(np.asarray(decisions, dtype=bool)):
            speech, length = decided
            if speech and self._open is None:
                self._open = self._count
            elif not speech and self._open is not None:
                self._closed.append((self._open, self._count))
                self._open = None
            self._count += length

    def _give(self, number, duration=float("inf"), to_the_end=False):
        taken, self._closed = self._closed[:number], self._closed[number:]
        segments = np.round(np.array(taken, dtype=float).reshape(-1, 2) * self.frame_shift + self.offset, DECIMALS)
        if taken and taken[0][0] == 0:
            segments[0, 0] = 0.0
        if to_the_end and len(segments):
            segments[-1, 1] = max(segments[-1, 1], duration)
        return tidy(segments, duration, *self._tidying)


def _runs(decisions):
    """(decision, number of frames) of each stretch of equal decisions, bool (T,)."""
    if len(decisions) == 0:
        return []
    borders = np.flatnonzero(np.diff(decisions)) + 1
    starts = np.concatenate(([0], borders))
    return list(zip(decisions[starts].tolist(), np.diff(np.append(starts, len(decisions))).tolist(), strict=True))
