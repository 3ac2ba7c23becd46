"""What the header of an audio file says of its length, where libsndfile does not tell.

libsndfile cuts the length in a header to the file's size, so that a truncated file looks whole; and it takes a WAV file
whose header was never finished, as a recorder that was killed leaves it, for an empty one.
"""

from __future__ import annotations

import io
import os
import re
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import soundfile

PLACEHOLDER = 0x7F000000  # sizes from here on are written where the length is not known (audio that was piped)
AU_BYTES = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 8, 27: 1}  # bytes a sample, by the encoding's number


def promised_frames(file: soundfile.SoundFile, path: str) -> int:
    """The number of frames that a file's header says it has; 0 where it does not say.

    file: the file at `path` as soundfile.SoundFile. Of MP3, which has an estimate alone, it is 0; of W64, RF64 and Ogg
    it is what is there.
    """
    reader = {"WAV": _wav_frames, "WAVEX": _wav_frames, "NIST": _sphere_frames, "AU": _au_frames, "AIFF": _aiff_frames}.get(
        file.format
    )
    if reader:
        with open(path, "rb") as stream:
            return reader(stream)
    return 0 if file.format in ("MP3", "MPEG") else file.frames


def _wav_frames(stream):
    block_align, size = _to_wav_data(stream)
    return size // block_align if block_align and size < PLACEHOLDER else 0


def _to_wav_data(stream):
    """Go to where the samples of a WAV file begin: (bytes a frame, size of the data as the header has it), or zeros."""
    block_align = 0
    stream.seek(12)
    while len(header := stream.read(8)) == 8:
        name, size = struct.unpack("<4sI", header)
        if name == b"data":
            return block_align, size
        body = stream.read(min(size, 16))
        if name == b"fmt " and len(body) >= 14:
            block_align = struct.unpack("<H", body[12:14])[0]
        stream.seek(size + size % 2 - len(body), os.SEEK_CUR)
    return 0, 0


def _sphere_frames(stream):
    found = re.search(rb"^sample_count -i (\d+)", stream.read(1024), re.MULTILINE)
    return int(found.group(1)) if found else 0


def _au_frames(stream):
    magic, _, size, encoding, _, channels = struct.unpack(">4s5I", stream.read(24))
    if magic != b".snd" or encoding not in AU_BYTES or size >= PLACEHOLDER:
        return 0
    return size // (AU_BYTES[encoding] * channels)


def _aiff_frames(stream):
    _, whole, _ = struct.unpack(">4sI4s", stream.read(12))
    while whole < PLACEHOLDER and len(header := stream.read(8)) == 8:
        name, size = struct.unpack(">4sI", header)
        if name == b"COMM":
            return struct.unpack(">hI", stream.read(6))[1]
        stream.seek(size + size % 2, os.SEEK_CUR)
    return 0


def unfinished_size(file: soundfile.SoundFile, path: str) -> int | None:
    """Where the size of the samples stands in a WAV file whose header says 0 though samples follow; None for others."""
    if file.format not in ("WAV", "WAVEX") or file.frames:
        return None
    with open(path, "rb") as stream:
        block_align, size = _to_wav_data(stream)
        start, following = stream.tell(), stream.read(8)
        left = stream.seek(0, os.SEEK_END) - start - 8
    if size or not block_align or len(following) < 8:
        return None
    name, size = struct.unpack("<4sI", following)
    return None if name.strip().isalnum() and size <= left else start - 4  # another chunk: the file is empty


class UnfinishedWav(io.FileIO):
    """A WAV file as if its header said that the samples go on to the end; size_at: what `unfinished_size` found."""

    def __init__(self, path: str, size_at: int) -> None:
        super().__init__(path)
        self._size_at = size_at

    def readinto(self, buffer: bytearray | memoryview) -> int:
        start = self.tell()
        count = super().readinto(buffer)
        for place in range(max(self._size_at, start), min(self._size_at + 4, start + count)):
            buffer[place - start : place - start + 1] = b"\xff"
        return count
