"""Lengths of audio files from their headers, for formats whose length libsndfile does not report.

libsndfile cuts the length in a header to the file's size, so that a truncated file looks whole; it takes a WAV file
whose header was never finished, as a recorder that was killed leaves it, for an empty one; and it reads a WAV file above
4 GiB as far as its header can say.
"""

from __future__ import annotations

import io
import os
import re
import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import soundfile

PLACEHOLDER = 0x7F000000  # sizes from here on are written where the length is not known (audio that was piped)
PLACEHOLDER_4G = 0xFFFFFF00  # the same, of programs that write the largest number there is
LIMIT = 1 << 32  # the size that a WAV header has no room for
LEAST_UNCLAIMED = 0.5  # seconds; less behind the samples of a WAV file is padding or a note of some program
OPEN_SIZE = 1 << 62  # of W64 and RF64: from here on, programs that write to a pipe mean that they do not know
TAIL = 4096  # bytes behind the samples that are looked at
MOST_BEHIND = 1 << 20  # bytes of other chunks behind the samples of a WAV file
FORM_BYTES = 20  # of a chunk `fmt ` that are looked at
IMA4_FRAMES = 64  # of a block of AIFF, whose header counts blocks
BLOCK_CODECS = ("IMA_ADPCM", "MS_ADPCM", "GSM610")  # whose `fmt ` says how many frames a block has
AU_BYTES = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 8, 27: 1}  # bytes a sample, by the encoding's number


def promised_frames(file: soundfile.SoundFile, path: str) -> int:
    """The number of frames that a file's header says it has; 0 where it does not say.

    file: the file at `path` as soundfile.SoundFile. Of MP3, which has an estimate alone, it is 0; of Ogg it is what is there.
    """
    reader = {
        "WAV": _wav_frames,
        "WAVEX": _wav_frames,
        "RF64": _rf64_frames,
        "W64": _w64_frames,
        "NIST": _sphere_frames,
        "AU": _au_frames,
        "AIFF": _aiff_frames,
    }.get(file.format)
    if reader:
        with open(path, "rb") as stream:
            return reader(stream, file.subtype)
    return 0 if file.format in ("MP3", "MPEG") else file.frames


def _wav_frames(stream, subtype):
    form, size = _to_wav_data(stream)
    return _frames_of(form, subtype, size) if size < PLACEHOLDER else 0


def _to_wav_data(stream):
    """Go to where the samples of a WAV file begin: (the chunk `fmt `, size of the data as the header has it), or b"" and 0."""
    form = b""
    stream.seek(12)
    while len(header := stream.read(8)) == 8:
        name, size = struct.unpack("<4sI", header)
        if name == b"data":
            return form, size
        body = stream.read(min(size, FORM_BYTES))
        form = body if name == b"fmt " else form
        stream.seek(size + size % 2 - len(body), os.SEEK_CUR)
    return b"", 0


def _rf64_frames(stream, subtype):
    """The chunk ds64, which is the first one, has the size of the data."""
    stream.seek(28)
    (size,) = struct.unpack("<Q", stream.read(8).ljust(8, b"\0"))
    form, short = _to_wav_data(stream)
    size = size if short == LIMIT - 1 else short
    return _frames_of(form, subtype, size) if size < OPEN_SIZE else 0


def _w64_frames(stream, subtype):
    """Chunks have 16 bytes for a name, whose first four are those of WAV, and 8 for a size, which counts these 24."""
    form = b""
    stream.seek(40)
    while len(header := stream.read(24)) == 24:
        size = struct.unpack("<Q", header[16:])[0] - 24
        if not 0 <= size < OPEN_SIZE:
            return 0
        if header[:4] == b"data":
            return _frames_of(form, subtype, size)
        body = stream.read(min(size, FORM_BYTES))
        form = body if header[:4] == b"fmt " else form
        stream.seek(size + -size % 8 - len(body), os.SEEK_CUR)
    return 0


def _block_align(form):
    """Bytes of a frame, or of a block of a codec, from a chunk `fmt `."""
    return struct.unpack("<H", form[12:14])[0] if len(form) >= 14 else 0


def _frames_of(form, subtype, size):
    """Frames in so many bytes; 0 where a chunk `fmt ` does not say how many a block of its codec has."""
    align, frames = _block_align(form), 0
    if subtype.startswith("PCM") or subtype in ("FLOAT", "DOUBLE", "ULAW", "ALAW"):
        frames = 1
    elif subtype in BLOCK_CODECS and len(form) >= FORM_BYTES:
        frames = struct.unpack("<H", form[18:20])[0]
    return size // align * frames if align else 0


def leave_size_open(stream: IO[bytes]) -> None:
    """Let the header of a WAV file that says 0 samples, though some follow, say that it does not know how many: so do programs
    that write to a pipe and cannot go back. In a file, it is a recording that broke off."""
    stream.seek(0)
    if stream.read(4) != b"RIFF":
        return
    form, size = _to_wav_data(stream)
    start = stream.tell()
    if _block_align(form) and not size and stream.seek(0, os.SEEK_END) > start:
        stream.seek(start - 4)
        stream.write(b"\xff" * 4)


def _sphere_frames(stream, _):
    found = re.search(rb"^sample_count -i (\d+)", stream.read(1024), re.MULTILINE)
    return int(found.group(1)) if found else 0


def _au_frames(stream, _):
    magic, _, size, encoding, _, channels = struct.unpack(">4s5I", stream.read(24))
    if magic != b".snd" or encoding not in AU_BYTES or size >= PLACEHOLDER:
        return 0
    return size // (AU_BYTES[encoding] * channels)


def _aiff_frames(stream, subtype):
    _, whole, _ = struct.unpack(">4sI4s", stream.read(12))
    while whole < PLACEHOLDER and len(header := stream.read(8)) == 8:
        name, size = struct.unpack(">4sI", header)
        if name == b"COMM":
            return struct.unpack(">hI", stream.read(6))[1] * (IMA4_FRAMES if subtype == "IMA_ADPCM" else 1)
        stream.seek(size + size % 2, os.SEEK_CUR)
    return 0


@dataclass(frozen=True)
class WavHeader:
    """The header that a WAV file should have: its bytes, and where in the file the samples begin that follow it."""

    content: bytes
    start: int


def mended_header(file: soundfile.SoundFile, path: str) -> WavHeader | None:
    """The true header of a WAV file whose own does not say how many samples follow; None for others.

    That is: the size 0 of a recorder that was killed; and of files above 4 GiB, where a header has no room for their size,
    the size modulo 2^32 or a placeholder, as programs leave them that write to a pipe. file: the file at `path`.
    """
    if file.format not in ("WAV", "WAVEX") or file.frames and os.path.getsize(path) < PLACEHOLDER:
        return None
    with open(path, "rb") as stream:
        form, size = _to_wav_data(stream)
        start = stream.tell()
        left = stream.seek(0, os.SEEK_END) - start
        true = _true_size(stream, start, size, left) if _block_align(form) else size
        stream.seek(0)
        return None if true == size else WavHeader(_with_size(stream.read(start), true), start)


def _true_size(stream, start, size, left):
    """Bytes of samples, of which the header says `size`, in a file with `left` bytes from `start` on."""
    wrapped, behind = divmod(left - size, LIMIT)
    if wrapped > 0 and behind < MOST_BEHIND and size < PLACEHOLDER_4G:
        return size + wrapped * LIMIT
    if size and not PLACEHOLDER <= size < left:
        return size
    stream.seek(start + size + size % 2)
    name, length = struct.unpack("<4sI", stream.read(8).ljust(8, b"\0"))
    following = name.strip().isalnum() and length <= left - size - 8  # another chunk: the size is right
    return size if following or left - size < 8 else left


def unclaimed_seconds(file: soundfile.SoundFile, path: str) -> float:
    """Seconds of samples of a WAV file behind those that its header claims; 0 where they are fewer than LEAST_UNCLAIMED.

    file: the file at `path`.
    """
    if file.format not in ("WAV", "WAVEX"):
        return 0.0
    with open(path, "rb") as stream:
        form, size = _to_wav_data(stream)
        start = stream.tell()
        left = stream.seek(0, os.SEEK_END) - start - size
        if not form or not 0 < size < PLACEHOLDER or left <= 0:
            return 0.0
        seconds = left / size * file.frames / file.samplerate
        stream.seek(start + size)
        return seconds if seconds >= LEAST_UNCLAIMED and not _is_note(stream.read(TAIL)) else 0.0


def _is_note(tail):
    """Whether what stands behind the samples of a WAV file is none: it begins as a chunk (the byte that makes their number even
    may be missing) or as a tag of MP3, or is padding."""
    names = (tail[at : at + 4] for at in (0, 1))
    return not any(tail) or tail.startswith(b"ID3") or any(all(0x20 <= byte < 0x7F for byte in name) for name in names)


def _with_size(header, size):
    """A WAV header up to its samples, with their size in bytes; RF64 (EBU Tech 3306) where WAV has no room for it."""
    if size < PLACEHOLDER_4G:
        return header[:-4] + struct.pack("<I", size)
    sizes = struct.pack("<4sI3QI", b"ds64", 28, len(header) + 28 + size, size, 0, 0)
    return b"RF64" + b"\xff" * 4 + header[8:12] + sizes + header[12:-4] + b"\xff" * 4


class MendedWav(io.RawIOBase):
    """The file at `path` as if it had the header that `mended_header` gives."""

    def __init__(self, path: str, header: WavHeader) -> None:
        self._header, self._position, self._file = header, 0, open(path, "rb", buffering=0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        end = os.fstat(self._file.fileno()).st_size + len(self._header.content) - self._header.start
        self._position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: end}[whence]
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:
        header, view = self._header.content[self._position :], memoryview(buffer).cast("B")
        if header:
            count = min(len(header), len(view))
            view[:count] = header[:count]
        else:
            self._file.seek(self._position - len(self._header.content) + self._header.start)
            count = self._file.readinto(view)
        self._position += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
