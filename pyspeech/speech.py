"""Speech in audio, by the bundled speech detector, for tasks that need it: whether there is any, and its stretches."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

# All of 460 clips of genuine and fake speech of up to 2.7 s have a frame above it; none of eight noises and tones of 5 s has.
THRESHOLD = 0.2
PAD = 0.1  # seconds kept on either side of speech: with none onsets are lost, more of digital silence disturbs
EDGE = 0.3  # seconds: shorter stretches without speech at the ends of a recording stay


class Listener:
    """Listen to audio that comes in until there is speech in it.

    rate: Hz of the samples. `heard`: whether there has been speech.
    """

    def __init__(self, rate: int) -> None:
        import soxr

        from pyspeech.sad.streaming import NetworkDecider

        self.heard = False
        self._decider = NetworkDecider(*_network(threshold=THRESHOLD))  # pyright: ignore[reportArgumentType]
        self._resampler = soxr.ResampleStream(rate, self._decider.sampling_rate, 1, dtype="float32")

    def add(self, samples: np.ndarray) -> None:
        """Add samples (n,), float."""
        if not self.heard:
            self._look(self._decider.add(self._resampler.resample_chunk(np.asarray(samples, np.float32))))

    def finish(self) -> None:
        """Process the end of the audio."""
        if not self.heard:
            self._look(self._decider.add(self._resampler.resample_chunk(np.zeros(0, np.float32), last=True)))
            self._look(self._decider.finish())

    def _look(self, decided):
        decisions, _ = decided
        self.heard = self.heard or bool(decisions.any())


class Part(NamedTuple):
    """Speech in a recording: its start in seconds and its samples (n,)."""

    start: float
    samples: np.ndarray


class SpeechParts:
    """Cut a recording into stretches of speech while its samples come in.

    For recognisers that were trained on utterances cut at their first and last word: a second of silence or noise before the
    speech disturbs the state of their encoder and the running mean of their features.

    Attributes:
        seconds: Seconds of audio that came in.
    """

    def __init__(self, rate: int, pause: float, longest: float = math.inf) -> None:
        """Begin a recording at `rate` Hz; pause: seconds that part two stretches; longest: seconds of a stretch at most."""
        from pyspeech.sad.streaming import NetworkDecider, StreamingDetector

        limit = longest if math.isfinite(longest) else 0.0
        scorer, point = _network(pad_before=PAD, pad_after=PAD, min_silence=pause, max_speech=limit)
        make = functools.partial(NetworkDecider, scorer, point)  # pyright: ignore[reportArgumentType]
        self._detector = StreamingDetector(make, point, rate)
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


def speech_parts(
    blocks: Iterable[np.ndarray], rate: int, pause: float, longest: float = math.inf
) -> Iterator[tuple[list[Part], float]]:
    """Yield (stretches of speech that are over, seconds of audio so far) for each block (n,) of a recording, and at its end.

    rate, pause, longest: as of `SpeechParts`.
    """
    parts = SpeechParts(rate, pause, longest)
    for block in blocks:
        yield parts.add(block), parts.seconds
    yield parts.finish(), parts.seconds


@functools.cache
def _network(threshold: float | None = None, **tidying: float):
    """What scores, loaded once for all recordings, and the operating point; arguments as of `choose_system`."""
    from pyspeech.sad.detector import choose_system

    return choose_system(None, None, threshold, None, **tidying)
