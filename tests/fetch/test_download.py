"""Downloads: resuming, checksums, errors in one line, two processes at once; unpacking."""

import functools
import hashlib
import io
import multiprocessing
import os
import random
import socket
import tarfile
import zipfile
from pathlib import Path

import pytest
from tool_harness import as_new
from web_server import BODY, Handler

from pyspeech.errors import UserError
from pyspeech.fetch import download, unpack

SHA256 = hashlib.sha256(BODY).hexdigest()


def test_fetch_once(server, tmp_path):
    path = download.fetch(server.base + "/file.bin", sha256=SHA256)
    assert path == (tmp_path / "cache/downloads/file.bin").resolve() and path.read_bytes() == BODY
    assert download.fetch(server.base + "/file.bin", sha256=SHA256) == path
    assert len(server.requests) == 1


def test_broken_connections_are_resumed(server):
    server.drop = 2
    assert download.fetch(server.base + "/file.bin", sha256=SHA256).read_bytes() == BODY
    ranges = [requested for _, requested, _ in server.requests]
    assert ranges[0] is None and ranges[1] == f"bytes={len(BODY) // 2}-" and ranges[2] == f"bytes={len(BODY) * 3 // 4}-"


def test_server_without_ranges(server):
    server.drop, server.ranges = 1, False
    assert download.fetch(server.base + "/file.bin", sha256=SHA256).read_bytes() == BODY


def test_busy_server_is_asked_again(server):
    server.fail = 2
    assert download.fetch(server.base + "/file.bin", sha256=SHA256).read_bytes() == BODY


@pytest.mark.parametrize(("said", "waited"), [("7", 7), ("9999", 300), ("Fri, 27 Nov 2026 06:00:00 GMT", 0)])
def test_busy_server_says_how_long_to_wait(said, waited, server, monkeypatch):
    pauses = []
    monkeypatch.setattr(download.time, "sleep", pauses.append)
    server.fail, server.wait = 1, said
    assert download.fetch(server.base + "/file.bin", sha256=SHA256).read_bytes() == BODY
    assert pauses == [0, waited]


def test_part_of_an_earlier_run_is_used(server):
    part = download.cache_dir() / "downloads/file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BODY[:1000])
    assert download.fetch(server.base + "/file.bin", sha256=SHA256).read_bytes() == BODY
    assert server.requests[0][1] == "bytes=1000-" and not part.exists()


@pytest.mark.parametrize("leftover", [b"not the beginning of it", BODY + b"more"])
def test_wrong_part_is_thrown_away(server, leftover):
    part = download.cache_dir() / "downloads/file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(leftover)
    assert download.fetch(server.base + "/file.bin", sha256=SHA256).read_bytes() == BODY


def test_wrong_checksum(server):
    with pytest.raises(UserError, match="SHA-256") as error:
        download.fetch(server.base + "/file.bin", sha256="0" * 64)
    assert "\n" not in str(error.value)
    assert not (download.cache_dir() / "downloads/file.bin").exists()


@pytest.mark.parametrize(
    "take",
    [
        lambda: download.fetch("http://nowhere.invalid/file.bin", sha256=SHA256),
        lambda: download.fetch_pypi("thing", "file.bin", SHA256),
        lambda: download.fetch_debian([download.DebianPackage("thing", "pool/file.bin", SHA256)])["thing"],
    ],
)
def test_file_put_into_the_cache_is_checked_once(server, monkeypatch, take):
    path = download.cache_dir() / "downloads/file.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"garbage")
    for _ in range(2):
        with pytest.raises(UserError, match=f"file.bin: its SHA-256 is .*, expected {SHA256}; remove it"):
            take()
    assert path.read_bytes() == b"garbage"
    path.write_bytes(BODY)
    assert take() == path
    with monkeypatch.context() as patch:
        patch.setattr(download, "file_sha256", None)  # is not called again
        assert take() == path
    path.write_bytes(BODY + b"more")
    with pytest.raises(UserError, match="SHA-256"):
        take()


def test_missing_file_is_not_tried_again(server):
    with pytest.raises(UserError, match="404"):
        download.fetch(server.base + "/other.bin")
    assert len(server.requests) == 1


def test_no_network(server, monkeypatch):
    def unknown(*arguments, **options):
        raise socket.gaierror(-3, "no name service")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(download, "PAUSES", (0, 0.01, 0.01))
    with pytest.raises(UserError, match="check the network") as error:
        download.fetch("http://nowhere.invalid/file.bin", sha256=SHA256)
    assert "\n" not in str(error.value)


def test_unwritable_cache(server, monkeypatch, tmp_path):
    (tmp_path / "occupied").write_text("a file")
    monkeypatch.setenv("PYSPEECH_CACHE", str(tmp_path / "occupied"))
    with pytest.raises(UserError, match="PYSPEECH_CACHE"):
        download.fetch(server.base + "/file.bin")


def test_full_disk(server, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="no space left.*PYSPEECH_CACHE"):
        download.fetch(server.base + "/file.bin")


def _fetch_in_child(url, results):
    results.put(str(download.fetch(url, sha256=SHA256)))


def test_two_processes_download_once(server):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    children = [context.Process(target=_fetch_in_child, args=(server.base + "/file.bin", results)) for _ in range(2)]
    for child in children:
        child.start()
    paths = {results.get(timeout=60) for _ in children}
    for child in children:
        child.join()
    assert len(paths) == 1 and len(server.requests) == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_package_index(server, monkeypatch, as_json):
    server.files["/simple/some-thing/"] = (
        b'{"files": [{"filename": "some_thing-1.tar.gz", "url": "../../file.bin#sha256=00"}]}'
        if as_json
        else b'<html><a href="../../other">some_thing-2.tar.gz</a>'
        b'<a href="../../file.bin#sha256=00">some_thing-1.tar.gz</a></html>'
    )
    if as_json:
        plain = Handler.send_header
        monkeypatch.setattr(
            Handler,
            "send_header",
            lambda self, key, value: plain(self, key, "application/vnd.pypi.simple.v1+json" if value == "text/html" else value),
        )
    secret = server.base.replace("http://", "http://user:pass@")
    monkeypatch.setattr(download, "index_urls", lambda: [server.base + "/empty", secret + "/simple"])
    path = download.fetch_pypi("Some_Thing", "some_thing-1.tar.gz", SHA256)
    assert path.name == "some_thing-1.tar.gz" and path.read_bytes() == BODY
    assert server.requests[1][2] == "Basic dXNlcjpwYXNz"
    with pytest.raises(UserError, match="some_thing-3.tar.gz") as error:
        download.fetch_pypi("Some_Thing", "some_thing-3.tar.gz", SHA256)
    assert "pass" not in str(error.value)


def test_index_is_that_of_pip(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://one.example https://two.example")
    expected = ["https://index.example/simple", "https://one.example", "https://two.example"]
    assert as_new(download).index_urls() == expected
    monkeypatch.delenv("PIP_INDEX_URL")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://configured.example/simple\n")
    assert as_new(download).index_urls()[0] == "https://configured.example/simple"


@pytest.fixture
def fake_apt(tmp_path, monkeypatch):
    """make(what `apt-get download --print-uris` prints, its status) puts such an apt-get on PATH; returns its log."""
    folder = tmp_path / "bin"

    def make(printed, status=0):
        folder.mkdir()
        (folder / "printed").write_text(printed)
        (folder / "apt-get").write_text(
            f'#!/bin/sh\necho "$*" >> {folder}/log\ncase "$*" in *update) exit 0 ;; esac\n'
            f"cat {folder}/printed\ncat {folder}/printed >&2\nexit {status}\n"
        )
        (folder / "apt-get").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.delenv("PYSPEECH_DEBIAN_MIRROR", raising=False)
        return folder / "log"

    return make


PACKAGE = download.DebianPackage("thing", "pool/main/t/thing/thing_1.0-1_all.deb", SHA256)


def test_debian_package_by_apt(server, fake_apt):
    server.files["/pool/thing_1.0-1_all.deb"] = BODY
    line = f"'{server.base}/pool/thing_1.0-1_all.deb' thing_1.0-1_all.deb {len(BODY)} SHA256:{SHA256}\n"
    log = fake_apt(line)
    assert download.debian_available([PACKAGE])
    assert download.fetch_debian([PACKAGE])["thing"].read_bytes() == BODY
    assert len(log.read_text().splitlines()) == 1
    download.fetch_debian([PACKAGE])
    assert len(log.read_text().splitlines()) == 1 and len(server.requests) == 1


def test_other_version_is_used_and_said(server, fake_apt, caplog):
    other = BODY + b"newer"
    server.files["/pool/thing_2.0-1_all.deb"] = other
    checksum = hashlib.sha256(other).hexdigest()
    line = f"'{server.base}/pool/thing_2.0-1_all.deb' thing_2.0-1_all.deb 1 SHA256:{checksum}\n"
    fake_apt(line)
    assert download.fetch_debian([PACKAGE])["thing"].read_bytes() == other
    assert "thing_2.0-1_all.deb instead of thing_1.0-1_all.deb" in caplog.text


def test_package_that_apt_does_not_know(server, fake_apt):
    log = fake_apt("E: Unable to locate package thing\n", 100)
    with pytest.raises(UserError, match="Unable to locate package thing"):
        download.fetch_debian([PACKAGE])
    assert [line.split()[-1] for line in log.read_text().splitlines()] == ["thing", "update", "thing"]


def test_changed_package_of_the_same_version(server, fake_apt):
    line = f"'{server.base}/pool/thing_1.0-1_all.deb' thing_1.0-1_all.deb 1 SHA256:{'0' * 64}\n"
    fake_apt(line)
    with pytest.raises(UserError, match="expected " + SHA256):
        download.fetch_debian([PACKAGE])


def test_debian_package_from_a_mirror_without_apt(server, monkeypatch):
    monkeypatch.setattr(download.shutil, "which", lambda name: None)
    monkeypatch.delenv("PYSPEECH_DEBIAN_MIRROR", raising=False)
    assert not download.debian_available([PACKAGE])
    with pytest.raises(UserError, match="PYSPEECH_DEBIAN_MIRROR"):
        download.fetch_debian([PACKAGE])
    server.files["/debian/" + PACKAGE.pool] = BODY
    monkeypatch.setenv("PYSPEECH_DEBIAN_MIRROR", server.base + "/debian/")
    assert download.fetch_debian([PACKAGE])["thing"].read_bytes() == BODY
    assert download.debian_available([PACKAGE])


def tar_bytes(files, mode="w:xz"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as bundle:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            bundle.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def deb_bytes(files):
    total = b"!<arch>\n"
    control = tar_bytes({"./control": b"Package: thing\n"})
    for name, content in (("debian-binary", b"2.0\n"), ("control.tar.xz", control), ("data.tar.xz", tar_bytes(files))):
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n"
        total += header.encode() + content + b"\n" * (len(content) % 2)
    return total


@pytest.mark.parametrize("own_reader", [True, False])
def test_unpack_deb(server, monkeypatch, tmp_path, own_reader):
    if own_reader:
        monkeypatch.setattr(unpack.shutil, "which", lambda name: None)
    archive = tmp_path / "thing_1.0-1_all.deb"
    archive.write_bytes(deb_bytes({"./usr/share/a.wav": b"sound", "./usr/share/b.txt": b"text"}))
    folder = unpack.unpack(archive, ["usr/share/*.wav"])
    assert [path.name for path in folder.rglob("*.*")] == ["a.wav"]
    assert (folder / "usr/share/a.wav").read_bytes() == b"sound"
    archive.unlink()
    assert unpack.unpack(archive, ["usr/share/*.wav"]) == folder


def test_unpack_wheel_and_tar(server, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as bundle:
        bundle.writestr("x/log.txt", "log")
    assert (unpack.unpack(tmp_path / "x.whl", ["x/*.txt"]) / "x/log.txt").read_text() == "log"
    (tmp_path / "x.tar.gz").write_bytes(tar_bytes({"x/t\u00f1.wav": b"1"}, "w:gz"))
    assert (unpack.unpack(tmp_path / "x.tar.gz", ["*.wav"]) / "x/t\u00f1.wav").read_bytes() == b"1"


@pytest.mark.parametrize("name", ["x.tar.gz", "x.deb", "x.whl"])
def test_damaged_archive(server, tmp_path, name):
    (tmp_path / name).write_bytes(b"no archive at all")
    with pytest.raises(UserError, match="cannot be unpacked"):
        unpack.unpack(tmp_path / name, ["*"])
    assert not list((download.cache_dir() / "unpacked").glob("x*-*[0-9a-f]"))


def whl_bytes(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in files.items():
            bundle.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "name, pack",
    [
        ("x.whl", whl_bytes),
        ("x.deb", deb_bytes),
        *((f"x.tar.{kind}", functools.partial(tar_bytes, mode=f"w:{kind}")) for kind in ("gz", "bz2", "xz")),
    ],
)
def test_archive_damaged_in_the_middle(server, tmp_path, name, pack):
    content = bytes(random.Random(0).choices(b"abcdefgh", k=200_000))
    whole = pack({"x/y.txt": content})
    for place in (1000, len(whole) // 2, len(whole) // 5, len(whole) - 60):
        (tmp_path / name).write_bytes(whole[:place] + b"\xff" * 40 + whole[place + 40 :])
        with pytest.raises(UserError, match="cannot be unpacked [(].+[)]; remove it") as error:
            unpack.unpack(tmp_path / name, ["x/*"])
        assert "\n" not in str(error.value)
    (tmp_path / name).write_bytes(whole)
    assert (unpack.unpack(tmp_path / name, ["x/*"]) / "x/y.txt").read_bytes() == content


def test_archive_that_reaches_outside(server, tmp_path):
    (tmp_path / "x.tar.gz").write_bytes(tar_bytes({"../evil.wav": b"1"}, "w:gz"))
    with pytest.raises(UserError, match="outside"):
        unpack.unpack(tmp_path / "x.tar.gz", ["*.wav"])
    assert not (download.cache_dir() / "evil.wav").exists()


def test_nothing_like_it_in_the_archive(server, tmp_path):
    (tmp_path / "x.tar.gz").write_bytes(tar_bytes({"x/a.txt": b"1"}, "w:gz"))
    with pytest.raises(UserError, match="holds nothing like"):
        unpack.unpack(tmp_path / "x.tar.gz", ["*.wav"])


def test_the_cache_lies_in_the_repository(monkeypatch):
    monkeypatch.delenv("PYSPEECH_CACHE", raising=False)
    assert download.cache_dir() == Path(__file__).resolve().parents[2] / ".cache"
