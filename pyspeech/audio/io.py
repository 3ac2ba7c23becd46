"""Reading audio of any rate, format and length, as mono float32.

Resampling is done by soxr as a stream: the samples are the same however the audio is cut into blocks. What is wrong with a
file is said in one line; what can be mended (a truncated file, samples that are not numbers) is mended with a warning. Where
samples come from: sources.py.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from pyspeech.audio.level import Mixture
from pyspeech.audio.lhotse_audio import LhotseAudio
from pyspeech.audio.raw import RawFormat
from pyspeech.audio.sources import Source, open_source
from pyspeech.errors import UserError

SNDFILE_SUFFIXES = (
    ".wav",
    ".flac",
    ".ogg",
    ".oga",
    ".opus",
    ".mp3",
    ".mp2",
    ".sph",
    ".nist",
    ".aif",
    ".aiff",
    ".aifc",
    ".au",
    ".snd",
    ".caf",
    ".w64",
    ".rf64",
    ".voc",
)
FFMPEG_SUFFIXES = (".m4a", ".m4b", ".mp4", ".aac", ".wma", ".webm", ".mka", ".mkv", ".mov", ".avi", ".amr", ".3gp", ".ac3")
LARGEST = 1e18  # of a sample; the square of a larger one, or what a filter makes of it, may not be finite
UNNOTICED = 0.1  # seconds that a part may go on behind the end of its file: times are rounded
log = logging.getLogger(__name__)


def read_audio(path: Path | str, sampling_rate: int | None = None, channel: int | None = None) -> tuple[np.ndarray, int]:
    """Read a whole file.

    path: a file, "-" (standard input), or a Kaldi rxfilename (`command |`, `x.ark:123`). sampling_rate: Hz to resample
    to; None keeps the file's. channel: counted from 0; None takes the mean of all.
    Returns (samples float32 (N,), sampling rate in Hz). UserError for what cannot be read or holds no samples.
    """
    with open_source(path) as source:
        blocks = list(stream_source(source, sampling_rate or source.sampling_rate, channel, 60.0, 0.0, None))
        samples = np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.float32)
        return samples, sampling_rate or source.sampling_rate


def read_channels(path: Path | str) -> tuple[np.ndarray, int]:
    """Read a whole file with its channels apart: (samples float32 (channels, N), sampling rate in Hz). As `read_audio`."""
    with open_source(path) as source:
        return all_channels(source), source.sampling_rate


def count_channels(path: Path | str | LhotseAudio) -> int:
    """Count the channels of a file; path as of `read_audio`, but for standard input, which can be read once."""
    with open_source(path) as source:
        return source.channels


def all_channels(source: Source) -> np.ndarray:
    """Read the rest of a source with its channels separate: float32 (channels, N)."""
    blocks = []
    while len(block := source.read(1 << 20)):
        blocks.append(block)
    if not blocks:
        raise UserError(f"{source.name}: holds no samples")
    return mended(np.concatenate(blocks).T, source.name)


def mended(samples: np.ndarray, name: str) -> np.ndarray:
    """Samples of floats with 0 for those that are not finite or beyond LARGEST, with a warning; itself where there are none."""
    bad = ~(np.abs(samples) <= LARGEST)
    if bad.any():
        log.warning("%s: samples not finite or beyond %g: %d; read as 0", name, LARGEST, bad.sum())
        samples = np.where(bad, 0.0, samples).astype(samples.dtype)
    return samples


def stream_audio(
    path: Path | str | LhotseAudio,
    sampling_rate: int = 8000,
    channel: int | None = None,
    block_seconds: float = 60.0,
    start: float = 0.0,
    duration: float | None = None,
    raw: RawFormat | None = None,
) -> Iterator[np.ndarray]:
    """Read a file in blocks, in bounded memory; joined, the blocks are what `read_audio` returns.

    As `read_audio`; block_seconds: length of a block before resampling. start, duration: the part of the file to read,
    in seconds; None reads to the end. raw: what the samples of a file without a header are. Yields float32 (n,); nothing
    where resampling leaves no sample (a file of one sample).
    """
    with open_source(path, raw) as source:
        yield from stream_source(source, sampling_rate, channel, block_seconds, start, duration)


def find_audio(paths: Iterable[Path | str]) -> list[Path]:
    """List audio files: a file stands for itself, a folder for the audio files in it and below, sorted by path.

    Links are followed; hidden files are passed over. Returns a list of Path, without repetitions. UserError for a path
    that does not exist and for a folder without audio.
    """
    found = []
    for name in paths:
        if not str(name):
            raise UserError("'': expected the name of a recording or a folder; is a variable of the shell empty?")
        path = Path(name)
        if path.is_dir():
            inside = find_files(path, SNDFILE_SUFFIXES + FFMPEG_SUFFIXES)
            if not inside:
                raise UserError(f"{path}: no audio files in this folder or below (such as *.wav, *.flac, *.mp3)")
            found += inside
        elif str(path) == "-" or path.exists():
            found.append(path)
        else:
            raise UserError(f"{path}: no such file or folder")
    return list(dict.fromkeys(found))


def find_files(folder: Path, suffixes: Iterable[str]) -> list[Path]:
    """The files in a folder and below whose ending, in small letters, is one of `suffixes`; sorted, as `find_audio`."""
    return sorted(_walk(folder, suffixes, set()))


def _walk(folder, suffixes, visited):
    identity = os.path.realpath(folder)
    if identity in visited:  # a link that leads back up
        return
    visited.add(identity)
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _walk(entry, suffixes, visited)
        elif entry.suffix.lower() in suffixes:
            yield entry


# From a source to mono blocks at the rate asked for.


def stream_source(
    source: Source, sampling_rate: int, channel: int | None, block_seconds: float, start: float, duration: float | None
) -> Iterator[np.ndarray]:
    """Yield mono blocks from a source.

    The other arguments are those of `stream_audio`.
    """
    if channel is not None and not 0 <= channel < source.channels:
        raise UserError(f"{source.name}: no channel {channel}; the file has {source.channels}, counted from 0")
    if start > 0:
        source.skip(round(start * source.sampling_rate))
    frames = None if duration is None else round(duration * source.sampling_rate)
    blocks = _to_mono(source, channel, max(1, round(block_seconds * source.sampling_rate)), frames)
    if sampling_rate == source.sampling_rate:
        yield from blocks
    else:
        yield from _resample(blocks, source.sampling_rate, sampling_rate)


def _to_mono(source, channel, block_length, limit):
    """Yield the next `limit` frames (None: all) as float32 (n,), with every sample finite and at most LARGEST."""
    position, cleaned, first_bad, mixture = 0, 0, None, Mixture()
    while limit is None or position < limit:
        frames = source.read(block_length if limit is None else min(block_length, limit - position))
        if len(frames) == 0:
            break
        if channel is None and source.channels > 1:
            samples = mixture.add(frames)
        else:
            samples = np.ascontiguousarray(frames[:, channel or 0])
        bad = ~(np.abs(samples) <= LARGEST)
        if bad.any():
            first_bad = first_bad if cleaned else position + int(np.argmax(bad))
            cleaned += int(bad.sum())
            samples[bad] = 0.0
        position += len(frames)
        yield samples
    if position == 0:
        raise UserError(f"{source.name}: holds no samples")
    if limit is not None and limit - position > UNNOTICED * source.sampling_rate:
        log.warning(
            "%s: ends %.2f s before the part that was asked for does, which has %.2f s",
            source.name,
            (limit - position) / source.sampling_rate,
            limit / source.sampling_rate,
        )
    if cleaned:
        log.warning(
            "%s: samples not finite or beyond %g: %d (the first %.3f s after the start); read as 0",
            source.name,
            LARGEST,
            cleaned,
            first_bad / source.sampling_rate,
        )
    if mixture.cancels:
        log.warning("%s: its channels cancel each other when mixed; choose one of them (--channel)", source.name)


def _resample(blocks, rate_in, rate_out):
    import soxr

    resampler = soxr.ResampleStream(rate_in, rate_out, 1, dtype="float32")
    try:
        for block in blocks:
            resampled = resampler.resample_chunk(block)
            if len(resampled):
                yield resampled
        rest = resampler.resample_chunk(np.zeros(0, dtype=np.float32), last=True)
        if len(rest):
            yield rest
    finally:  # an exception may keep this frame to the end of the program, where soxr complains of what is left of it
        del resampler
