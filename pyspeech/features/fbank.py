"""Log-mel features for a streaming encoder (Joshi et al. 2021, section 5): 80 bins every 10 ms, eight frames stacked.

Log-mel frames are Kaldi's `fbank` (povey window, pre-emphasis 0.97, mean of each window removed, power spectrum, mel
filters from 20 Hz to half the sampling rate), without dither, of samples from -1 to 1. Frame k covers the samples
[k * shift, k * shift + window); energies below 2 ** -23, about the rounding noise of 16-bit audio, count as that.

With kind "nemo" they are what sherpa-onnx computes for models of NeMo's kind, so that it can be given such a model: Hann
window, no mean removed, Slaney's filters from 0 Hz (pyspeech/features/mel.py).

With `mean_frames`, each log-mel frame is taken relative to the mean of the frames up to it, at most so many: a gain, a
microphone or a telephone line adds a constant to a bin, which then is gone (cepstral mean normalisation, as causal as the
rest; not in the paper). Audio of minutes is learnt from much faster where its levels differ.

Encoder frame t holds the eight log-mel frames that end with frame 3 t + 2, oldest first, so that it needs nothing from
later and every log-mel frame is in some encoder frame. Before the start stands the first log-mel frame, repeated.

The end of the audio is treated alike offline and in a stream:
- no samples: no frame;
- fewer samples than a window: they are continued by zeros, one log-mel frame;
- otherwise 1 + (N - window) // shift log-mel frames, as Kaldi's snip_edges (up to 10 ms are left over);
- the last encoder frame is filled by repeating the last log-mel frame.

All is computed in float64: then a frame does not depend on how many others are computed with it (but for the last bit
of its float32), and a stream gives what the whole recording gives.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig  # noqa: F401 (belongs to this module; imports fast where it stands)
from pyspeech.features.mel import mel_filters
from pyspeech.files import write_json

if TYPE_CHECKING:
    import numpy as np

PREEMPHASIS = 0.97
FLOOR = 2.0**-23  # of a filter's energy, Kaldi's for float32
SLAB = 512  # frames computed at once: they stay in the cache of a CPU
MIN_STD = 0.1  # a bin that hardly changes in training (above 4 kHz in telephone speech) must not blow up in a test


def fbank(samples: np.ndarray | torch.Tensor, config: FbankConfig) -> torch.Tensor:
    """Log-mel frames: samples (N,) float, numpy or torch, from -1 to 1 -> (F, num_bins) float32, on the same device.

    F is 0 for N = 0, otherwise 1 + max(0, N - window) // shift.
    """
    samples = _as_tensor(samples)
    if len(samples) == 0:
        return samples.new_zeros(0, config.num_bins, dtype=torch.float32)
    if len(samples) < config.window:
        samples = functional.pad(samples, (0, config.window - len(samples)))
    frames = _log_mel_frames(samples, config)
    return frames - running_mean(frames, config.mean_frames) if config.mean_frames else frames


def running_mean(frames: torch.Tensor, size: int, before: torch.Tensor | None = None) -> torch.Tensor:
    """Running mean of frames (F, n) over the last `size` frames up to each, or all there are: (F, n) float32.

    before: the frames before the first (f, n); as many as size - 1 of them count.
    """
    joined = frames if before is None else torch.cat([before, frames])
    sums = functional.pad(joined.double().cumsum(dim=0), (0, 0, 1, 0))
    ends = torch.arange(len(joined) - len(frames), len(joined), device=frames.device) + 1
    starts = (ends - size).clamp(min=0)
    return ((sums[ends] - sums[starts]) / (ends - starts)[:, None]).float()


def stack(frames: torch.Tensor, config: FbankConfig) -> torch.Tensor:
    """Encoder frames: log-mel frames (F, num_bins) -> (ceil(F / stack_shift), num_bins * stack)."""
    if len(frames) == 0:
        return frames.new_zeros(0, config.dim)
    before = frames[:1].expand(config.stack - config.stack_shift, -1)
    return _windows(torch.cat([before, _fill(frames, len(frames), config)]), config)


class FbankStream:
    """Encoder frames of a signal that comes in blocks of any sizes; joined, they are stack(fbank(whole signal)).

    stream = FbankStream(config)
    for block in blocks:
        features = stream.add(block)    # (t, dim), often with t = 0
    features = stream.finish()          # (0 or 1, dim); the stream is then as new, for the next signal
    """

    def __init__(self, config: FbankConfig) -> None:
        config.check()
        self.config = config
        self._reset()

    def _reset(self):
        self._samples = torch.zeros(0)  # from the next log-mel frame's first on
        self._frames = None  # log-mel frames (f, num_bins) from the next encoder frame's first on; None: none yet
        self._before = torch.zeros(0, self.config.num_bins)  # log-mel frames that are still in a running mean

    def add(self, block: np.ndarray | torch.Tensor) -> torch.Tensor:
        """Add samples (n,), numpy or torch; return the encoder frames (t, dim) float32 that they complete."""
        config = self.config
        samples = torch.cat([self._samples, _as_tensor(block).to(self._samples)])
        count = max(0, (len(samples) - config.window) // config.shift + 1)
        self._samples = samples[count * config.shift :]
        if count == 0:
            return samples.new_zeros(0, config.dim)
        frames = _log_mel_frames(samples[: (count - 1) * config.shift + config.window], config)
        return self._add_frames(self._without_mean(frames))

    def finish(self) -> torch.Tensor:
        """The last encoder frame (1, dim), where the samples do not fill a whole one; otherwise (0, dim)."""
        config = self.config
        features = []
        if self._frames is None and len(self._samples):  # shorter than a window
            features.append(self._add_frames(fbank(self._samples, config)))
        if self._frames is not None:
            new = len(self._frames) - (config.stack - config.stack_shift)
            features.append(_windows(_fill(self._frames, new, config), config))
        self._reset()
        return torch.cat(features) if features else self._samples.new_zeros(0, config.dim)

    def _without_mean(self, frames):
        size = self.config.mean_frames
        if not size:
            return frames
        before, self._before = self._before, torch.cat([self._before, frames])[-(size - 1) :]
        return frames - running_mean(frames, size, before)

    def _add_frames(self, frames):
        config = self.config
        if self._frames is None:
            self._frames = frames[:1].expand(config.stack - config.stack_shift, -1)
        frames = torch.cat([self._frames, frames])
        features = _windows(frames, config)
        self._frames = frames[len(features) * config.stack_shift :]
        return features


def _as_tensor(samples):
    samples = torch.as_tensor(samples)
    if samples.dim() != 1 or not samples.is_floating_point():
        raise ValueError(f"samples of shape {tuple(samples.shape)} and {samples.dtype}; expected float (N,)")
    return samples


def _log_mel_frames(samples, config):
    """Samples (N,), at least a window of them -> (F, num_bins), computed slab by slab."""
    return torch.cat([_log_mel(slab, config) for slab in samples.unfold(0, config.window, config.shift).split(SLAB)])


def _log_mel(windows, config):
    """windows (F, window) -> (F, num_bins) float32."""
    weights, filters = _constants(config.kind, config.sampling_rate, config.window, config.num_bins, windows.device)
    windows = windows.double()
    if config.kind == "kaldi":
        windows = windows - windows.mean(dim=1, keepdim=True)
    previous = torch.cat([windows[:, :1], windows[:, :-1]], dim=1)
    windows = (windows - PREEMPHASIS * previous) * weights
    spectrum = torch.fft.rfft(windows, n=2 * (len(filters) - 1))
    energies = (spectrum.real.square() + spectrum.imag.square()) @ filters
    return energies.clamp(min=FLOOR).log().float()


@functools.lru_cache(maxsize=8)
def _constants(kind, sampling_rate, window, num_bins, device):
    """(window function (window,), mel filters (n_fft // 2 + 1, num_bins)), both float64 on `device`."""
    n_fft = 2 ** math.ceil(math.log2(window))
    filters = mel_filters(kind, sampling_rate, n_fft, num_bins)
    if not (filters.sum(dim=0) > 0).all():
        raise UserError(
            f"features: num_bins={num_bins} at {sampling_rate} Hz with a window of {window} samples: "
            "some filters lie between two points of the spectrum; use fewer bins or a longer window"
        )
    return window_function(kind, window).to(device), filters.contiguous().to(device)


def window_function(kind: str, window: int) -> torch.Tensor:
    """Window (window,) float64: Kaldi's povey, or for "nemo" Hann's, periodic."""
    hann = torch.hann_window(window, periodic=kind == "nemo", dtype=torch.float64)
    return hann.pow(0.85) if kind == "kaldi" else hann


def _fill(frames, new, config):
    """`frames` with the last one repeated until `new`, the number of them not yet used, is a multiple of the shift."""
    missing = -new % config.stack_shift
    return torch.cat([frames, frames[-1:].expand(missing, -1)]) if missing else frames


def _windows(frames, config):
    """Every `stack_shift`th run of `stack` frames: (f, num_bins) -> (t, dim)."""
    if len(frames) < config.stack:
        return frames.new_zeros(0, config.dim)
    return frames.unfold(0, config.stack, config.stack_shift).transpose(1, 2).reshape(-1, config.dim)


@dataclass
class GlobalStats:
    """Mean and standard deviation of every mel bin over the log-mel frames of a training set: lists of num_bins."""

    mean: list
    std: list

    @classmethod
    def compute(cls, utterances: Iterable[torch.Tensor]) -> GlobalStats:
        """Compute statistics from an iterable of log-mel frames (F, num_bins), read once; UserError if it is empty."""
        count, total, squares = 0, torch.zeros(()), torch.zeros(())
        for frames in utterances:
            frames = frames.double().cpu()
            count, total, squares = count + len(frames), total + frames.sum(dim=0), squares + frames.square().sum(dim=0)
        return cls.from_sums(count, total, squares)

    @classmethod
    def from_sums(cls, count: int, total: torch.Tensor, squares: torch.Tensor) -> GlobalStats:
        """Make statistics of `count` frames from their sum and sum of squares (num_bins,) float64; UserError for no frame."""
        if count == 0:
            raise UserError("mean and variance of the features: no audio in the training set")
        mean = total / count
        variance = (squares / count - mean.square()).clamp(min=MIN_STD**2)
        return cls(mean.tolist(), variance.sqrt().tolist())

    def apply(self, features: torch.Tensor) -> torch.Tensor:
        """(x - mean) / std of log-mel frames (..., num_bins) or encoder frames (..., num_bins * stack), as float32."""
        repeats = features.shape[-1] // len(self.mean)
        mean, std = (features.new_tensor(values).repeat(repeats) for values in (self.mean, self.std))
        return (features - mean) / std

    def to_dict(self) -> dict[str, list[float]]:
        return {"mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_dict(cls, values: dict[str, list[float]]) -> GlobalStats:
        return cls(values["mean"], values["std"])

    def save(self, path: Path | str) -> None:
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: Path | str) -> GlobalStats:
        """UserError where `path` is missing or was not written by `save`."""
        try:
            with open(path, encoding="utf-8") as stream:
                return cls.from_dict(json.load(stream))
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}; the stage that writes it has to run") from None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path}: not the mean and variance of features; remove it, run its stage again") from None
