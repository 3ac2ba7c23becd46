"""Inputs and outputs of stages: path patterns, and fingerprints that show if such a path has changed.

A pattern is a path relative to the experiment folder (or absolute), with {a,b} alternatives and the wildcards * ? [ ];
it may name a folder, which stands for everything in it.
A fingerprint is {"size": bytes, "stamp": from modification times, "hash": of the content}. Size and stamp are compared
first, and the content is read only where the stamp alone differs: copying an experiment, or making a file again with
the same bytes, changes nothing.
"""

import fnmatch
import glob
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspeech.files import is_temporary

HASH_LIMIT = 4 << 30  # bytes; what is larger (feature archives, corpora) is judged by sizes and times alone


def expand_braces(pattern: str) -> list[str]:
    """ "x/{a,b}.txt" -> ["x/a.txt", "x/b.txt"]; groups may nest."""
    innermost = re.search(r"\{([^{}]*)\}", pattern)
    if not innermost:
        return [pattern]
    before, after = pattern[: innermost.start()], pattern[innermost.end() :]
    expanded = [expand_braces(before + item + after) for item in innermost.group(1).split(",")]
    return list(dict.fromkeys(path for paths in expanded for path in paths))


def pattern_of(path: str | Path) -> str:
    """The pattern that stands for one path, whatever characters it has."""
    return re.sub(r"[{}]", "?", glob.escape(str(path)))


def expand(patterns: Iterable[str | Path]) -> list[str]:
    """Write all patterns without braces, as normalised paths."""
    return [os.path.normpath(path) for pattern in patterns for path in expand_braces(str(pattern))]


def overlap(one: str, other: str) -> bool:
    """Tell whether two expanded patterns can name the same path, or one a folder that holds the other."""
    for left, right in zip(Path(one).parts, Path(other).parts, strict=False):
        if "**" in (left, right):
            return True
        if not (fnmatch.fnmatchcase(left, right) or fnmatch.fnmatchcase(right, left)):
            return False
    return True


class Artifacts:
    """The files below one experiment folder `base`, with the content hashes that are already known."""

    def __init__(self, base: str | Path) -> None:
        self.base = Path(base)
        self._hashes = {}  # (name, size, stamp) -> hash

    def learn(self, fingerprints: Mapping[str, Mapping[str, Any]]) -> None:
        """Remember the hashes in recorded {name: fingerprint}, so that unchanged files are not read again."""
        for name, seen in fingerprints.items():
            self._hashes[name, seen["size"], seen["stamp"]] = seen["hash"]

    def names(self, patterns: Iterable[str | Path]) -> list[str]:
        """List the names that the patterns stand for, existing or not; a wildcard without a match stands for itself."""
        found = []
        for path in expand(patterns):
            matches = [path]
            if glob.has_magic(path):
                matches = sorted(glob.glob(os.path.join(glob.escape(str(self.base)), path), recursive=True))
                matches = [self._name(match) for match in matches] or [path]
            found += matches
        return list(dict.fromkeys(found))

    def missing(self, patterns: Iterable[str | Path]) -> list[str]:
        return [name for name in self.names(patterns) if not (self.base / name).exists()]

    def fingerprints(self, patterns: Iterable[str | Path]) -> dict[str, dict[str, Any]]:
        """{name: fingerprint} of everything that the patterns stand for; raises FileNotFoundError where missing."""
        return {name: self._fingerprint(name) for name in self.names(patterns)}

    def state(self, patterns: Iterable[str | Path]) -> dict[str, str]:
        """{name: sizes and times} of what there is of all that the patterns stand for: tells whether anything has changed."""
        paths = {name: self.base / name for name in self.names(patterns)}
        return {name: "{} {}".format(*_size_and_stamp(path)) for name, path in paths.items() if path.exists()}

    def changes(self, recorded: Mapping[str, Mapping[str, Any]], patterns: Iterable[str | Path]) -> list[tuple[str, str]]:
        """[(name, "is missing" | "has changed" | "is new")] of what the patterns stand for, against a record."""
        expanded = expand(patterns)
        still_declared = [name for name in recorded if any(overlap(name, pattern) for pattern in expanded)]
        found = []
        for name in dict.fromkeys(still_declared + self.names(patterns)):
            if not (self.base / name).exists():
                found.append((name, "is missing"))
            elif name not in recorded:
                found.append((name, "is new"))
            elif not self._same(name, recorded[name]):
                found.append((name, "has changed"))
        return found

    def remove(self, patterns: Iterable[str | Path]) -> None:
        """Delete what the patterns stand for inside the experiment folder; nothing outside it is ever removed."""
        for name in self.names(patterns):
            path = self.base / name
            if os.path.isabs(name) or name.split(os.sep)[0] == ".." or name == ".":
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.is_symlink() or path.exists():
                path.unlink()

    def remove_temporary(self) -> None:
        """Delete the half-written files that a killed process left anywhere in the experiment folder."""
        for leftover in list(self.base.rglob(".*.tmp.*")):
            if is_temporary(leftover.name) and leftover.is_file():
                leftover.unlink()

    def _name(self, path):
        relative = os.path.relpath(path, self.base)
        return path if relative.split(os.sep)[0] == ".." else relative

    def _same(self, name, recorded):
        size, stamp = _size_and_stamp(self.base / name)
        if size != recorded["size"]:
            return False
        if stamp == recorded["stamp"]:
            return True
        return recorded["hash"] is not None and self._fingerprint(name)["hash"] == recorded["hash"]

    def _fingerprint(self, name):
        path = self.base / name
        size, stamp = _size_and_stamp(path)
        if (name, size, stamp) not in self._hashes:
            self._hashes[name, size, stamp] = _content_hash(path) if size <= HASH_LIMIT else None
        return {"size": size, "stamp": stamp, "hash": self._hashes[name, size, stamp]}


def _files(folder):
    """(relative name, path) of every file below a folder, sorted; half-written temporary files are no part of it."""
    found = []
    for parent, folders, files in os.walk(folder):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in files + links:
            path = os.path.join(parent, name)
            if not is_temporary(name):
                found.append((os.path.relpath(path, folder), path))
    return sorted(found)


def _size_and_stamp(path):
    if not path.is_dir():
        status = path.stat()
        return status.st_size, str(status.st_mtime_ns)
    total, digest = 0, hashlib.blake2b(digest_size=16)
    for name, file in _files(path):
        status = os.stat(file) if os.path.isfile(file) else os.lstat(file)
        total += status.st_size
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return total, digest.hexdigest()


def _content_hash(path):
    digest = hashlib.blake2b(digest_size=16)
    if not path.is_dir():
        _add_file(digest, path)
    else:
        for name, file in _files(path):
            digest.update(f"{name}\0".encode("utf-8", "surrogateescape"))
            if os.path.isfile(file):
                inner = hashlib.blake2b(digest_size=16)
                _add_file(inner, file)
                digest.update(inner.digest())
            else:  # a link to a folder, or to nothing
                digest.update(os.readlink(file).encode("utf-8", "surrogateescape") if os.path.islink(file) else b"")
    return digest.hexdigest()


def _add_file(digest, path):
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
