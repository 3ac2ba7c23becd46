"""Files out of git repositories: where clones are found, commits before the newest, what a clone lacks."""

import subprocess

import pytest
from git_harness import make_repository
from tool_harness import one_line_error

from pyspeech.fetch import clones
from pyspeech.fetch.clones import find_clone, read_file


@pytest.fixture
def repository(tmp_path):
    """(folder, its first commit): since then one file was changed and one was removed."""
    folder = tmp_path / "origin"
    first = make_repository(folder, {"a.wav": b"first", "b c/d&ü.wav": b"\0\n\xff", "gone.wav": b"gone"})
    make_repository(folder, {"a.wav": b"second", "gone.wav": None})
    return folder, first


@pytest.mark.parametrize("place", ["some+name", "some/name", "some/name.git", "some+name/repo"])
@pytest.mark.parametrize("bare", [False, True])
def test_clones_are_found(place, bare, repository, tmp_path):
    target = tmp_path / "clones" / place
    command = ["git", "clone", "-q", *["--bare"] * bare, str(repository[0]), str(target)]
    subprocess.run(command, check=True)
    assert find_clone(tmp_path / "clones", "some/name") == (target if bare else target / ".git")
    assert find_clone(tmp_path / "clones", "other/name") is None


def test_files_of_a_commit(repository):
    folder, first = repository
    clone = folder / ".git"
    assert read_file(clone, first, "a.wav") == b"first"
    assert read_file(clone, first, "gone.wav") == b"gone"
    assert read_file(clone, first, "b c/d&ü.wav") == b"\0\n\xff"
    assert read_file(clone, first, "b c") is None
    assert read_file(clone, first, "missing.wav") is None
    assert read_file(clone, "0" * 40, "a.wav") is None


def test_no_git(repository, monkeypatch):
    monkeypatch.setattr(clones.shutil, "which", lambda name: None)
    with one_line_error("needs git, which is not installed"):
        read_file(repository[0] / ".git", repository[1], "a.wav")
