"""Reading audio of any rate, format and length, as mono float32.

libsndfile (through soundfile) reads WAV, FLAC, Ogg Vorbis and Opus, MP3, AIFF, AU, CAF, W64 and NIST SPHERE; all else
goes through ffmpeg where that is installed. Resampling is done by soxr as a stream: the samples are the same however
the audio is cut into blocks. What is wrong with a file is said in one line; what can be mended (a truncated file,
samples that are not numbers) is mended with a warning.
"""

import contextlib
import logging
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from pyspeech.audio.headers import UnfinishedWav, promised_frames, unfinished_size
from pyspeech.errors import UserError

SNDFILE_SUFFIXES = (
    ".wav",
    ".flac",
    ".ogg",
    ".oga",
    ".opus",
    ".mp3",
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
)
FFMPEG_SUFFIXES = (".m4a", ".mp4", ".aac", ".wma", ".webm", ".mkv", ".mov", ".avi", ".amr", ".3gp", ".ac3")
LARGEST = 1e18  # of a sample; the square of a larger one, or what a filter makes of it, may not be finite
UNKNOWN_LENGTH = 2**62  # soundfile cannot read what has more frames than this (a FLAC stream that was piped)
log = logging.getLogger(__name__)


def read_audio(path: Path | str, sampling_rate: int | None = None, channel: int | None = None) -> tuple[np.ndarray, int]:
    """Read a whole file.

    path: a file, "-" (standard input), or a Kaldi rxfilename (`command |`, `x.ark:123`). sampling_rate: Hz to resample
    to; None keeps the file's. channel: counted from 0; None takes the mean of all.
    Returns (samples float32 (N,), sampling rate in Hz). UserError for what cannot be read or holds no samples.
    """
    with _open(path) as source:
        blocks = list(stream_source(source, sampling_rate or source.sampling_rate, channel, 60.0, 0.0, None))
        samples = np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.float32)
        return samples, sampling_rate or source.sampling_rate


def read_channels(path: Path | str) -> tuple[np.ndarray, int]:
    """Read a whole file with its channels apart: (samples float32 (channels, N), sampling rate in Hz). As `read_audio`."""
    with _open(path) as source:
        blocks = []
        while len(block := source.read(1 << 20)):
            blocks.append(block)
        if not blocks:
            raise UserError(f"{source.name}: holds no samples")
        samples = np.concatenate(blocks).T
        bad = ~(np.abs(samples) <= LARGEST)
        if bad.any():
            log.warning("%s: %d samples are not finite numbers, or beyond %g; read as 0", source.name, bad.sum(), LARGEST)
            samples[bad] = 0.0
        return samples, source.sampling_rate


def stream_audio(
    path: Path | str,
    sampling_rate: int = 8000,
    channel: int | None = None,
    block_seconds: float = 60.0,
    start: float = 0.0,
    duration: float | None = None,
) -> Iterator[np.ndarray]:
    """Read a file in blocks, in bounded memory; joined, the blocks are what `read_audio` returns.

    As `read_audio`; block_seconds: length of a block before resampling. start, duration: the part of the file to read,
    in seconds; None reads to the end. Yields float32 (n,); nothing where resampling leaves no sample (a file of one
    sample).
    """
    with _open(path) as source:
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


class Source(Protocol):
    """Where audio comes from; `read` gives float32 (up to n frames, channels), which is empty at the end."""

    name: str
    sampling_rate: int  # Hz
    channels: int

    def read(self, count: int) -> np.ndarray: ...

    def skip(self, count: int) -> None: ...


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
    position, cleaned, first_bad = 0, 0, None
    while limit is None or position < limit:
        frames = source.read(block_length if limit is None else min(block_length, limit - position))
        if len(frames) == 0:
            break
        if channel is None and source.channels > 1:
            samples = frames @ np.full(source.channels, 1 / source.channels, dtype=np.float32)
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
    if cleaned:
        log.warning(
            "%s: %d samples are not finite numbers, or beyond %g (the first %.3f s after the start); read as 0",
            source.name,
            cleaned,
            LARGEST,
            first_bad / source.sampling_rate,
        )


def _resample(blocks, rate_in, rate_out):
    import soxr

    resampler = soxr.ResampleStream(rate_in, rate_out, 1, dtype="float32")
    for block in blocks:
        resampled = resampler.resample_chunk(block)
        if len(resampled):
            yield resampled
    rest = resampler.resample_chunk(np.zeros(0, dtype=np.float32), last=True)
    if len(rest):
        yield rest


class ArraySource:
    """Samples in memory: what kaldiio returns."""

    def __init__(self, name, samples, sampling_rate):
        self.name, self.sampling_rate = name, int(sampling_rate)
        if np.issubdtype(samples.dtype, np.integer):
            samples = samples / np.float32(np.iinfo(samples.dtype).max + 1)
        self._samples = samples.reshape(len(samples), -1).astype(np.float32)
        self.channels, self._position = self._samples.shape[1], 0

    def read(self, count):
        block = self._samples[self._position : self._position + count].copy()
        self._position += len(block)
        return block

    def skip(self, count):
        self._position = count


class _SoundFile:
    """What libsndfile reads."""

    READ = 16384  # frames asked of libsndfile at once: where decoding fails, at most so many good ones are lost

    def __init__(self, name, file, path):
        self.name, self._file = name, file
        self.sampling_rate, self.channels = file.samplerate, file.channels
        self._count, self._promised, self._ended = 0, promised_frames(file, path), False

    def skip(self, count):
        import soundfile

        try:
            self._count = self._file.seek(min(count, self._file.frames))
        except soundfile.LibsndfileError as error:
            raise UserError(f"{self.name}: damaged, cannot go to frame {count} ({_reason(error)})") from None

    def read(self, count):
        parts, length = [np.zeros((0, self.channels), dtype=np.float32)], 0
        while length < count and not self._ended:
            parts.append(self._read_some(min(self.READ, count - length)))
            length += len(parts[-1])
            self._ended = len(parts[-1]) == 0
        self._count += length
        if length == 0:
            self._complain()
        return np.concatenate(parts)

    def _read_some(self, count):
        import soundfile

        try:
            return self._file.read(count, dtype="float32", always_2d=True)
        except soundfile.LibsndfileError:
            return np.zeros((0, self.channels), dtype=np.float32)

    def _complain(self):
        if self._count < self._promised:
            says = f"its header says {self._promised / self.sampling_rate:.2f} s"
            if self._count == 0:
                raise UserError(f"{self.name}: truncated or damaged: holds no samples that can be read, {says}")
            log.warning(
                "%s: truncated or damaged: %.2f s of audio, %s; using what is there",
                self.name,
                self._count / self.sampling_rate,
                says,
            )


class _Ffmpeg:
    """What ffmpeg decodes, as an AU stream of 32-bit floats."""

    def __init__(self, name, process, messages):
        self.name, self._process, self._messages = name, process, messages
        header = process.stdout.read(24)
        if len(header) < 24 or header[:4] != b".snd":
            process.wait()
            raise UserError(f"{name}: no audio that ffmpeg could decode ({self._complaint()})")
        offset, _, _, self.sampling_rate, self.channels = struct.unpack(">5I", header[4:])
        process.stdout.read(offset - 24)

    def read(self, count):
        data = self._process.stdout.read(count * self.channels * 4)
        whole_frames = len(data) // (4 * self.channels)
        block = np.frombuffer(data, dtype=">f4", count=whole_frames * self.channels).astype(np.float32)
        if len(data) == 0 and self._process.wait() != 0:
            log.warning("%s: ffmpeg stopped early (%s); using what it decoded", self.name, self._complaint())
        return block.reshape(-1, self.channels)

    def skip(self, count):
        while count > 0 and len(block := self.read(min(count, 1 << 20))):
            count -= len(block)

    def _complaint(self):
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "no message"


@contextlib.contextmanager
def _open(path):
    """Yield a source for a file, standard input or a Kaldi rxfilename."""
    text = os.fspath(path)
    if text.rstrip().endswith("|") or re.search(r"\.ark:\d+$", text):
        yield _open_kaldi(text)
        return
    with _seekable(text) as (name, file_path), contextlib.ExitStack() as stack:
        import soundfile

        _check_file(name, file_path)
        try:
            file = _open_sndfile(name, file_path, stack)
        except soundfile.LibsndfileError as error:
            with _open_ffmpeg(name, file_path, _reason(error)) as source:
                yield source
            return
        if file.frames < UNKNOWN_LENGTH:
            yield _SoundFile(name, file, file_path)
            return
        with _open_ffmpeg(name, file_path, "its header does not say how long it is") as source:
            yield source


def _open_sndfile(name, path, stack):
    """A soundfile.SoundFile that is closed with the ExitStack `stack`."""
    import soundfile

    # As bytes: a name need not be valid UTF-8.
    file = stack.enter_context(soundfile.SoundFile(os.fsencode(path)))  # pyright: ignore[reportArgumentType]
    size_at = unfinished_size(file, path)
    if not size_at:
        return file
    stream = stack.enter_context(UnfinishedWav(path, size_at))
    file = stack.enter_context(soundfile.SoundFile(stream))
    log.warning(
        "%s: its header was never finished (a recording that broke off?) and says 0.00 s: %.2f s of audio; using what is there",
        name,
        file.frames / file.samplerate,
    )
    return file


@contextlib.contextmanager
def _seekable(path):
    """Yield (name to show, path of a regular file); pipes and standard input are copied to a temporary file first."""
    try:
        is_pipe = path == "-" or stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if not is_pipe:
        yield path, path
        return
    with tempfile.NamedTemporaryFile(suffix=".audio") as copy:
        with contextlib.nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as stream:
            shutil.copyfileobj(stream, copy, 1 << 20)
        copy.flush()
        yield "standard input" if path == "-" else path, copy.name


def _check_file(name, path):
    if os.path.isdir(path):
        raise UserError(f"{name}: is a folder; expected an audio file")
    if os.path.getsize(path) == 0:
        raise UserError(f"{name}: is empty (0 bytes)")
    if path.lower().endswith((".raw", ".pcm")):
        raise UserError(f"{name}: has no header, so its rate and format are unknown; convert it to WAV first")
    try:
        open(path, "rb").close()
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def _open_ffmpeg(name, path, reason):
    """What libsndfile refused for `reason`, through ffmpeg; UserError where it is missing or refuses as well."""
    if not shutil.which("ffmpeg"):
        hint = (
            "; ffmpeg, which may know the format, is not installed"
            if not _looks_like_text(path)
            else "; it looks like a text file"
        )
        raise UserError(f"{name}: cannot be read as audio: {reason}{hint}")
    command = ["ffmpeg", "-nostdin", "-v", "error", "-i", path, "-map", "0:a:0", "-f", "au", "-c:a", "pcm_f32be", "-"]
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=messages)
        try:
            yield _Ffmpeg(name, process, messages)
        finally:
            process.kill()
            process.stdout.close()  # pyright: ignore[reportOptionalMemberAccess]
            process.wait()


def _open_kaldi(rxfilename):
    import kaldiio

    try:
        value = kaldiio.load_mat(rxfilename)
    except Exception as error:  # kaldiio raises whatever its parts raise
        raise UserError(f"{rxfilename}: kaldiio cannot read this as audio ({type(error).__name__}: {error})") from None
    if not (isinstance(value, tuple) and len(value) == 2):
        raise UserError(f"{rxfilename}: holds a matrix, not audio")
    first, second = value
    sampling_rate, samples = (first, second) if np.ndim(first) == 0 else (second, first)  # pyright: ignore[reportArgumentType]
    return ArraySource(rxfilename, np.asarray(samples), sampling_rate)


def _reason(error):
    reason = error.error_string.strip().rstrip(".").lower()
    return "format not recognised" if "does not exist" in reason else reason  # libsndfile says so of a bad MP3 file


def _looks_like_text(path):
    with open(path, "rb") as stream:
        start = stream.read(512)
    return all(byte >= 32 or byte in b"\t\r\n\f" for byte in start)
