"""Speech detection while the audio comes in: samples in, segments out as soon as they are over.

    detector = load_stream("causal")
    for samples in microphone:                  # float (n,), at detector.sampling_rate
        print(detector.add(samples))            # (n, 2) seconds
        print(detector.events)                  # [Event("start", 1.24)]
    print(detector.finish())

A network's segments are those that it finds offline. Unless it is causal, it looks far ahead: its input is normalised over the
frames to either side (twice over), its GRU runs backwards. `latency` says by how much; beyond it, the median filter takes 12
frames more and the HMM what it needs to be sure (see hmm.OnlineViterbi); a stretch of speech waits for the operating point's
peak, at most until it ends. With a peak of brief recordings, nothing is decided in the first two seconds.

The statistical system learns its classes from a whole recording, and has none to learn from while it is being made. Its causal
variant is the offline system on the last WINDOW_SECONDS, every other second, of which it takes what lies LOOK_AHEAD_SECONDS
back. So its segments are not those of the offline system.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pyspeech.audio.inputs import Feed
from pyspeech.errors import UserError
from pyspeech.sad.config import BRIEF, OperatingPoint, StatisticalConfig
from pyspeech.sad.decoding import Scorer, collector
from pyspeech.sad.online_segments import OnlineCuts, OnlineSegments
from pyspeech.sad.segments import as_segments
from pyspeech.sad.smoothing import MEDIAN_FRAMES, OnlineDecisions

if TYPE_CHECKING:
    import torch

HOP_SECONDS = 1.0  # of audio that is decided at a time; of the GRU over all frames, a window
CAUSAL_HOP_SECONDS = 0.06  # the same of a causal network, which is to answer soon
STATISTICAL_HOP_SECONDS = 2.0  # it costs the same for each, whatever is decided
WINDOW_SECONDS = 60.0
LOOK_AHEAD_SECONDS = 1.0


class Event(NamedTuple):
    """A segment has begun or is over.

    kind: "start" or "end". time: that of the segment, in seconds.
    """

    kind: str
    time: float


Decided = tuple[np.ndarray, np.ndarray]  # decisions of the next frames, bool (n,), and scores of the next frames, float32 (m,)


class Decider(Protocol):
    """Frame decisions and scores while samples float32 (n,) come in.

    latency: seconds from a frame to its decision, at most, but for what smoothing takes.
    """

    sampling_rate: int
    frame_shift: float
    frame_offset: float
    latency: float

    def add(self, samples: np.ndarray) -> Decided: ...

    def finish(self) -> Decided: ...


class StreamingDetector:
    """Segments while samples come in.

    Attributes:
        sampling_rate: Hz of the samples that come in.
        latency: Seconds from a frame to its decision, at most, but for what smoothing and the peak take.
        delay: Seconds from the end of a segment until it is known, at most, but for what the HMM needs to be sure.
        events: The `Event`s that came with the last call of `add` or `finish`, in order.
        going_on: Start of the segment that has begun, and a time that it lasts until at least, in seconds without the padding
            behind it; None while nobody speaks.
        scores: float32 (n,), scores of the frames that came with it, one every `frame_shift` seconds.
        frame_shift: Seconds from frame to frame.
    """

    def __init__(self, make_decider: Callable[[], Decider], point: OperatingPoint, sampling_rate: int | None = None) -> None:
        self._make_decider, self._point, self._rate = make_decider, point, sampling_rate
        self.reset()
        smoothing = MEDIAN_FRAMES // 2 * self.frame_shift if point.smoothing == "median" else 0.0
        # A segment is cut somewhere in the second half of the longest, once it is a quarter longer than that.
        cutting = 0.75 * point.max_speech + sum(point.pads) if point.max_speech else 0.0
        self.delay = self.latency + smoothing + max(point.min_silence, sum(point.pads), cutting)

    def reset(self) -> None:
        """Begin a new recording."""
        point, decider = self._point, self._make_decider()
        self._decider, self.latency, self.frame_shift = decider, decider.latency, decider.frame_shift
        self.sampling_rate = decider.sampling_rate if self._rate is None else self._rate
        self._feed = Feed(self.sampling_rate, decider.sampling_rate)
        self.samples = 0  # that came in
        timing = decider.frame_shift, decider.frame_offset
        self._segments = OnlineSegments(*timing, point.min_speech, point.min_silence, point.pads)
        self._cuts = OnlineCuts(point.max_speech, *timing) if point.max_speech else None
        self.events: list[Event] = []
        self.going_on: tuple[float, float] | None = None
        self.scores = np.zeros(0, np.float32)
        self._begun = False  # whether the start of a segment was told, and its end not yet
        self._finished = False

    @property
    def seconds(self) -> float:
        """Seconds of audio received."""
        return self.samples / self.sampling_rate

    @property
    def pending(self) -> float:
        """Seconds of audio received before which no segment begins that is still to come."""
        first = self._segments.first_frame * self.frame_shift - self._point.pads[0]
        return max(0.0, first if self._cuts is None else self._cuts.first(first))

    @property
    def speaking(self) -> bool:
        """True within a segment, as far as is known."""
        return self._begun

    def add(self, samples: np.ndarray) -> np.ndarray:
        """Segments (n, 2), seconds, that are known to be over with further samples (N,), floats or integers of full scale.

        UserError after `finish`, and for samples of another shape.
        """
        self._check_going_on()
        fed = self._feed.add(samples)
        self.samples += len(samples)
        decisions, self.scores = self._decider.add(fed)
        if len(decisions) == len(self.scores) == 0:  # most blocks of a few milliseconds
            self.events = []
            return as_segments([])
        over, going_on = self._cut(self._segments.add(decisions), self._segments.going_on)
        self._tell(over, going_on)
        return over

    def finish(self) -> np.ndarray:
        """Return the remaining segments at the end of the audio."""
        self._check_going_on()
        self._finished = True
        decided = self._decider.add(self._feed.finish()), self._decider.finish()
        self.scores = np.concatenate([scores for _, scores in decided])
        found = [self._segments.add(decisions) for decisions, _ in decided]
        over, _ = self._cut(np.concatenate([*found, self._segments.finish(self.seconds)]), None)
        self._tell(over, None)
        return over

    def _check_going_on(self):
        if self._finished:
            raise UserError("stream: already finished; call reset() before a new recording")

    def _cut(self, over, going_on):
        if self._cuts is None:
            return over, going_on
        self._cuts.hear(self.scores)
        found = self._cuts.cut(over, going_on)
        self._cuts.forget(self.pending)
        return found

    def _tell(self, over, going_on):
        self.events, self.going_on = [], going_on
        for start, end in over.tolist():
            if not self._begun:
                self.events.append(Event("start", start))
            self.events.append(Event("end", end))
            self._begun = False
        if going_on is not None and not self._begun:
            self.events.append(Event("start", going_on[0]))
            self._begun = True


def load_stream(
    system: str | None = None,
    model: str | Path | None = None,
    threshold: float | None = None,
    point: str | None = None,
    sampling_rate: int | None = None,
    device: str | torch.device = "auto",
    **tidying: float | None,
) -> StreamingDetector:
    """A StreamingDetector; sampling_rate: Hz of its samples, None: the model's; the others are as of
    `pyspeech.sad.detector.load_detector`."""
    from pyspeech.sad.detector import choose_system

    found, chosen = choose_system(system, model, threshold, point, device, **tidying)
    if isinstance(found, StatisticalConfig):
        return StreamingDetector(partial(CausalStatistical, found, chosen.threshold), chosen, sampling_rate)
    return StreamingDetector(partial(NetworkDecider, found, chosen), chosen, sampling_rate)


class NetworkDecider:
    """A Decider by a network: its offline decisions."""

    def __init__(self, scorer: Scorer, point: OperatingPoint) -> None:
        stft = scorer.stft_config
        self._scorer, self._point, self._decisions = scorer, point, None
        self._early = np.zeros(0, np.float32)  # scores of what may be a brief recording
        self._state = None  # that a causal network gives from piece to piece
        hop = CAUSAL_HOP_SECONDS if scorer.causal else HOP_SECONDS
        self._pieces = collector(scorer, round(hop / stft.frame_shift))
        self.sampling_rate, self.frame_shift, self.frame_offset = stft.sampling_rate, stft.frame_shift, stft.frame_offset
        first = self._pieces.piece  # frames until something is decided
        if point.peak_of(0.0) != point.peak:
            first *= math.ceil(max(1.0, BRIEF / (first * stft.frame_shift)))
        self.latency = (first + scorer.geometry.ahead) * stft.frame_shift + stft.frame_offset

    def add(self, samples: np.ndarray) -> Decided:
        return self._decide(self._pieces.add(samples))

    def finish(self) -> Decided:
        decisions, scores = self._decide(self._pieces.finish())
        rest = self._decide_scores(np.zeros(0, np.float32), last=True)
        return np.concatenate([decisions, rest, self._decisions.finish()]), scores  # pyright: ignore[reportOptionalMemberAccess]

    def _decide(self, pieces):
        decisions, scores = [np.zeros(0, bool)], [np.zeros(0, np.float32)]
        for piece in pieces:
            found, self._state = self._scorer.score_piece(*piece, state=self._state)
            decisions.append(self._decide_scores(found))
            scores.append(found)
        return np.concatenate(decisions), np.concatenate(scores)

    def _decide_scores(self, scores, last=False):
        """Decisions on further scores; none while the recording may still be a brief one, with another peak."""
        if self._decisions is None:
            self._early = scores = np.concatenate([self._early, scores])
            peak = self._point.peak_of(len(scores) * self.frame_shift)
            if peak != self._point.peak and not last:
                return np.zeros(0, bool)
            self._decisions = OnlineDecisions(self._point.threshold, self._point.smoothing, peak)
        return self._decisions.add(scores)


class CausalStatistical:
    """A Decider by the statistical system on the last `window` seconds of audio, of which `look_ahead` are not decided yet."""

    def __init__(
        self,
        config: StatisticalConfig,
        threshold: float = 0.0,
        window: float = WINDOW_SECONDS,
        look_ahead: float = LOOK_AHEAD_SECONDS,
    ) -> None:
        self._config, self._threshold = config, threshold
        self._hop, self._window, self._ahead = (
            max(1, round(seconds / config.frame_shift)) for seconds in (STATISTICAL_HOP_SECONDS, window, look_ahead)
        )
        self.sampling_rate, self.frame_shift, self.frame_offset = config.sampling_rate, config.frame_shift, 0.0
        self.latency = (self._hop + self._ahead) * config.frame_shift + config.n_fft / config.sampling_rate
        self._samples, self._new = np.zeros(0, np.float32), []
        self._first = 0  # frame that the samples begin with
        self._received = self._done = 0  # samples that came in; frames decided

    def add(self, samples: np.ndarray) -> Decided:
        decided = [(np.zeros(0, bool), np.zeros(0, np.float32))]
        while len(samples):
            due = (self._done + self._hop + self._ahead) * self._config.hop - self._received
            self._new.append(samples[:due])
            self._received += len(self._new[-1])
            samples = samples[due:]
            if self._received == (self._done + self._hop + self._ahead) * self._config.hop:
                decided.append(self._decide(self._done + self._hop))
        decisions, scores = zip(*decided, strict=True)
        return np.concatenate(decisions), np.concatenate(scores)

    def finish(self) -> Decided:
        return self._decide(-(-self._received // self._config.hop))

    def _decide(self, end):
        """Decisions and scores of the frames from the last ones decided to `end`."""
        from pyspeech.sad.statistical import detect_stream

        self._samples, self._new = np.concatenate([self._samples, *self._new]), []
        first = max(self._first, end + self._ahead - self._window)
        self._samples, self._first = self._samples[(first - self._first) * self._config.hop :], first
        found = detect_stream([self._samples], self._config, self._threshold)
        new, self._done = slice(self._done - first, end - first), end
        return found.decisions[new], found.llr[new].astype(np.float32)
