"""The jobs of an experiment folder on a cluster: their names, whether this process is one, its share of a stage's parts, the
files that it waits for, and whether any are in the queue.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pyspeech.engine.parts import Share
from pyspeech.engine.queues import QUEUES, patient
from pyspeech.errors import UserError

VARIABLE = "PYSPEECH_JOB"  # "<queue>:<prefix of the names>", in the environment of jobs
MARK = ".cluster"  # the file in an experiment folder that says which queue has its jobs
SHARE = "PYSPEECH_SHARE"  # "<index>/<count>" in that of jobs of an array
LATE = 120.0  # seconds that a job waits for inputs, which another node has just written
PAUSE = 2.0  # between looks at them

Result = TypeVar("Result")


def prefix_of(folder: Path) -> str:
    """Make the beginning of the names of an experiment folder's jobs."""
    return f"pyspeech-{hashlib.blake2b(os.fsencode(os.path.realpath(folder)), digest_size=5).hexdigest()}-"


def job_variable(queue: str, folder: Path) -> str:
    """Make the value of VARIABLE in the jobs of an experiment folder."""
    return f"{queue}:{prefix_of(folder)}"


def is_job_of(folder: Path) -> bool:
    """Tell whether this process is a job that a driver submitted for this experiment folder."""
    return os.environ.get(VARIABLE, "").partition(":")[2] == prefix_of(folder)


def share() -> Share | None:
    """Read which share of the parts of its stage this job is to make; None: all."""
    index, _, count = os.environ.get(SHARE, "").partition("/")
    return Share(int(index), int(count)) if count else None


def when_visible(make: Callable[[], Result]) -> Result:
    """Call make(), again for LATE seconds while it raises UserError: a file system that machines share shows late what
    another one wrote. What is still missing then is named by the error."""
    deadline = time.monotonic() + LATE
    while True:
        try:
            return make()
        except UserError:
            if time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)


def submitted(folder: Path) -> dict[str, Any] | None:
    """Read what the driver has noted about the jobs of a folder, or None where all that it knew of are over."""
    try:
        note = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and note.get("queue") in QUEUES else None


def refuse_while_queued(folder: Path) -> None:
    """Raise UserError where jobs of this folder wait or run: a plain run would meet them."""
    note = submitted(folder)
    if note:
        jobs = patient(lambda: QUEUES[note["queue"]].jobs(prefix_of(folder)))
        if jobs:
            names = ", ".join(sorted(name[len(prefix_of(folder)) :] for name in jobs))
            raise UserError(
                f"experiment folder {folder}: {len(jobs)} of its jobs are in the queue of {note['queue']} ({names}); "
                f"follow them with --cluster {note['queue']}, end them with --cancel, or give another folder with --exp DIR"
            )
        forget(folder)


def forget(folder: Path) -> None:
    """Note that no jobs of a folder are left."""
    with contextlib.suppress(FileNotFoundError):
        (folder / MARK).unlink()
