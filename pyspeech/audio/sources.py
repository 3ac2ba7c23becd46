"""Sources of samples: files of any format by libsndfile or ffmpeg, pipes, Kaldi archives, memory.

libsndfile (through soundfile) reads WAV, FLAC, Ogg Vorbis and Opus, MP3, AIFF, AU, CAF, W64, VOC and NIST SPHERE; all else
goes through ffmpeg where that is installed.
"""

import codecs
import contextlib
import logging
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from pyspeech.audio.headers import MendedWav, mended_header, promised_frames, unclaimed_seconds
from pyspeech.audio.kinds import HEAD, NO_FILE, is_file
from pyspeech.audio.lhotse_audio import LhotseAudio
from pyspeech.audio.raw import RawFormat
from pyspeech.audio.rxfilenames import extracted, is_extended
from pyspeech.errors import UserError

UNKNOWN_LENGTH = 2**62  # soundfile cannot read what has more frames than this (a FLAC stream that was piped)
log = logging.getLogger(__name__)


class Source(Protocol):
    """Source of audio; `read` returns float32 (up to n frames, channels), empty at the end."""

    name: str
    sampling_rate: int  # Hz
    channels: int

    def read(self, count: int) -> np.ndarray: ...

    def skip(self, count: int) -> None: ...


class ArraySource:
    """Samples in memory."""

    def __init__(self, name, samples, sampling_rate):
        self.name, self.sampling_rate = name, int(sampling_rate)
        if np.issubdtype(samples.dtype, np.integer):
            samples = samples / np.float32(np.iinfo(samples.dtype).max + 1)
        self._samples = samples.reshape(len(samples), -1).astype(np.float32)
        self.channels, self._position = self._samples.shape[1], 0

    def read(self, count: int) -> np.ndarray:
        block = self._samples[self._position : self._position + count].copy()
        self._position += len(block)
        return block

    def skip(self, count: int) -> None:
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

        if not self._file.seekable():  # a codec that cannot
            _read_past(self, count)
            return
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
        if self._count < self._promised - (self.sampling_rate // 100 if self._count else 0):  # 10 ms: no loss that matters
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
        _read_past(self, count)

    def _complaint(self):
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "no message"


def _read_past(source, count):
    while count > 0 and len(block := source.read(min(count, 1 << 20))):
        count -= len(block)


@contextlib.contextmanager
def open_source(path: Path | str | LhotseAudio, raw: RawFormat | None = None) -> Iterator[Source]:
    """Yield a source for a file, "-" (standard input) or a Kaldi rxfilename; raw: what its samples are if it has no header."""
    if isinstance(path, LhotseAudio):
        yield ArraySource(path.where, *path.load())
        return
    text = os.fspath(path)
    if is_extended(text):
        with extracted(text) as copied, _open_file(text, copied, raw, is_stream=True) as source:
            yield source
        return
    if text == "-":
        with open_stream(sys.stdin.buffer, "standard input", raw=raw) as source:
            yield source
        return
    try:
        is_pipe = stat.S_ISFIFO(os.stat(text).st_mode)
    except OSError as error:
        raise UserError(f"{text}: cannot be read: {error.strerror}") from None
    with open(text, "rb") if is_pipe else contextlib.nullcontext() as stream:
        with open_stream(stream, text, raw=raw) if stream else _open_file(text, text, raw) as source:
            yield source


@contextlib.contextmanager
def open_stream(stream: IO[bytes], name: str, start: bytes = b"", raw: RawFormat | None = None) -> Iterator[Source]:
    """Yield a source for what a binary stream brings to its end, which is copied to a temporary file.

    name: to show; start: bytes that were already read from it; raw: as of `open_source`.
    """
    with tempfile.NamedTemporaryFile(suffix=".audio") as copy:
        copy.write(start)
        shutil.copyfileobj(stream, copy, 1 << 20)
        copy.flush()
        with _open_file(name, copy.name, raw, is_stream=True) as source:
            yield source


@contextlib.contextmanager
def _open_file(name, path, raw, is_stream=False):
    """Yield a source for a regular file that is shown as `name`; ffmpeg, which takes samples for this or that, is only asked
    about a stream that starts as audio files do."""
    with contextlib.ExitStack() as stack:
        import soundfile

        _check_file(name, path, raw)
        try:
            file = _open_sndfile(name, path, raw, stack)
        except soundfile.LibsndfileError as error:
            if is_stream and not _looks_like_text(path) and not is_file(_start_of(path, HEAD)):
                raise UserError(NO_FILE.format(name)) from None
            with _open_ffmpeg(name, path, _reason(error)) as source:
                yield source
            return
        if file.frames < UNKNOWN_LENGTH:
            yield _SoundFile(name, file, path)
            return
        with _open_ffmpeg(name, path, "its header does not say how long it is") as source:
            yield source


def _open_sndfile(name, path, raw, stack):
    """A soundfile.SoundFile that is closed with the ExitStack `stack`."""
    import soundfile

    # As bytes: a name need not be valid UTF-8.
    options = {} if raw is None else raw.soundfile_options()
    file = stack.enter_context(soundfile.SoundFile(os.fsencode(path), **options))  # pyright: ignore[reportArgumentType]
    header = mended_header(file, path)
    if header is None:
        if more := unclaimed_seconds(file, path):
            says = f"{file.frames / file.samplerate:.2f} s"
            log.warning("%s: its header says %s, but %.2f s more follow, which are not used", name, says, more)
        return file
    mended = stack.enter_context(soundfile.SoundFile(stack.enter_context(MendedWav(path, header))))
    says, found = file.frames / file.samplerate, mended.frames / mended.samplerate
    reason = "does not hold the size of a file above 4 GiB" if says else "was never finished (a recording that broke off?)"
    log.warning("%s: its header %s and says %.2f s: %.2f s of audio; using what is there", name, reason, says, found)
    return mended


def _check_file(name, path, raw):
    if os.path.isdir(path):
        raise UserError(f"{name}: is a folder; expected an audio file")
    if os.path.getsize(path) == 0:
        raise UserError(f"{name}: is empty (0 bytes)")
    if raw is None and path.lower().endswith((".raw", ".pcm")):
        raise UserError(f"{name}: has no header, so its rate and format are unknown; say what it holds, or convert it to WAV")
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


def _reason(error):
    reason = error.error_string.strip().rstrip(".").lower()
    return "format not recognised" if "does not exist" in reason else reason  # libsndfile says so of a bad MP3 file


def _looks_like_text(path):
    start = _start_of(path, 512)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return all(byte >= 32 or byte in b"\t\r\n\f" for byte in start)


def _start_of(path, count):
    with open(path, "rb") as stream:
        return stream.read(count)
