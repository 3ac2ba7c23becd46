"""The locks of an experiment folder and of its stages, on one machine and between machines."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from pyspeech.engine import locks
from pyspeech.engine.locks import birth_of, folder_lock, stage_lock
from pyspeech.errors import UserError

HOLDER = """
import sys, time
from pyspeech.engine.locks import folder_lock
with folder_lock(sys.argv[1], "the first command", print):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of tmp_path."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def leave(folder, **holder):
    """A lock file as a run leaves it that could not release it."""
    text = json.dumps({"host": socket.gethostname(), "pid": 1, "born": "then", "since": "2020", "command": "old", **holder})
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, text.encode(), 0)  # in place: it is never seen empty, which would be a lock released
    os.ftruncate(descriptor, len(text))
    os.close(descriptor)


def test_a_second_run_is_told_who_holds_it(tmp_path, holder):
    with pytest.raises(UserError) as caught:
        with folder_lock(tmp_path, "second", pytest.fail):
            pass
    message = str(caught.value)
    assert f"process {holder.pid} on {socket.gethostname()}" in message and "the first command" in message
    assert str(tmp_path) in message and "--exp" in message and "\n" not in message


def test_flock_counts_where_the_text_is_gone(tmp_path, holder):
    os.truncate(tmp_path / ".lock", 0)
    with pytest.raises(UserError, match="is in use by another run"):
        with folder_lock(tmp_path, "second", pytest.fail):
            pass


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    said = []
    with folder_lock(tmp_path, "second", said.append):
        assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()
    assert len(said) == 1 and str(holder.pid) in said[0]


def test_a_released_lock_is_free(tmp_path):
    for _ in range(2):
        with folder_lock(tmp_path, "x", pytest.fail):
            assert (tmp_path / ".lock").stat().st_size
        assert (tmp_path / ".lock").read_text() == ""
    with pytest.raises(ZeroDivisionError):
        with folder_lock(tmp_path, "x", pytest.fail):
            raise ZeroDivisionError
    with folder_lock(tmp_path, "x", pytest.fail):
        pass


def test_a_process_id_used_again_does_not_hold_the_lock(tmp_path):
    leave(tmp_path, pid=os.getpid(), born="another boot:1")
    said = []
    with folder_lock(tmp_path, "x", said.append):
        assert said


def test_a_live_holder_counts_where_flock_does_not_reach(tmp_path):
    leave(tmp_path, pid=os.getppid(), born=birth_of(os.getppid()))
    with pytest.raises(UserError, match=f"process {os.getppid()} "):
        with folder_lock(tmp_path, "x", pytest.fail):
            pass


@pytest.fixture
def fast(monkeypatch):
    """Heartbeats and patience in fractions of a second."""
    for name, seconds in {"BEAT": 0.05, "LOST": 0.4, "PATIENCE": 0.02}.items():
        monkeypatch.setattr(locks, name, seconds)


def test_a_dead_lock_from_another_machine_is_watched_and_taken_over(tmp_path, fast):
    """Whatever its clock said: nothing in the text is compared with the time here."""
    leave(tmp_path, host="elsewhere", pid=7, since="2999-01-01", job="12", beat="000000000009")
    said, begun = [], time.monotonic()
    with folder_lock(tmp_path, "x", said.append):
        assert time.monotonic() - begun > locks.LOST
    assert "process 7 on elsewhere, job 12" in said[0] and f"rm {tmp_path / '.lock'}" in said[0]
    assert said[1].startswith("taking over") and len(said) == 2


@contextlib.contextmanager
def beating(folder, seconds):
    """A holder on another machine, whose heart goes on for so many seconds and then releases the lock."""

    def beat():
        for count in range(round(seconds / locks.BEAT)):
            leave(folder, host="elsewhere", beat=f"{count:012d}")
            time.sleep(locks.BEAT)
        (folder / ".lock.train").write_text("")

    leave(folder, host="elsewhere", beat="x")
    thread = threading.Thread(target=beat)
    thread.start()
    yield
    thread.join()


@pytest.fixture
def patient(fast, monkeypatch):
    """A heart that misses some beats, on a busy machine, still lives."""
    monkeypatch.setattr(locks, "LOST", 20)


def test_a_live_lock_from_another_machine_refuses_a_run(tmp_path, patient):
    with beating(tmp_path, 2):
        with pytest.raises(UserError, match="process 1 on elsewhere"):
            with folder_lock(tmp_path, "x", lambda line: None):
                pass


def test_a_job_waits_for_the_stage_on_another_machine(tmp_path, patient):
    os.symlink(".lock.train", tmp_path / ".lock")
    said = []
    with beating(tmp_path, 1):
        begun = time.monotonic()
        with stage_lock(tmp_path, "train", "x", said.append) as taken_over:
            assert not taken_over and time.monotonic() - begun > 0.8
    assert len(said) == 1 and said[0].endswith("waiting")


def test_the_heart_beats_and_who_lost_the_lock_ends(tmp_path, fast, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(locks.os, "kill", lambda pid, signum: ended.set())
    with folder_lock(tmp_path, "x", pytest.fail):
        beats = [json.loads((tmp_path / ".lock").read_text())["beat"]]
        while len(beats) < 4:
            beats += [beat for beat in [json.loads((tmp_path / ".lock").read_text())["beat"]] if beat != beats[-1]]
        assert beats == sorted(beats)
        for _ in range(200):
            leave(tmp_path, host="elsewhere", pid=9)  # again, as a beat that had just begun would have replaced it
            if ended.wait(0.1):
                break
        assert ended.is_set()
    assert json.loads((tmp_path / ".lock").read_text())["pid"] == 9  # not released: it is another's


@pytest.mark.parametrize("text", ['{"host": "x', "[]", "\x00\xff", "null", "3"])
def test_a_lock_file_cut_short_is_free(tmp_path, text):
    (tmp_path / ".lock").write_text(text, encoding="latin-1")
    with folder_lock(tmp_path, "x", pytest.fail):
        assert json.loads((tmp_path / ".lock").read_text(encoding="utf-8"))["pid"] == os.getpid()


def test_a_forked_worker_does_not_keep_the_lock(tmp_path):
    """A data loader's worker that outlives its killed parent must not block the next run."""
    script = HOLDER.replace(
        "time.sleep(60)",
        "import os\n    if os.fork() == 0:\n        time.sleep(60)\n    else:\n        os.kill(os.getpid(), 9)",
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        process.wait()
        said = []
        with folder_lock(tmp_path, "x", said.append):
            assert said
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()


def test_birth_names_a_process():
    assert birth_of(os.getpid()) == birth_of(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    born = birth_of(child.pid)
    assert born and born != birth_of(os.getpid())
    child.kill()
    deadline = time.monotonic() + 20
    while birth_of(child.pid) == born and time.monotonic() < deadline:  # a zombie is as good as dead
        time.sleep(0.01)
    assert birth_of(child.pid) is None
    child.communicate()
    assert birth_of(child.pid) is None
