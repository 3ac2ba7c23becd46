"""Segments while decisions and scores come in: the online forms of pyspeech/sad/segments.py.

segments, cuts = OnlineSegments(0.02), OnlineCuts(20.0, 0.02)
found = segments.add(decisions)                       # (n, 2) seconds, final
found = cuts.add(found, segments.going_on, scores)    # none longer than 20 s
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.sad.segments import DECIMALS, Frames, as_segments, both, cut_up, lowest_between, tidy


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
        self._tidying = min_speech, min_silence, both(pad)
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

    @property
    def going_on(self) -> tuple[float, float] | None:
        """The segment that is sure to come but not over: its start, and a time in seconds that it lasts until at least."""
        held = self._closed if self._open is None else [*self._closed, (self._open, self._count)]
        if not held:
            return None
        segments = tidy(self._seconds(held), math.inf, *self._tidying)
        if len(segments) == 0:
            return None
        _, _, (_, after) = self._tidying
        # The last frame may lie beyond the end of the recording.
        return float(segments[0, 0]), float(segments[0, 1]) - after - self.frame_shift

    @property
    def first_frame(self) -> int:
        """The first frame that a segment which was not given out may have."""
        return self._closed[0][0] if self._closed else self._count if self._open is None else self._open

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
        if number == 0:  # mostly, in a stream
            return as_segments([])
        taken, self._closed = self._closed[:number], self._closed[number:]
        segments = self._seconds(taken)
        if to_the_end and len(segments):
            segments[-1, 1] = max(segments[-1, 1], duration)
        return tidy(segments, duration, *self._tidying)

    def _seconds(self, stretches):
        segments = np.round(np.array(stretches, dtype=float).reshape(-1, 2) * self.frame_shift + self.offset, DECIMALS)
        if stretches and stretches[0][0] == 0:
            segments[0, 0] = 0.0
        return segments


class OnlineCuts:
    """`split` while segments and the scores of frames come in. longest, frame_shift, offset: as of `split`."""

    def __init__(self, longest: float, frame_shift: float, offset: float = 0.0) -> None:
        self.longest = longest
        self._frames = Frames(np.zeros(0, np.float32), frame_shift, offset)
        self._rest = None  # the start of what is left of a segment that goes on and has been cut

    def hear(self, scores: np.ndarray) -> None:
        """Take the scores (T,) of further frames."""
        self._frames.scores = np.concatenate([self._frames.scores, scores])

    def first(self, seconds: float) -> float:
        """The time that no piece begins before, where no segment that comes begins before `seconds`."""
        return max(seconds, self._rest or 0.0)

    def forget(self, seconds: float) -> None:
        """Drop the scores of the frames before a time: no piece that comes begins earlier."""
        count = int(seconds / self._frames.shift) - self._frames.first - 1
        if count > 0:
            self._frames.scores, self._frames.first = self._frames.scores[count:], self._frames.first + count

    def cut(
        self, segments: np.ndarray, going_on: tuple[float, float] | None = None
    ) -> tuple[np.ndarray, tuple[float, float] | None]:
        """Cut segments (n, 2) that are over, and one that goes on, see `OnlineSegments`; the same of the pieces."""
        pieces = []
        for start, end in segments.tolist():
            pieces += cut_up(self._start(start), end, self.longest, self._frames)
            self._rest = None
        if going_on is None:
            return as_segments(pieces), None
        start, until = self._start(going_on[0]), going_on[1]
        while until - start > 1.25 * self.longest:  # from here on the place does not depend on the end
            cut = lowest_between(start + self.longest / 2, start + self.longest, self._frames)
            if not start < cut < until:
                break
            pieces.append((start, cut))
            start = self._rest = round(cut + self._frames.shift, DECIMALS)
        return as_segments(pieces), (start, until)

    def _start(self, start):
        return start if self._rest is None else self._rest


def _runs(decisions):
    """(decision, number of frames) of each stretch of equal decisions, bool (T,)."""
    if len(decisions) == 0:
        return []
    if decisions.all() or not decisions.any():
        return [(bool(decisions[0]), len(decisions))]
    borders = np.flatnonzero(np.diff(decisions)) + 1
    starts = np.concatenate(([0], borders))
    return list(zip(decisions[starts].tolist(), np.diff(np.append(starts, len(decisions))).tolist(), strict=True))
