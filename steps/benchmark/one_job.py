"""A single job of a batch system that is no stage of a recipe: submitted, or found again by its name, and followed."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.engine.cluster import POLL, whole_lines
from pyspeech.engine.logs import say
from pyspeech.engine.queues import QUEUES, Job, QueueError, patient
from pyspeech.engine.site import PREFIX
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.engine.site import Site


def run_one_job(queue: str, site: Site, job: Job, command: Sequence[str]) -> None:
    """Have a command that is no stage run as a job, and print what it prints until it has left the queue.

    job: what it needs; its script is made here. One of this name that is in the queue already is followed: a Ctrl-C leaves it
    there.
    """
    client = QUEUES[queue]
    known = patient(lambda: client.jobs(job.name)).get(job.name)  # beside others whose names begin so
    output = Path(job.output)
    offset = output.stat().st_size if output.exists() and not known else 0
    if known:
        number = known.id
        say(f"is job {number}")
    else:
        where = f"cd {shlex.quote(os.getcwd())} || exit 1"
        script = "\n".join(["#!/bin/bash", *site.setup, where, f"exec {shlex.join(command)}", ""])
        try:
            number = client.submit(dataclasses.replace(job, script=script), site)
        except QueueError as error:
            raise UserError(f"{queue} refused the job: {error} (options of the site: {PREFIX}*)") from None
        say(f"job {number}")
    reason = ""
    while True:
        queued = patient(lambda: client.jobs(job.name)).get(job.name)
        lines, offset = whole_lines(output, offset)
        for line in lines:
            say(line)
        if not queued:
            break
        if queued.reason not in ("", "None", "Priority", reason):
            say(f"job {number} waits: {queued.reason}")
            reason = queued.reason
        time.sleep(POLL)
    knows = client.became(number)
    if knows and not knows.startswith("COMPLET"):
        say(f"job {number} {knows}", sys.stderr)
