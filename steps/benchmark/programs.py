"""Programs that a benchmark runs and watches: the time that each takes, the memory of all that it starts, its lines as they
come. Linux alone tells memory; elsewhere it is None."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspeech.engine.process import termination_as_exception

LEAST_PAUSE = 0.2  # seconds between two looks at a program's memory ...
LOOKING = 0.02  # ... which take at most this share of the time


class Outcome(NamedTuple):
    """The end of a program.

    status: its exit status (negative: the signal that ended it); seconds; those of computing on all cores by it and by what it
    has waited for; the most gigabytes (2^30 bytes) that it and all that it started held at a time; its lines (standard output
    and error); True where `stop` ended it.
    """

    status: int
    seconds: float
    cpu_seconds: float
    gigabytes: float | None
    lines: list[str]
    stopped: bool

    @property
    def error(self) -> str:
        """Its first line of an error, or its last line."""
        return ([line for line in self.lines if " ERROR " in line] or self.lines[-1:] or [""])[0]


def say(text: str) -> None:
    """Print a line with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def run_program(
    command: Sequence[str | os.PathLike[str]],
    stop: Callable[[str], bool] = lambda line: False,
    environment: Mapping[str, str] | None = None,
    limit: float = float("inf"),
) -> Outcome:
    """Run `command` in a process group of its own, to its end; the group is killed (SIGKILL) after a line for which
    stop(line) is true, after `limit` seconds, and where this process is interrupted, by Ctrl-C or SIGTERM."""
    begun, lines, stopped = time.monotonic(), [], False
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    text: Any = {"encoding": "utf-8", "errors": "replace"}
    started = subprocess.Popen(list(map(str, command)), env=environment, start_new_session=True, **pipes, **text)
    with termination_as_exception(), started as process:
        timer = threading.Timer(min(limit, threading.TIMEOUT_MAX), _kill_group, [process])
        timer.start()
        try:
            with _PeakMemory(process.pid) as peak:
                for line in process.stdout or ():
                    lines.append(line.rstrip("\n"))
                    if stop(lines[-1]):
                        stopped = True
                        _kill_group(process)
                usage = _wait(process)
        except BaseException:
            _kill_group(process)
            raise
        finally:
            timer.cancel()
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return Outcome(process.returncode, time.monotonic() - begun, cpu_seconds, peak.gigabytes, lines, stopped)


def _wait(process):
    """Wait for a subprocess.Popen: what it has used of the machine."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


def _kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class _PeakMemory:
    """The memory of a process and of all below it, looked at now and then: `gigabytes` is the most, None before a look.

    What several of them share counts once (proportional set size), so that forked workers do not seem to double it.
    """

    def __init__(self, pid):
        self.pid, self.gigabytes = pid, None
        self._over, self._thread = threading.Event(), threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._over.set()
        self._thread.join()

    def _watch(self):
        pause = 0.0
        while not self._over.wait(pause):
            begun = time.monotonic()
            held = [kilobytes for kilobytes in map(_held, _family(self.pid)) if kilobytes is not None]
            if held:
                self.gigabytes = max(self.gigabytes or 0.0, sum(held) / 2**20)
            pause = max(LEAST_PAUSE, (time.monotonic() - begun) / LOOKING)


def _family(pid):
    """The process and all below it."""
    found = [pid]
    for parent in found:  # which grows
        for path in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, path.read_text().split())
    return found


def _held(pid):
    """Kilobytes that a process holds; None for one that is gone, and where the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return None
