"""Files that are either whole or not there: write beside, fsync, rename."""

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary Path in the folder of `path` (same suffixes); on success it is synced and renamed to `path`.

    On any exception the temporary file is removed and `path` stays as it was. IsADirectoryError where it is a folder.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.tmp.{path.name}")
    try:
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


@contextlib.contextmanager
def atomic_write(path: Path | str, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file for writing ("w" or "wb") that replaces `path` only when the block ends without an exception."""
    encoding = None if "b" in mode else "utf-8"
    with atomic_path(path) as temporary:
        with open(temporary, mode, encoding=encoding) as stream:
            yield stream


def write_json(path: Path | str, value: object) -> None:
    """Write `value` as JSON with sorted keys, so that equal values give equal bytes."""
    with atomic_write(path) as stream:
        json.dump(value, stream, indent=1, sort_keys=True, ensure_ascii=False)
        stream.write("\n")
