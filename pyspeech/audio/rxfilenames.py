"""Kaldi's extended file names of audio: `command |`, its output, and `x.ark:123`, what an archive has from a byte on.

Both are brought into a temporary file and read as any other file is. Kaldi takes the output of a command that failed, and
kaldiio reads 16-bit WAV alone, believes no length in its header, and takes 8 bits for 16.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from typing import IO

from pyspeech.audio.headers import PLACEHOLDER, leave_size_open
from pyspeech.errors import UserError

BROKEN_PIPE = 128 + 13  # of a command whose reader had enough, such as `head`
KEPT = 4096  # bytes of a command's messages that are looked at


def is_extended(name: str) -> bool:
    """Return True for a name that is not that of a file; "x.ark:123" is one where there is no file of that very name."""
    return is_command(name) or _archived(name) is not None


def is_command(name: str) -> bool:
    return name.rstrip().endswith("|")


def file_of(name: str) -> str:
    """The file that a name, which is no command, is read from: an archive or the file itself."""
    archived = _archived(name)
    return archived[0] if archived else name


@contextlib.contextmanager
def extracted(name: str) -> Iterator[str]:
    """Yield the path of a temporary file with the audio file that an extended name stands for.

    UserError for a command that fails, and for what is no audio file in an archive.
    """
    with tempfile.NamedTemporaryFile(suffix=".audio") as copy:
        if is_command(name):
            _run(name, copy)
            leave_size_open(copy)
        else:
            archive, start = _archived(name)  # pyright: ignore[reportGeneralTypeIssues]
            _take(name, archive, start, copy)
        copy.flush()
        yield copy.name


def _archived(name):
    """(archive, byte) of the name of a place in an archive; None of others."""
    match = re.fullmatch(r"(.+):(\d+)", name.strip(), re.DOTALL)
    if match is None or os.path.exists(name):
        return None
    return (match[1], int(match[2])) if os.path.exists(match[1]) or match[1].endswith(".ark") else None


def _run(name, copy):
    """Write the output of a command to a file. Where bash is there, a pipeline fails with any of its commands."""
    command, bash = name.rstrip()[:-1].strip(), shutil.which("bash")
    if not command:
        raise UserError(f"{name}: no command before the |")
    shell = [bash, "-o", "pipefail", "-c"] if bash else ["/bin/sh", "-c"]
    with tempfile.TemporaryFile() as messages:
        status = subprocess.run([*shell, command], stdin=subprocess.DEVNULL, stdout=copy, stderr=messages).returncode
        if status in (0, BROKEN_PIPE):
            return
        how = f"was ended by signal {-status}" if status < 0 else f"failed with exit status {status}"
        raise UserError(f"{name}: the command {how} ({_last_line(messages)}); its output is not used")


def _last_line(messages):
    messages.seek(max(0, messages.seek(0, os.SEEK_END) - KEPT))
    lines = messages.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "no message"


def _take(name: str, archive: str, start: int, copy: IO[bytes]) -> None:
    """Write the audio file that an archive has from a byte on to a file; see Kaldi's WaveHolder, and kaldiio.save_ark."""
    try:
        with open(archive, "rb") as stream:
            stream.seek(start)
            size = _size_of(name, stream)
            while size and (block := stream.read(min(size, 1 << 20))):
                copy.write(block)
                size -= len(block)
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror}") from None


def _size_of(name, stream):
    """Bytes of the audio file that begins where a stream stands, which is left where it does."""
    begin = stream.tell()
    head = stream.read(15)
    if head[:5] == b"AUDIO":  # kaldiio: the number of bytes that the length takes, and the length
        count = head[5] if len(head) > 5 else 0
        stream.seek(begin + 6 + count)
        return int.from_bytes(head[6 : 6 + count], "little")
    stream.seek(begin)
    if head[:4] == b"RIFF" and len(head) >= 8:
        (size,) = struct.unpack("<I", head[4:8])
        if size == 0 or size >= PLACEHOLDER:
            raise UserError(f"{name}: a WAV in an archive whose header does not say its length; write the archive again")
        return size + 8
    if head[:4] == b"fLaC":  # it tells itself where it ends
        return os.fstat(stream.fileno()).st_size - begin
    if head[:2] == b"\0B":
        raise UserError(f"{name}: holds a matrix, not audio")
    raise UserError(f"{name}: no audio file at byte {begin} of the archive; expected WAV, FLAC, or AUDIO of kaldiio")
