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
from typing import TypeVar

from pyspeech.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")
_PR_SET_PDEATHSIG = 1


def in_processes(work: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Generator[Result, None, None]:
    """Yield work(item) of each of `items`, as they are done, computed by `jobs` forked processes of one thread each.

    A process that is done with an item takes the next one. What `work` raises is raised here, UserError where a process
    was killed; the others are then ended, as they are when the caller is.
    """
    context = multiprocessing.get_context("fork")
    processes, open_ends, following = [], [], context.Value("l", 0)
    try:
        for _ in range(min(jobs, len(items))):
            receive, send = context.Pipe(duplex=False)
            arguments = (work, items, following, send, os.getpid())
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


def _work(work, items, following, send, parent):
    """In a process of its own: send (False, result) for each item that it takes, then (True, None); (True, exception) where
    one fails. following: the number of the next item, which all processes share."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent ends this one
    if "torch" in sys.modules:  # some work needs none, and it takes seconds to load
        sys.modules["torch"].set_num_threads(1)
    try:
        while True:
            with following.get_lock():
                number, following.value = following.value, following.value + 1
            if number >= len(items):
                break
            send.send((False, work(items[number])))
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
