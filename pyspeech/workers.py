"""Work on many items in several processes of this machine, each item by itself."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from multiprocessing import connection
from typing import Any, TypeVar

from pyspeech.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")
_PR_SET_PDEATHSIG = 1


def in_processes(work: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Generator[Result, None, None]:
    """Yield work(item) of each of `items`, as they are done, computed by `jobs` forked processes of one thread each.

    Process k takes the items k, k + jobs and so on, so items should be of about the same size. What `work` raises is
    raised here, UserError where a process was killed; the others are then ended, as they are when the caller is.
    """
    context = multiprocessing.get_context("fork")
    processes, open_ends = [], []
    try:
        for number in range(min(jobs, len(items))):
            receive, send = context.Pipe(duplex=False)
            arguments = (work, items[number::jobs], send, os.getpid())
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            send.close()
            processes.append(process)
            open_ends.append(receive)
        while open_ends:
            for receive in connection.wait(open_ends):
                try:
                    done, value = receive.recv()  # pyright: ignore[reportAttributeAccessIssue, reportCallIssue]
                except EOFError:
                    raise _lost(processes) from None
                if isinstance(value, BaseException):
                    raise value
                if done:
                    open_ends.remove(receive)
                else:
                    yield value
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


def _work(work, items, send, parent):
    """In a process of its own: send (False, result) for each item, then (True, None); (True, exception) where one fails."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent ends this one
    if "torch" in sys.modules:  # some work needs none, and it takes seconds to load
        sys.modules["torch"].set_num_threads(1)
    try:
        for item in items:
            send.send((False, work(item)))
        send.send((True, None))
    except Exception as error:
        send.send((True, error))


def _lost(processes):
    for process in processes:
        process.join(0.1)
    statuses = [process.exitcode for process in processes if process.exitcode]
    cause = "; out of memory?" if -signal.SIGKILL in statuses else ""
    return UserError(f"a process of the work ended with status {statuses[0] if statuses else 0}{cause}")


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent, the process `parent`, ends, even by kill -9 (Linux alone)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def worker_pool(jobs: int) -> Any:
    """A pool of `jobs` processes, forked, that end with this one."""
    return multiprocessing.get_context("fork").Pool(jobs, initializer=die_with, initargs=(os.getpid(),))
