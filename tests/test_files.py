"""Files that are whole or not there, where the disk is full and where several machines have them."""

import errno
import os
import resource
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pyspeech.data.audio_files import write_audio
from pyspeech.errors import UserError
from pyspeech.files import atomic_path, atomic_write, is_temporary, read_late


@pytest.fixture
def small_files():
    """No file can grow beyond 100 kB, which writers learn as they learn that a disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_text(path):
    with atomic_write(path) as stream:
        stream.write("x" * 200_000)


def write_array(path):
    with atomic_path(path) as temporary:
        np.save(temporary, np.zeros(200_000))


def write_sound(path):
    write_audio(path, np.random.default_rng(1).normal(0, 0.1, 200_000), 16000)


@pytest.mark.parametrize(
    "write, name", [(write_text, "a.txt"), (write_array, "a.npy"), (write_sound, "a.wav"), (write_sound, "a.flac")]
)
def test_the_file_that_found_no_room_is_named(small_files, tmp_path, write, name):
    with pytest.raises(OSError) as error:
        write(tmp_path / name)
    assert (error.value.errno, error.value.filename) == (errno.EFBIG, str(tmp_path / name))
    assert os.listdir(tmp_path) == []


def test_other_errors_are_left_as_they_are(tmp_path):
    for raised in (UserError("a line"), ValueError("a value"), OSError(errno.EIO, "of another file"), OSError("no number")):
        with pytest.raises(type(raised)) as error, atomic_write(tmp_path / "a") as stream:
            stream.write("begun")
            raise raised
        assert error.value is raised and os.listdir(tmp_path) == []
    with pytest.raises(soundfile.LibsndfileError), atomic_path(tmp_path / "a.wav") as temporary:
        temporary.write_text("no sound")
        soundfile.read(temporary)


def test_two_machines_whose_processes_have_the_same_id(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 7)
    with atomic_write(tmp_path / "a") as one:
        with atomic_write(tmp_path / "a") as other:
            assert all(is_temporary(path.name) for path in tmp_path.iterdir())
            other.write("other")
        one.write("one")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "one"}


def test_a_file_that_another_machine_has_made(tmp_path, monkeypatch):
    """NFS says that there is none until the folder is opened, which this stands in for."""
    (tmp_path / "new").write_text("née", encoding="utf-8")
    opened, read, usual = [], Path.read_text, os.open

    def read_text(path, **options):
        if path.parent not in opened:
            raise FileNotFoundError
        return read(path, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(os, "open", lambda path, *flags: (opened.append(path), usual(path, *flags))[1])
    assert read_late(tmp_path / "new") == "née"
    for missing in ("absent", "absent/inside", "new/inside"):
        with pytest.raises(OSError):
            read_late(tmp_path / missing)
