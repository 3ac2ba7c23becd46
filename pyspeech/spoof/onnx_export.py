"""A detector of fake audio as an ONNX file: from samples to the score in one graph, see onnx_network.py."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from pyspeech.model_file import trace, write_onnx
from pyspeech.spoof.config import KIND
from pyspeech.spoof.detector import Detector
from pyspeech.spoof.front_ends.spectra import LogMel
from pyspeech.spoof.networks import DetectorNetwork, LcnnBlstm, MaxFeatureMap2d, log_odds


def export_onnx(detector: Detector, path: str | Path) -> None:
    """Write a detector, to a file that ends in .onnx, whole or not at all."""
    model = detector.model
    write_onnx(
        path,
        traced(model),
        KIND,
        features=model.log_mel.config,
        network=model.config,
        crop=detector.crop,
        calibration=detector.calibration,
        threshold=float(detector.threshold),
    )


def traced(model: DetectorNetwork) -> bytes:
    """The graph of a network, without metadata."""
    form = (_Lcnn if isinstance(model, LcnnBlstm) else _Traceable)(model).eval()
    return trace(form, {"samples": torch.randn(1, 4 * model.sampling_rate)}, ["score"], {"samples": {1: "N"}})


class _Traceable(torch.nn.Module):
    """samples (1, N) -> log odds (1,), of operations that ONNX has."""

    def __init__(self, model):
        super().__init__()
        self.model, self.log_mel = model, MatrixLogMel(model.log_mel)

    def forward(self, samples):
        return log_odds(self.classify(self.log_mel(samples)))

    def classify(self, features):
        return self.model.classify(features)


class _Lcnn(_Traceable):
    def __init__(self, model):
        super().__init__(model)
        self.cnn = torch.nn.Sequential(*map(_simplified, model.cnn))

    def classify(self, features):
        maps = self.cnn(features[:, None])
        frames = maps.permute(2, 0, 1, 3).flatten(2)
        hidden = frames
        for layer in self.model.blstm:
            hidden, _ = layer(hidden)
        if self.model.config.residual:
            hidden = hidden + self.model.shortcut(frames)
        return self.model.output(hidden.mean(dim=0))


def _simplified(layer):
    """A layer of the light CNN in a form that the exporter knows."""
    if isinstance(layer, torch.nn.BatchNorm2d):
        return _Normalise(layer)
    return _LargerHalf() if isinstance(layer, MaxFeatureMap2d) else layer


class _Normalise(torch.nn.Module):
    """Batch normalisation without parameters: the exporter wants to know the number of channels."""

    def __init__(self, norm):
        super().__init__()
        self.register_buffer("mean", norm.running_mean[:, None, None].clone())
        self.register_buffer("scale", (norm.running_var + norm.eps).rsqrt()[:, None, None])

    def forward(self, maps):
        return (maps - self.mean) * self.scale


class _LargerHalf(torch.nn.Module):
    def forward(self, maps):
        first, second = maps.chunk(2, dim=1)
        return torch.maximum(first, second)


class MatrixLogMel(torch.nn.Module):
    """`LogMel` as a product with the matrix of the windowed transform, as ONNX Runtime's own transform is slow."""

    basis: torch.Tensor
    filters: torch.Tensor

    def __init__(self, log_mel: LogMel) -> None:
        super().__init__()
        self.config = config = log_mel.config
        self.num_bins = config.n_fft // 2 + 1
        bins = torch.arange(self.num_bins, dtype=torch.float64)[:, None]
        self.left = (config.n_fft - config.window) // 2  # the window lies in the middle of the transform
        angles = 2 * math.pi / config.n_fft * bins * (self.left + torch.arange(config.window))
        window = torch.hann_window(config.window, dtype=torch.float64)
        self.register_buffer("basis", torch.cat([angles.cos() * window, angles.sin() * window]).float()[:, None])
        self.register_buffer("filters", log_mel.mel.mel_scale.fb.float().cpu())  # pyright: ignore[reportArgumentType]

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        """samples (1, N), N more than n_fft / 2 -> (1, 1 + N // shift, filters)."""
        half = self.config.n_fft // 2
        padded = torch.nn.functional.pad(samples[:, None], (half, half), mode="reflect")
        unseen = self.config.n_fft - self.config.window  # samples to the sides of the window
        padded = padded[:, :, self.left : self.left + padded.shape[2] - unseen]
        parts = torch.nn.functional.conv1d(padded, self.basis, stride=self.config.shift).square()
        power = (parts[:, : self.num_bins] + parts[:, self.num_bins :]).transpose(1, 2)
        frames = (power @ self.filters + self.config.floor).log()
        return frames - frames.mean(dim=1, keepdim=True) if self.config.remove_mean else frames
