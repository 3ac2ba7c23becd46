"""Work in several processes: every item once, what fails is raised here, and nothing stays behind."""

import multiprocessing
import os
import signal
import time

import pytest

from pyspeech.engine.workers import in_processes
from pyspeech.errors import UserError


@pytest.mark.parametrize("jobs", [1, 3, 20])
def test_every_item_once_in_other_processes(jobs):
    together = multiprocessing.get_context("fork").Barrier(min(jobs, 10))

    def work(item):
        if item < min(jobs, 10):
            together.wait(60)  # none is done with its first before all have one
        return item, os.getpid()

    found = list(in_processes(work, list(range(10)), jobs))
    assert sorted(item for item, _ in found) == list(range(10))
    assert len({pid for _, pid in found}) == min(jobs, 10) and os.getpid() not in {pid for _, pid in found}
    assert list(in_processes(abs, [], jobs)) == []


def wait_and_say(item):
    time.sleep(30 if item % 2 == 0 else 0.05)
    return os.getpid()


def test_what_fails_is_raised_and_ends_the_others():
    def work(item):
        if item == 1:
            raise UserError("x.wav: cannot be read")
        return wait_and_say(item)

    begun = time.monotonic()
    with pytest.raises(UserError, match="x.wav: cannot be read"):
        list(in_processes(work, range(4), 2))
    assert time.monotonic() - begun < 20


def test_a_process_that_is_killed():
    with pytest.raises(UserError, match="status -9; out of memory"):
        list(in_processes(lambda item: os.kill(os.getpid(), signal.SIGKILL), range(4), 2))


def test_processes_end_with_the_caller():
    begun = time.monotonic()
    results = in_processes(wait_and_say, range(1, 3), 2)
    pid = next(results)
    results.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert time.monotonic() - begun < 20
