"""Stages as jobs of a batch system: submitted, followed, cancelled; and what a job does that ends before its stage.

    driver    the command with --cluster: submits a job for each stage that is not up to date, with the resources that it
              declares, after those that make its inputs, and then follows. It is dispensable: it may be killed, and the
              same command finds the jobs again by their names, <folder's hash>-<stage>.
    job       the same command with --stage X --stop-stage X, in the environment variable of `job_variable`: it holds the
              lock of its stage, not the folder's, waits for files that a shared file system shows late, and has itself
              queued again when its time is up and its stage can go on where it stopped.

What became of a stage is decided by the records of the experiment folder alone; the queue is asked only whether a job
still waits or runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyspeech.errors import UserError
from pyspeech.experiment import stages as graph
from pyspeech.experiment.logs import FORMAT, say
from pyspeech.experiment.process import batch_job, short_path
from pyspeech.experiment.queues import QUEUES, Job, Queued, QueueError
from pyspeech.experiment.site import PREFIX, Site, resources
from pyspeech.files import write_json

if TYPE_CHECKING:
    from pyspeech.experiment.runner import Run
    from pyspeech.experiment.stages import Stage

MARK = ".cluster"  # the file in an experiment folder that says which queue has its jobs
VARIABLE = "PYSPEECH_JOB"  # "<queue>:<prefix of the names>", in the environment of jobs
POLL = 2.0  # seconds between looks at the queue, at first; they get rarer, up to
POLL_MOST = 15.0
GRACE = 20.0  # seconds after which a job that has left the queue without a record has failed: records may show late
LATE = 120.0  # seconds that a job waits for inputs, which another node has just written
LAST_LINES = 8  # of a job that failed, on the screen
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


def submitted(folder: Path) -> dict[str, Any] | None:
    """What the driver has noted about the jobs of a folder, or None where all that it knew of are over."""
    try:
        note = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and note.get("queue") in QUEUES else None


def refuse_while_queued(folder: Path) -> None:
    """UserError where jobs of this folder wait or run: a plain run would meet them."""
    note = submitted(folder)
    if note:
        jobs = _patient(lambda: QUEUES[note["queue"]].jobs(prefix_of(folder)))
        if jobs:
            names = ", ".join(sorted(name[len(prefix_of(folder)) :] for name in jobs))
            raise UserError(
                f"experiment folder {folder}: {len(jobs)} of its jobs are in the queue of {note['queue']} ({names}); "
                f"follow them with --cluster {note['queue']}, end them with --cancel, or give another folder with --exp DIR"
            )
        _forget(folder)


def cancel(folder: Path) -> None:
    """End the jobs of a folder, and wait until they are gone."""
    note = submitted(folder)
    if not note:
        say(f"{short_path(folder)}: no jobs of this folder are known")
        return
    queue = QUEUES[note["queue"]]
    jobs = _patient(lambda: queue.jobs(prefix_of(folder)))
    if jobs:
        write_json(folder / MARK, {**note, "cancelled": True})  # first: a driver that sees them gone is to know why
        _patient(lambda: queue.cancel([job.id for job in jobs.values()]))
    _close(folder, queue)
    say(f"{short_path(folder)}: {len(jobs)} jobs cancelled; what they have done is kept")


def has_gpus(queue: str) -> bool:
    """Whether jobs of this queue can have a GPU."""
    return _patient(QUEUES[queue].has_gpus)


def _close(folder, queue):
    """Note that all jobs of a folder are over, once the queue has none of them any more: cancelled ones take a moment."""
    while _patient(lambda: queue.jobs(prefix_of(folder))):
        time.sleep(POLL / 2)
    _forget(folder)


def _forget(folder):
    with contextlib.suppress(FileNotFoundError):
        (folder / MARK).unlink()


def _patient(ask: Callable[[], Result]) -> Result:
    """What ask() returns; a queue that cannot be asked for a while is said once, and asked again."""
    told, pause = "", POLL
    while True:
        try:
            return ask()
        except QueueError as error:
            if str(error) != told:
                say(f"{error}; asking again", sys.stderr)
                told = str(error)
            time.sleep(pause)
            pause = min(2 * pause, 60)


class Driver:
    """One command with --cluster on one experiment folder.

    run: the Run of all that the command selects; site: Site; arguments: the flags and options that a job repeats.
    """

    def __init__(self, run: Run, queue: str, site: Site, arguments: Sequence[str]) -> None:
        self.run, self.queue, self.site, self.arguments = run, QUEUES[queue], site, list(arguments)
        self.folder, self.log = run.exp.dir, run.exp.log
        self.prefix = prefix_of(self.folder)
        self._offsets: dict[Path, int] = {}
        self._reasons: dict[str, str] = {}
        self._recorded: dict[str, Any] = {}  # records of stages as they were before their jobs

    def submit_and_follow(self) -> None:
        """Submit what is missing, follow until all is over; exits with 1 where a stage failed."""
        try:
            failed = self._follow(self._submit())
        except KeyboardInterrupt:
            say("the jobs go on: the same command follows them again, --cancel ends them", sys.stderr)
            raise
        _close(self.folder, self.queue)
        if failed:
            say(f"go on, once that is mended, with: {self.run.command()}", sys.stderr)
            sys.exit(1)

    def _submit(self) -> dict[Stage, str]:
        """{stage: id of its job} of all stages that are not up to date; those that were in the queue are taken over."""
        queued = _patient(lambda: self.queue.jobs(self.prefix))
        note = submitted(self.folder)
        if queued and (note or {}).get("arguments") != self.arguments:
            known = shlex.join((note or {}).get("arguments", ["?"]))
            raise UserError(
                f"experiment folder {self.folder}: its jobs in the queue were submitted with other options ({known}); "
                "end them with --cancel, or give another folder with --exp DIR"
            )
        if not queued:
            self.run.plan.files.remove_temporary()
        write_json(
            self.folder / MARK,
            {"queue": self.queue.name, "arguments": self.arguments, "since": time.strftime("%Y-%m-%d %H:%M:%S")},
        )
        jobs: dict[Stage, str] = {}
        has_gpus = None
        for stage, verdict in self.run.plan.forecast(self.run.stages):
            job = queued.get(self.prefix + stage.name)
            if not verdict.runs:
                self.log.info("%s: up to date", stage)
                continue
            self._skip_old_lines(stage)
            self._recorded[stage.name] = self.run.plan.records.finished(stage.name)
            if job:
                self.log.info("%s: is job %s", stage, job.id)
                jobs[stage] = job.id
                continue
            if stage.gpus and has_gpus is None:
                has_gpus = os.environ.get("PYSPEECH_DEVICE") != "cpu" and _patient(self.queue.has_gpus)
                if not has_gpus:
                    self.log.info(
                        "no GPU is asked for: %s", "--device cpu" if os.environ.get("PYSPEECH_DEVICE") else "there is none"
                    )
            after = [jobs[other] for other in graph.producers(stage, self.run.plan.stages) if other in jobs]
            jobs[stage] = self._submit_one(stage, after, bool(has_gpus))
            self.log.info("%s: job %s (%s)", stage, jobs[stage], verdict.reason)
        return jobs

    def _submit_one(self, stage, after, with_gpus):
        hours, memory = resources(self.site, stage)
        output = self._output(stage)
        output.parent.mkdir(parents=True, exist_ok=True)
        job = Job(
            self.prefix + stage.name,
            self._script(stage),
            str(output),
            cpus=stage.cpus,
            gpus=stage.gpus if with_gpus else 0,
            hours=hours,
            memory=memory,
            after=after,
        )
        try:
            return self.queue.submit(job, self.site)
        except QueueError as error:
            raise UserError(f"{stage}: {self.queue.name} refused the job: {error} (options of the site: {PREFIX}*)") from None

    def _script(self, stage):
        """The same command for one stage. `exec`: the warning before the time is up reaches the batch process alone."""
        command = [os.path.abspath(sys.argv[0]), "--stage", stage.name, "--stop-stage", stage.name, *self.arguments]
        if not os.access(command[0], os.X_OK):
            command.insert(0, sys.executable)
        threads = f'export OMP_NUM_THREADS="${{OMP_NUM_THREADS:-{stage.cpus}}}"'
        variable = f"export {VARIABLE}={shlex.quote(job_variable(self.queue.name, self.folder))}"
        where = f"cd {shlex.quote(os.getcwd())} || exit 1"
        return "\n".join(["#!/bin/bash", *self.site.setup, where, threads, variable, f"exec {shlex.join(command)}", ""])

    def _output(self, stage):
        return self.folder / "logs" / f"{stage.number}-{stage.name}.job"

    def _follow(self, jobs: dict[Stage, str]) -> bool:
        """Show what the jobs log until all are over; whether a stage failed."""
        failed, gone, pause = False, {}, POLL / 2
        while jobs:
            time.sleep(pause)
            pause = min(POLL_MOST, pause * 1.2)
            queued = _patient(lambda: self.queue.jobs(self.prefix))
            if (submitted(self.folder) or {"cancelled": True}).get("cancelled"):
                self.log.error("the jobs have been cancelled")
                return True
            for stage in list(jobs):
                if stage not in jobs:  # cancelled with what it needs
                    continue
                if self._show_new_lines(stage):
                    pause = POLL
                state = queued.get(self.prefix + stage.name)
                if self.run.plan.records.finished(stage.name) not in (None, self._recorded[stage.name]):
                    self._show_new_lines(stage)
                    del jobs[stage]
                elif state:
                    gone.pop(stage, None)
                    self._show_reason(stage, state)
                elif not self.run.plan.verdict(stage).runs:  # its inputs turned out as they were
                    del jobs[stage]
                elif self._is_lost(jobs[stage], gone.setdefault(stage, time.monotonic())):
                    failed = True
                    self._explain(stage, jobs.pop(stage))
                    self._cancel_what_needs(stage, jobs)
        return failed

    def _is_lost(self, number, since):
        """Whether a job that has left the queue without a record has failed, and its record is not just late."""
        knows = self.queue.became(number)
        return (knows and not knows.startswith("COMPLET")) or time.monotonic() - since > GRACE

    def _cancel_what_needs(self, stage, jobs):
        for other in list(jobs):
            if stage in graph.upstream([other], self.run.plan.stages):
                _patient(lambda number=jobs.pop(other): self.queue.cancel([number]))
                self.log.error("%s: not run, it needs %s", other, stage)

    def _show_reason(self, stage: Stage, job: Queued) -> None:
        """Why a job waits, once for each reason. That it waits for another stage is no news."""
        if job.reason and job.reason not in ("Dependency", "None", "Priority") and self._reasons.get(stage.name) != job.reason:
            self.log.info("%s: job %s waits: %s", stage, job.id, job.reason)
        self._reasons[stage.name] = job.reason

    def _skip_old_lines(self, stage):
        for path in (self.run.log_path(stage), self._output(stage)):
            with contextlib.suppress(OSError):
                self._offsets[path] = path.stat().st_size

    def _show_new_lines(self, stage) -> bool:
        """Print the timed lines that the stage's log has got, with the name of the stage; whether there were any."""
        lines = [line for line in self._new_lines(self.run.log_path(stage)) if line[:4].isdecimal()]
        for line in lines:
            date, clock, level, message = (line.split(" ", 3) + [""] * 3)[:4]
            text = FORMAT % {"asctime": f"{date} {clock}", "levelname": level, "message": f"[{stage.name}] {message}"}
            say(text, sys.stderr if level in ("ERROR", "CRITICAL") else None)
        return bool(lines)

    def _new_lines(self, path) -> Iterable[str]:
        """The whole lines behind what was read before."""
        try:
            with open(path, "rb") as stream:
                stream.seek(self._offsets.get(path, 0))
                data = stream.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offsets[path] = self._offsets.get(path, 0) + len(whole)
        return whole.decode("utf-8", "replace").splitlines()

    def _explain(self, stage, number):
        """Say how a job that left no record has ended, as far as anybody knows, and what to change."""
        printed = list(self._new_lines(self._output(stage)))[-LAST_LINES:]
        if printed:
            say("\n".join(printed), sys.stderr)
        knows = self.queue.became(number)
        hours, memory = resources(self.site, stage)
        advice = ""
        if "OUT_OF_MEMORY" in knows or "signal 9" in knows:
            advice = f": it had {memory:g} GB, give it more with {PREFIX}memory.{stage.name}=GB"
        elif "TIMEOUT" in knows:
            advice = f": it had {hours:g} h, give it more with {PREFIX}hours.{stage.name}=HOURS"
        elif "CANCELLED" in knows:
            advice = ": somebody ended it"
        self.log.error("%s failed: job %s %s%s", stage, number, knows or "has left the queue without finishing it", advice)
        say(f"log: {short_path(self.run.log_path(stage))}, what it printed: {short_path(self._output(stage))}", sys.stderr)


# In a job


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
        time.sleep(POLL)


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
            sys.exit(queue.requeue())
        line = f"{stage} failed: its time of this job is up, and {why}; give it more with {PREFIX}hours.{stage.name}=HOURS"
        say(line, sys.stderr)
        sys.exit(1)


def _comes_further(run, stage):
    """Whether the state of a stage has changed in one of the last few attempts of this job."""
    path = run.exp.dir / "stages" / f"{stage.name}.requeued.json"
    now = {"job": batch_job(), "state": run.plan.files.state(stage.scratch + stage.outputs)}
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    fruitless = before.get("fruitless", 0) + 1 if {key: before.get(key) for key in now} == now else 0
    write_json(path, {**now, "fruitless": fruitless})
    return fruitless < FRUITLESS - 1
