"""Short-time Fourier transform magnitudes (Heitkaemper et al. 2020, section 4.2: 50 ms window, 10 ms shift, 512 points).

Frame t covers the samples [t * shift, t * shift + window), and N samples give ceil(N / shift) frames, so that every sample is
in one. The last frames, whose windows reach over the end, repeat the last whole one: zeros behind the end would make an
abrupt change of what was steady, such as a tone or a recorder's offset. (A signal shorter than a window is continued by zeros.)
"""

import math

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


class MatrixStft(torch.nn.Module):
    """`MagnitudeStft` as a product with the matrix of the windowed transform.

    scale: what a signal has at a frequency goes to `scale` times that, 0.5 to 1, as if its voice were as much lower. Bins above
    that mirror those below, so that they hold noise of the signal's own.
    """

    basis: torch.Tensor

    def __init__(self, config: StftConfig, scale: float = 1.0) -> None:
        super().__init__()
        self.shift, self.num_bins = config.shift, config.num_bins
        bins = torch.arange(config.num_bins, dtype=torch.float64)[:, None] / scale
        angles = 2 * math.pi / config.n_fft * bins * torch.arange(config.window)
        window = torch.hann_window(config.window).double()
        self.register_buffer("basis", torch.cat([angles.cos() * window, angles.sin() * window]).float()[:, None])

    def forward(self, samples: torch.Tensor, num_frames: torch.Tensor) -> torch.Tensor:
        """samples (1, N), at least a window -> (1, num_frames, bins); the last whole frame is repeated."""
        parts = functional.conv1d(samples[:, None], self.basis, stride=self.shift).square()
        magnitudes = (parts[:, : self.num_bins] + parts[:, self.num_bins :]).sqrt().transpose(1, 2)
        frames = torch.arange(num_frames)  # pyright: ignore[reportCallIssue, reportArgumentType]
        return magnitudes[:, frames.clamp(max=magnitudes.shape[1] - 1)]

    def magnitudes(self, frames: torch.Tensor) -> torch.Tensor:
        """As `MagnitudeStft.magnitudes`."""
        parts = (frames @ self.basis[:, 0].T).square()
        return (parts[:, :, : self.num_bins] + parts[:, :, self.num_bins :]).sqrt()
