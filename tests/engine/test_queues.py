"""A queue that refuses for a while or for ever, and jobs of similar names; the queue is stood in for."""

import errno
import signal
import sys
from types import SimpleNamespace

import pytest

from pyspeech.engine import cluster, job, queues, records
from pyspeech.engine.queues import Job, Queued, QueueError
from pyspeech.engine.site import Site
from pyspeech.engine.stages import Stage
from steps.benchmark import one_job


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that were made, at most ten."""
    made = []

    def pause(seconds):
        made.append(seconds)
        assert len(made) < 10, "it asks for ever"

    monkeypatch.setattr(queues.time, "sleep", pause)
    return made


class Queue:
    """jobs: {name: id} of those in it; refusals: how often it cannot be asked to queue a job again."""

    def __init__(self, jobs=None, refusals=0):
        self.there, self.refusals, self.cancelled, self.submitted = dict(jobs or {}), refusals, [], []

    def jobs(self, prefix):
        return {name: Queued(number, True, "") for name, number in self.there.items() if name.startswith(prefix)}

    def cancel(self, numbers):
        if not set(numbers) <= set(self.there.values()):
            raise QueueError("denied: there is no such job")
        self.cancelled += numbers

    def requeue(self):
        self.refusals -= 1
        if self.refusals >= 0:
            raise QueueError("the controller has not answered")
        return 0

    def submit(self, job, site):
        self.submitted.append(job.name)
        return "9"

    def became(self, number):
        return ""


def test_jobs_that_are_over_are_not_cancelled(pauses):
    queue = Queue({"p-a": "1", "p-b": "2", "q-c": "3"})
    cluster._end(queue, "p-", ["2", "4"])
    cluster._end(queue, "p-", ["4"])
    assert queue.cancelled == ["2"] and pauses == []


def test_a_job_is_queued_again_though_the_queue_is_busy(tmp_path, monkeypatch, pauses, capsys):
    queue = Queue(refusals=2)
    monkeypatch.setitem(queues.QUEUES, "slurm", queue)
    monkeypatch.setenv(job.VARIABLE, job.job_variable("slurm", tmp_path))
    run = SimpleNamespace(
        stages=[Stage(0, "train", print, resumable=True)],
        run=lambda: sys.exit(128 + signal.SIGUSR2),
        exp=SimpleNamespace(dir=tmp_path),
        plan=SimpleNamespace(files=SimpleNamespace(state=lambda patterns: {})),
    )
    with pytest.raises(SystemExit) as ended:
        cluster.run_job(run)
    assert ended.value.code == 0 and len(pauses) == 2
    assert capsys.readouterr().err.count("the controller has not answered; asking again") == 1


def test_a_job_whose_name_begins_like_anothers(tmp_path, monkeypatch, pauses):
    queue = Queue({"benchmark2": "1"})
    monkeypatch.setitem(queues.QUEUES, "slurm", queue)
    one_job.run_one_job("slurm", Site(), Job("benchmark", "", str(tmp_path / "log")), ["true"])
    assert queue.submitted == ["benchmark"]


def test_a_stage_is_finished_though_its_parts_cannot_be_removed(tmp_path, monkeypatch):
    """As where a process on a lost node still writes there."""

    def rmtree(folder):
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(records.shutil, "rmtree", rmtree)
    kept = records.Records(tmp_path)
    kept.finish("decode", {"version": 1, "config": {}, "inputs": {}, "outputs": {}})
    assert kept.finished("decode")
    with pytest.raises(OSError, match="not empty"):  # of an attempt that is to begin with nothing
        kept.forget("decode")
