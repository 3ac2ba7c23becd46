"""Tools of utils/ in tests, as their user starts them; their errors; modules as at the start; a folder of awkward audio."""

import contextlib
import fcntl
import importlib.util
import os
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import fork_server
import numpy as np
import pytest
import soundfile

from pyspeech.errors import UserError

UTILS = Path(__file__).resolve().parents[1] / "utils"
ENVIRONMENT = {**os.environ, "PYSPEECH_ENV": "system", "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}
BAD = ("empty", "no samples", "text")


def tool_command(name, *arguments, python=()):
    return [sys.executable, *python, str(UTILS / f"{name}.py"), *map(str, arguments)]


def run_tool(name, *arguments, python=(), cwd="/", env=ENVIRONMENT, stdin=None):
    """Run utils/<name>.py from another folder: a subprocess.CompletedProcess.

    python: options of Python itself, which it is then started with; else it is forked from a process with all imports.
    stdin: a file that is open, or None for an empty one.
    """
    if python:
        command = tool_command(name, *arguments, python=python)
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env)
    return fork_server.run(UTILS / f"{name}.py", *arguments, cwd=cwd, env=env, stdin=stdin)


def interrupted_at_standard_input(command, data, seconds=120):
    """Start a command, give it data, and interrupt it once where it waits for more: (standard output, standard error, status).

    It is killed, and has the status -9, where it has not ended after so many seconds.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=False, env=ENVIRONMENT) as process:
        watch = threading.Timer(seconds, process.kill)
        watch.start()
        process.stdin.write(data)
        process.stdin.flush()
        while process.poll() is None and _unread(process.stdin):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, messages = process.stdout.read(), process.stderr.read()  # standard input stays open
        status = process.wait()
        watch.cancel()
    return output.decode(), messages.decode(), status


def _unread(pipe):
    """Bytes that a pipe holds."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


@contextlib.contextmanager
def one_line_error(message):
    """The block ends with a UserError of one line that matches `message`."""
    with pytest.raises(UserError, match=message) as error:
        yield
    assert "\n" not in str(error.value)


def assert_usage_error(capsys, main, arguments, message):
    """A tool's main() ends at its options, and says so on standard error."""
    with pytest.raises(SystemExit):
        main([str(argument) for argument in arguments])
    assert message in capsys.readouterr().err


def as_new(module):
    """A copy of a module as a program has it that has just imported it: what is remembered once a process is not."""
    spec = importlib.util.spec_from_file_location(f"new_{module.__name__.rpartition('.')[2]}", module.__file__)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def write_awkward_audio(folder, speech):
    """Write files of all kinds, made from speech (N,) at 16 kHz; {stem: samples at 16 kHz, about} of the good ones.

    The stems of the bad ones are BAD.
    """
    low, high = speech[::2], np.repeat(speech, 3)
    signals = {
        "silence": (np.zeros(16000), 16000),
        "one": (np.ones(1), 16000),
        "snippet": (speech[:1520], 16000),
        "eight": (low, 8000),
        "día stereo 48": (np.stack([high, np.zeros(len(high))], axis=1), 48000),
    }
    for stem, (samples, rate) in signals.items():
        soundfile.write(folder / f"{stem}.wav", samples, rate, subtype="FLOAT")
    soundfile.write(folder / "no samples.wav", np.zeros(0), 16000)
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.wav").write_text("This is a letter, not a recording.\n")
    return {stem: len(samples) / rate for stem, (samples, rate) in signals.items()}
