"""Files that are either whole or not there: write beside, fsync, rename. And what the files of /proc say."""

import base64
import contextlib
import errno
import gzip
import io
import json
import os
import re
import secrets
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from pyspeech.errors import UserError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # a file can take no more
_MORE = 1 << 20  # bytes that it is then tried with

_TEMPORARY = re.compile(r"\.\d+\.tmp\..+")


def is_temporary(name: str) -> bool:
    """True if this is the name of a temporary file of `atomic_path`, left behind when its process was killed."""
    return _TEMPORARY.fullmatch(name) is not None


@contextlib.contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary Path in the folder of `path` (same suffixes); on success it is synced and renamed to `path`.

    On any exception the temporary file is removed and `path` stays as it was. IsADirectoryError where it is a folder;
    OSError that names `path` where the disk is full, whatever the library that was writing has made of it.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    # Processes of two machines, or containers, may have the same id.
    temporary = path.with_name(f".{os.getpid()}{secrets.randbelow(10**6):06d}.tmp.{path.name}")
    try:
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except Exception as error:
        _raise_if_full(error, temporary, path)
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _raise_if_full(error, temporary, path):
    """OSError with the name of the file where an exception came of a disk that is full, a quota or a limit. Python's own has
    no name; numpy's tells how many items were written, soundfile's says "System error"."""
    number = getattr(error, "errno", None)
    if number is None and not isinstance(error, UserError) and temporary.exists():
        try:
            with open(temporary, "ab") as stream:
                stream.write(bytes(_MORE))
        except OSError as why:
            number = why.errno
    if number in FULL:
        raise OSError(number, os.strerror(number), str(path)) from error


@contextlib.contextmanager
def atomic_write(path: Path | str, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file for writing ("w" or "wb") that replaces `path` only when the block ends without an exception."""
    encoding = None if "b" in mode else "utf-8"
    with atomic_path(path) as temporary:
        with open(temporary, mode, encoding=encoding) as stream:
            yield stream


def format_of(path: Path | str, formats: Mapping[str, str], format: str | None = None) -> str:
    """Name of the format to write `path` in: `format`, or where that is None the one with the longest ending that fits.

    formats: {name: ending, such as ".txt"}. UserError where `format` or the ending is none of these.
    """
    fitting = [name for name, known in formats.items() if Path(path).name.lower().endswith(known.lower())]
    found = format or max(fitting, key=lambda name: len(formats[name]), default="")
    if found not in formats:
        known = ", ".join(f"{name} ({ending})" for name, ending in formats.items())
        what = f"unknown format '{format}'" if format else "its ending names no format"
        raise UserError(f"{path}: {what}; expected one of {known}")
    return found


def read_late(path: Path | str) -> str:
    """The text (UTF-8) of a file that another machine may just have made; OSError where it cannot be read.

    NFS remembers for up to a minute that a name was looked for in vain. Opening the folder has it ask the server again
    (close-to-open consistency).
    """
    path = Path(path)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        os.close(os.open(path.parent, os.O_RDONLY))
        return path.read_text(encoding="utf-8")


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a text in UTF-8, compressed where its name ends in .gz; UserError where it cannot be read."""
    with _reading(path), (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig") as stream:
        yield from stream


def input_lines() -> Iterator[str]:
    """The lines of standard input, as those of `text_lines`, in any locale."""
    stream = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig")
    try:
        with _reading("standard input"):
            yield from stream
    finally:
        stream.detach()  # else it would be closed


@contextlib.contextmanager
def _reading(name):
    try:
        yield
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or f"damaged or not text ({type(error).__name__})"
        raise UserError(f"{name}: cannot be read: {reason}") from None


def write_json(path: Path | str, value: object) -> None:
    """Write `value` as JSON with sorted keys, so that equal values give equal bytes."""
    with atomic_write(path) as stream:
        json.dump(value, stream, indent=1, sort_keys=True, ensure_ascii=False)
        stream.write("\n")


def to_json(value: Any) -> str:
    """Return the JSON of a value that may hold arrays, and numbers of numpy."""
    return json.dumps(value, default=_array_as_json)


def from_json(text: str) -> Any:
    """Return the value of `to_json`: arrays, which may be written to, as they were; lists for tuples."""
    return json.loads(text, object_hook=_array_of_json)


def _array_as_json(value):
    data = base64.b64encode(value.tobytes()).decode("ascii")
    return {"array": data, "type": value.dtype.str, "shape": value.shape} if value.shape else value.item()


def _array_of_json(read):
    if read.keys() != {"array", "type", "shape"}:
        return read
    import numpy as np

    return np.frombuffer(base64.b64decode(read["array"]), read["type"]).reshape(read["shape"]).copy()


def proc_field(path: Path | str, name: str) -> str:
    """Read the first value of `name` in a "name: value" file of /proc; "" if missing."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name), "")
