"""Speech detection while the audio comes in: samples in, segments out as soon as they are over.

    detector = load_stream("rnn", "models/rnn")
    for samples in microphone:                  # float (n,), at detector.sampling_rate
        print(detector.add(samples))            # (n, 2) seconds
    print(detector.finish())

A network's segments are those that it finds offline. It looks ahead: its input is normalised over the frames to either side
(twice over), its GRU runs backwards. `latency` says by how much; beyond it, the median filter takes 12 frames more and the HMM
what it needs to be sure (see hmm.OnlineViterbi); a stretch of speech waits for the operating point's peak, at most until it
ends.

The statistical system learns its classes from a whole recording, and has none to learn from while it is being made. Its causal
variant is the offline system on the last WINDOW_SECONDS, every other second, of which it takes what lies LOOK_AHEAD_SECONDS
back. So its segments are not those of the offline system.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np

from pyspeech.audio.inputs import Feed
from pyspeech.errors import UserError
from pyspeech.sad.config import OperatingPoint, StatisticalConfig
from pyspeech.sad.decoding import PieceCollector, Scorer
from pyspeech.sad.segments import OnlineSegments
from pyspeech.sad.smoothing import MEDIAN_FRAMES, OnlineDecisions

HOP_SECONDS = 1.0  # of audio that is decided at a time; of the GRU over all frames, a window
CAUSAL_HOP_SECONDS = 0.06  # the same of a causal network, which is to answer soon
STATISTICAL_HOP_SECONDS = 2.0  # it costs the same for each, whatever is decided
WINDOW_SECONDS = 60.0
LOOK_AHEAD_SECONDS = 1.0


class Decider(Protocol):
    """Frame decisions, bool (n,), while samples float32 (n,) come in.

    latency: seconds from a frame to its decision, at most, but for what smoothing takes.
    """

    sampling_rate: int
    frame_shift: float
    frame_offset: float
    latency: float

    def add(self, samples: np.ndarray) -> np.ndarray: ...

    def finish(self) -> np.ndarray: ...


class StreamingDetector:
    """Segments while samples come in.

    sampling_rate: Hz of the samples that come in. latency: seconds from a frame to its decision, at most, but for what
    smoothing takes. delay: seconds from the end of a segment until it is known, at most, but for what the HMM needs to be sure.
    """

    def __init__(self, decider: Decider, point: OperatingPoint, sampling_rate: int | None = None) -> None:
        self._decider = decider
        self.sampling_rate = decider.sampling_rate if sampling_rate is None else sampling_rate
        self._feed = Feed(self.sampling_rate, decider.sampling_rate)
        self.latency = decider.latency
        smoothing = MEDIAN_FRAMES // 2 * decider.frame_shift if point.smoothing == "median" else 0.0
        self.delay = self.latency + smoothing + max(point.min_silence, sum(point.pads))
        self.samples = 0  # that came in
        self._segments = OnlineSegments(
            decider.frame_shift, decider.frame_offset, point.min_speech, point.min_silence, point.pads
        )

    @property
    def seconds(self) -> float:
        """Seconds of audio received."""
        return self.samples / self.sampling_rate

    def add(self, samples: np.ndarray) -> np.ndarray:
        """Segments (n, 2), seconds, that are known to be over with further samples (N,), floats or integers of full scale."""
        fed = self._feed.add(samples)
        self.samples += len(samples)
        return self._segments.add(self._decider.add(fed))

    def finish(self) -> np.ndarray:
        """Return the remaining segments at the end of the audio."""
        last = [self._segments.add(decided) for decided in (self._decider.add(self._feed.finish()), self._decider.finish())]
        return np.concatenate([*last, self._segments.finish(self.seconds)])


def load_stream(
    system: str | None = None,
    model: str | Path | None = None,
    threshold: float | None = None,
    point: str | None = None,
    sampling_rate: int | None = None,
    **tidying: float | None,
) -> StreamingDetector:
    """A StreamingDetector; sampling_rate: Hz of its samples, None: the model's; the others are as of
    `pyspeech.sad.detector.load_detector`."""
    from pyspeech.sad.detector import choose_system

    found, chosen = choose_system(system, model, threshold, point, **tidying)
    if chosen.max_speech:
        raise UserError(f"max_speech {chosen.max_speech:g}: a stream has no limit of its segments; expected 0")
    if isinstance(found, StatisticalConfig):
        return StreamingDetector(CausalStatistical(found, chosen.threshold), chosen, sampling_rate)
    return StreamingDetector(NetworkDecider(found, chosen), chosen, sampling_rate)


class NetworkDecider:
    """A Decider by a network: its offline decisions."""

    def __init__(self, scorer: Scorer, point: OperatingPoint) -> None:
        stft = scorer.stft_config
        self._scorer, self._decisions = scorer, OnlineDecisions(point.threshold, point.smoothing, point.peak)
        self._state = None  # that a causal network gives from piece to piece
        hop = CAUSAL_HOP_SECONDS if scorer.causal else HOP_SECONDS
        self._pieces = PieceCollector(scorer.geometry, stft, round(hop / stft.frame_shift))
        self.sampling_rate, self.frame_shift, self.frame_offset = stft.sampling_rate, stft.frame_shift, stft.frame_offset
        self.latency = (self._pieces.piece + scorer.geometry.ahead) * stft.frame_shift + stft.frame_offset

    def add(self, samples: np.ndarray) -> np.ndarray:
        return self._decide(self._pieces.add(samples))

    def finish(self) -> np.ndarray:
        return np.concatenate([self._decide(self._pieces.finish()), self._decisions.finish()])

    def _decide(self, pieces):
        decided = [np.zeros(0, bool)]
        for piece in pieces:
            scores, self._state = self._scorer.score_piece(*piece, self._state)
            decided.append(self._decisions.add(scores))
        return np.concatenate(decided)


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

    def add(self, samples: np.ndarray) -> np.ndarray:
        decided = [np.zeros(0, bool)]
        while len(samples):
            due = (self._done + self._hop + self._ahead) * self._config.hop - self._received
            self._new.append(samples[:due])
            self._received += len(self._new[-1])
            samples = samples[due:]
            if self._received == (self._done + self._hop + self._ahead) * self._config.hop:
                decided.append(self._decide(self._done + self._hop))
        return np.concatenate(decided)

    def finish(self) -> np.ndarray:
        return self._decide(-(-self._received // self._config.hop))

    def _decide(self, end):
        """Decisions of the frames from the last ones decided to `end`."""
        from pyspeech.sad.statistical import detect_stream

        self._samples, self._new = np.concatenate([self._samples, *self._new]), []
        first = max(self._first, end + self._ahead - self._window)
        self._samples, self._first = self._samples[(first - self._first) * self._config.hop :], first
        found = detect_stream([self._samples], self._config, self._threshold).decisions
        begun, self._done = self._done, end
        return found[begun - first : end - first]
