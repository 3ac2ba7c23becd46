"""Fundamental frequency by autocorrelation (Boersma 1993), frame by frame, for statistics of voices.

Frame k is centred where frame k of pyspeech.features.fbank is, so that the two go together. The autocorrelation of a
Hann window of 40 ms is divided by the window's own; a frame's candidates are its local maxima, of which one at a
shorter period wins by OCTAVE_COST an octave. Boersma's search for a smooth path is left out: a median over five frames
takes its place. A frame is voiced where the maximum is above VOICING, and the level no more than QUIET below the
loudest frame's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    import numpy as np

    from pyspeech.features.config import FbankConfig

LOWEST, HIGHEST = 60.0, 450.0  # Hz
WINDOW = 0.04  # seconds
VOICING = 0.5  # of the autocorrelation, 1 for a periodic signal
QUIET = 30.0  # dB
OCTAVE_COST = 0.03
BLOCK = 4096  # frames computed at once


def fundamental_frequency(samples: np.ndarray | torch.Tensor, config: FbankConfig) -> torch.Tensor:
    """Estimate the fundamental frequency: samples (N,) float, numpy or torch -> (F,) float32 in Hz, 0 if unvoiced.

    config: FbankConfig with stack_shift=1 (MfccConfig.log_mel); F is config.num_frames(N).
    """
    frequency, strength, energy = periodicity(samples, config)
    if len(energy) == 0:
        return frequency
    voiced = (strength > VOICING) & (energy > energy.max() * 10 ** (-QUIET / 10)) & (energy > 0)
    return _median(frequency, voiced)


def periodicity(samples: np.ndarray | torch.Tensor, config: FbankConfig) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Best pitch candidate of each frame, voiced or not, each (F,) float32: its frequency in Hz, its strength (the
    autocorrelation there, 1 for a periodic signal; 0 without one), and the mean square of the frame.

    samples, config: as of `fundamental_frequency`.
    """
    samples = torch.as_tensor(samples).float()
    count, size = config.num_frames(len(samples)), round(WINDOW * config.sampling_rate)
    if count == 0:
        return samples.new_zeros(0), samples.new_zeros(0), samples.new_zeros(0)
    before = (size - config.window) // 2
    whole = functional.pad(samples, (before, max(0, (count - 1) * config.shift + size - before - len(samples))))
    frames = whole.unfold(0, size, config.shift)[:count]
    results = [_estimate(block, config.sampling_rate) for block in frames.split(BLOCK)]
    frequency, strength, energy = (torch.cat(parts) for parts in zip(*results, strict=True))
    return frequency, strength, energy


def _estimate(frames, rate):
    """frames (n, size) -> frequency (n,) in Hz, the autocorrelation there (n,), mean square of the frame (n,)."""
    size, first, last = frames.shape[1], int(rate / HIGHEST), -int(-rate // LOWEST)
    windowed = (frames - frames.mean(dim=1, keepdim=True)) * torch.hann_window(size)
    correlation = autocorrelation(windowed)
    energy = correlation[:, 0]
    correlation = correlation[:, : last + 2] / energy.clamp(min=1e-20)[:, None] / _window_correlation(size)[: last + 2]
    lags = torch.arange(first, last + 1)
    here, left, right = (correlation[:, first + step : last + 1 + step] for step in (0, -1, 1))
    cost = OCTAVE_COST * torch.log2(lags * (LOWEST / rate))
    peaks = torch.where((here >= left) & (here > right), here - cost, -1e3)
    best = peaks.argmax(dim=1, keepdim=True)
    here, left, right = (values.gather(1, best)[:, 0] for values in (here, left, right))
    bend = left - 2 * here + right  # a parabola through the three
    offset = torch.where(bend < 0, 0.5 * (left - right) / bend.clamp(max=-1e-12), 0.0)
    strength = torch.where(peaks.gather(1, best)[:, 0] > -1e2, here, 0.0)
    return rate / (lags[best[:, 0]] + offset), strength, energy / size


def autocorrelation(windowed: torch.Tensor) -> torch.Tensor:
    """Compute the autocorrelation of frames (n, size) at the lags 0 to size - 1: sums of products (n, size)."""
    spectrum = torch.fft.rfft(windowed, n=1 << (2 * windowed.shape[1] - 1).bit_length())
    return torch.fft.irfft(spectrum.real.square() + spectrum.imag.square())[:, : windowed.shape[1]]


@functools.lru_cache(maxsize=4)
def _window_correlation(size):
    correlation = autocorrelation(torch.hann_window(size)[None].double())[0]
    return (correlation / correlation[0]).float()


def _median(frequency, voiced):
    """The median over five frames, of the voiced ones among them; 0 where a frame is not voiced."""
    values = functional.pad(torch.where(voiced, frequency, torch.nan), (2, 2), value=torch.nan).unfold(0, 5, 1)
    return torch.where(voiced, values.nanmedian(dim=1).values, 0.0).float()
