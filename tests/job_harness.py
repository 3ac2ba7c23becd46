"""Runs a recipe as jobs of a private Slurm and disturbs these, their nodes and their driver.

As a program, `job_harness.py SCRIPT ARGUMENTS`: the driver, which asks the private Slurm more often than one of many users.
"""

import itertools
import json
import os
import runpy
import signal
import sys
import tempfile
import time

from pyspeech.engine import cluster

# What can be done to a stage that runs as a job.
KINDS = {
    "kill": "SIGKILL to the job",
    "requeue": "queued again by scontrol, as at a preemption",
    "time": "SIGUSR2, as Slurm sends it before the time of a job is up",
    "node": "the slurmd of its node ends, which Slurm takes for a lost node, while the job goes on there",
    "driver": "SIGKILL to the driver",
}


def check_as_jobs(recipe, undisturbed, folder, slurm, disturbances, *arguments, moments=None, say=lambda line: None):
    """With --cluster slurm, where each stage's job is disturbed in turn in these ways: the same results.json as in the folder
    of an undisturbed local run, byte for byte.

    recipe: of recipe_harness; disturbances: {stage, or stage.shard0of4: [of KINDS, ...]}; moments: {the same: seconds that
    it has run when it is disturbed first}; again it is at once, as it may take less long then. The driver is started again
    where it was killed, or a job was.
    """
    disturber = Disturber(folder, slurm, disturbances, dict(moments or {}), say)
    most = sum(how in ("kill", "driver") for ways in disturbances.values() for how in ways) + 1
    try:
        for attempt in itertools.count(1):
            status, output = disturber.drive(recipe, *arguments)
            if status == 0:
                break
            assert status == -signal.SIGKILL or "FAILED by signal 9" in output, output
            assert attempt < most, output
    finally:
        for node in disturber.lost:
            slurm.start_node(node)
    assert not disturber.left, f"never begun: {disturber.left}\n{output}"
    same = (folder / "results.json").read_bytes() == (undisturbed / "results.json").read_bytes()
    assert same, f"{folder}/results.json is not that of {undisturbed}"


class Disturber:
    """left: the disturbances that are still to come; lost: the nodes that were lost."""

    def __init__(self, folder, slurm, disturbances, moments, say):
        self.folder, self.slurm, self.moments, self.say = folder, slurm, moments, say
        self.left, self.lost = {stage: list(ways) for stage, ways in disturbances.items()}, []
        self._begun = {}  # when a process was seen in a stage first

    def drive(self, recipe, *arguments):
        """(exit status, what was printed) of the driver, while jobs are disturbed."""
        with tempfile.TemporaryFile("w+") as printed:
            command = ["--cluster", "slurm", *arguments, "--exp", self.folder]
            driver = recipe.start(*command, program=[__file__], stdout=printed)
            try:
                while driver.poll() is None:
                    time.sleep(0.02)
                    for stage in list(self.left):
                        self._look(stage, driver)
            finally:
                driver.kill()
            printed.seek(0)
            output = printed.read()
        self.say(f"the driver ends with status {driver.returncode}:\n{output}")
        return driver.returncode, output

    def _look(self, stage, driver):
        pid = holder_of(self.folder, stage)
        begun = self._begun.setdefault((stage, pid), time.monotonic())
        if pid is None or time.monotonic() < begun + self.moments.get(stage, 0):
            return
        if driver.poll() is not None:  # another driver will look
            return
        number, state, node = self.slurm.jobs(self.folder).get(stage, ("", "", ""))
        if number and state != "R":  # it is a share's process, which clears away what another attempt has left of the stage
            return
        how = self.left[stage].pop(0)
        self.moments.pop(stage, None)
        if not self.left[stage]:
            del self.left[stage]
        self._begun[stage, pid] = float("inf")  # this process has had its own
        self.say(f"{stage}, process {pid}, job {number} on {node}: {how}, {KINDS[how]}")
        self._disturb(how, pid, number, node, driver)

    def _disturb(self, how, pid, number, node, driver):
        if how == "driver":
            driver.kill()
            driver.wait()
        elif how == "kill":
            os.kill(pid, signal.SIGKILL)
        elif how == "requeue":
            self.slurm.call("scontrol", "requeue", number)
        elif how == "time":
            self.slurm.call("scancel", "--batch", "--signal=USR2", number)
        elif how == "node":
            self.slurm.lose_node(node)
            self.lost.append(node)


def holder_of(folder, stage):
    """The process id of the job that runs a stage, or a share of one, from its lock, or None."""
    try:
        return json.loads((folder / f".lock.{stage}").read_text(encoding="utf-8"))["pid"]
    except (OSError, ValueError):  # not begun, or over
        return None


if __name__ == "__main__":
    cluster.POLL = 0.4  # seconds
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
