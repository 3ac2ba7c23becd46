"""Stretches of speech in recordings, for recognition of each by itself.

A transducer is trained on utterances cut at their first and last word. Its encoder's state and the running mean of its features
(`mean_frames`) suffer from a second of silence or noise before the speech. The bundled speech detector takes those away.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pyspeech.asr.config import Endpointing

PAD = 0.1  # seconds kept on either side of speech: with none onsets are lost, more of digital silence disturbs
EDGE = 0.3  # seconds: shorter stretches without speech at the ends of a recording stay


class Part(NamedTuple):
    """Speech in a recording: its start in seconds and its samples (n,)."""

    start: float
    samples: np.ndarray


class SpeechParts:
    """Cut a recording into stretches of speech while its samples come in.

    Attributes:
        seconds: Seconds of audio that came in.
    """

    def __init__(self, rate: int, endpointing: Endpointing) -> None:
        """Args:
        rate: Hz of the samples.
        endpointing: Its silence_after is the pause in seconds that parts two stretches, its longest their length at most.
        """
        from pyspeech.sad.streaming import load_stream

        longest = endpointing.longest if math.isfinite(endpointing.longest) else 0.0
        tidying = {"pad_before": PAD, "pad_after": PAD, "min_silence": endpointing.silence_after, "max_speech": longest}
        self._detector = load_stream(sampling_rate=rate, **tidying)
        self._rate, self._held, self._first = rate, np.zeros(0, np.float32), 0  # _first: number of the first sample held

    @property
    def seconds(self) -> float:
        return self._detector.seconds

    def add(self, samples: np.ndarray) -> list[Part]:
        """Add samples (n,) float; return the stretches that are over."""
        self._held = np.concatenate([self._held, samples])
        parts = [self._part(*found) for found in self._detector.add(samples).tolist()]
        pending = self._detector.pending
        keep = round(pending * self._rate) if pending > EDGE else 0
        self._held, self._first = self._held[max(0, keep - self._first) :], max(self._first, keep)
        return parts

    def finish(self) -> list[Part]:
        """Return the stretches that are left at the end of the recording."""
        return [self._part(*found) for found in self._detector.finish().tolist()]

    def _part(self, start, end):
        start = start if start > EDGE else 0.0
        end = end if end < self.seconds - EDGE else self.seconds
        first, last = (round(time * self._rate) - self._first for time in (start, end))
        return Part(start, self._held[max(0, first) : last])


def speech_parts(blocks: Iterable[np.ndarray], rate: int, endpointing: Endpointing) -> Iterator[tuple[list[Part], float]]:
    """Yield (stretches of speech that are over, seconds of audio so far) for each block (n,) of a recording, and at its end."""
    parts = SpeechParts(rate, endpointing)
    for block in blocks:
        yield parts.add(block), parts.seconds
    yield parts.finish(), parts.seconds
