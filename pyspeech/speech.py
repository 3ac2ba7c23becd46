"""Speech in audio, by the bundled speech detector, for tasks that need it: whether there is any, and its stretches."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

# All of 1,555 clips of genuine and fake speech have a frame above it; of nine noises and tones of 5 s only a sweep has.
THRESHOLD = 0.2
PAD = 0.15  # seconds kept on either side of speech at most: with less onsets are lost, more noise before them disturbs
FAINT = -50.0  # dB of the loudest sample: fainter ones before speech are left out, as near silence disturbs recognisers
EDGE = 0.3  # seconds: shorter stretches without speech at the ends of a recording stay
HEARD_AT_ONCE = 0.02  # seconds of a stream: what is decided does not depend on how its samples come in


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
        end = end if end < self.seconds - EDGE else self.seconds
        first, last = (round(time * self._rate) - self._first for time in (start if start > EDGE else 0.0, end))
        samples = self._held[max(0, first) : last]
        if start <= EDGE:
            return Part(0.0, samples)
        faint = faint_start(samples, self._rate)
        return Part(start + faint / self._rate, samples[faint:])


class Heard(NamedTuple):
    """The next samples (n,) of a stretch of speech.

    start: seconds of the stream at which the stretch begins. over: whether it ends with them.
    """

    start: float
    samples: np.ndarray
    over: bool


class SpokenStream:
    """Find the speech in a stream while its samples come in, by the bundled detector for streams.

    Speech is given out as soon as it is decided, with `PAD` seconds on either side; before it less where that is near silence.
    A pause is given out once somebody speaks again, unless it ends the stretch. The same samples are given out however those
    of the stream come in.

    Attributes:
        seconds: Seconds of audio that came in.
    """

    def __init__(self, rate: int, pause: float) -> None:
        """Begin a stream at `rate` Hz; pause: seconds that part two stretches."""
        from pyspeech.audio.inputs import Feed
        from pyspeech.sad.streaming import NetworkDecider, StreamingDetector

        scorer, point = _network("causal", pad_before=PAD, pad_after=PAD, min_silence=pause)
        make = functools.partial(NetworkDecider, scorer, point)  # pyright: ignore[reportArgumentType]
        self._detector, self._feed = StreamingDetector(make, point, rate), Feed(rate, rate)
        self._rate, self._block = rate, max(1, round(HEARD_AT_ONCE * rate))
        self._held, self._first = np.zeros(0, np.float32), 0  # _first: number of the first sample held
        self._listened = 0  # samples that the detector has
        self._start, self._given = None, 0  # of the stretch that goes on: its start, and samples before the next of it

    @property
    def seconds(self) -> float:
        return (self._first + len(self._held)) / self._rate

    def add(self, samples: np.ndarray) -> list[Heard]:
        """Add samples (n,) of the stream; return what is known to be speech now. UserError for samples of another shape."""
        self._held = np.concatenate([self._held, self._feed.add(samples)])
        found = []
        while self._listened + self._block <= self._first + len(self._held):
            found += [self._give(*segment, over=True) for segment in self._listen(self._block).tolist()]
            if self._detector.going_on is not None:
                start, until = self._detector.going_on
                heard = self._give(start, until + PAD, over=False)
                found += [heard] * (len(heard.samples) > 0)
        self._forget()
        return found

    def finish(self) -> Heard | None:
        """Return the rest of the speech at the end of the stream, as one stretch; None where there is none."""
        over = np.concatenate([self._listen(self._block), self._detector.finish()])
        if len(over) == 0:
            return None
        end = float(over[-1, 1])
        return self._give(float(over[0, 0]), end if end < self.seconds - EDGE else self.seconds, over=True)

    def _listen(self, count):
        """Segments that are over with `count` more samples, or as many as there are."""
        first = self._listened - self._first
        block = self._held[first : first + count]
        self._listened += len(block)
        return self._detector.add(block)

    def _give(self, start, end, over):
        last = round(end * self._rate)
        if self._start is None:
            self._start, self._given = 0.0, 0
            if start > EDGE:
                first = round(start * self._rate)
                faint = faint_start(self._held[first - self._first : last - self._first], self._rate)
                self._start, self._given = start + faint / self._rate, first + faint
        last = max(self._given, last)
        heard = Heard(self._start, self._held[self._given - self._first : last - self._first], over)
        self._given = min(last, self._first + len(self._held))
        if over:
            self._start = None
        return heard

    def _forget(self):
        pending = self._detector.pending
        keep = self._given if self._start is not None else round(pending * self._rate) if pending > EDGE else 0
        keep = min(keep, self._listened)
        self._held, self._first = self._held[max(0, keep - self._first) :], max(self._first, keep)


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


def faint_start(samples: np.ndarray, rate: int) -> int:
    """Number of samples of near silence that samples (n,) of speech at `rate` Hz begin with.

    All of digital silence, then at most `EDGE` seconds of what is `FAINT` dB below the loudest of a second.
    """
    if len(samples) == 0:
        return 0
    levels = np.abs(samples - samples[0])
    still = int(np.argmax(levels > 0))
    levels = levels[still : still + rate]
    return still + min(int(np.argmax(levels >= 10 ** (FAINT / 20) * levels.max())), round(EDGE * rate))


@functools.cache
def _network(system: str | None = None, threshold: float | None = None, **tidying: float):
    """What scores, loaded once for all recordings, and the operating point; arguments as of `choose_system`."""
    from pyspeech.sad.detector import choose_system

    return choose_system(system, None, threshold, None, "cpu", **tidying)
