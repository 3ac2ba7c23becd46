"""Speech segments and frame decisions: conversion both ways, union, complement, clean-up of a detector's output.

Segments are float64 arrays of shape (n, 2): start and end in seconds, sorted, disjoint. Frame t stands for the time
[offset + t * frame_shift, offset + (t + 1) * frame_shift), in the middle of the window that its score is of.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    before, after = both(pad)
    if before > 0 or after > 0:
        segments = clip(np.round(segments + [-before, after], DECIMALS), duration)
    return segments


def both(pad: float | tuple[float, float]) -> tuple[float, float]:
    """Seconds added before and after a segment."""
    return pad if isinstance(pad, tuple) else (pad, pad)


def split(segments: ArrayLike, longest: float, scores: ArrayLike, frame_shift: float, offset: float = 0.0) -> np.ndarray:
    """Cut segments (n, 2), seconds, that are longer than `longest` seconds: the frame with the lowest score is left out.

    Each piece ends in the second half of the longest that it may be, where as much is left that no scrap remains. scores (T,),
    frame_shift and offset: of the frames, as of `frames_to_segments`.
    """
    frames, pieces = Frames(np.asarray(scores), frame_shift, offset), []
    for start, end in as_segments(segments).tolist():
        pieces += cut_up(start, end, longest, frames)
    return as_segments(pieces)


@dataclass
class Frames:
    """Scores (T,) of frames, from frame `first` of the recording on; shift and offset in seconds."""

    scores: np.ndarray
    shift: float
    offset: float
    first: int = 0


def cut_up(start: float, end: float, longest: float, frames: Frames) -> list[tuple[float, float]]:
    """Pieces of a segment, see `split`."""
    pieces = []
    while end - start > longest:
        cut = lowest_between(start + longest / 2, min(start + longest, end - longest / 4), frames)
        if not start < cut < end:  # frames as long as the segments
            break
        pieces.append((start, cut))
        start = round(cut + frames.shift, DECIMALS)
    return [*pieces, (start, end)]


def lowest_between(start: float, end: float, frames: Frames) -> float:
    """The time, in seconds, at which the frame with the lowest score begins."""
    first, behind = (int(round((time - frames.offset) / frames.shift)) - frames.first for time in (start, end))
    first = min(max(first, 0), len(frames.scores) - 1)
    lowest = frames.first + first + int(np.argmin(frames.scores[first : max(behind, first + 1)]))
    return round(frames.offset + lowest * frames.shift, DECIMALS)


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
