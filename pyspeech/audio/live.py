"""Audio while it comes in through a pipe, from sox, arecord, parec or ffmpeg: a WAV stream, or raw samples.

What else starts as an audio file does is read to its end first. Nothing is taken for raw samples unless that is said.
"""

import contextlib
import logging
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader

import numpy as np

from pyspeech.audio import io
from pyspeech.audio.kinds import HEAD, NO_FILE, is_file
from pyspeech.audio.raw import RawFormat
from pyspeech.audio.sources import open_stream
from pyspeech.errors import UserError

NAME = "standard input"
# (format tag, bits) of WAV streams that are taken as they come: encoding
SAMPLES = {
    (1, 8): "u8",
    (1, 16): "s16",
    (1, 24): "s24",
    (1, 32): "s32",
    (3, 32): "f32",
    (3, 64): "f64",
    (6, 8): "alaw",
    (7, 8): "mulaw",
}
EXTENSIBLE = 0xFFFE  # the tag that says: the format stands further on
ENDLESS = 0x7F000000  # sizes from here on are placeholders of programs that do not know how long they will record
log = logging.getLogger(__name__)


def stream_live(
    stream: BufferedReader,
    sampling_rate: int,
    raw: RawFormat | None = None,
    channel: int | None = None,
    block_seconds: float = 0.3,
) -> Iterator[np.ndarray]:
    """Yield what a buffered binary stream brings as soon as it is there: float32 (n,), mono, at `sampling_rate` Hz.

    Other audio files than WAV, and WAV of other codecs than PCM, floats, A-law and mu-law, are read to their end first, and a
    warning says so. raw: what the samples of a stream without a header are. channel: counted from 0; None takes the mean of
    all. block_seconds: longest block. UserError for what is no audio and where no sample comes.
    """
    with _open_live(stream, raw) as source:
        yield from io.stream_source(source, sampling_rate, channel, block_seconds, 0.0, None)


def _open_live(stream, raw):
    """A context that gives a Source."""
    if raw is not None:
        return contextlib.nullcontext(LiveSource(stream, raw))
    start = stream.read(HEAD)
    if start[:4] == b"RIFF" and start[8:] in (b"WAVE", b""):
        header = read_header(stream, start)
        if header.format is not None:
            return contextlib.nullcontext(LiveSource(stream, header.format, header.size))
        start = header.content
    elif not start:
        raise UserError(f"{NAME}: holds no samples")
    elif not is_file(start):
        raise UserError(NO_FILE.format(NAME))
    log.warning("%s: is read to its end first; only WAV (PCM, floats, A-law, mu-law) and raw samples can be streamed", NAME)
    return open_stream(stream, NAME, start)


@dataclass(frozen=True)
class LiveHeader:
    """The header of a WAV stream: its bytes, what its samples are (None: no RawFormat), and how many bytes (None: endless)."""

    content: bytes
    format: RawFormat | None
    size: int | None


def read_header(stream: BufferedReader, start: bytes) -> LiveHeader:
    """Read up to the samples of a WAV stream, of which `start` was read. UserError where it ends before."""
    content, found = start, None

    def take(count):
        nonlocal content
        data = stream.read(count)
        content += data
        if len(data) < count:
            raise UserError(f"{NAME}: ends within the header of a WAV stream")
        return data

    take(max(0, HEAD - len(start)))
    while True:
        name, size = struct.unpack("<4sI", take(8))
        if name == b"data":
            return LiveHeader(content, found, size if 0 < size < ENDLESS else None)
        body = take(size + size % 2)
        if name == b"fmt ":
            found = _format_of(body)


def _format_of(body):
    """The RawFormat of the body of a chunk "fmt "; None of a codec that is none."""
    if len(body) < 16:
        raise UserError(f"{NAME}: a damaged header of a WAV stream: its format has {len(body)} bytes, expected at least 16")
    tag, channels, rate, _, _, bits = struct.unpack("<HHIIHH", body[:16])
    if tag == EXTENSIBLE and len(body) >= 26:
        (tag,) = struct.unpack("<H", body[24:26])
    known = (tag, bits) in SAMPLES and channels and rate
    return RawFormat(rate, SAMPLES[tag, bits], channels) if known else None


class LiveSource:
    """A Source of samples that come in; `read` gives what is there, as soon as there is a frame.

    size: bytes of samples, as a header has it; None: to the end.
    """

    def __init__(self, stream: BufferedReader, raw: RawFormat, size: int | None = None) -> None:
        self.name, self.sampling_rate, self.channels = NAME, raw.sampling_rate, raw.channels
        self._stream, self._raw, self._left = stream, raw, size
        self._rest = b""  # bytes that were read but not given out

    def read(self, count: int) -> np.ndarray:
        size = self._raw.frame_bytes
        if self._left is not None and self._left < size:
            self._look_behind(self._left)
        wanted = count * size if self._left is None else min(count * size, self._left - self._left % size)
        data = self._rest
        while len(data) < size and wanted:
            more = self._stream.read1(wanted - len(data))
            if not more:
                break
            data += more
        whole = min(len(data), wanted) // size * size
        data, self._rest = data[:whole], data[whole:]
        if self._left is not None:
            self._left -= whole
        return self._raw.decode(data)

    def _look_behind(self, left):
        """Go on where the header's size is over but samples follow: it was one modulo 2^32."""
        partial = self._rest + self._stream.read(left - len(self._rest))  # a frame may go on behind that size
        following = self._stream.read(8)
        if len(following) < 8 or following[:4].strip().isalnum():  # the end, or another chunk
            self._left, self._rest = 0, b""
            return
        log.warning("%s: has more audio than its header says (a WAV above 4 GiB?); using all of it", self.name)
        self._left, self._rest = None, partial + following

    def skip(self, count: int) -> None:
        while count > 0 and (read := len(self.read(min(count, 1 << 16)))):
            count -= read
