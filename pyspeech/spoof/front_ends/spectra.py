"""Log spectra: of mel or linear filters, and of the bins of the transform. Frames are centred, the window is Hann's."""

from __future__ import annotations

from typing import Any

import torch

from pyspeech.compat import autocast
from pyspeech.spoof.config import LogMelConfig
from pyspeech.spoof.front_ends import FrontEnd


class LogMel(FrontEnd):
    """Log-mel spectrogram: samples (B, N), N more than n_fft / 2 -> (B, 1 + N // shift, num_bins) float32."""

    mel: Any

    def __init__(self, config: LogMelConfig, saved: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self.mel = self._energies()
        # Not in checkpoints: the configuration gives them.
        for module in self.mel.modules():
            module._non_persistent_buffers_set.update(module._buffers)

    def _energies(self) -> torch.nn.Module:
        """The module that computes samples (B, N) -> energies (B, values, frames)."""
        from torchaudio.functional import linear_fbanks
        from torchaudio.transforms import MelSpectrogram

        config = self.config
        mel = MelSpectrogram(
            config.sampling_rate, n_fft=config.n_fft, win_length=config.window, hop_length=config.shift, n_mels=config.num_bins
        )
        if config.scale == "linear":
            filters = linear_fbanks(config.n_fft // 2 + 1, 0.0, config.sampling_rate / 2, config.num_bins, config.sampling_rate)
            mel.mel_scale.fb = filters
        return mel

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        # Energies span more than half precision can hold.
        with autocast(samples.device, enabled=False):
            frames = (self.mel(samples.float()) + self.config.floor).log().transpose(1, 2)
            return frames - frames.mean(dim=1, keepdim=True) if self.config.remove_mean else frames


class LogSpectrum(LogMel):
    """Log power spectrogram without filters: samples (B, N) -> (B, 1 + N // shift, n_fft // 2 + 1) float32."""

    @property
    def num_features(self) -> int:
        return self.config.n_fft // 2 + 1

    def _energies(self) -> torch.nn.Module:
        from torchaudio.transforms import Spectrogram

        return Spectrogram(self.config.n_fft, win_length=self.config.window, hop_length=self.config.shift, power=2.0)
