"""Runs the toy recipe as the commands of a user, in processes of their own that can be killed."""

import json
import os
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

from kill_harness import end_with

import pyspeech.engine.recipe  # noqa: F401  loaded once here, so that a forked command need not
from pyspeech.engine import cluster, process
from pyspeech.files import atomic_write

repository = Path(__file__).resolve().parents[1]
# Of the forked commands: they ask a private Slurm often, and need not each ask git for the commit.
cluster.POLL = 0.4
process.commit()


def wait_until(condition, seconds=60):
    """Return once condition() holds; AssertionError where that takes longer than so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Toy:
    """The toy recipe in a folder; toy(arguments) runs it as a command."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "conf").mkdir(parents=True)
        shutil.copy(Path(__file__).with_name("toy_recipe.py"), folder / "run.py")
        (folder / "conf" / "mini.yaml").write_text("train: {steps: 3}\n", encoding="utf-8")
        (folder / "conf" / "quick.yaml").write_text("train: {steps: 2}\n", encoding="utf-8")
        self.exp = folder / "exp" / "mini"

    def hold(self, steps=1):
        """TOY_HOLD=... of commands whose training waits after so many steps, until this is called again with more."""
        path = self.folder.parent / "steps"
        with atomic_write(path) as stream:
            stream.write(str(steps))
        return {"TOY_HOLD": str(path)}

    def start(self, *arguments, **environment):
        """A running command, as a Popen."""
        environment = {**os.environ, "PYTHONPATH": str(repository), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        return subprocess.Popen(
            [sys.executable, "run.py", *arguments],
            cwd=self.folder,
            env=environment,
            encoding="utf-8",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments, cwd=None, before=None, **environment):
        """(exit status, standard output, standard error) of a command; -9 where it was killed.

        The process is forked from this one, which spares it the imports. before() is called in it first.
        """
        outputs = [self.folder.parent / name for name in ("stdout", "stderr")]
        child = os.fork()
        if child == 0:
            end_with(lambda: self._become_command(arguments, cwd or self.folder, before, environment, outputs), 70)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return (status, *(path.read_text(encoding="utf-8") for path in outputs))

    def _become_command(self, arguments, cwd, before, environment, outputs):
        for number, path in enumerate(outputs, start=1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
        os.chdir(cwd)
        os.environ.update(environment)
        sys.argv = [os.path.relpath(self.folder / "run.py"), *arguments]
        if before:
            before()
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as error:
            return error.code or 0
        return 0

    def __call__(self, *arguments, status=0, **options):
        """(standard output, standard error) of a command that ends with this status."""
        found, output, errors = self.run(*arguments, **options)
        assert found == status, output + errors
        return output, errors

    def error(self, *arguments, **options):
        """The one line on standard error of a command that fails."""
        errors = self(*arguments, status=1, **options)[1]
        assert errors.count("\n") == 1, errors
        return errors.strip()

    def plan(self, *arguments):
        """{stage: what --dry-run says of it}"""
        lines = self("--dry-run", *arguments)[0].splitlines()
        return {line.split()[2]: line.split(maxsplit=3)[3] for line in lines}

    def ran(self, *arguments, **options):
        """{stage: reason} of the stages that a run has run."""
        lines = self(*arguments, **options)[0].splitlines()
        return {
            line.split(": ")[0].split()[-1]: line.split("runs (")[1].split("), log:")[0] for line in lines if ": runs (" in line
        }

    def results(self):
        return (self.exp / "results.txt").read_text(encoding="utf-8")

    def record(self, stage):
        return json.loads((self.exp / "stages" / f"{stage}.json").read_text(encoding="utf-8"))
