"""The other processes of a stage that trains on several GPUs: which process this is, and how the others are started, watched
and ended.

Process 0 is the run that people see: it has the locks, the records and the logs. The others run the same command for that one
stage; the environment tells them so, as pyspeech.engine.place describes. On one machine process 0 starts them
(--gpus N); on several, torchrun or Slurm's srun starts all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspeech.engine.gpu import switched_off, usable_gpus
from pyspeech.engine.logs import say
from pyspeech.engine.place import Elsewhere, Place, from_environment
from pyspeech.engine.process import CORES, stage_cores
from pyspeech.engine.stages import Stage
from pyspeech.engine.workers import die_with
from pyspeech.errors import UserError

BACKEND = "pyspeech.training.distributed"  # the module that joins processes and describes what computes
PARENT = "PYSPEECH_PARENT"  # in the environment of a process that is to end with the one that started it: that one's id
LOOK = 0.3  # seconds between looks at the others
GRACE = 20.0  # seconds that process 0 has to notice by itself that another one is gone, before it is ended


def backend() -> Any:
    """Load the module with join, leave, from_first, threads and describe_environment. It takes seconds, so only a stage that
    runs asks for it."""
    return importlib.import_module(BACKEND)


def place_of(selected: Sequence[Stage], flags: argparse.Namespace) -> Place:
    """Find the Place of this process. UserError where the environment tells of several and the command does not, or where
    --gpus asks for more than there are."""
    gpus = int(flags.gpus or 1)
    if flags.dry_run or flags.cancel or flags.cluster:
        return Place()
    place = from_environment()
    if place.size == 1:
        if gpus > 1 and not switched_off() and len(usable_gpus()[0]) < gpus:
            found = len(usable_gpus()[0]) or "no"
            raise UserError(f"--gpus {gpus}: found {found} GPU; add --device cpu to train with as many processes on the CPU")
        return place
    if gpus not in (1, place.size):
        raise UserError(f"--gpus {gpus}: expected {place.size}, as WORLD_SIZE in the environment says")
    if len(selected) != 1 or not selected[0].trains:
        raise UserError(
            f"WORLD_SIZE={place.size} in the environment: expected one stage that trains, --stage X --stop-stage X; "
            "unset it for others, or use --gpus N instead"
        )
    return place


def command(stage: str, arguments: Sequence[str]) -> list[str]:
    """Write the command line of another process for a stage."""
    return [sys.executable, os.path.abspath(sys.argv[0]), "--stage", stage, "--stop-stage", stage, *arguments]


@contextlib.contextmanager
def together(place: Place) -> Iterator[Callable[..., Any]]:
    """Join the others; then agree(value) gives, in each process, the value of process 0."""
    processes = backend()
    processes.join(place)
    yield lambda value=None: processes.from_first(lambda: value)
    # Not after an error: the others are to hear of it when this process ends, not while it still tidies up.
    processes.leave()


@contextlib.contextmanager
def started(command: Sequence[str], size: int, tell: Callable[[str], object]) -> Iterator[Place]:
    """Run processes 1 to `size` - 1 on this machine within the context; yield the Place of this one. Each has its
    share of the cores. One that ends too early is told of, and ends the others."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = max(1, stage_cores() // size)
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), CORES: str(threads)}
    with _environment(shared), backend().threads(threads), contextlib.ExitStack() as stack:
        processes = {}
        stack.callback(_end, processes)
        for rank in range(1, size):
            own = {"WORLD_SIZE": size, "RANK": rank, "LOCAL_RANK": rank, PARENT: os.getpid()}
            environment = {"OMP_NUM_THREADS": str(threads), **os.environ, **{name: str(value) for name, value in own.items()}}
            processes[rank] = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(processes, over, tell), daemon=True)
        watcher.start()
        stack.callback(watcher.join)
        stack.callback(over.set)
        yield Place(0, size, 0)
        deadline = time.monotonic() + GRACE
        for process in processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0, deadline - time.monotonic()))


def _watch(processes, over, tell):
    """Until the event `over`: where a process has failed, end the others, and then this one where it does not end itself, as it
    waits for the GPU."""
    ended = False
    while not ended:
        ended = over.wait(LOOK)
        if ended and any(process.poll() is None for process in processes.values()):
            time.sleep(LOOK)  # this one has failed, maybe as it lost one that is just about to be gone
        lost = {rank: process.returncode for rank, process in processes.items() if process.poll()}
        for rank, status in lost.items():
            cause = "; out of memory?" if status == -signal.SIGKILL else ""
            tell(f"process {rank} of {len(processes) + 1} has ended with status {status}{cause}")
        if lost:
            _end(processes)
            if not ended and not over.wait(GRACE):
                say("the others wait for it in vain: the same command goes on from the last checkpoint", sys.stderr)
                os._exit(1)
            return


def _end(processes):
    for process in processes.values():
        process.kill()
    for process in processes.values():
        process.wait()


@contextlib.contextmanager
def alongside(place: Place) -> Iterator[None]:
    """Be another process than 0: it ends with the one that started it, leaves signals and log lines to process 0, and says in
    one line what goes wrong here. Exits with status 1 then; with 0 where all were asked to stop."""
    if PARENT in os.environ:
        die_with(int(os.environ[PARENT]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):  # in a training they are noted all the same
        signal.signal(number, signal.SIG_IGN)
    logging.disable(logging.WARNING)
    os.environ["TQDM_DISABLE"] = "1"
    try:
        yield
    except KeyboardInterrupt:  # of a training that was asked to stop: all signals are ignored otherwise
        sys.exit(0)
    except Elsewhere:
        sys.exit(1)
    except UserError as error:
        say(f"process {place.rank} of {place.size}: {error}", sys.stderr)
        sys.exit(1)


@contextlib.contextmanager
def _environment(values):
    """These variables of the environment are set, and put back."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
