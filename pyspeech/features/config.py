"""Options of the features, as plain dataclasses that recipes embed in their configuration; it imports nothing heavy."""
from dataclasses import dataclass

from pyspeech.errors import UserError


@dataclass
class StftConfig:
    """Defaults: Heitkaemper et al. 2020, section 4.2."""

    sampling_rate: int = 8000  # Hz
    n_fft: int = 512  # points of the transform: n_fft // 2 + 1 frequency bins
    window: int = 400  # samples, Hann
    shift: int = 80  # samples from frame to frame

    @property
    def num_bins(self):
        return self.n_fft // 2 + 1

    @property
    def frame_shift(self):
        """Seconds from frame to frame."""
        return self.shift / self.sampling_rate

    def num_frames(self, num_samples):
        """Frames of a signal of `num_samples`: every sample is in one."""
        return (num_samples + self.shift - 1) // self.shift

    def check(self):
        if not 0 < self.shift <= self.window <= self.n_fft:
            raise UserError(
                f"features: shift={self.shift}, window={self.window} and n_fft={self.n_fft} samples; "
                "expected 0 < shift <= window <= n_fft"
            )
