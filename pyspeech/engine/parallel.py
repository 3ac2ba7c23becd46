"""Parallel stages of a run, each in its own process, forked from the one that decides which is next."""

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyspeech.engine import stages as graph
from pyspeech.engine.logs import FORMAT, TIME_FORMAT, ScreenHandler
from pyspeech.engine.process import CORES, num_cores, termination_as_exception
from pyspeech.engine.workers import die_with


class StageFailed(Exception):
    """A stage ended with `status`; it has said why, unless that is a signal (-9 for SIGKILL)."""

    def __init__(self, stage: graph.Stage, status: int) -> None:
        super().__init__(f"{stage} ended with status {status}")
        self.stage, self.status = stage, status


def run_parallel(
    selected: Sequence[graph.Stage],
    stages: Sequence[graph.Stage],
    jobs: int,
    decide: Callable[[graph.Stage], Any],
    run: Callable[[graph.Stage, Any], object],
    finished: Callable[[graph.Stage], object],
) -> None:
    """Run the `selected` ones of all `stages`, each once what makes its inputs is done, at most `jobs` at a time; of those that
    could begin, the one with the most `hours`, so that the others do not wait for it in the end.

    Each has its share of the cores, but a stage that trains nothing and begins while no other one can has all of them for its
    processes.

    decide(stage) -> what `run` needs, or None where the stage is up to date; run(stage, decision), in a process of its
    own; finished(stage) after it. Raises StageFailed once a stage has failed and the others have been stopped, by SIGTERM:
    they save their state where they can. When the calling process is killed, so are they.
    """
    waiting, ready, running = sorted(selected, key=lambda stage: -stage.hours), [], {}
    share = max(1, num_cores() // jobs)
    try:
        while waiting or ready or running:
            stage = _next(waiting, [*running.values(), *(stage for stage, _ in ready)], stages)
            if stage is not None:
                waiting.remove(stage)
                decision = decide(stage)
                if decision is not None:
                    ready.append((stage, decision))
                continue
            if ready and len(running) < jobs:
                stage, decision = ready.pop(max(range(len(ready)), key=lambda index: ready[index][0].hours))
                alone = not running and not ready
                cores = num_cores() if alone and not stage.trains else share
                running[_start(stage, cores, partial(run, stage, decision))] = stage
                continue
            pid, status = os.wait()
            ended = running.pop(pid, None)
            if ended is not None and status:
                raise StageFailed(ended, os.waitstatus_to_exitcode(status))
            if ended is not None:
                finished(ended)
    finally:
        _stop(running)


def _next(waiting, running, stages):
    """The first of the stages `waiting` that needs none of the others of these or of those `running`, or None."""
    unfinished = {*waiting, *running}
    ready = (stage for stage in waiting if not (unfinished - {stage}).intersection(graph.producers(stage, stages)))
    return next(ready, None)


def _start(stage, cores, run):
    """Call run() in a forked process, which exits with its status: the process id."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        die_with(parent)
        _prepare(stage, cores)
        with termination_as_exception():
            run()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except KeyboardInterrupt as error:
        status = 128 + getattr(error, "signum", signal.SIGINT)
    except BaseException:
        logging.getLogger("pyspeech.stage").exception("%s failed", stage)
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(status)


def _prepare(stage, cores):
    """Name the stage in each line, show no bars, which would overwrite each other, and use `cores`."""
    os.environ["TQDM_DISABLE"] = "1"
    os.environ[CORES] = str(cores)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, ScreenHandler):
            handler.setFormatter(logging.Formatter(FORMAT.replace("%(message)s", f"[{stage.name}] %(message)s"), TIME_FORMAT))


def _stop(running):
    """End the processes, a dict by process id, and wait for them."""
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    for pid in running:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
