"""SIGKILL, or a full disk, at chosen moments: the so many-th change of a file, by a process and those that it has forked.

python tests/kill_harness.py FOLDER NUMBER SCRIPT ARGUMENTS    SCRIPT ARGUMENTS, the disk of FOLDER being full for a moment
"""

import errno
import multiprocessing
import os
import runpy
import signal
import sys
import traceback

FULL = "a full disk for this change:"


def kill_at_event(folder, number):
    """Before a command: kill -9 it at its `number`-th change of a file or folder below `folder`; all of its process group,
    where it is the leader of one."""
    pid = -os.getpid() if os.getpgrp() == os.getpid() else os.getpid()
    _at_event(folder, number, lambda path: os.kill(pid, signal.SIGKILL))


def full_at_event(folder, number):
    """Before a command: its `number`-th change fails, as on a full disk, which it says in a line that begins with FULL; later
    ones do not, as somebody has made room."""

    def fail(path):
        print(f"{FULL} {path}", file=sys.stderr, flush=True)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    _at_event(folder, number, fail)


def _at_event(folder, number, act):
    seen = multiprocessing.get_context("fork").Value("l", 0)

    def count():
        held = seen.get_lock().acquire(timeout=1)  # not for ever: a killed process may have it
        seen.value += 1
        found = seen.value
        if held:
            seen.get_lock().release()
        return found

    def changes(event, arguments):
        if event == "open":
            return isinstance(arguments[0], (str, bytes, os.PathLike)) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")

    def hook(event, arguments):
        if changes(event, arguments):
            path = arguments[0]
            below = isinstance(path, int) or os.path.abspath(os.fsdecode(path)).startswith(str(folder))
            if below and count() == number:
                act(path)

    sys.addaudithook(hook)


def killed_until_it_ends(work, folder, rng, most, attempts=60):
    """Call work() in processes of their own, each killed at a random one of its first `most` changes of files below `folder`,
    until one ends: how many were killed."""
    for kills in range(attempts):
        number = rng.randint(1, most)  # drawn here: a fork's generator dies with it
        pid = os.fork()
        if not pid:
            _in_a_group(work, folder, number)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status == 0:
            return kills
        assert status == -signal.SIGKILL, status
    raise AssertionError(f"it has not ended in {attempts} attempts")


def _in_a_group(work, folder, number):
    def killed():
        os.setsid()
        kill_at_event(folder, number)
        work()
        return 0

    end_with(killed, 1)


def end_with(work, failed):
    """End this process, a fork, with the status that work() returns, or `failed` after an exception, which is printed."""
    status = failed
    try:
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    full_at_event(os.path.abspath(sys.argv[1]), int(sys.argv[2]))
    sys.argv = sys.argv[3:]
    runpy.run_path(sys.argv[0], run_name="__main__")
