"""Many files at once: what is there is left alone, what is wrong comes again, and a source that has nothing is given up."""

import hashlib
import os

import pytest

from pyspeech.fetch import many
from pyspeech.fetch.many import Remote, download_all, missing


@pytest.fixture
def files(server, tmp_path):
    """Remotes of 20 files, in two folders, with names that need quoting in neither."""
    server.files = {f"/{number % 2}/{number}.bin": os.urandom(1000 + number) for number in range(20)}
    return [
        Remote(server.base + path, tmp_path / f"out{path}", hashlib.sha256(body).hexdigest())
        for path, body in server.files.items()
    ]


def test_only_what_is_missing(server, files):
    for one in files[:5]:
        one.target.parent.mkdir(parents=True, exist_ok=True)
        one.target.write_bytes(server.files[one.url.removeprefix(server.base)])
    files[4].target.write_bytes(b"another file")
    wanted = missing(files)
    assert wanted == files[4:]
    assert download_all(wanted, "all") == {}
    assert missing(files) == [] and len(server.requests) == 16
    assert all(one.target.read_bytes() == server.files[one.url.removeprefix(server.base)] for one in files)
    assert not list(files[0].target.parents[1].rglob("*.part"))


def test_what_cannot_be_had_is_told(server, files):
    lost = [path for path in server.files if path.endswith(("7.bin", "8.bin"))]
    for path in lost:
        del server.files[path]
    failures = download_all(files, "all")
    assert {f"/{target.parent.name}/{target.name}" for target in failures} == set(lost)
    assert all("404" in reason for reason in failures.values())
    assert {one.target for one in missing(files)} == set(failures)


def test_a_source_without_any_is_given_up(server, files):
    server.files.clear()
    failures = download_all(files, "all")
    assert set(failures) == {one.target for one in files}
    assert many.PATIENCE <= len(server.requests) < many.PATIENCE + many.CONNECTIONS


def test_no_files():
    assert download_all([], "none") == {} and missing([]) == []
