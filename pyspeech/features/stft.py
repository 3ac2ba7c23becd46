"""Short-time Fourier transform magnitudes (Heitkaemper et al. 2020, section 4.2: 50 ms window, 10 ms shift, 512 points).

Frame t covers the samples [t * shift, t * shift + window), and N samples give ceil(N / shift) frames, so that every sample is
in one. The last frames, whose windows reach over the end, repeat the last whole one: zeros behind the end would make an
abrupt change of what was steady, such as a tone or a recorder's offset. (A signal shorter than a window is continued by zeros.)
"""

import torch
from torch.nn import functional

from pyspeech.features.config import StftConfig  # noqa: F401 (belongs to this module, stands where importing it is fast)


class MagnitudeStft(torch.nn.Module):
    """|STFT| of a batch of signals."""

    window: torch.Tensor

    def __init__(self, config: StftConfig) -> None:
        super().__init__()
        config.check()
        self.config = config
        # Not in checkpoints: the configuration gives it.
        self.register_buffer("window", torch.hann_window(config.window), persistent=False)

    def forward(self, samples: torch.Tensor, num_frames: int | None = None) -> torch.Tensor:
        """samples (B, N) float -> linear magnitudes (B, T, n_fft // 2 + 1).

        T is ceil(N / shift), or `num_frames`: for a piece cut out of a longer signal, whose last windows reach over the
        piece's last shift, so that N is up to (num_frames - 1) * shift + window.
        """
        config = self.config
        if num_frames is None:
            num_frames = config.num_frames(samples.shape[-1])
        if num_frames == 0:
            return samples.new_zeros(samples.shape[0], 0, config.num_bins)
        samples = functional.pad(samples, (0, max(0, config.window - samples.shape[-1])))
        magnitudes = self.magnitudes(samples.unfold(-1, config.window, config.shift)[:, :num_frames])
        missing = num_frames - magnitudes.shape[1]
        return torch.cat([magnitudes, magnitudes[:, -1:].expand(-1, missing, -1)], dim=1) if missing else magnitudes

    def magnitudes(self, frames: torch.Tensor) -> torch.Tensor:
        """Samples of frames (B, T, window) -> their linear magnitudes (B, T, n_fft // 2 + 1)."""
        spectrum = torch.fft.rfft(frames * self.window, n=self.config.n_fft)
        # abs() takes three times as long on a CPU.
        return (spectrum.real.square() + spectrum.imag.square()).sqrt()
