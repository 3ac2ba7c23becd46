"""Options of SAD systems and their training data, as plain dataclasses that recipes embed; it imports nothing heavy.

The defaults are the paper's (Heitkaemper et al. 2020, sections 3 and 4.2) where it names a value.
"""

import math
from dataclasses import dataclass, field, fields

from pyspeech.errors import requirement
from pyspeech.features.config import StftConfig  # noqa: F401 (one import for a recipe)
from pyspeech.model_file import Kind
from pyspeech.sad.registry import NETWORKS

KIND = Kind("SAD network", "fearless", "exp/NAME/models/SYSTEM")
SMOOTHINGS = ("none", "median", "hmm")
SECONDS = ("min_silence", "min_speech", "pad", "pad_before", "pad_after", "max_speech")  # of an operating point


@dataclass
class NetworkConfig:
    temporal: str = "seg_rnn"  # a network of pyspeech/sad/registry.py; a recipe that trains several sets it itself
    compress: str = "log"  # magnitudes: log, or none (the paper)
    context_seconds: float = 2.0  # normalised over this much to either side
    channels: list[int] = field(default_factory=lambda: [16, 32, 64, 64])  # one CNN block each
    cnn_channels: int = 128  # of the 1-D CNN's hidden layer
    rnn_size: int = 256  # outputs of the bidirectional GRU
    rnn_merge: str = "concat"  # its directions have rnn_size / 2 outputs each (concat), or rnn_size (sum)
    outputs: int = 10  # whose maximum is the score
    segment_length: int = 5  # frames
    segment_shift: int = 1  # frames

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("network", self)
        require("temporal", self.temporal in NETWORKS, f"one of {', '.join(NETWORKS)}")
        require("compress", self.compress in ("log", "none"), "log or none")
        require("context_seconds", 0 < self.context_seconds < math.inf, "a positive number")
        require("channels", len(self.channels) > 0 and min(self.channels) > 0, "a list of positive numbers")
        require("rnn_merge", self.rnn_merge in ("concat", "sum"), "concat or sum")
        require(
            "rnn_size",
            self.rnn_size > 0 and (self.rnn_merge == "sum" or self.rnn_size % 2 == 0),
            "a positive number, even for rnn_merge=concat",
        )
        for name in ("cnn_channels", "outputs", "segment_length", "segment_shift"):
            require(name, getattr(self, name) >= 1, "at least 1")
        require(
            "segment_shift",
            self.segment_shift <= self.segment_length,
            f"at most segment_length={self.segment_length}, so that every frame is in a segment",
        )


@dataclass
class OperatingPoint:
    """How a network's scores become segments."""

    threshold: float = 0.5  # speech is what scores more
    smoothing: str = "none"  # of the frame decisions (see smoothing.py): none, median or hmm
    peak: float = 0.0  # a stretch of speech without a frame that scores more than this is none (hysteresis); 0: any is
    min_silence: float = 0.0  # seconds; shorter pauses are filled, then ...
    min_speech: float = 0.0  # seconds; ... shorter segments dropped, then ...
    pad: float = 0.0  # seconds; ... this much added before and after each, or ...
    pad_before: float | None = None  # ... seconds added before it ...
    pad_after: float | None = None  # ... and after it, instead, and ...
    max_speech: float = 0.0  # seconds; ... longer segments are cut where the score is lowest; 0: none is

    @property
    def pads(self) -> tuple[float, float]:
        """Seconds added before and after each segment."""
        before, after = (self.pad if one is None else one for one in (self.pad_before, self.pad_after))
        return before, after

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("operating point", self)
        for name in ("threshold", "peak"):
            require(name, 0 <= getattr(self, name) <= 1, "0 to 1")
        require("smoothing", self.smoothing in SMOOTHINGS, f"one of {', '.join(SMOOTHINGS)}")
        for name in SECONDS:
            require(name, getattr(self, name) is None or 0 <= getattr(self, name) < math.inf, "seconds, 0 or more")


@dataclass
class DatasetConfig:
    crop_seconds: float = 4.0
    batch_size: int = 24  # crops
    augment: float = 0.5  # probability of each disturbance of a crop (see augmentation.py); 0: none (the paper)
    speed: int = 0  # percent by which crops are played faster or slower at most, so in other voices too; 0: none (the paper)
    cache_hours: float = 10.0  # a corpus of up to this much audio is kept in memory, 58 MB an hour at 8 kHz

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("data", self)
        require("crop_seconds", 0 < self.crop_seconds < math.inf, "a positive number")
        require("batch_size", self.batch_size >= 1, "at least 1")
        require("augment", 0 <= self.augment <= 1, "0 to 1")
        require("speed", 0 <= self.speed <= 50, "0 to 50 percent")
        require("cache_hours", self.cache_hours >= 0, "0 or more")


@dataclass
class GridConfig:
    """Segment RNNs that are trained beside the table's (Figure 7): all pairs of these with no more shift than length."""

    lengths: list[int] = field(default_factory=list)  # of segments, frames; []: none
    shifts: list[int] = field(default_factory=list)  # frames

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("grid", self)
        for name in ("lengths", "shifts"):
            values = getattr(self, name)
            require(
                name, all(value >= 1 for value in values) and len(set(values)) == len(values), "numbers from 1 on, each once"
            )
        require("shifts", bool(self.shifts) == bool(self.lengths), f"{'some' if self.lengths else 'none'}, as of grid.lengths")
        least, most = min(self.lengths, default=0), max(self.lengths, default=0)
        good = not self.shifts or min(self.shifts) <= least and max(self.shifts) <= most
        require("shifts", good, f"a shift of at most {least} frames for the shortest segments, and none beyond {most}")


@dataclass
class StatisticalConfig:
    decision: str = "hmm"  # hmm, or threshold: the adaptive threshold of section 2.1 alone
    voicing: bool = True  # its likelihood beside that of the energies, for noise that switches on and off; false: the paper
    sampling_rate: int = 8000  # Hz
    n_fft: int = 256  # samples of the Hann window
    hop: int = 80  # samples from frame to frame
    iterations: int = 2  # of noise tracking and Wiener filter
    noise_seconds: float = 0.64  # the noise is the minimum within this much time before, or after, a frame
    oversubtraction: float = 22.0  # gamma of equation 1
    min_gain: float = 0.1  # G_min of equation 1
    high_pass: float = 250.0  # Hz
    band_hertz: float = 1000.0  # width of a sub-band
    smoothing_seconds: float = 0.48  # mean over the energies
    edge_seconds: float = 0.1  # a shorter mean, which keeps the edges of words ...
    closing_seconds: float = 0.4  # ... with gaps up to this long closed ...
    edge_db: float = 10.0  # ... may be exceeded by this much
    range_db: float = 60.0  # levels this far below the loudest count as equal
    floor_seconds: float = 30.0  # F-CSBE is the minimum within this much time
    noise_margin: float = 0.42  # noise lies less above F-CSBE + A-CSBE than this share of the range of levels
    speech_margin: float = 0.42  # and speech more than this share of it
    least_margin_db: float = 15.0  # but either margin is no less than this ...
    most_margin_db: float = 30.0  # ... and no more than this
    residual_db: float = -24.0  # a frame that denoising leaves less of than this is noise
    peak_residual_db: float = -15.0  # and a stretch of speech of which it nowhere leaves this much
    largest_ratio: float = 20.0  # nats; what one frame can contribute
    fill_seconds: float = 0.3  # shorter pauses belong to the speech around them
    voicing_seconds: float = 1.0  # within which a voice is voiced somewhere
    voicing_against: float = 25.0  # nats against speech where there is no more voicing than of noise ...
    voicing_favour: float = 2.0  # ... and at most for it
    glide_nats: float = 250.0  # for a second in which the pitch glides ...
    glide_share: float = 0.045  # ... against a second that is harmonic, times this share ...
    phrase_seconds: float = 6.0  # ... both within so much time ...
    talk_seconds: float = 60.0  # ... or so much; the higher ratio counts ...
    prior_nats: float = 10.0  # ... less this: that nobody may be speaking

    @property
    def frame_shift(self) -> float:
        """Seconds from frame to frame."""
        return self.hop / self.sampling_rate

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("statistical", self)
        require("decision", self.decision in ("hmm", "threshold"), "hmm or threshold")
        for option in fields(self):
            if option.type in (float, "float"):
                require(option.name, math.isfinite(getattr(self, option.name)), "a finite number")
        require("n_fft", self.n_fft >= 4, "at least 4")
        require("hop", 0 < self.hop <= self.n_fft, "1 to n_fft")
        require("min_gain", 0 <= self.min_gain <= 1, "0 to 1")
        for name in ("sampling_rate", "band_hertz", "noise_seconds", "floor_seconds", "range_db", "largest_ratio"):
            require(name, getattr(self, name) > 0, "a positive number")
        require("high_pass", 0 <= self.high_pass < self.sampling_rate / 2, f"0 to less than {self.sampling_rate / 2:g} Hz")
        for name in (
            "iterations oversubtraction smoothing_seconds edge_seconds closing_seconds edge_db noise_margin speech_margin "
            "least_margin_db fill_seconds voicing_seconds voicing_against voicing_favour glide_nats glide_share "
            "phrase_seconds talk_seconds prior_nats"
        ).split():
            require(name, getattr(self, name) >= 0, "0 or more")
        for name in ("residual_db", "peak_residual_db"):
            require(name, getattr(self, name) < 0, "less than 0 dB, as denoising adds nothing")
        require("voicing", not self.voicing or self.sampling_rate >= 4000, "false at a sampling rate below 4000 Hz")
        require(
            "most_margin_db", self.most_margin_db >= self.least_margin_db, f"at least least_margin_db={self.least_margin_db:g}"
        )
