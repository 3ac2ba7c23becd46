"""Short-time Fourier transform magnitudes (Heitkaemper et al. 2020, section 4.2: 50 ms window, 10 ms shift, 512 points).

Frame t covers the samples [t * shift, t * shift + window); the signal is continued with zeros behind its end, so that
every sample is in some frame and N samples give ceil(N / shift) frames.
"""
import torch
from torch.nn import functional

from pyspeech.features.config import StftConfig  # noqa: F401 (belongs to this module, stands where importing it is fast)


class MagnitudeStft(torch.nn.Module):
    """|STFT| of a batch of signals."""

    def __init__(self, config):
        super().__init__()
        config.check()
        self.config = config
        # Not in checkpoints: the configuration gives it.
        self.register_buffer("window", torch.hann_window(config.window), persistent=False)

    def forward(self, samples, num_frames=None):
        """samples (B, N) float -> linear magnitudes (B, T, n_fft // 2 + 1).

        T is ceil(N / shift), or `num_frames`: for a piece cut out of a longer signal, whose last frames' windows reach
        over the piece's last shift (N is then at most (num_frames - 1) * shift + window).
        """
        config = self.config
        if num_frames is None:
            num_frames = config.num_frames(samples.shape[-1])
        if num_frames == 0:
            return samples.new_zeros(samples.shape[0], 0, config.num_bins)
        missing = (num_frames - 1) * config.shift + config.window - samples.shape[-1]
        frames = functional.pad(samples, (0, missing)).unfold(-1, config.window, config.shift)
        spectrum = torch.fft.rfft(frames * self.window, n=config.n_fft)
        # abs() takes three times as long on a CPU.
        return (spectrum.real.square() + spectrum.imag.square()).sqrt()
