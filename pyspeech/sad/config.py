"""Options of SAD systems and their training data, as plain dataclasses that recipes embed; it imports nothing heavy.

The defaults are the paper's (Heitkaemper et al. 2020, sections 3 and 4.2) where it names a value.
"""

import math
from dataclasses import dataclass, field, fields

from pyspeech.errors import folder_or, requirement
from pyspeech.features.config import StftConfig  # noqa: F401 (one import for a recipe)
from pyspeech.model_file import Kind
from pyspeech.sad.registry import NETWORKS

KIND = Kind("SAD network", "fearless", "exp/NAME/models/SYSTEM")
SMOOTHINGS = ("none", "median", "hmm")
BRIEF = 2.0  # seconds: recordings that are shorter are often single words
SECONDS = ("min_silence", "min_speech", "pad", "pad_before", "pad_after", "max_speech")  # of an operating point


@dataclass
class NetworkConfig:
    temporal: str = "seg_rnn"  # network type (pyspeech/sad/registry.py); set by recipes that train several
    compress: str = "log"  # compression of the magnitudes: log, or none (the paper)
    context_seconds: float = 2.0  # seconds to either side over which the input is normalised
    channels: list[int] = field(default_factory=lambda: [16, 32, 64, 64])  # output channels of each block of the 2-D CNN
    cnn_channels: int = 128  # hidden channels of the 1-D CNN
    rnn_size: int = 256  # outputs of the GRU, even with rnn_merge=concat
    rnn_merge: str = "concat"  # how the GRU's directions are merged: concat (rnn_size / 2 outputs each) or sum (rnn_size each)
    outputs: int = 10  # number of outputs whose maximum is the speech score
    segment_length: int = 5  # frames in a segment of the segment RNN
    segment_shift: int = 1  # frames from segment to segment, at most segment_length
    lookahead: int = 5  # frames behind a frame that the causal GRU hears before it decides, beyond those of the CNN
    # score the spectrum with frequencies times this too, for higher voices than in training, 0.5 to below 1; 0: off (the paper)
    lowered: float = 0.0

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
        require("lookahead", self.lookahead >= 0, "0 or more")
        require("lowered", self.lowered == 0 or 0.5 <= self.lowered < 1, "0.5 to below 1, or 0")
        require("lowered", self.lowered == 0 or not NETWORKS[self.temporal].causal, f"0 for {self.temporal}, which is causal")
        require(
            "segment_shift",
            self.segment_shift <= self.segment_length,
            f"at most segment_length={self.segment_length}, so that every frame is in a segment",
        )


@dataclass
class OperatingPoint:
    """Conversion of a network's scores into segments."""

    threshold: float = 0.5  # score above which a frame is speech, 0 to 1
    smoothing: str = "none"  # smoothing of the frame decisions (smoothing.py): none, median or hmm
    peak: float = 0.0  # drop stretches of speech without a frame that scores above this (hysteresis), 0 to 1; 0: off
    min_silence: float = 0.0  # fill pauses shorter than this, in seconds
    min_speech: float = 0.0  # then drop segments shorter than this, in seconds
    pad: float = 0.0  # then add this many seconds before and after each segment
    pad_before: float | None = None  # seconds added before each segment; null: pad
    pad_after: float | None = None  # seconds added after each segment; null: pad
    max_speech: float = 0.0  # then cut segments longer than this, in seconds, where the score is lowest; 0: no limit
    brief_peak: float | None = None  # highest peak of recordings under 2 s, often words that score less; null: no limit

    @property
    def pads(self) -> tuple[float, float]:
        """Seconds added before and after each segment."""
        before, after = (self.pad if one is None else one for one in (self.pad_before, self.pad_after))
        return before, after

    def peak_of(self, seconds: float) -> float:
        """The peak for a recording whose frames take so many seconds."""
        return self.peak if self.brief_peak is None or seconds >= BRIEF else min(self.peak, self.brief_peak)

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("operating point", self)
        for name in ("threshold", "peak", "brief_peak"):
            require(name, getattr(self, name) is None or 0 <= getattr(self, name) <= 1, "0 to 1")
        require("smoothing", self.smoothing in SMOOTHINGS, f"one of {', '.join(SMOOTHINGS)}")
        for name in SECONDS:
            require(name, getattr(self, name) is None or 0 <= getattr(self, name) < math.inf, "seconds, 0 or more")


@dataclass
class DatasetConfig:
    crop_seconds: float = 4.0  # length of a training crop in seconds
    batch_size: int = 24  # crops per batch
    augment: float = 0.5  # probability of each disturbance of a crop, 0 to 1 (augmentation.py); 0: off (the paper)
    noise_dir: str = folder_or("none", what="noise recordings, such as of receivers")  # noise that augmentation adds too
    speed: int = 0  # play crops up to this many percent faster or slower, 0 to 50; 0: off (the paper)
    cold_start: float = 0.0  # probability that a crop is as at the start of a recording, 0 to 1; 0: off (the paper)
    cache_hours: float = 10.0  # keep a corpus of up to this many hours in memory, 58 MB an hour at 8 kHz

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("data", self)
        require("crop_seconds", 0 < self.crop_seconds < math.inf, "a positive number")
        require("batch_size", self.batch_size >= 1, "at least 1")
        for name in ("augment", "cold_start"):
            require(name, 0 <= getattr(self, name) <= 1, "0 to 1")
        require("augment", self.augment > 0 or self.noise_dir == "none", "more than 0 with noise_dir, its probability")
        require("speed", 0 <= self.speed <= 50, "0 to 50 percent")
        require("cache_hours", self.cache_hours >= 0, "0 or more")


@dataclass
class GridConfig:
    """Grid of further segment RNNs (Figure 7): all pairs of length and shift with shift <= length."""

    lengths: list[int] = field(default_factory=list)  # segment lengths in frames; []: none
    shifts: list[int] = field(default_factory=list)  # segment shifts in frames

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
    decision: str = "hmm"  # hmm, or threshold: only the adaptive threshold of section 2.1
    voicing: bool = True  # use voicing beside energies, against noise that switches on and off; false: the paper
    sampling_rate: int = 8000  # sampling rate in Hz; the other defaults suit 8000
    n_fft: int = 256  # length of the Hann window and of the FFT in samples
    hop: int = 80  # samples from frame to frame, at most n_fft
    iterations: int = 2  # passes of noise tracking and Wiener filter; 0: no denoising
    noise_seconds: float = 0.64  # seconds before or after a frame over which the noise level is the minimum
    oversubtraction: float = 22.0  # noise oversubtraction, gamma of equation 1
    min_gain: float = 0.1  # smallest gain, G_min of equation 1, 0 to 1
    high_pass: float = 250.0  # drop frequencies below this, in Hz
    band_hertz: float = 1000.0  # width of a sub-band in Hz
    smoothing_seconds: float = 0.48  # seconds over which energies are averaged
    edge_seconds: float = 0.1  # seconds of a shorter average that preserves word edges
    closing_seconds: float = 0.4  # close gaps in the shorter average of up to this many seconds
    edge_db: float = 10.0  # dB by which the long average may exceed the shorter one
    range_db: float = 60.0  # treat levels this many dB below the loudest as equal
    floor_seconds: float = 30.0  # seconds over which F-CSBE is the minimum
    noise_margin: float = 0.42  # noise lies below F-CSBE + A-CSBE plus this share of the level range
    speech_margin: float = 0.42  # speech lies above F-CSBE + A-CSBE plus this share of the level range
    least_margin_db: float = 15.0  # lower limit of both margins in dB
    most_margin_db: float = 30.0  # upper limit of both margins in dB
    residual_db: float = -24.0  # a frame of which denoising leaves less than this many dB is noise; negative
    peak_residual_db: float = -15.0  # drop speech in which no frame keeps this many dB after denoising; negative
    largest_ratio: float = 20.0  # largest contribution of one frame, in nats
    fill_seconds: float = 0.3  # fill pauses shorter than this many seconds
    voicing_seconds: float = 1.0  # seconds within which speech is voiced somewhere
    voicing_against: float = 25.0  # nats against speech where voicing is no stronger than in noise
    voicing_favour: float = 2.0  # most nats that voicing adds in favour of speech
    glide_nats: float = 250.0  # nats in favour of speech per second of gliding pitch
    glide_share: float = 0.06  # share of harmonic seconds that glide where speech and other sounds are equally likely
    phrase_seconds: float = 6.0  # seconds of the short window for gliding pitch
    talk_seconds: float = 60.0  # seconds of the long window for gliding pitch; the higher ratio of both counts
    prior_nats: float = 10.0  # nats subtracted from that ratio: the prior that nobody speaks

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
