"""Commands in processes of their own that need not import torch and other large packages again.

A server process, which the first command starts, imports these once, and forks for each command.
"""

import array
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from select import select

from kill_harness import end_with

# What takes recipes and tools long to import. Nothing of this repository, and nothing that starts threads.
# torch 2 imports torch._dynamo with the first optimizer.
PACKAGES = """torch torch._dynamo torch.utils.tensorboard torchaudio lhotse k2 omegaconf scipy.signal scipy.stats soundfile
    matplotlib.pyplot sentencepiece onnxruntime""".split()


class Command:
    """A running command: pid, stdout, returncode and wait() are those of subprocess.Popen; it leads a process group."""

    def __init__(self, channel, stdout=None):
        self._channel, self.stdout, self.returncode = channel, stdout, None
        with _in_step():
            self.pid = self._answer(400)  # of the first command, once all is imported

    def wait(self, timeout):
        """Its exit status; -N where signal N ended it."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(self._answer(timeout))
        return self.returncode

    def kill(self):
        """SIGKILL to all of its processes."""
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(self.pid, signal.SIGKILL)
        with _in_step():
            self.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.returncode is None:
            self.kill()
        if self.stdout:
            self.stdout.close()

    def _answer(self, seconds):
        if select([self._channel], [], [], seconds)[0] and (answer := self._channel.recv(20)):
            return int(answer)
        raise subprocess.TimeoutExpired("a forked command", seconds)


@contextlib.contextmanager
def _in_step():
    """Where the server has not answered, another one does for the next command: its answer may still come."""
    try:
        yield
    except BaseException:
        _server.cache_clear()
        raise


def start(script, *arguments, env=None, cwd=None):
    """Start `python script arguments`, one at a time; what it prints, errors too, is to be read from the Command's stdout."""
    ours, theirs = os.pipe()
    with open(theirs, "w") as output, open(os.devnull) as nothing:
        _ask(script, arguments, env, cwd, nothing, output, output)
    return Command(_server(), open(ours, encoding="utf-8"))


def run(script, *arguments, env=None, cwd=None, stdin=None, timeout=400):
    """Run `python script arguments` to its end: a subprocess.CompletedProcess. It is killed after so many seconds.

    stdin: a file that is open, or None for an empty one.
    """
    with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        _ask(script, arguments, env, cwd, stdin or nothing, stdout, stderr)
        with Command(_server()) as command:
            status = command.wait(timeout)
        stdout.seek(0), stderr.seek(0)
        return subprocess.CompletedProcess([script, *arguments], status, stdout.read(), stderr.read())


def _ask(script, arguments, env, cwd, *streams):
    asked = {"argv": [str(script), *map(str, arguments)], "cwd": str(cwd or os.getcwd()), "env": dict(env or os.environ)}
    numbers = array.array("i", [stream.fileno() for stream in streams])
    _server().sendmsg([json.dumps(asked).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])


@functools.cache
def _server():
    """The socket of this process's server, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, __file__, str(theirs.fileno())]
    subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)
    theirs.close()
    return ours


def _serve(channel):
    """Fork for each command that is asked for; tell of its process id, and of how it ends."""
    while data := (message := channel.recvmsg(1 << 20, socket.CMSG_SPACE(12)))[0]:
        streams = list(array.array("i", message[1][0][2]))
        pid = os.fork()
        if not pid:
            channel.close()
            end_with(lambda: _command(streams, **json.loads(data)), 1)
        for stream in streams:
            os.close(stream)
        channel.send(str(pid).encode())
        channel.send(str(os.waitpid(pid, 0)[1]).encode())


def _command(streams, argv, cwd, env):
    """Do in this process what `python argv` does in that folder and environment; its exit status."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, encoding="utf-8", closefd=False), open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(cwd)
    ours = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ.clear()
    os.environ.update(env)
    theirs = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = argv
    sys.path[:] = [str(Path(argv[0]).resolve().parent), *theirs, *(path for path in sys.path[1:] if path not in ours)]
    try:
        runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:  # all that the end of a Python does but take the modules apart, which takes a second
        threading._shutdown()
        atexit._run_exitfuncs()
    return 0


if __name__ == "__main__":
    for package in PACKAGES:
        with contextlib.suppress(ImportError):  # k2 is not in every environment
            importlib.import_module(package)
    gc.freeze()  # forks need not look through all of that
    _serve(socket.socket(fileno=int(sys.argv[1])))
