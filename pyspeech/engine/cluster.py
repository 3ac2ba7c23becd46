"""Stages as jobs of a batch system: submitted, followed, cancelled.

    driver    the command with --cluster: submits a job for each stage that is not up to date, with the resources that it
              declares, after those that make its inputs, and then follows. It is dispensable: it may be killed, and the
              same command finds the jobs again by their names, <folder's hash>-<stage>.
    job       the same command with --stage X --stop-stage X, in the environment variable of `job_variable`: it holds the
              lock of its stage, not the folder's. It is queued again when its time is up and it can go on.
    array     of a stage with shards: jobs that each make a share of its parts, and leave a record of it. The stage's own job
              comes after them and finds its parts there. Only shares without a record are submitted again.

What became of a stage is decided by the records of the experiment folder alone; the queue is asked only whether a job
still waits or runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspeech.engine import stages as graph
from pyspeech.engine.job import MARK, SHARE, VARIABLE, forget, job_variable, prefix_of, share, submitted
from pyspeech.engine.logs import FORMAT, say
from pyspeech.engine.parts import Share
from pyspeech.engine.process import THREADS, batch_job, short_path, threads
from pyspeech.engine.queues import QUEUES, Job, Queued, QueueError, patient
from pyspeech.engine.records import shard_name
from pyspeech.engine.run import Run
from pyspeech.engine.site import PREFIX, Site, resources, shards
from pyspeech.engine.stages import Stage
from pyspeech.errors import UserError
from pyspeech.files import write_json

FRUITLESS = 3  # attempts at a stage without progress until it fails
POLL = 2.0  # seconds between looks at the queue, at first; they get rarer, up to
POLL_MOST = 15.0
GRACE = 20.0  # seconds after which a job that has left the queue without a record has failed: records may show late
ARRAY = ".shards"  # at the end of the names of arrays, behind that of the stage
LAST_LINES = 8  # of a job that failed, on the screen


def cancel(folder: Path) -> None:
    """End the jobs of a folder, and wait until they are gone."""
    note = submitted(folder)
    if not note:
        say(f"{short_path(folder)}: no jobs of this folder are known")
        return
    queue = QUEUES[note["queue"]]
    jobs = patient(lambda: queue.jobs(prefix_of(folder)))
    if jobs:
        write_json(folder / MARK, {**note, "cancelled": True})  # first: a driver that sees them gone is to know why
        _end(queue, prefix_of(folder), [job.id for job in jobs.values()])
    _close(folder, queue)
    say(f"{short_path(folder)}: {len(jobs)} jobs cancelled; what they have done is kept")


def has_gpus(queue: str) -> bool:
    """Tell whether jobs of this queue can have a GPU."""
    return patient(QUEUES[queue].has_gpus)


def _end(queue, prefix, numbers):
    """Cancel those of the jobs that are still in the queue: one that is over may be refused, however often it is asked."""

    def cancel():
        there = {job.id for job in queue.jobs(prefix).values()}
        if there.intersection(numbers):
            queue.cancel([number for number in numbers if number in there])

    patient(cancel)


def _close(folder, queue):
    """Note that all jobs of a folder are over, once the queue has none of them any more: cancelled ones take a moment."""
    while patient(lambda: queue.jobs(prefix_of(folder))):
        time.sleep(POLL / 2)
    forget(folder)


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
        self._arrays: dict[str, str] = {}  # the ids of arrays, by stage
        self._made: dict[str, int] = {}  # the shares that were made when it was looked last, by stage
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
        queued = patient(lambda: self.queue.jobs(self.prefix))
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
                self.run.say_skipped(stage, verdict.reason)
                continue
            self._skip_old_lines(stage)
            self._recorded[stage.name] = self.run.plan.records.finished(stage.name)
            array = queued.get(f"{self.prefix}{stage.name}{ARRAY}")
            if array:
                self._arrays[stage.name] = array.id
            if job:
                self.log.info("%s: is job %s", stage, job.id)
                jobs[stage] = job.id
                continue
            if stage.gpus and has_gpus is None:
                has_gpus = os.environ.get("PYSPEECH_DEVICE") != "cpu" and patient(self.queue.has_gpus)
                if not has_gpus and self.run.gpus > 1 and os.environ.get("PYSPEECH_DEVICE") != "cpu":
                    raise UserError(f"--gpus {self.run.gpus}: the cluster has no GPU; --device cpu trains in as many processes")
                if not has_gpus:
                    self.log.info(
                        "no GPU is asked for: %s", "--device cpu" if os.environ.get("PYSPEECH_DEVICE") else "there is none"
                    )
            after = [jobs[other] for other in graph.producers(stage, self.run.plan.stages) if other in jobs]
            missing = [] if array else self._missing_shares(stage, verdict)
            if missing:
                self._arrays[stage.name] = self._submit_one(stage, after, bool(has_gpus), missing)
                self.log.info("%s: array %s of %d jobs", stage, self._arrays[stage.name], len(missing))
            after += [self._arrays[stage.name]] if stage.name in self._arrays else []
            jobs[stage] = self._submit_one(stage, after, bool(has_gpus))
            self.log.info("%s: job %s (%s)", stage, jobs[stage], verdict.reason)
        return jobs

    def _missing_shares(self, stage, verdict):
        """The shares of a stage for which jobs are to be submitted."""
        count = shards(self.site, stage)
        if not count or stage.trains and self.run.gpus > 1:
            return []
        if verdict.fresh:  # what there is belongs to something else
            return [Share(index, count) for index in range(count)]
        return self.run.plan.records.missing_shares(stage.name, count)

    def _submit_one(self, stage, after, with_gpus, shares=()):
        """The id of a new job, or of an array, a job for each of the shares."""
        hours, memory = resources(self.site, stage)
        tasks = max(self.run.gpus, stage.gpus if with_gpus else 1) if stage.trains else 1
        output = self._output(stage)
        output.parent.mkdir(parents=True, exist_ok=True)
        job = Job(
            self.prefix + stage.name + ARRAY * bool(shares),
            self._script(stage, tasks, shares),
            str(output),
            tasks=tasks,
            array=len(shares),
            at_once=self.site.at_once,
            cpus=stage.cpus,
            gpus=(tasks if stage.trains else stage.gpus) if with_gpus else 0,
            hours=hours,
            memory=memory,
            after=after,
        )
        try:
            return self.queue.submit(job, self.site)
        except QueueError as error:
            raise UserError(f"{stage}: {self.queue.name} refused the job: {error} (options of the site: {PREFIX}*)") from None

    def _script(self, stage, tasks, shares):
        """The same command for one stage. `exec`: the warning before the time is up reaches the batch process alone."""
        command = [os.path.abspath(sys.argv[0]), "--stage", stage.name, "--stop-stage", stage.name, *self.arguments]
        if not os.access(command[0], os.X_OK):
            command.insert(0, sys.executable)
        computing = f'export {THREADS}="${{{THREADS}:-{threads()}}}"'
        variable = f"export {VARIABLE}={shlex.quote(job_variable(self.queue.name, self.folder))}"
        where = f"cd {shlex.quote(os.getcwd())} || exit 1"
        run = self.queue.in_processes(shlex.join(command), tasks, stage.cpus)
        chosen = self._choose_share(stage, shares)
        return "\n".join(["#!/bin/bash", *chosen, *self.site.setup, where, computing, variable, *run, ""])

    def _choose_share(self, stage, shares):
        """Lines that tell a task of an array which share it is to make, and have it print into a file of its own."""
        if not shares:
            return []
        indexes, count = " ".join(str(share.index) for share in shares), shares[0].count
        name = str(self._output(stage).with_suffix(""))
        return [
            f"shares=({indexes})",
            f'export {SHARE}="${{shares[{self.queue.task}]}}/{count}"',
            f'exec >> {shlex.quote(name)}".shard${{{SHARE}/\\//of}}.job" 2>&1',
        ]

    def _output(self, stage, share=None):
        return self.folder / "logs" / f"{stage.number}-{shard_name(stage.name, share)}.job"

    def _follow(self, jobs: dict[Stage, str]) -> bool:
        """Show what the jobs log until all are over; whether a stage failed."""
        failed, gone, pause = False, {}, POLL / 2
        while jobs:
            time.sleep(pause)
            pause = min(POLL_MOST, pause * 1.2)
            queued = patient(lambda: self.queue.jobs(self.prefix))
            if (submitted(self.folder) or {"cancelled": True}).get("cancelled"):
                self.log.error("the jobs have been cancelled")
                return True
            for stage in list(jobs):
                if stage not in jobs:  # cancelled with what it needs
                    continue
                over = self.run.plan.records.finished(stage.name) not in (None, self._recorded[stage.name])
                if self._show_shares(stage, over) | self._show_new_lines(stage):
                    pause = POLL
                state = queued.get(self.prefix + stage.name)
                if over:
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
                numbers = [jobs.pop(other), *filter(None, [self._arrays.get(other.name)])]
                _end(self.queue, self.prefix, numbers)
                self.log.error("%s: not run, it needs %s", other, stage)

    def _show_reason(self, stage: Stage, job: Queued) -> None:
        """Why a job waits, once for each reason. That it waits for another stage is no news."""
        if job.reason and job.reason not in ("Dependency", "None", "Priority") and self._reasons.get(stage.name) != job.reason:
            self.log.info("%s: job %s waits: %s", stage, job.id, job.reason)
        self._reasons[stage.name] = job.reason

    def _show_shares(self, stage, over) -> bool:
        """Say how many jobs of an array have made their share, where more have; whether it did.

        A stage that is over has made all, and its shares are no longer recorded one by one.
        """
        if stage.name not in self._arrays:
            return False
        count = shards(self.site, stage)
        done = count if over else count - len(self.run.plan.records.missing_shares(stage.name, count))
        more = done > self._made.get(stage.name, 0)
        if more:
            self.log.info("%s: %d of %d shares are made", stage, done, count)
            self._made[stage.name] = done
        return more

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
        lines, self._offsets[path] = whole_lines(path, self._offsets.get(path, 0))
        return lines

    def _explain(self, stage, number):
        """Say how a job that left no record has ended, as far as anybody knows, and what to change."""
        failed = self.run.plan.records.missing_shares(stage.name, shards(self.site, stage))[:1] if self._arrays else []
        share = failed[0] if failed and self._output(stage, failed[0]).exists() else None
        number = self._arrays.get(stage.name) or number if share else number
        printed = list(self._new_lines(self._output(stage, share)))[-LAST_LINES:]
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
        log, output = self.run.log_path(stage, share), self._output(stage, share)
        say(f"log: {short_path(log)}, what it printed: {short_path(output)}", sys.stderr)


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


def whole_lines(path: Path | str, offset: int) -> tuple[list[str], int]:
    """Read the whole lines of a file from an offset on, and the offset behind them; none where there is no file."""
    try:
        with open(path, "rb") as stream:
            stream.seek(offset)
            data = stream.read()
    except OSError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return whole.decode("utf-8", "replace").splitlines(), offset + len(whole)
