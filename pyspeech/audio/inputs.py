"""What the Python API takes as audio: a path, samples in memory, or a list of these.

    path      str or Path of an audio file, of any format, rate and length
    samples   NumPy array or torch tensor (N,) or (channels, N), of floats from -1 to 1 or of integers up to their full scale

Channels are averaged; samples are resampled to the rate of the model, as a file is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from pyspeech.audio.io import stream_audio, stream_source
from pyspeech.audio.sources import ArraySource
from pyspeech.errors import UserError

if TYPE_CHECKING:
    import torch

AudioInput = Union[str, "os.PathLike[str]", np.ndarray, "torch.Tensor"]
BLOCK = 10.0  # seconds
MOST_CHANNELS = 64  # more channels than these and than samples are samples, transposed


def is_many(audio: Any) -> bool:
    """Whether the argument of a call stands for several recordings, so that the result is a list."""
    return isinstance(audio, (list, tuple))


def stream_inputs(audio: Any, sampling_rate: int | None, rate: int) -> Iterator[tuple[str, Iterator[np.ndarray]]]:
    """Yield (name, blocks) of a recording, or of each in a list: mono float32 (n,) at `rate` Hz.

    audio: an `AudioInput`, or a list of them; sampling_rate: Hz, which samples in memory need. The name of a file is
    its stem. UserError, also from the blocks, for what is no audio and for audio without samples.
    """
    for number, item in enumerate(audio if is_many(audio) else [audio], 1):
        if isinstance(item, (str, os.PathLike)):
            yield Path(item).stem, stream_audio(os.fspath(item), rate, block_seconds=BLOCK)
        else:
            name = f"recording {number}" if is_many(audio) else "recording"
            samples = np.atleast_2d(samples_of(item, name)).T
            source = ArraySource(name, samples, checked_rate(sampling_rate, name))
            yield name, stream_source(source, rate, None, BLOCK, 0.0, None)


def checked_rate(sampling_rate: Any, name: str) -> float:
    """The sampling rate in Hz; UserError where it is none."""
    if not isinstance(sampling_rate, (int, float, np.number)) or not 1 <= sampling_rate < np.inf:
        raise UserError(f"{name}: sampling_rate={sampling_rate}; expected the Hz of samples in memory")
    return float(sampling_rate)


def samples_of(item: Any, name: str) -> np.ndarray:
    """The samples of an array or tensor, (N,) or (channels, N), as they are; UserError where they are no audio."""
    if not isinstance(item, np.ndarray) and not hasattr(item, "detach"):
        raise UserError(f"{name}: {type(item).__name__}; expected a path, a NumPy array, a torch tensor or a list of these")
    samples = item if isinstance(item, np.ndarray) else item.detach().cpu().numpy()
    if samples.ndim not in (1, 2) or samples.dtype.kind not in "fi":
        raise UserError(f"{name}: {samples.dtype} of shape {samples.shape}; expected numbers (N,) or (channels, N)")
    if samples.size == 0:
        raise UserError(f"{name}: holds no samples")
    if samples.ndim == 2 and len(samples) > max(samples.shape[1], MOST_CHANNELS):
        raise UserError(f"{name}: {len(samples)} channels of {samples.shape[1]} samples; expected (channels, N): transpose it")
    return samples
