"""How tools begin and end: Ctrl-C at any moment, files that cannot be written."""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest
from tool_harness import ENVIRONMENT, UTILS, assert_usage_error

from pyspeech.commands import arguments
from pyspeech.commands.terminal import exit_after, progress_bar, say_errors, stop_at_interrupt
from pyspeech.errors import UserError

SCRIPT = """
import os, signal, sys, time
sys.path.insert(0, {root!r})
from pyspeech.launch import ensure_environment

ensure_environment()


def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)


def interrupted_in_a_module():
    try:
        interrupted()
    except KeyboardInterrupt:
        raise ImportError("initialization failed")


if sys.argv[1] == "loading":
    interrupted()
from pyspeech.commands.terminal import exit_after

exit_after(interrupted if sys.argv[1] == "working" else interrupted_in_a_module)
"""


@pytest.mark.parametrize("when, status", [("loading", -signal.SIGINT), ("importing", 130), ("working", 130)])
def test_ctrl_c_is_never_a_traceback(tmp_path, when, status):
    script = tmp_path / "tool.py"
    script.write_text(SCRIPT.format(root=str(UTILS.parent)))
    done = subprocess.run([sys.executable, str(script), when], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == status and not done.stdout + done.stderr


@pytest.fixture
def silent_stdin(monkeypatch):
    """Standard input is a pipe from which nothing comes, but for one byte after 20 s: a read that waits then ends."""
    reading, writing = os.pipe()
    late = threading.Timer(20, os.write, (writing, b"x"))
    late.start()
    with open(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield stdin
    late.cancel()
    os.close(writing)


def test_an_interrupt_ends_standard_input_and_the_next_one_the_program(silent_stdin):
    before = signal.getsignal(signal.SIGINT)
    with stop_at_interrupt() as stopped:
        assert not stopped
        os.kill(os.getpid(), signal.SIGINT)
        assert stopped and sys.stdin.buffer.read1(1) == b""
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
    assert signal.getsignal(signal.SIGINT) is before and sys.stdin is silent_stdin
    assert signal.set_wakeup_fd(-1) == -1
    with pytest.raises(KeyboardInterrupt), stop_at_interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        raise UserError("holds no samples")
    with pytest.raises(UserError), stop_at_interrupt():
        raise UserError("holds no samples")
    with stop_at_interrupt(wanted=False):
        assert signal.getsignal(signal.SIGINT) is before


def interrupt_and(function, *arguments):
    """Call a function with an interrupt that Python has not handled yet: it looks for one between instructions of its own."""
    calls = [partial(getattr(ctypes.CDLL(None), "raise"), int(signal.SIGINT)), partial(function, *arguments)]
    return list(map(partial.__call__, calls))[1]


@pytest.mark.parametrize("where", ["before the read", "before the wait"])
def test_an_interrupt_just_before_a_read_ends_it_too(silent_stdin, monkeypatch, where):
    with stop_at_interrupt() as stopped:
        if where == "before the read":
            assert interrupt_and(sys.stdin.buffer.read1, 1) == b""
        else:
            monkeypatch.setattr(select, "select", partial(interrupt_and, select.select))
            assert sys.stdin.buffer.read1(1) == b""
    assert stopped


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_no_fault_of_a_recording(caplog):
    """The rest would be lost too: the tool ends, with the name of what it was writing."""

    def main():
        with say_errors("a.wav", failed), open("/dev/full", "w") as stream:
            stream.write("x")

    failed = []
    with pytest.raises(SystemExit, match="^error: standard output: No space left on device$"):
        exit_after(main)
    assert not failed and not caplog.text


def test_progress():
    assert progress_bar(0, 40, 0.1) == "[....................] 1/40"
    assert progress_bar(10, 40, 60.0) == "[#####...............] 11/40, 0:03:00 left"


def test_a_file_in_no_folder_is_refused_before_the_work(tmp_path, capsys):
    def main(given):
        parser = arguments.tool_parser("A tool.")
        arguments.add_json(parser)
        return parser.parse_args(given)

    assert main(["--json", str(tmp_path / "x.json")]).json == str(tmp_path / "x.json")
    assert_usage_error(capsys, main, ["--json", tmp_path / "none" / "x.json"], f"there is no folder {tmp_path / 'none'}")
    assert_usage_error(capsys, main, ["--json", tmp_path], f"{tmp_path}: is a folder; expected a file")
    assert not (tmp_path / "none").exists()
