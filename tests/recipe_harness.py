"""Runs recipes as a user does, each in a process of its own: whole, stage by stage, and killed.

The undisturbed run and those of `start` are programs from the beginning, the others forks of a process with all imports.

What every recipe's test does with it: `run_stage_by_stage` is the undisturbed run that the other tests look at,
`check_killed_and_resumed` compares another with it, `check_mistake` takes wrong options. `fixtures` makes its corpus.
"""

import hashlib
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import fork_server
import pytest

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {"PYSPEECH_ENV": "system", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
ATTEMPTS = 6  # at killing a stage before it has finished, each after half the time of the one before


class Recipe:
    """The recipe egs/<name>/run.py with the options that all of its runs here share."""

    def __init__(self, name, *options):
        self.script, self.options = ROOT / "egs" / name / "run.py", [str(option) for option in options]

    def start(self, *arguments, program=(), stdout=subprocess.PIPE, **options):
        """program: what runs the recipe, where not Python itself."""
        return subprocess.Popen(
            [sys.executable, *map(str, [*program, self.script, *self.options, *arguments])],
            env={**os.environ, **ENVIRONMENT},
            text=True,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            **options,
        )

    def run(self, *arguments):
        """Everything that it prints; it has to end well."""
        status, output = self._run(*arguments)
        assert status == 0, output
        return output

    def fail(self, *arguments):
        """What it prints where it has to end with status 1, and in a line, not a traceback."""
        status, output = self._run(*arguments)
        assert status == 1, output
        assert "Traceback" not in output
        return output

    def _run(self, *arguments):
        with self._fork(*arguments) as process:
            output = process.stdout.read()
            return process.wait(400), output

    def check_mistake(self, arguments, expected, folder):
        """It ends at once with a line that says what is `expected`."""
        output = self.fail(*arguments, "--exp", folder)
        assert [line for line in output.splitlines() if expected in line], output

    def would_run(self, folder, *arguments):
        """The stages that are not up to date."""
        lines = self.run("--dry-run", *arguments, "--exp", folder).splitlines()
        return [line.split()[2] for line in lines if "would run" in line]

    def run_stage_by_stage(self, folder, *arguments):
        """Run each stage that has something to make with a command of its own; return all that they print.

        Each is to leave all earlier files as they are, and to write nothing but what it declares.
        """
        stages = self.would_run(folder, *arguments)
        process = self.start(*arguments, "--jobs", 1, "--exp", folder, program=[Path(__file__), folder, *stages, "--"])
        output, _ = process.communicate(timeout=400)
        assert process.returncode == 0, output
        return output

    def check_killed_and_resumed(self, undisturbed, folder, *arguments, seed=17):
        """SIGKILL at a random moment of each stage that has something to make, then the same command: the same
        results.json as in the folder of an undisturbed run, byte for byte."""
        moments = random.Random(seed)
        stages = self.would_run(folder, *arguments)
        assert len(stages) > 3 and stages[0] == "prepare" and stages[-1] in ("results", "report")
        for stage in stages:
            seconds = moments.random() * finished_record(undisturbed, stage)["seconds"]
            self.kill_in_stage(stage, seconds, folder, *arguments)
        self.run(*arguments, "--exp", folder)
        assert (folder / "results.json").read_bytes() == (undisturbed / "results.json").read_bytes()

    def kill_in_stage(self, stage, seconds, folder, *arguments):
        """Run the recipe up to `stage`, and SIGKILL it and its children so long after that has begun.

        Where the stage is faster, it is run again, by itself, and killed earlier. In the end its records have to say
        that it was begun and not finished.
        """
        finished, begun = (folder / "stages" / f"{stage}{ending}" for ending in (".json", ".attempt.json"))
        for attempt in range(ATTEMPTS):
            again = ["--stage", stage, "--force"] if attempt else []
            command = [*again, "--stop-stage", stage, *arguments, "--exp", folder]
            status, output = self._kill(stage, seconds / 2**attempt, *command)
            if status == -signal.SIGKILL and not finished.exists():
                assert begun.exists(), f"{stage} has left no record of an attempt:\n{output}"
                return
            assert finished.exists() and status in (0, -signal.SIGKILL), output  # it was faster, or something else ended it
        raise AssertionError(f"{stage} finished before each of {ATTEMPTS} kills")

    def _kill(self, stage, seconds, *arguments):
        """(exit status, what was printed until `stage` began) of a process that is killed so long after that."""
        output = ""
        with self._fork(*arguments) as process:
            for line in process.stdout:
                output += line
                if f" {stage}: runs" in line:
                    break
            else:
                raise AssertionError(f"{stage} has not begun:\n{output}")
            time.sleep(seconds)
            process.kill()
        return process.returncode, output

    def _fork(self, *arguments):
        return fork_server.start(self.script, *self.options, *arguments, env={**os.environ, **ENVIRONMENT})


def fixtures(recipe, make_corpus, name):
    """Two fixtures of a test module: the corpus that make_corpus(folder) lays out in a folder of that name, its path, and
    (folder, output) of the undisturbed run on it."""

    @pytest.fixture(scope="module")
    def corpus(tmp_path_factory):
        return make_corpus(tmp_path_factory.mktemp("with a space, ä") / name)

    @pytest.fixture(scope="module")
    def undisturbed(corpus, tmp_path_factory):
        folder = tmp_path_factory.mktemp("undisturbed")
        return folder, recipe.run_stage_by_stage(folder, f"corpus={corpus}")

    return corpus, undisturbed


def mistakes(recipe, *cases):
    """A test that each of the cases, (arguments, what the line is to say), is refused in one line."""

    @pytest.mark.parametrize("arguments, expected", cases)
    def refused(arguments, expected, tmp_path):
        recipe.check_mistake(arguments, expected, tmp_path / "exp")

    return refused


def finished_record(folder, stage):
    """What the experiment folder has recorded of a stage that finished."""
    return json.loads((Path(folder) / "stages" / f"{stage}.json").read_text(encoding="utf-8"))


def digests(folder):
    """{name: SHA-256} of the files that stages write in an experiment folder; not the engine's own."""
    files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
    named = {path.relative_to(folder): path for path in files}
    return {
        str(name): hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in named.items()
        if name.parts[0] not in ("stages", "logs", "conf.yaml") and not name.parts[0].startswith(".")
    }


def run_one_by_one(folder, stages, script, arguments):
    """In this process: each stage of the recipe by a command of its own, the files compared before and after."""
    sys.argv = [script]  # whose name the recipe publishes
    recipe = runpy.run_path(script, run_name="run")["recipe"]
    before = digests(folder)
    for stage in stages:
        recipe.main(["--stage", stage, "--stop-stage", stage, *arguments])
        after = digests(folder)
        changed = [name for name in before if after.get(name) != before[name]]
        made = [Path(name) for name in finished_record(folder, stage)["outputs"]]
        others = [
            name
            for name in sorted(set(after) - set(before))
            if not (stage.startswith("train_") and name.startswith("training/"))
            and not any(path in (Path(name), *Path(name).parents) for path in made)
        ]
        if changed or others:
            sys.exit(f"{stage} changed or removed {changed}, and wrote {others}, which it does not declare")
        before = after


if __name__ == "__main__":
    split = sys.argv.index("--")
    run_one_by_one(sys.argv[1], sys.argv[2:split], sys.argv[split + 1], sys.argv[split + 2 :])
