"""The process that runs a recipe: signals as exceptions, peak memory, and its own command line for people to repeat."""

import contextlib
import functools
import os
import resource
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator

from pyspeech.engine.gpu import has_gpu
from pyspeech.errors import UserError
from pyspeech.launch import ROOT


class Terminated(KeyboardInterrupt):
    """SIGTERM (kill, a batch system) or SIGUSR2 (Slurm, before the time is up) asked the run to end."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


CORES = "PYSPEECH_CORES"
THREADS = "OMP_NUM_THREADS"
_SIGNALS = (signal.SIGTERM, signal.SIGUSR2)
_handling = False


def _before_fork():
    if _handling:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def _after_fork(in_child):
    if _handling:
        for signum in _SIGNALS * in_child:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


# Forked workers end by SIGTERM as if we had no handlers. Python drops a signal that arrives while the fork goes on, and
# a pool that terminates its workers would then wait for ever: such a signal is held back until the child is ready.
os.register_at_fork(before=_before_fork, after_in_parent=lambda: _after_fork(False), after_in_child=lambda: _after_fork(True))


@contextlib.contextmanager
def termination_as_exception() -> Iterator[None]:
    """Raise Terminated in the main thread at SIGTERM and SIGUSR2, as Ctrl-C raises KeyboardInterrupt.

    A stage that can save its state first installs handlers of its own for as long as it wants to.
    """
    global _handling

    def handle(signum, frame):
        raise Terminated(signum)

    if threading.current_thread() is not threading.main_thread():  # Python allows no handlers there
        yield
        return
    previous = {signum: signal.signal(signum, handle) for signum in _SIGNALS}
    _handling = True
    try:
        yield
    finally:
        _handling = False
        for signum, handler in previous.items():
            signal.signal(signum, handler)


class PeakMemory:
    """The largest resident memory of this process (its workers not counted) since the object was made, in MB."""

    def __init__(self):
        self._resettable = True
        try:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as stream:
                stream.write("5")
        except OSError:  # then the peak since the process began has to do
            self._resettable = False

    def megabytes(self) -> int:
        if self._resettable:
            with open("/proc/self/status", encoding="utf-8") as stream:
                for line in stream:
                    if line.startswith("VmHWM:"):
                        return int(line.split()[1]) // 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def num_cores() -> int:
    """Count the cores that this process may use: those that the kernel gives it, and no more than its batch job asked
    for, as not every cluster keeps jobs to that."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("NSLOTS") or ""  # NSLOTS: Grid Engine
    return min(cores, int(asked)) if asked.isdecimal() and int(asked) else cores


def stage_cores() -> int:
    """Count those of them that this stage may use, where several run at a time (CORES, which says so, is set for each)."""
    return min(num_cores(), int(os.environ.get(CORES) or num_cores()))


def threads() -> int:
    """Read the number of threads of each process that computes: OMP_NUM_THREADS; else 1, wherever a stage runs, as its
    figures depend on it."""
    text = (os.environ.get(THREADS) or "1").partition(",")[0]  # of nested regions, the outermost
    if not text.strip().isdecimal() or not int(text):
        raise UserError(f"{THREADS}={text} in the environment: expected a number of threads, at least 1")
    return int(text)


def stages_at_once() -> int:
    """Choose how many small trainings go on at a time: on cores one each, which is faster than all on one, up to four; a
    GPU has one."""
    return 1 if has_gpu() else min(4, num_cores())


def model_processes() -> int:
    """Choose how many processes compute with a network: one for each of its cores, or one for a GPU."""
    return 1 if has_gpu() else stage_cores()


def batch_job() -> str | None:
    """Read the id of the batch job that this process is in, of Slurm or Grid Engine, or None."""
    return os.environ.get("SLURM_JOB_ID") or os.environ.get("JOB_ID")


@functools.cache
def commit() -> str | None:
    """Name the commit of this repository that runs, "-dirty" after it where files differ; None outside a clone."""
    if not os.path.exists(os.path.join(ROOT, ".git")):
        return None
    command = ["git", "-C", ROOT, "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def shell_command(program: str, arguments: Iterable[str]) -> str:
    """Write the command line that starts a script again from the present folder."""
    path = short_path(os.path.abspath(program))
    if not os.access(path, os.X_OK):
        return shlex.join([sys.executable, path, *arguments])
    return shlex.join([path if os.sep in path else f"./{path}", *arguments])


def short_path(path: str | os.PathLike[str]) -> str:
    """Shorten a path for the eye: relative to the present folder where it lies below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.split(os.sep)[0] == ".." else relative


def duration(seconds: float) -> str:
    """Write a duration: "45 s", "12 min 3 s" or "3 h 20 min"."""
    seconds = int(round(seconds))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"
