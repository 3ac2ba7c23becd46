"""Batch systems behind one small interface: submit a job, list those that wait or run, cancel, requeue.

Slurm (21.08 or newer) and Grid Engine (its 8.1 and Univa's and Altair's descendants, which Kaldi's queue.pl speaks) are
asked through their own commands. Accounting is not needed: what became of a stage is in the records of its experiment
folder, and a queue only says whether a job still waits or runs. Jobs are found by their names, so no file of ids can be lost.
"""

from __future__ import annotations

import dataclasses
import getpass
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from xml.etree import ElementTree

from pyspeech.engine.logs import say
from pyspeech.engine.site import Site
from pyspeech.errors import UserError

Result = TypeVar("Result")
PAUSE = 2.0  # seconds until a queue that could not be asked is asked again, at first
TIMEOUT = 60.0  # seconds that a command of the queue may take
WARNING = 120  # seconds before its time is up that a job gets SIGUSR2; at most a tenth of its time
REQUEUED = 99  # the exit status by which a job of Grid Engine asks to be queued again


class QueueError(Exception):
    """The queue cannot be asked now; a line for the user."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A job to be run. name: unique among the user's jobs; script: of bash; output: file that gets what it prints, at the
    end; tasks: processes that run its command at once, see `in_processes`; cpus, memory (GB): what each of them needs; gpus,
    hours: what it needs in all; after: ids of jobs that have to end well before it starts; array: how many of them, which
    differ in the number that `task` of the queue gives, 0: it is no array; at_once: of these, at most, 0: any number."""

    name: str
    script: str
    output: str
    tasks: int = 1
    cpus: int = 1
    gpus: int = 0
    hours: float = 1
    memory: float = 4
    after: Sequence[str] = ()
    array: int = 0
    at_once: int = 0


@dataclasses.dataclass(frozen=True)
class Queued:
    """A job in the queue. reason: why it waits, as the queue says; "" where it runs."""

    id: str
    running: bool
    reason: str


def patient(ask: Callable[[], Result]) -> Result:
    """Return what ask() does; a queue that cannot be asked for a while is said once, and asked again."""
    told, pause = "", PAUSE
    while True:
        try:
            return ask()
        except QueueError as error:
            if str(error) != told:
                say(f"{error}; asking again", sys.stderr)
                told = str(error)
            time.sleep(pause)
            pause = min(2 * pause, 60)


def ask(*command: str, text: str | None = None) -> str:
    """Return what a command of the queue prints; QueueError with its last line if it fails, UserError if there is none."""
    if not shutil.which(command[0]):
        raise UserError(f"{command[0]}: no such command on this machine; run this where jobs are submitted, a login node")
    # A driver that runs in a job of its own must not hand that job's settings on.
    own = {key: value for key, value in os.environ.items() if not re.match(r"(SLURM|SBATCH)_(?!CONF$)", key)}
    try:
        done = subprocess.run(
            command, input=text, env=own, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise QueueError(f"{command[0]} has not answered for {TIMEOUT:.0f} s") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise QueueError(lines[-1] if lines else f"{command[0]} ended with status {done.returncode}")
    return done.stdout


class Slurm:
    """Queue of Slurm: sbatch, squeue, scontrol, scancel."""

    name = "slurm"
    task = "$SLURM_ARRAY_TASK_ID"  # of bash: the number of a task, from 0 on

    def submit(self, job: Job, site: Site) -> str:
        """Submit a job and return its id; it starts once those of `after`, and earlier jobs of its name, are over."""
        minutes = max(1, math.ceil(job.hours * 60))
        # The jobs of an array have one name: as singletons they would wait for each other.
        dependencies = ["singleton"] * (not job.array) + ([":".join(["afterok", *job.after])] if job.after else [])
        partition = job.gpus and site.gpu_partition or site.partition
        nodes = math.ceil(job.tasks / site.gpus_per_node)
        if job.tasks % nodes:
            raise UserError(f"{job.tasks} processes on {nodes} nodes: expected as many on each (cluster.gpus_per_node)")
        tasks = job.tasks // nodes
        given = {
            "job-name": job.name,
            "output": job.output.replace("\\", "\\\\").replace("%", "%%"),
            "nodes": nodes,
            "ntasks-per-node": tasks,
            "cpus-per-task": job.cpus,
            "mem": f"{math.ceil(job.memory * tasks * 1024)}M",
            "time": minutes,
            # B: to the script alone, which has become the command; else to the processes that srun has started.
            "signal": f"{'B:' if job.tasks == 1 else ''}USR2@{min(WARNING, minutes * 6)}",
            "dependency": ",".join(dependencies),
            "gres": f"gpu:{site.gpu}:{job.gpus // nodes}".replace("::", ":") if job.gpus else "",
            "array": f"0-{job.array - 1}" + f"%{job.at_once}" * bool(job.at_once) if job.array else "",
            "partition": partition,
            "account": site.account,
            "qos": site.qos,
            "constraint": site.constraint,
        }
        flags = [f"--{key}={value}" for key, value in given.items() if value != ""]
        flags += ["--parsable", "--open-mode=append", "--requeue", "--kill-on-invalid-dep=yes", *site.arguments]
        return ask("sbatch", *flags, text=job.script).strip().split(";")[0]

    def in_processes(self, command: str, tasks: int, cpus: int) -> list[str]:
        """Lines of bash for the end of a script that become a command in each of the job's tasks, see
        pyspeech.training.distributed. Where one of them fails, all are ended."""
        if tasks == 1:
            return [f"exec {command}"]
        port = "$((20000 + SLURM_JOB_ID % 20000))"
        return [
            f'export WORLD_SIZE={tasks} MASTER_ADDR="$(hostname)" MASTER_PORT="{port}"',
            f"exec srun --ntasks={tasks} --cpus-per-task={cpus} --kill-on-bad-exit=1 {command}",
        ]

    def jobs(self, prefix: str) -> dict[str, Queued]:
        """{name: Queued} of the user's jobs whose names begin so."""
        found = {}
        for line in ask("squeue", "--me", "--noheader", "--format=%F|%t|%j|%r").splitlines():
            number, state, name, reason = (line.strip().split("|", 3) + [""] * 3)[:4]
            if name.startswith(prefix):
                running = state not in ("PD", "CF", "RQ", "RH", "SE", "SO")
                # Of two (a requeue by hand) the one that runs counts.
                if name not in found or running:
                    found[name] = Queued(number, running, "" if running else reason)
        return found

    def became(self, number: str) -> str:
        """Tell what Slurm still knows of a job that is over: "OUT_OF_MEMORY on n1 after 00:01:02 of 01:00:00", or ""; of one
        that could not begin, what became of the job that it waited for."""
        try:
            text = ask("scontrol", "show", "job", number, "--oneliner")
        except QueueError:
            return ""
        jobs = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in text.splitlines()]
        well = ("COMPLETED", "COMPLETING", "RUNNING", "PENDING")
        told = next((job for job in jobs if job.get("JobState") not in well), jobs[0])  # of an array, one that failed
        state, code = told.get("JobState", ""), told.get("ExitCode", "0:0")
        if state == "FAILED" and code.endswith(":9"):
            state = "FAILED by signal 9 (out of memory?)"
        elif state == "FAILED":
            state = f"FAILED with status {code.split(':')[0]}"
        before = re.search(r"afterok:(\d+)[^,]*\(failed\)", told.get("Dependency", ""))
        if state == "CANCELLED" and before:
            return f"never began, as job {before[1]}, which it waited for, {self.became(before[1]) or 'has failed'}"
        if "NodeList" not in told:
            return f"{state} before it began"
        return f"{state} on {told.get('NodeList')} after {told.get('RunTime')} of {told.get('TimeLimit')}"

    def cancel(self, numbers: Iterable[str]) -> None:
        ask("scancel", *numbers)

    def has_gpus(self) -> bool:
        """Tell whether any node has a GPU that jobs can ask for."""
        return "gpu" in ask("sinfo", "--noheader", "--format=%G")

    def requeue(self) -> int:
        """Have the job of this process queued again; return the status that it then is to exit with."""
        ask("scontrol", "requeue", os.environ["SLURM_JOB_ID"])
        return 0


class GridEngine:
    """Queue of Grid Engine: qsub, qstat, qdel."""

    name = "sge"
    task = "$((SGE_TASK_ID - 1))"

    def submit(self, job: Job, site: Site) -> str:
        """Submit a job as for Slurm, but jobs of `after` need only be over, failed or not: a job checks its inputs itself."""
        seconds = max(60, math.ceil(job.hours * 3600))
        partition = job.gpus and site.gpu_partition or site.partition
        cores = job.cpus * job.tasks
        slots = ["-pe", site.parallel_environment, str(cores)] if cores > 1 else []
        needs = [f"h_rt={seconds}", f"h_vmem={math.ceil(job.memory * 1024 / job.cpus)}M"]  # memory is counted by slot
        needs += [f"gpu={job.gpus}"] * bool(job.gpus) + [f"gpu_type={site.gpu}"] * bool(job.gpus and site.gpu)
        optional = {"-q": partition, "-P": site.account, "-hold_jid": ",".join([*[job.name] * (not job.array), *job.after])}
        if job.array:
            optional.update({"-t": f"1-{job.array}", "-tc": str(job.at_once or "")})
        flags = [text for flag, value in optional.items() if value for text in (flag, value)]
        return ask(
            *("qsub", "-terse", "-V", "-N", job.name, "-S", "/bin/bash", "-j", "y", "-r", "y", "-notify"),
            *("-o", job.output, "-l", ",".join(needs), *slots, *flags, *site.arguments),
            text=job.script,
        ).split(".")[0].strip()  # fmt: skip

    def in_processes(self, command: str, tasks: int, cpus: int) -> list[str]:
        """Like Slurm's, but the command itself starts the other processes on its machine."""
        return [f"exec {command}{f' --gpus {tasks}' if tasks > 1 else ''}"]

    def jobs(self, prefix: str) -> dict[str, Queued]:
        """{name: Queued} of the user's jobs whose names begin so."""
        found = {}
        for entry in ElementTree.fromstring(ask("qstat", "-u", getpass.getuser(), "-xml")).iter("job_list"):
            name, state = entry.findtext("JB_name") or "", entry.findtext("state") or ""
            running = "r" in state or "t" in state
            if name.startswith(prefix) and (name not in found or running):
                reason = "" if running else {"qw": "waiting", "hqw": "Dependency"}.get(state, f"state {state}")
                found[name] = Queued(entry.findtext("JB_job_number") or "", running, reason)
        return found

    def became(self, number: str) -> str:
        """ "": without accounting Grid Engine knows nothing of a job that is over."""
        return ""

    def cancel(self, numbers: Iterable[str]) -> None:
        ask("qdel", *numbers)

    def has_gpus(self) -> bool:
        """Tell whether the cluster has a resource of this name."""
        return any(line.split()[0] == "gpu" for line in ask("qconf", "-sc").splitlines() if line.strip())

    def requeue(self) -> int:
        """Exit status by which a job asks to be queued again."""
        return REQUEUED


QUEUES = {queue.name: queue for queue in (Slurm(), GridEngine())}
