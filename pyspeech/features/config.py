"""Options of the features, as plain dataclasses that recipes embed in their configuration; it imports nothing heavy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspeech.errors import requirement

RATES = (1000, 192_000)  # Hz
KINDS = ("kaldi", "nemo")  # of log-mel frames


@dataclass
class StftConfig:
    """Defaults: Heitkaemper et al. 2020, section 4.2."""

    sampling_rate: int = 8000  # sampling rate in Hz; the recipes need 8000
    n_fft: int = 512  # FFT size in samples: n_fft // 2 + 1 frequency bins
    window: int = 400  # length of the Hann window in samples, at most n_fft
    shift: int = 80  # samples from frame to frame, at most window

    @property
    def num_bins(self) -> int:
        return self.n_fft // 2 + 1

    @property
    def frame_shift(self) -> float:
        """Seconds from frame to frame."""
        return self.shift / self.sampling_rate

    @property
    def frame_offset(self) -> float:
        """Start of frame 0 in seconds: a frame stands for the `shift` samples in the middle of its window."""
        return (self.window - self.shift) / 2 / self.sampling_rate

    def num_frames(self, num_samples: int) -> int:
        """Count the frames of a signal of `num_samples`; every sample is in one."""
        return (num_samples + self.shift - 1) // self.shift

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("features", self)
        check_rate(require, self)
        require("n_fft", self.n_fft >= 2, "at least 2 points")
        require("window", 0 < self.window <= self.n_fft, f"1 to n_fft={self.n_fft}")
        require("shift", 0 < self.shift <= self.window, f"1 to window={self.window}")


@dataclass
class FbankConfig:
    """Stacked log-mel features. Defaults: Joshi et al. 2021, section 5 (80 bins, 10 ms; 8 frames by 3)."""

    sampling_rate: int = 16000  # Hz, 1000 to 192000; audio at other rates is resampled
    num_bins: int = 80  # number of mel filters
    window_ms: int = 25  # window length in milliseconds
    shift_ms: int = 10  # milliseconds from log-mel frame to log-mel frame, at most window_ms
    stack: int = 8  # log-mel frames joined into an encoder frame, the newest last
    stack_shift: int = 3  # log-mel frames from encoder frame to encoder frame, at most stack
    mean_frames: int = 0  # subtract the mean of the last N log-mel frames, e.g. 300, to remove level and channel; 0: off
    kind: str = "kaldi"  # log-mel as Kaldi's, or nemo: as sherpa-onnx computes it, for models to be exported

    @property
    def dim(self) -> int:
        """Number of values in an encoder frame."""
        return self.num_bins * self.stack

    @property
    def frame_seconds(self) -> float:
        """Seconds from encoder frame to encoder frame."""
        return self.shift_ms * self.stack_shift / 1000

    @property
    def window(self) -> int:
        """Number of samples in a log-mel frame."""
        return self.sampling_rate * self.window_ms // 1000

    @property
    def shift(self) -> int:
        """Samples from log-mel frame to log-mel frame."""
        return self.sampling_rate * self.shift_ms // 1000

    def log_mel_frames(self, num_samples: int) -> int:
        """Count the log-mel frames of a signal of `num_samples`: 0 if it is empty, at least 1 otherwise."""
        return 1 + max(0, num_samples - self.window) // self.shift if num_samples else 0

    def num_frames(self, num_samples: int) -> int:
        """Count the encoder frames of a signal of `num_samples`: 0 if it is empty, at least 1 otherwise."""
        return -(-self.log_mel_frames(num_samples) // self.stack_shift)

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("features", self)
        require("kind", self.kind in KINDS, " or ".join(KINDS))
        _check_windows(require, self)
        require("num_bins", 4 <= self.num_bins <= self.window // 2, f"4 to half a window, {self.window // 2}")
        require("stack", self.stack >= 1, "at least 1")
        require("stack_shift", 0 < self.stack_shift <= self.stack, f"1 to stack={self.stack}")
        require("mean_frames", self.mean_frames == 0 or self.mean_frames >= 2, "0, or at least 2, for instance 300")


@dataclass
class MfccConfig:
    """Features for unit discovery. Defaults: Tjandra et al. 2020, section 5.1 (13 MFCC, deltas, delta-deltas; 25, 10 ms)."""

    kind: str = "mfcc"  # mfcc (with deltas and delta-deltas) or log_mel (log energies of the mel filters)
    sampling_rate: int = 16000  # Hz, 1000 to 192000; audio at other rates is resampled
    window_ms: int = 25  # window length in milliseconds
    shift_ms: int = 10  # milliseconds from frame to frame, at most window_ms
    cepstra: int = 13  # number of cepstral coefficients, at most mel_filters; the first measures the level
    mel_filters: int = 23  # mel filters behind the cepstra (Kaldi's default)
    log_mel_bins: int = 80  # values per frame with kind=log_mel
    normalise: str = "utterance"  # mean and variance normalisation by utterance, by corpus (the training set), or none
    # weight in frames of the corpus mean and variance within an utterance's own, for short snippets; 0: off
    prior_frames: int = 0

    @property
    def dim(self) -> int:
        """Number of values in a frame."""
        return 3 * self.cepstra if self.kind == "mfcc" else self.log_mel_bins

    @property
    def frame_seconds(self) -> float:
        return self.shift_ms / 1000

    @property
    def needs_stats(self) -> bool:
        """True if normalisation needs the mean and variance of a training set."""
        return self.normalise == "corpus" or (self.normalise == "utterance" and self.prior_frames > 0)

    @property
    def log_mel(self) -> FbankConfig:
        """FbankConfig of the underlying log-mel frames, without stacking."""
        num_bins = self.mel_filters if self.kind == "mfcc" else self.log_mel_bins
        return FbankConfig(self.sampling_rate, num_bins, self.window_ms, self.shift_ms, stack=1, stack_shift=1)

    @property
    def magnitudes(self) -> StftConfig:
        """StftConfig of linear magnitudes; frame k covers the same samples as feature frame k."""
        log_mel = self.log_mel
        n_fft = 1 << (2 * log_mel.window - 1).bit_length()  # 1024 points at 16 kHz
        return StftConfig(self.sampling_rate, n_fft, log_mel.window, log_mel.shift)

    def num_frames(self, num_samples: int) -> int:
        """Count the frames of a signal of `num_samples`: 0 if it is empty, at least 1 otherwise."""
        return self.log_mel.num_frames(num_samples)

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("features", self)
        require("kind", self.kind in ("mfcc", "log_mel"), "mfcc or log_mel")
        require("normalise", self.normalise in ("utterance", "corpus", "none"), "utterance, corpus or none")
        require("prior_frames", self.prior_frames >= 0, "at least 0")
        _check_windows(require, self)
        for name in ("mel_filters", "log_mel_bins"):
            most = self.log_mel.window // 2
            require(name, 4 <= getattr(self, name) <= most, f"4 to half a window, {most}")
        require("cepstra", 0 < self.cepstra <= self.mel_filters, f"1 to mel_filters={self.mel_filters}")


@dataclass
class SpecAugmentConfig:
    """Masks on log-mel frames (Park et al. 2019, section 2); time masks are short because the utterances are."""

    frequency_masks: int = 2  # number of frequency masks per utterance
    frequency_width: int = 27  # largest width of a frequency mask in mel bins (the paper's F)
    time_masks: int = 2  # number of time masks per utterance
    time_width: int = 50  # largest width of a time mask in log-mel frames (the paper's T)
    time_fraction: float = 0.2  # largest share of an utterance under one time mask, 0 to 1 (the paper's p)

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("specaugment", self)
        for name in ("frequency_masks", "frequency_width", "time_masks", "time_width"):
            require(name, getattr(self, name) >= 0, "at least 0")
        require("time_fraction", 0 <= self.time_fraction <= 1, "0 to 1")


def check_rate(require: Callable, config: Any) -> None:
    """Require a sampling rate within RATES."""
    low, high = RATES
    require("sampling_rate", low <= config.sampling_rate <= high, f"{low} to {high} Hz")


def _check_windows(require, config):
    """Of FbankConfig and MfccConfig: frames of `window_ms` each `shift_ms`."""
    require("window_ms", config.window_ms >= 1, "at least 1")
    require("shift_ms", 1 <= config.shift_ms <= config.window_ms, f"1 to window_ms={config.window_ms}")
    check_rate(require, config)
