"""Audio inputs of the Python API: a path, an audio file in memory, samples in memory, or a list of these.

    path      str or Path of an audio file, of any format, rate and length
    file      bytes of an audio file, or a binary stream of one (an open file, BytesIO), which is read from where it stands
    samples   NumPy array or torch tensor (N,) or (channels, N), of floats from -1 to 1 or of 8, 16 or 32-bit signed integers
    pair      (samples, sampling rate in Hz)

Channels are averaged; samples are resampled to the rate of the model, as a file is.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Union

import numpy as np

from pyspeech.audio.io import LARGEST, all_channels, mended, stream_source
from pyspeech.audio.sources import ArraySource, Source, open_source, open_stream
from pyspeech.errors import UserError

if TYPE_CHECKING:
    import torch

Samples = Union[np.ndarray, "torch.Tensor"]
AudioInput = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, IO[bytes], Samples, tuple[Samples, float]]
BLOCK = 10.0  # seconds
TYPES = "floats from -1 to 1, int8, int16 or int32"
LOWEST_RATE = 100  # Hz; what is below is kHz by mistake
MOST_CHANNELS = 64  # more channels than these and than samples are samples, transposed
log = logging.getLogger(__name__)


def is_many(audio: Any) -> bool:
    """True if the argument of a call stands for several recordings, so that the result is a list."""
    return isinstance(audio, (list, tuple)) and not _is_pair(audio)


def _is_pair(audio):
    return isinstance(audio, tuple) and len(audio) == 2 and sum(_is_number(part) for part in audio) == 1


def _is_number(part):
    of_array = isinstance(part, np.ndarray) or hasattr(part, "detach")
    return isinstance(part, (int, float, np.number)) or of_array and part.ndim == 0


def stream_inputs(audio: Any, sampling_rate: int | None, rate: int) -> Iterator[tuple[str, Iterator[np.ndarray]]]:
    """Yield (name, blocks) of a recording, or of each in a list: mono float32 (n,) at `rate` Hz.

    audio: an `AudioInput`, or a list of them; sampling_rate: Hz, which samples alone need. The name of a file is its stem.
    UserError from the blocks for what is no audio and for audio without samples.
    """
    for number, item in enumerate(audio if is_many(audio) else [audio], 1):
        other = f"recording {number}" if is_many(audio) else "recording"
        yield Path(file_of(item)).stem or other, _blocks(item, other, sampling_rate, rate)


def file_of(item: Any) -> str:
    """The path of the file that an `AudioInput` is, or that a stream reads; "" of others."""
    return os.fspath(item) if isinstance(item, (str, os.PathLike)) else _file_name(item) or ""


def _file_name(item):
    """Of the file that a stream reads; None of others."""
    name = getattr(item, "name", None)
    return name if isinstance(name, str) else None


def _blocks(item, name, sampling_rate, rate):
    with open_input(item, name, sampling_rate) as source:
        yield from stream_source(source, rate, None, BLOCK, 0.0, None)


@contextlib.contextmanager
def open_input(item: Any, name: str, sampling_rate: float | None) -> Iterator[Source]:
    """Yield a source for an `AudioInput`; name: of what is no file, for messages. UserError for what is no audio."""
    if isinstance(item, (str, os.PathLike)):
        if not os.fspath(item):
            raise UserError(f"{name}: an empty path; expected an audio file")
        with open_source(os.fspath(item)) as source:
            yield source
    elif isinstance(item, (bytes, bytearray, memoryview)) or hasattr(item, "read"):
        if isinstance(item, io.TextIOBase):
            raise UserError(f"{name}: a stream of text; expected one of bytes: open the file with mode 'rb'")
        if hasattr(item, "samplerate"):  # soundfile's
            raise UserError(f"{name}: {type(item).__name__}, which reads samples; expected (samples, sampling rate)")
        stream: IO[bytes] = io.BytesIO(item) if isinstance(item, (bytes, bytearray, memoryview)) else item
        with open_stream(stream, _file_name(item) or name) as source:
            yield source
    else:
        samples, sampling_rate = item if _is_pair(item) else (item, sampling_rate)
        yield ArraySource(name, np.atleast_2d(samples_of(samples, name)).T, checked_rate(sampling_rate, name))


def read_input(item: Any, sampling_rate: float | None) -> tuple[np.ndarray, int]:
    """An `AudioInput` with its channels apart: (samples (N,), or (channels, N) of floats, sampling rate in Hz)."""
    if not (isinstance(item, np.ndarray) or hasattr(item, "detach") or _is_pair(item)):
        with open_input(item, "recording", sampling_rate) as source:
            return all_channels(source), source.sampling_rate
    samples, sampling_rate = item if _is_pair(item) else (item, sampling_rate)
    rate = checked_rate(sampling_rate, "recording")
    if rate != int(rate):
        raise UserError(f"recording: sampling_rate={rate:g}; expected whole Hz, as files have them")
    return mended(in_full_scale(samples_of(samples, "recording")), "recording"), int(rate)


def checked_rate(sampling_rate: Any, name: str) -> float:
    """The sampling rate in Hz; UserError where it is none."""
    if not _is_number(sampling_rate) or not LOWEST_RATE <= sampling_rate < np.inf:
        raise UserError(f"{name}: sampling_rate={sampling_rate!r}; expected the Hz of samples in memory, such as 16000")
    return float(sampling_rate)


def samples_of(item: Any, name: str) -> np.ndarray:
    """The samples of an array or tensor, (N,) or (channels, N), as they are; UserError where they are no audio."""
    if not isinstance(item, np.ndarray) and not hasattr(item, "detach"):
        expected = "a path, a NumPy array, a torch tensor or a list of these, (samples, sampling rate) or the bytes of a file"
        raise UserError(f"{name}: {type(item).__name__}; expected {expected}")
    layout = str(getattr(item, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise UserError(f"{name}: a tensor whose layout is {layout}; expected a dense one: x.to_dense()")
    samples = item if isinstance(item, np.ndarray) else array_of(item)
    if samples.ndim not in (1, 2) or not _are_samples(samples):
        raise UserError(f"{name}: {samples.dtype} of shape {samples.shape}; expected {TYPES}, (N,) or (channels, N)")
    if samples.size == 0:
        raise UserError(f"{name}: holds no samples")
    if samples.ndim == 2 and len(samples) > max(samples.shape[1], MOST_CHANNELS):
        raise UserError(f"{name}: {len(samples)} channels of {samples.shape[1]} samples; expected (channels, N): transpose it")
    return samples


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """The values of a tensor; those of bfloat16, which NumPy lacks, as float32."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def _are_samples(samples):
    """Integers of 64 bit, NumPy's default, hold samples of fewer: at their full scale these were silence."""
    return samples.dtype.kind == "f" or (samples.dtype.kind == "i" and samples.dtype.itemsize <= 4)


def in_full_scale(samples: np.ndarray) -> np.ndarray:
    """Samples as floats from -1 to 1: integers are divided by their full scale."""
    return samples / -np.float32(np.iinfo(samples.dtype).min) if samples.dtype.kind == "i" else samples


class Feed:
    """Channel of samples that arrive piece by piece, at the rate of a model; `stream_inputs` gives one per channel.

    sampling_rate: Hz of what comes in; rate: Hz of what is given out.
    """

    def __init__(self, sampling_rate: float, rate: int, name: str = "stream") -> None:
        self._name, self._resampler, self._warned = name, None, False
        if checked_rate(sampling_rate, name) != rate:
            import soxr

            self._resampler = soxr.ResampleStream(sampling_rate, rate, 1, dtype="float32")

    def add(self, samples: Any) -> np.ndarray:
        """Samples (N,), a NumPy array or a tensor -> float32 (n,). UserError for another shape or type."""
        found = array_of(samples) if hasattr(samples, "detach") else np.asarray(samples)
        if found.ndim != 1 or (found.size and not _are_samples(found)):
            raise UserError(f"{self._name}: {found.dtype} of shape {found.shape}; expected {TYPES}, (N,), of one channel")
        found = in_full_scale(found).astype(np.float32)
        bad = ~(np.abs(found) <= LARGEST)
        if bad.any():
            found[bad] = 0.0
            if not self._warned:
                log.warning("%s: samples that are not finite numbers, or beyond %g; read as 0", self._name, LARGEST)
            self._warned = True
        return found if self._resampler is None else self._resampler.resample_chunk(found)

    def finish(self) -> np.ndarray:
        """Return the remaining samples at the end: float32 (n,)."""
        last = np.zeros(0, dtype=np.float32)
        return last if self._resampler is None else self._resampler.resample_chunk(last, last=True)
