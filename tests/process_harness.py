"""Runs a function in several processes that train together, forked from the test's own."""

import os
import signal
import socket
import traceback

import torch

from pyspeech.engine.place import from_environment
from pyspeech.training import distributed


def in_processes(size, work, seconds=60, patience=30):
    """[("done", what work() returns) or (name of an exception, its text) of each of `size` processes]; ("lost", "") for one
    that ended without either. AssertionError where process 0 has not ended in so many seconds; the others are killed where
    they have not ended `patience` seconds after it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("fork")
    readers, writers = zip(*(context.Pipe(duplex=False) for _ in range(size)), strict=False)
    processes = [
        context.Process(target=_work, args=(rank, size, port, work, writers[rank]), daemon=True) for rank in range(size)
    ]
    for process in processes:
        process.start()
    for writer in writers:
        writer.close()
    try:
        processes[0].join(seconds)
        assert processes[0].exitcode is not None, f"process 0 still runs after {seconds} s"
        for process in processes[1:]:
            process.join(patience)
    finally:
        for process in processes:
            process.kill()
            process.join()
    return [received(reader) for reader in readers]


def received(reader):
    """Each process has a pipe of its own, which ends with it: no result is waited for that one killed has begun to write."""
    try:
        return reader.recv()
    except (EOFError, OSError):  # the latter in the middle of a message
        return "lost", ""


def all_done(size, work):
    """[what work() returns in each process], all of which have to end well."""
    found = in_processes(size, work)
    assert all(name == "done" for name, _ in found), found
    return [value for _, value in found]


def _work(rank, size, port, work, writer):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(size), RANK=str(rank), LOCAL_RANK="0")
    torch.set_num_threads(1)
    try:
        distributed.join(from_environment())
        result = ("done", work())
    except BaseException as error:
        if not isinstance(error, (Exception, KeyboardInterrupt)):
            traceback.print_exc()
        result = (type(error).__name__, str(error))
    writer.send(result)
