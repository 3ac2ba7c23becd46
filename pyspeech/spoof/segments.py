"""Scores of the parts of a recording: which of it is genuine, and which has been exchanged for fake speech."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyspeech.spoof.api import FakeScore

HEADER = ["recording", "start", "end", "decision", "p_genuine", "p_fake", "score", "path"]
Span = tuple[float, float, float]  # start and end in seconds, score


def timeline(windows: Sequence[Span]) -> list[Span]:
    """The parts between the edges of windows, in order, each with the mean of the scores of the windows over it."""
    if not windows:
        return []
    starts, ends, scores = np.array(windows, dtype=np.float64).T
    edges = np.unique(np.concatenate([starts, ends]))
    sums, counts = np.zeros(len(edges)), np.zeros(len(edges))
    for places, sign in ((starts, 1), (ends, -1)):
        indices = np.searchsorted(edges, places)
        np.add.at(sums, indices, sign * scores)
        np.add.at(counts, indices, sign)
    sums, counts = np.cumsum(sums)[:-1], np.cumsum(counts)[:-1]
    covered = counts > 0.5
    parts = np.stack([edges[:-1], edges[1:], sums / np.maximum(counts, 1)], axis=1)[covered]
    return [(start, end, score) for start, end, score in parts.tolist()]


def stretches(parts: Sequence[Span], threshold: float) -> list[Span]:
    """Join parts that follow each other and lie on the same side of a threshold; the score is the mean over their time."""
    found = []
    for _, group in itertools.groupby(parts, key=lambda part: part[2] >= threshold):
        starts, ends, scores = np.array(list(group)).T
        found.append((float(starts[0]), float(ends[-1]), float(np.average(scores, weights=ends - starts))))
    return found


def segment_rows(score: FakeScore) -> list[dict[str, Any]]:
    """The fields of HEADER of each part of a recording."""
    rows = []
    for start, end, value in score.segments:
        part = replace(score, score=value)
        genuine = part.p_genuine()
        values = (score.name, start, end, part.decision, genuine, 1 - genuine, value, score.path)
        rows.append(dict(zip(HEADER, values, strict=True)))
    return rows


def as_text(score: FakeScore) -> str:
    """A line for each stretch of a recording with one decision."""
    found = stretches(score.segments, score.threshold)
    decided = ((start, end, replace(score, score=value)) for start, end, value in found)
    return "".join(
        f"  {start:.1f} to {end:.1f} s: {part.decision}, P(genuine) {part.p_genuine():.3f}, score {part.score:+.3f}\n"
        for start, end, part in decided
    )
