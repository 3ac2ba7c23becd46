"""Fakes by a neural vocoder: MelGAN (Kumar et al. 2019), whose weights the package ttskit carries (MIT
licence). There it makes Mandarin of 32 speakers audible; whose speech it has learnt from is not said.

The generator makes 22.05 kHz speech of 80 mel bands: natural logarithms of magnitudes, at least 1e-5, Hann windows of 1024
samples every 256, centred, bands of equal area up to 8 kHz on Slaney's scale. It copies any voice and language.

The weights are a network of torch, pickled whole. Its tensors alone are read here; no code that it names is loaded.
"""

from __future__ import annotations

import functools
import pickle
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from local.synthesis import hifigan, vocoders

if TYPE_CHECKING:
    import torch

RATE = 22050
N_FFT, HOP, HIGHEST = 1024, 256, 8000.0
WHEEL = ("ttskit", "ttskit-0.3.8-py3-none-any.whl", "edb0610f0ca27198a6eadc6788b16c28203ae0951c4fc456077026805382e373")
UPSAMPLING = {3: (8, 16), 6: (8, 16), 9: (2, 4), 12: (2, 4)}  # layer: factor and kernel of each transposed convolution
FIRST, LAST = 1, 16  # layers before and after them
SILENCE = 10  # frames after the speech, whose end would click


def generator() -> Path:
    """Path of the generator, downloaded into the cache where it is not there (59 MB)."""
    from pyspeech.fetch.download import fetch_pypi
    from pyspeech.fetch.unpack import unpack

    name = "ttskit/resource/model/melgan.kuangdd.pt"
    return unpack(fetch_pypi(*WHEEL), [name]) / name


def copy_melgan_full(samples: np.ndarray, path: Path | str, pace: float = 1.0) -> np.ndarray:
    """Taken apart into mel bands and generated from them: (N,) float64 at 16 kHz -> (N,) at the level of the samples.

    path: of `generator()`; pace: see vocoders.copy_by. The same processor gives the same samples.
    """
    return vocoders.copy_by(lambda some: generate(log_mel(some), str(path)), RATE, samples, pace)


def log_mel(samples: np.ndarray) -> np.ndarray:
    """(N,) at 22.05 kHz -> (80, 1 + N // 256), the log-magnitudes of mel bands, centred frames."""
    padded = np.pad(samples, N_FFT // 2, mode="reflect" if len(samples) > N_FFT // 2 else "constant")
    return hifigan.log_bands(padded, RATE, N_FFT, HOP, HIGHEST)


def generate(mel: np.ndarray, path: str) -> np.ndarray:
    """Log-magnitudes (80, T) -> (256 T,) at 22.05 kHz."""
    import torch

    mel = np.pad(mel, ((0, 0), (0, SILENCE)), constant_values=np.log(hifigan.FLOOR))
    with torch.no_grad():
        made = _run(_weights(path), torch.as_tensor(mel, dtype=torch.float32)[None])
    return made[0, 0, : -SILENCE * HOP].double().numpy()


def _run(weights, hidden):
    """The generator: (1, 80, T) -> (1, 1, 256 T)."""
    from torch.nn.functional import conv1d, conv_transpose1d, leaky_relu, pad

    def convolve(name, inputs, dilation=1):
        weight = weights[f"generator.{name}.weight"]
        side = dilation * (weight.shape[2] // 2)
        inputs = pad(inputs, (side, side), mode="reflect") if side else inputs
        return conv1d(inputs, weight, weights[f"generator.{name}.bias"], dilation=dilation)

    hidden = convolve(FIRST, (hidden + 5) / 5)
    for layer, (factor, kernel) in UPSAMPLING.items():
        weight, bias = weights[f"generator.{layer}.weight"], weights[f"generator.{layer}.bias"]
        hidden = conv_transpose1d(leaky_relu(hidden, 0.2), weight, bias, stride=factor, padding=(kernel - factor) // 2)
        for block in range(3):
            inner = convolve(f"{layer + 1}.blocks.{block}.2", leaky_relu(hidden, 0.2), 3**block)
            inner = convolve(f"{layer + 1}.blocks.{block}.4", leaky_relu(inner, 0.2))
            hidden = convolve(f"{layer + 1}.shortcuts.{block}", hidden) + inner
    return convolve(LAST, leaky_relu(hidden, 0.2)).tanh()


@functools.lru_cache(maxsize=1)
def _weights(path):
    return hifigan.multiplied_out(read_tensors(path))


def read_tensors(path: Path | str) -> dict[str, torch.Tensor]:
    """{name: tensor} of a network that torch.save has pickled whole, of 32-bit numbers in one layer upon another."""
    with zipfile.ZipFile(path) as bundle:
        found = {}
        _collect(_Reader(bundle).load(), "", found)
    return found


def _collect(module, prefix, found):
    for name, tensor in module._parameters.items():
        if tensor is not None:
            found[prefix + name] = tensor
    for name, inner in module._modules.items():
        _collect(inner, f"{prefix}{name}.", found)


class _Named:
    """What stands for any class that a pickle names."""

    def __init__(self, *arguments):
        pass


class _Reader(pickle.Unpickler):
    """Of a pickle in torch's zip file: tensors, dictionaries, and _Named with attributes for all else."""

    def __init__(self, bundle):
        self.bundle = bundle
        self.root = next(name for name in bundle.namelist() if name.endswith("data.pkl"))[: -len("data.pkl")]
        super().__init__(bundle.open(f"{self.root}data.pkl"))

    def persistent_load(self, pid):
        return np.frombuffer(self.bundle.read(f"{self.root}data/{pid[2]}"), "<f4")

    def find_class(self, module_name, global_name):
        known = {"OrderedDict": dict, "_rebuild_tensor_v2": _tensor, "_rebuild_parameter": lambda tensor, *rest: tensor}
        return known.get(global_name, _Named)


def _tensor(storage, offset, size, stride, *rest):
    import torch

    return torch.as_strided(torch.from_numpy(storage.copy()), size, stride, offset)
