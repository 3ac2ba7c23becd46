"""Unpacking of what pyspeech.fetch.download brought: Debian packages (deb(5)), wheels, tar files, into the cache.

Debian packages are read with dpkg-deb where it is, else by their own structure, an ar archive around a tar file.
"""

import fnmatch
import hashlib
import lzma
import os
import shutil
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspeech.errors import UserError
from pyspeech.fetch.download import cache_dir, disk_errors, locked

# What reading a damaged archive raises; RuntimeError: an encrypted one, or a compression that is not known.
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError)


def unpack(archive: Path | str, patterns: Sequence[str]) -> Path:
    """Unpack the files of an archive (.deb, .whl, .zip, .tar.*) whose names match one of `patterns` (fnmatch).

    They go to `cache_dir()/unpacked/<archive name>-<digest of the patterns>/`, whole or not at all, once for all
    recipes. Returns that folder; UserError where the archive is damaged or holds no such file.
    """
    archive = Path(archive)
    digest = hashlib.sha256("\n".join(sorted(patterns)).encode()).hexdigest()[:8]

    def copy_all(folder):
        if not _copy_members(archive, patterns, folder):
            raise UserError(f"{archive}: holds nothing like {', '.join(patterns)}; remove the file and run again")

    return made_once(cache_dir() / "unpacked" / f"{archive.name}-{digest}", copy_all)


def made_once(target: Path, fill: Callable[[Path], None]) -> Path:
    """The folder `target` of the cache, which `fill(folder)` makes the contents of where it is not there: whole or not at all,
    by one process. UserError where the disk is full or cannot be written to."""
    with disk_errors(target), locked(target):
        if not target.exists():
            temporary = target.with_name(f"{target.name}.part")
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            fill(temporary)
            os.replace(temporary, target)
    return target


def _copy_members(archive, patterns, folder):
    """Write the matching files below `folder`; returns how many."""
    count = 0
    try:
        for name, stream in _members(archive):
            name = os.path.normpath(name)
            if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                continue
            if os.path.isabs(name) or name.split(os.sep)[0] == "..":
                raise UserError(f"{archive}: holds a file named {name}, outside its own folder; remove the archive")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as out:
                shutil.copyfileobj(stream, out)  # pyright: ignore[reportArgumentType]
            count += 1
    except DAMAGED as error:
        if getattr(error, "errno", None):  # the disk's; the errors of gzip and bz2 have no number
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(":")
        raise UserError(f"{archive}: cannot be unpacked ({reason}); remove it and run the same command again") from None
    return count


def _members(archive):
    """The regular files of an archive: iterator of (name, binary stream)."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as bundle:
            for entry in bundle.infolist():
                if not entry.is_dir():
                    with bundle.open(entry) as stream:
                        yield entry.filename, stream
    elif archive.suffix == ".deb":
        yield from _deb_members(archive)
    else:
        with tarfile.open(archive) as bundle:
            yield from _tar_members(bundle)
            # The checksum of a gzip file is at its end.
            bundle.fileobj.read()  # pyright: ignore[reportOptionalMemberAccess, reportCallIssue]


def _tar_members(bundle):
    for entry in bundle:
        if entry.isfile():
            yield entry.name, bundle.extractfile(entry)


def _deb_members(archive):
    """The files in data.tar.* of a Debian package."""
    if shutil.which("dpkg-deb"):  # knows every compression
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            with tarfile.open(fileobj=process.stdout, mode="r|") as bundle:
                yield from _tar_members(bundle)
            process.stdout.read()  # pyright: ignore[reportOptionalMemberAccess]
        if process.returncode:
            raise ValueError(f"dpkg-deb ended with status {process.returncode}")
        return
    with open(archive, "rb") as stream:
        if stream.read(8) != b"!<arch>\n":
            raise ValueError("not a Debian package")
        while header := stream.read(60):
            name, size = header[:16].decode("ascii").strip().rstrip("/"), int(header[48:58])
            if name.startswith("data.tar"):
                if name.endswith(".zst"):
                    raise ValueError("it is compressed with zstd: install dpkg")
                with tarfile.open(fileobj=stream, mode="r|*") as bundle:
                    yield from _tar_members(bundle)
                return
            stream.seek(size + size % 2, os.SEEK_CUR)
    raise ValueError("no data.tar in it")
