"""Running stages in one experiment folder: what is printed, logged and recorded, and how a run ends when it fails."""

import contextlib
import dataclasses
import errno
import logging
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pyspeech.engine import config, job, ranks
from pyspeech.engine.locks import folder_lock, stage_lock
from pyspeech.engine.logs import say, screen_log, stage_log
from pyspeech.engine.parallel import StageFailed, run_parallel
from pyspeech.engine.parts import Parts, Share, ShareDone
from pyspeech.engine.place import Place
from pyspeech.engine.plan import Plan
from pyspeech.engine.process import PeakMemory, commit, duration, short_path, termination_as_exception, threads
from pyspeech.engine.records import facts_of, shard_name
from pyspeech.engine.stages import Stage
from pyspeech.errors import UserError
from pyspeech.files import atomic_write, write_json

PAGE = "report/index.html"  # likewise, of a stage after it
REPORT = "RESULTS.md"  # what the last stage may leave, and the closing lines on the screen show
MARK = ".recipe"  # the file in an experiment folder that has the title of its recipe
TRACEBACK_LINES = 8  # of a failure, on the screen; all of them are in the log
FULL_OR_FORBIDDEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}


@dataclasses.dataclass
class Experiment:
    """The first argument of a stage: its folder, log and command.

    dir: the experiment folder (absolute); log: goes to the screen and to the stage's log file;
    profile: the name of the profile, or None; overrides: the key=value arguments of the command;
    fresh: the stage starts from nothing, its outputs and scratch have been removed. False only for a resumable stage
    whose interrupted attempt had the same configuration, inputs and version;
    command: what RESULTS.md names as the command that made it: from the folder of the repository;
    parts: where `in_parts` keeps the parts of the stage.
    """

    dir: Path
    log: logging.Logger
    profile: str | None
    overrides: tuple
    fresh: bool = True
    command: str = ""
    parts: Parts | None = None

    def publish(self, results: dict[str, Any], text: str) -> None:
        """Write results.json (a dict; the profile is added) and RESULTS.md (Markdown) into the experiment folder."""
        write_json(self.dir / "results.json", {"profile": self.profile, **results})
        with atomic_write(self.dir / REPORT) as stream:
            stream.write(text)


@dataclasses.dataclass
class Run:
    """One command on one experiment folder.

    stages: those that the command selects, bound to the configuration; conf, plain_conf: the configuration as OmegaConf
    and as dataclass; header: what is printed below the title; command(stage=None): the command line that does the same
    again (without --force), or that begins at a stage; jobs: stages at a time; driver(run): the Driver (cluster.py) that makes
    jobs of the stages, or None: they run here; gpus: processes of a stage that trains; place: which of several processes,
    that the environment tells of, this one is; another(stage): the command of another process of such a stage.
    """

    title: str
    header: str
    plan: Plan
    stages: list
    conf: DictConfig
    plain_conf: object
    exp: Experiment
    force: bool
    jobs: int
    command: Callable
    driver: Callable | None = None
    gpus: int = 1
    place: Place = Place()
    another: Callable | None = None

    def show(self) -> None:
        """Print what would run, and why."""
        self._check_inputs()
        width = max(len(str(stage)) for stage in self.stages)
        for stage, verdict in self.plan.forecast(self.stages, self.force):
            print(f"{stage!s:<{width}}   {'would run: ' if verdict.runs else ''}{verdict.reason}")

    def run(self) -> None:
        """Run the stages that are not up to date. Exits where a stage fails or a signal ends the run."""
        say(self.title)
        say(self.header)
        self.exp.dir.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        with screen_log(), termination_as_exception():
            try:
                if job.is_job_of(self.exp.dir):
                    self._run_as_job(self.stages[0])
                else:
                    self._run_alone()
            except KeyboardInterrupt as error:
                self._exit_interrupted(error)
        say(f"done in {duration(time.monotonic() - begun)}: {short_path(self.exp.dir)}")

    def _run_alone(self):
        """All stages, here, or as jobs of a cluster which this process follows."""
        with folder_lock(self.exp.dir, self.command(), self.exp.log.warning) as after_a_kill:
            if not self.driver:
                job.refuse_while_queued(self.exp.dir)
            self._check_inputs()
            self._write_configuration()
            if self.driver:
                self.driver(self).submit_and_follow()
                return
            # Of what was killed, and of processes that were ended where a stage had failed.
            if after_a_kill or any(self.plan.records.attempt(stage.name) for stage in self.stages):
                self.plan.files.remove_temporary()
            self._run_stages()

    def _run_as_job(self, stage):
        """One stage, or a share of it, for the driver that submitted it. Jobs of other stages may run in the same folder."""
        share = job.share()
        with self._stage_lock(shard_name(stage.name, share)):
            job.when_visible(self._check_inputs)
            if share:
                self._run_share(stage, share)
            else:
                self._run_stages()

    def _stage_lock(self, name):
        return stage_lock(self.exp.dir, name, self.command(), self.exp.log.warning)

    def _run_share(self, stage, share):
        """Make a share of a stage's parts. The first of its jobs clears away what is of another attempt."""
        plan, log_path = self.plan, self.log_path(stage, share)
        with self._stage_lock(stage.name):
            verdict = self._decide(stage)
            if verdict and verdict.fresh:
                self._begin(stage, verdict, attempts=0)
        if not verdict:
            return
        attempt = plan.records.attempt(stage.name) or {}
        header = {"command": self.command(), "environment": ranks.backend().describe_environment()}
        with stage_log(log_path, f"{stage}, share {share.index + 1} of {share.count}", header) as log_file:
            self.exp.log.info("%s: share %d of %d, log: %s", stage, share.index + 1, share.count, short_path(log_path))
            started, begun, memory = time.time(), time.monotonic(), PeakMemory()
            with self._failures_explained(stage, log_path, log_file), contextlib.suppress(ShareDone):
                self._call(stage, fresh=False, share=share)
            costs = _costs(stage, started, time.monotonic() - begun, memory)
            plan.records.finish_share(stage.name, share, {**facts_of(attempt), **costs})
            self.exp.log.info("%s: share %d of %d made", stage, share.index + 1, share.count)

    def _check_inputs(self):
        self.plan.check_inputs(self.stages, lambda stage: self.command(stage=stage.name))

    def _write_configuration(self):
        with atomic_write(self.exp.dir / MARK) as stream:
            stream.write(self.title + "\n")
        with atomic_write(self.exp.dir / "conf.yaml") as stream:
            command = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in self.command())
            stream.write(f"# the configuration of the latest run: {command}\n{OmegaConf.to_yaml(self.conf)}")
        if self.force:  # all of them first: should this run be interrupted, the command without --force finishes it
            for stage in self.stages:
                if not stage.idle:
                    self.plan.records.forget(stage.name)

    def _run_stages(self):
        if self.jobs > 1:
            self._run_in_parallel()
            return
        environment = None
        for stage in self.stages:
            verdict = self._decide(stage)
            if verdict and environment is None:
                environment = ranks.backend().describe_environment()
                say(environment)
            if verdict:
                self._run_stage(stage, verdict, environment)
            elif self.place.size > 1:
                with ranks.together(self.place) as agree:
                    agree(None)

    def take_part(self) -> None:
        """Be another process of the training in which process 0 runs the stage; without locks, records and logs."""
        with ranks.alongside(self.place), ranks.together(self.place) as agree:
            found = agree()
            if found is not None:
                stage = self.stages[0]
                if job.is_job_of(self.exp.dir):
                    job.when_visible(self._check_inputs)
                stage.function(dataclasses.replace(self.exp, fresh=found), self.plain_conf)

    def _call(self, stage, fresh, share=None):
        """Call the stage's function, in this process and in those that train with it; with a share, for that alone."""
        with contextlib.ExitStack() as stack:
            place = self.place
            if stage.trains and max(self.gpus, place.size) > 1:
                if place.size == 1:
                    command = self.another(stage)  # pyright: ignore[reportOptionalCall]
                    place = stack.enter_context(ranks.started(command, self.gpus, self.exp.log.error))
                stack.enter_context(ranks.together(place))(fresh)
            parts = Parts(self.plan.records.parts(stage.name), share)
            stage.function(dataclasses.replace(self.exp, fresh=fresh, parts=parts), self.plain_conf)

    def _decide(self, stage):
        """The Verdict on a stage that is to run, or None, which is said."""
        verdict = self.plan.verdict(stage, force=self.force)
        if not verdict.runs:
            self.say_skipped(stage, verdict.reason)
            return None
        return verdict

    def say_skipped(self, stage: Stage, reason: str) -> None:
        """Say why a stage does not run. Of idle ones, of which a recipe can have dozens, only where all that are chosen are."""
        if not stage.idle or all(other.idle for other in self.stages):
            self.exp.log.info("%s: %s", stage, reason)

    def _run_in_parallel(self):
        def learn(stage):
            record = self.plan.records.finished(stage.name)
            self.plan.files.learn(record["outputs"])  # pyright: ignore[reportOptionalSubscript]

        try:
            # The environment is described where a stage runs: this process must not load torch, whose threads do not
            # survive a fork.
            run_parallel(self.stages, self.plan.stages, self.jobs, self._decide, self._run_in_its_process, learn)
        except StageFailed as error:
            if error.status > 0:
                sys.exit(error.status)
            cause = "; out of memory?" if error.status == -signal.SIGKILL else ""
            self.exp.log.error(
                "%s was ended by signal %d (%s)%s", error.stage, -error.status, signal.strsignal(-error.status), cause
            )
            self._exit_failed(self.log_path(error.stage))

    def _run_in_its_process(self, stage, verdict):
        """Run a stage of several at once; what its records, beside its own work, meet on a full disk is said here."""
        try:
            self._run_stage(stage, verdict, ranks.backend().describe_environment())
        except OSError as error:
            if error.errno not in FULL_OR_FORBIDDEN:
                raise
            self.exp.log.error("%s failed: %s", stage, describe_os_error(error))
            self._exit_failed(self.log_path(stage))

    def log_path(self, stage: Stage, share: Share | None = None) -> Path:
        """Locate the log file of a stage, or of a share of it."""
        return self.exp.dir / "logs" / f"{stage.number}-{shard_name(stage.name, share)}.log"

    def _begin(self, stage, verdict, attempts):
        """The recorded facts of a new attempt at a stage."""
        records, facts = self.plan.records, self.plan.facts(stage)
        records.forget_finished(stage.name)
        if verdict.fresh:
            records.forget(stage.name)
            self.plan.files.remove([*stage.outputs, *stage.scratch])
        records.begin(stage.name, {**facts, "attempts": attempts})
        return facts

    def _run_stage(self, stage, verdict, environment):
        plan, log_path = self.plan, self.log_path(stage)
        attempts = 1 if verdict.fresh else (plan.records.attempt(stage.name) or {}).get("attempts", 1) + 1
        facts = self._begin(stage, verdict, attempts)
        settings = ", ".join(f"{key}={config.show(value)}" for key, value in facts["config"].items())
        said = {"environment": environment, "commit": commit()}
        header = {"command": self.command(), "configuration": settings, **said, "threads": threads()}
        with stage_log(log_path, f"{stage}, attempt {attempts}", header) as log_file:
            self.exp.log.info("%s: runs (%s), log: %s", stage, verdict.reason, short_path(log_path))
            started, begun, memory = time.time(), time.monotonic(), PeakMemory()
            with self._failures_explained(stage, log_path, log_file):
                self._call(stage, verdict.fresh)
                missing = plan.files.missing(stage.outputs)
                if missing:
                    raise UserError(f"it ended without making {', '.join(missing)}, which it declares as output")
            made = {**facts, "outputs": plan.files.fingerprints(stage.outputs), "number": stage.number, "attempts": attempts}
            costs = _costs(stage, started, time.monotonic() - begun, memory)
            plan.records.finish(stage.name, {**made, **costs, **said})
            self.exp.log.info("%s: done in %s", stage, duration(costs["seconds"]))

    @contextlib.contextmanager
    def _failures_explained(self, stage, log_path, log_file):
        """Whatever ends a stage is written to its log whole, and to the screen in brief with the way to go on."""
        try:
            yield
        except KeyboardInterrupt as error:
            log_file.write(_traceback(error))
            self.exp.log.warning("%s: interrupted%s", stage, f" ({error})" if str(error) else "")
            self._exit_interrupted(error, log_path)
        except (Exception, SystemExit) as error:
            with contextlib.suppress(OSError):  # the disk may be full
                log_file.write(_traceback(error))
            reason = str(error)
            if isinstance(error, OSError) and error.errno in FULL_OR_FORBIDDEN:
                reason = describe_os_error(error)
            elif not isinstance(error, UserError):
                reason = traceback.format_exception_only(type(error), error)[-1].strip()
                lines = _traceback(error).splitlines()
                say("\n".join(["..."] * (len(lines) > TRACEBACK_LINES) + lines[-TRACEBACK_LINES:]), sys.stderr)
            self.exp.log.error("%s failed: %s", stage, reason)
            self._exit_failed(log_path)

    def _exit_failed(self, log_path):
        say(f"log: {short_path(log_path)}", sys.stderr)
        self._say_how_to_go_on("go on, once that is mended,")
        sys.exit(1)

    def _exit_interrupted(self, error, log_path=None):
        if log_path:
            say(f"log: {short_path(log_path)}", sys.stderr)
        self._say_how_to_go_on("interrupted; go on")
        sys.exit(128 + getattr(error, "signum", signal.SIGINT))

    def _say_how_to_go_on(self, what):
        if not job.is_job_of(self.exp.dir):  # a job's driver says it
            say(f"{what} with: {self.command()}", sys.stderr)


def _costs(stage, started, seconds, memory):
    """What a record says beside the facts: when it ran, where, what it needed and what it had asked for. seconds: by a clock
    that nobody sets."""
    return {
        "started": _clock(started),
        "finished": _clock(started + seconds),
        "seconds": round(seconds, 3),
        "peak_memory_mb": memory.megabytes(),
        "threads": threads(),
        "cpus": stage.cpus,
        "gpus": stage.gpus,
        "hours": stage.hours,
        "memory": stage.memory,
        "host": socket.gethostname(),
    }


def describe_os_error(error: OSError) -> str:
    """Write an OSError as "No space left on device: FILE"."""
    return ": ".join(str(part) for part in (error.strerror or error, error.filename) if part)


def _traceback(error):
    """The traceback of an exception from the stage's own code on, without the frames of this module."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame))


def _clock(seconds):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
