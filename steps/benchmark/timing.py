"""Time of repeated work, so that figures can be compared: warm-up, several repeats of several seconds, all of them kept.

The time that a computation takes on a shared machine varies by tens of percents, and its process time over wall time does
not tell; the kernel's pressure does (share of the time in which something that could run had no core).
"""

from __future__ import annotations

import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Result = TypeVar("Result")
PRESSURE = Path("/proc/pressure/cpu")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
TRIAL = 0.25  # of the time of a repeat: what is timed to find how many calls fill one
PATIENCE = 600.0  # seconds that a process waits for the others


class Times(NamedTuple):
    """Repeats of the same work. seconds, cpu_seconds: of a call, the mean of each repeat, on the clock and of computing by
    this process; calls: of a repeat; pressure: the highest of the machine behind a repeat (see `cpu_pressure`)."""

    seconds: list[float]
    cpu_seconds: list[float]
    calls: int
    pressure: float | None


class Team:
    """Processes that do their shares of the same work at the same time. Made before they are forked; `number` is that of the
    process, from 0, and each is to set its own."""

    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("fork")
        self.size, self.number = size, 0
        self._barrier, self._value = context.Barrier(size), context.Value("d")

    def meet(self) -> None:
        """Wait until all are here."""
        if self.size > 1:
            self._barrier.wait(PATIENCE)

    def agree(self, value: float) -> float:
        """The value of the first process, in all."""
        if self.size > 1:
            if self.number == 0:
                self._value.value = value
            self.meet()
            value = self._value.value
            self.meet()
        return value


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables of a program that is to compute with so many threads, which sleep while they wait: those that
    spin take each other's cores on a shared machine. For numpy and torch to heed them, they are set before these load."""
    return {**dict.fromkeys(THREAD_VARIABLES, str(threads)), "OMP_WAIT_POLICY": "PASSIVE"}


def use_one_thread() -> None:
    """This process, before numpy and torch load, is to compute with one thread."""
    os.environ.update(thread_variables(1))


def cpu_pressure() -> float | None:
    """Percent of the last ten seconds in which a process of this machine waited for a core; None where nobody tells."""
    try:
        some = PRESSURE.read_text(encoding="ascii").splitlines()[0]
        return float(some.partition("avg10=")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return None


def repeat(call: Callable[[], object], repeats: int, seconds: float, team: Team | None = None) -> Times:
    """The Times of `repeats` repeats of as many calls each as take about `seconds`; call() is called before to warm up.

    team: the processes that share each call's work; a call's time is then that of the last of them.
    """
    team = team or Team(1)
    call()
    calls = _calls_of(call, seconds, team)
    wall, computing, pressures = [], [], []
    for _ in range(repeats):
        elapsed, computed = _timed(call, calls, team)
        wall.append(elapsed / calls)
        computing.append(computed / calls)
        pressures.append(cpu_pressure())
    return Times(wall, computing, calls, max((value for value in pressures if value is not None), default=None))


def _calls_of(call, seconds, team):
    """How many calls fill a repeat; each process comes to the same number."""
    calls = 1
    while True:
        elapsed = team.agree(_timed(call, calls, team)[0])
        if elapsed >= TRIAL * seconds:
            return max(1, math.ceil(calls * seconds / max(elapsed, 1e-9)))
        calls = max(2 * calls, math.ceil(calls * TRIAL * seconds / max(elapsed, 1e-9)))


def _timed(call, calls, team):
    """(seconds until all processes had done so many calls, seconds of computing by this one)."""
    team.meet()
    begun, computed = time.monotonic(), time.process_time()
    for _ in range(calls):
        call()
    computed = time.process_time() - computed
    team.meet()
    return time.monotonic() - begun, computed


def best_process_times(
    functions: Sequence[Callable[[], Result]], repetitions: int, warm_up: bool = True
) -> tuple[list[float], list[Result]]:
    """Seconds of process time of a call, for each function the least of several repetitions, in which they take turns; and
    what each returned last. warm_up: each is called once before, which does not count."""
    best: list[float] = [math.inf] * len(functions)
    results: list[Any] = [function() if warm_up else None for function in functions]
    for _ in range(repetitions):
        for place, function in enumerate(functions):
            begun = time.process_time()
            results[place] = function()
            best[place] = min(best[place], time.process_time() - begun)
    return best, results


def spread(seconds: Sequence[float]) -> tuple[float, float, float]:
    """(median, least, most)."""
    return statistics.median(seconds), min(seconds), max(seconds)
