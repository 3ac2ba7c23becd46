"""The lock of an experiment folder."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from pyspeech.errors import UserError
from pyspeech.experiment.locks import birth_of, folder_lock

HOLDER = """
import sys, time
from pyspeech.experiment.locks import folder_lock
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
    (folder / ".lock").write_text(
        json.dumps({"host": socket.gethostname(), "pid": 1, "born": "then", "since": "2020", "command": "old", **holder})
    )


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
            1 / 0
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


def test_a_lock_from_another_machine_says_how_to_remove_it(tmp_path):
    leave(tmp_path, host="elsewhere", pid=7)
    with pytest.raises(UserError) as caught:
        with folder_lock(tmp_path, "x", pytest.fail):
            pass
    assert "process 7 on elsewhere" in str(caught.value) and f"rm {tmp_path / '.lock'}" in str(caught.value)


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
