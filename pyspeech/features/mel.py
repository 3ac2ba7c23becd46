"""Mel scales and filters of the two kinds of log-mel features.

kaldi   triangles of height 1 between points of Kaldi's (HTK's) mel scale, from 20 Hz on
nemo    triangles of area 1 Hz between points of Slaney's scale (Auditory Toolbox), from 0 Hz on, as librosa and NeMo have them
"""

from __future__ import annotations

import math

import torch

LOWEST = {"kaldi": 20.0, "nemo": 0.0}  # Hz, lower edge of the first filter; the last one ends at half the sampling rate
CORNER, PER_OCTAVE = 15.0, 27 / math.log(6.4)  # Slaney's: linear up to 1000 Hz, 15 mel


def to_mel(frequencies: torch.Tensor, kind: str) -> torch.Tensor:
    """Mel of frequencies in Hz, any shape."""
    if kind == "kaldi":
        return 1127.0 * (1 + frequencies / 700.0).log()
    above = CORNER + PER_OCTAVE * (frequencies.clamp(min=1.0) / 1000.0).log()
    return torch.where(frequencies < 1000.0, frequencies * CORNER / 1000.0, above)


def to_hertz(mel: torch.Tensor, kind: str) -> torch.Tensor:
    """Frequencies in Hz of mel, any shape."""
    if kind == "kaldi":
        return 700.0 * ((mel / 1127.0).exp() - 1)
    return torch.where(mel < CORNER, mel * 1000.0 / CORNER, 1000.0 * ((mel - CORNER) / PER_OCTAVE).exp())


def mel_filters(kind: str, sampling_rate: int, n_fft: int, num_bins: int) -> torch.Tensor:
    """Weights (n_fft // 2 + 1, num_bins) float64 of the points of a power spectrum."""
    if kind == "kaldi":
        from torchaudio.compliance.kaldi import get_mel_banks

        filters, _ = get_mel_banks(num_bins, n_fft, float(sampling_rate), LOWEST[kind], 0.0, 0.0, 0.0, 1.0)
        return torch.nn.functional.pad(filters, (0, 1)).T.double()  # Kaldi leaves out half the sampling rate itself
    ends = torch.tensor([LOWEST[kind], sampling_rate / 2], dtype=torch.float64)
    low, high = to_mel(ends, kind).tolist()
    points = to_hertz(torch.linspace(low, high, num_bins + 2, dtype=torch.float64), kind)
    left, centre, right = points[:-2], points[1:-1], points[2:]
    frequencies = torch.arange(n_fft // 2 + 1, dtype=torch.float64)[:, None] * sampling_rate / n_fft
    triangles = torch.minimum((frequencies - left) / (centre - left), (right - frequencies) / (right - centre))
    return triangles.clamp(min=0) * 2 / (right - left)
