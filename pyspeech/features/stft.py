"""Short-time Fourier transform magnitudes (Heitkaemper et al. 2020, section 4.2: 50 ms window, 10 ms shift, 512 points).

Frame t covers the samples [t * shift, t * shift + window); the signal is continued with zeros behind its end, so that
every sample is in some frame and N samples give ceil(N / shift) frames.
"""
from dataclasses import dataclass

import torch

from pyspeech.errors import UserError


@dataclass
class StftConfig:
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
        """Frames of a signal; takes a number or a tensor of numbers."""
        return (num_samples + self.shift - 1) // self.shift

    def check(self):
        if not 0 < self.shift <= self.window <= self.n_fft:
            raise UserError(
                f"stft: shift {self.shift}, window {self.window} and n_fft {self.n_fft} samples, "
                "expected 0 < shift <= window <= n_fft"
            )


class MagnitudeStft(torch.nn.Module):
    """|STFT| of a batch of signals."""

    def __init__(self, config):
        super().__init__()
        config.check()
        self.config = config
        # Symmetric around the window's centre; not in the checkpoint, as the configuration gives it.
        self.register_buffer("window", torch.hann_window(config.window), persistent=False)

    def forward(self, samples):
        """samples (B, N) float -> magnitudes (B, ceil(N / shift), n_fft // 2 + 1), linear."""
        config = self.config
        num_frames = config.num_frames(samples.shape[-1])
        if num_frames == 0:
            return samples.new_zeros(samples.shape[0], 0, config.num_bins)
        padding = (num_frames - 1) * config.shift + config.window - samples.shape[-1]
        frames = torch.nn.functional.pad(samples, (0, padding)).unfold(-1, config.window, config.shift)
        return torch.fft.rfft(frames * self.window, n=config.n_fft).abs()
