"""Runs recipes as a user does, each in a process of its own, and kills them."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Recipe:
    """The recipe egs/<name>/run.py with the options that all of its runs here share."""

    def __init__(self, name, *options):
        self.script, self.options = ROOT / "egs" / name / "run.py", [str(option) for option in options]

    def start(self, *arguments, **options):
        environment = {**os.environ, "PYSPEECH_ENV": "system", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, str(self.script), *self.options, *map(str, arguments)],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **options,
        )

    def run(self, *arguments):
        """Everything that it prints; it has to end well."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=400)
        assert process.returncode == 0, output
        return output

    def fail(self, *arguments):
        """What it prints where it has to end with status 1, and in a line, not a traceback."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 1, output
        assert "Traceback" not in output
        return output

    def stages(self):
        return [line.split()[1] for line in self.run("--list").splitlines()]

    def kill_in_stage(self, stage, seconds, *arguments):
        """Start it, and SIGKILL it and its children so long after `stage` has begun."""
        process = self.start(*arguments, start_new_session=True)
        for line in process.stdout:
            if f" {stage}: runs" in line:
                break
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_in_stages(self, stages, longest, *arguments, seed=17):
        """One after the other, each at a random moment of at most `longest` seconds."""
        moments = random.Random(seed)
        for stage in stages:
            self.kill_in_stage(stage, moments.uniform(0.0, longest), *arguments)
