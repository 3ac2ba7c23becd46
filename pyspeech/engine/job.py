"""What a job of a cluster does, and what its stage does not know of: it runs one stage, or its share of the parts of one,
waits for files that a shared file system shows late, and has itself queued again when its time is up and it can go on.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyspeech.engine.logs import say
from pyspeech.engine.parts import Share
from pyspeech.engine.process import batch_job
from pyspeech.engine.queues import QUEUES, patient
from pyspeech.engine.records import shard_name
from pyspeech.engine.site import PREFIX
from pyspeech.errors import UserError
from pyspeech.files import write_json

if TYPE_CHECKING:
    from pyspeech.engine.run import Run

VARIABLE = "PYSPEECH_JOB"  # "<queue>:<prefix of the names>", in the environment of jobs
SHARE = "PYSPEECH_SHARE"  # "<index>/<count>" in that of jobs of an array
LATE = 120.0  # seconds that a job waits for inputs, which another node has just written
PAUSE = 2.0  # between looks at them
FRUITLESS = 3  # attempts at a stage without progress until it fails

Result = TypeVar("Result")


def prefix_of(folder: Path) -> str:
    """What the names of an experiment folder's jobs begin with."""
    return f"pyspeech-{hashlib.blake2b(os.fsencode(os.path.realpath(folder)), digest_size=5).hexdigest()}-"


def job_variable(queue: str, folder: Path) -> str:
    """What VARIABLE holds in the jobs of an experiment folder."""
    return f"{queue}:{prefix_of(folder)}"


def is_job_of(folder: Path) -> bool:
    """Whether this process is a job that a driver submitted for this experiment folder."""
    return os.environ.get(VARIABLE, "").partition(":")[2] == prefix_of(folder)


def share() -> Share | None:
    """The share of the parts of its stage that this job is to make, or None: all."""
    index, _, count = os.environ.get(SHARE, "").partition("/")
    return Share(int(index), int(count)) if count else None


def when_visible(make: Callable[[], Result]) -> Result:
    """make(), tried again for LATE seconds while it raises UserError: a file system that machines share shows late what
    another one wrote. What is still missing then is named by the error."""
    deadline = time.monotonic() + LATE
    while True:
        try:
            return make()
        except UserError:
            if time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)


def run_job(run: Run) -> None:
    """Run the one stage of a job. Where its time is up (SIGUSR2) and the stage can go on, the job is queued again, unless
    several attempts in a row have come no further."""
    queue = QUEUES[os.environ[VARIABLE].partition(":")[0]]
    stage = run.stages[0]
    try:
        run.run()
    except SystemExit as ended:
        if ended.code != 128 + signal.SIGUSR2:
            raise
        if not stage.resumable:
            why = "it cannot go on where it stopped"
        elif not _comes_further(run, stage):
            why = f"{FRUITLESS} attempts have come no further"
        else:
            say(f"{stage}: its time of this job is up: queued again, to go on where it stopped")
            sys.exit(patient(queue.requeue))  # the queue may be busy just now
        line = f"{stage} failed: its time of this job is up, and {why}; give it more with {PREFIX}hours.{stage.name}=HOURS"
        say(line, sys.stderr)
        sys.exit(1)


def _comes_further(run, stage):
    """Whether the state of a stage has changed in one of the last few attempts of this job."""
    path = run.exp.dir / "stages" / f"{shard_name(stage.name, share())}.requeued.json"
    made = [*stage.scratch, *stage.outputs, f"stages/{stage.name}.parts"]
    now = {"job": batch_job(), "state": run.plan.files.state(made)}
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    fruitless = before.get("fruitless", 0) + 1 if {key: before.get(key) for key in now} == now else 0
    write_json(path, {**now, "fruitless": fruitless})
    return fruitless < FRUITLESS - 1
