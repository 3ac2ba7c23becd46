"""Audio while it comes in through a pipe, from sox, arecord, parec or ffmpeg: raw 16-bit PCM, or a WAV stream."""

import struct
from collections.abc import Iterator
from io import BufferedReader

import numpy as np

from pyspeech.audio import io
from pyspeech.errors import UserError

# What audio files other than WAV start with; they are read whole, by pyspeech.audio.io.
FILES = (b"fLaC", b"OggS", b"ID3", b"FORM", b".snd", b"caff", b"NIST", b"RF64")
# (format tag, bits) of WAV: type. 24 bits are three bytes.
SAMPLES = {(1, 8): "u1", (1, 16): "<i2", (1, 24): "3u1", (1, 32): "<i4", (3, 32): "<f4"}
EXTENSIBLE = 0xFFFE  # the tag that says: the format stands further on
ENDLESS = 0x7FFF0000  # sizes from here on are placeholders of programs that do not know how long they will record


def is_file(stream: BufferedReader, live: bool) -> bool:
    """Whether a buffered binary stream starts as an audio file that is to be read whole; waits for its first bytes.

    live: whether WAV is to be taken as it comes, by `stream_live`, which knows PCM alone.
    """
    start = stream.peek(4)[:4]
    return start.startswith(FILES) or not live and start == b"RIFF"


def stream_live(
    stream: BufferedReader, sampling_rate: int, raw_rate: int = 16000, channel: int | None = None, block_seconds: float = 0.3
) -> Iterator[np.ndarray]:
    """Yield what a buffered binary stream brings as soon as it is there: float32 (n,), mono, at `sampling_rate` Hz.

    A stream that starts as WAV is taken as its header says; any other as 16-bit PCM (signed, little-endian, mono) at
    raw_rate Hz. channel: counted from 0; None takes the mean of all. block_seconds: longest block. UserError for a
    header that is not understood and where no sample comes.
    """
    source = PcmStream(stream, raw_rate)  # from the start on, so that it need not skip
    yield from io.stream_source(source, sampling_rate, channel, block_seconds, 0.0, None)  # pyright: ignore[reportArgumentType]


class PcmStream:
    """A source as pyspeech.audio.io has them: name, sampling_rate (Hz), channels, read(n) -> float32 (n, channels)."""

    def __init__(self, stream: BufferedReader, raw_rate: int, name: str = "standard input") -> None:
        self.name, self._stream = name, stream
        self.sampling_rate, self.channels, self._type, self._left = raw_rate, 1, np.dtype("<i2"), None
        self._rest = stream.read(4)  # bytes that were read but not given out
        if self._rest == b"RIFF":
            self._read_header()
            self._rest = b""

    def _read_header(self):
        kind = self._take(8)[4:]
        while kind == b"WAVE":
            name, size = struct.unpack("<4sI", self._take(8))
            if name == b"data":
                self._left = size if 0 < size < ENDLESS else None
                return
            body = self._take(size + size % 2)
            if name == b"fmt ":
                self._read_format(body)
        raise UserError(f"{self.name}: starts with RIFF but is no WAV")

    def _read_format(self, body):
        tag, self.channels, self.sampling_rate, _, _, bits = struct.unpack("<HHIIHH", body[:16])
        if tag == EXTENSIBLE and len(body) >= 26:
            (tag,) = struct.unpack("<H", body[24:26])
        if (tag, bits) not in SAMPLES or not self.channels or not self.sampling_rate:
            raise UserError(
                f"{self.name}: a WAV stream of format {tag} with {bits} bits, {self.channels} channels, "
                f"{self.sampling_rate} Hz; expected PCM of 8, 16, 24 or 32 bits or 32-bit floats"
            )
        self._type = np.dtype(SAMPLES[tag, bits])

    def _take(self, count):
        data = self._stream.read(count)
        if len(data) < count:
            raise UserError(f"{self.name}: ends within the header of a WAV stream")
        return data

    def read(self, count: int) -> np.ndarray:
        """Up to `count` frames, as soon as there is one; none at the end."""
        size = self._type.itemsize * self.channels
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
        samples = np.frombuffer(data, dtype=self._type)
        if samples.ndim == 2:  # 24 bits: the upper three bytes of 32
            samples = np.pad(samples, ((0, 0), (1, 0))).reshape(-1).view("<i4")
        samples = samples.reshape(-1, self.channels)
        if samples.dtype.kind == "f":
            return samples.astype(np.float32)
        offset = 128 if samples.dtype.kind == "u" else 0
        return (samples.astype(np.float32) - offset) / np.float32(2 ** (8 * samples.dtype.itemsize - 1))
