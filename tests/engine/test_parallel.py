"""`--jobs`: stages at once, each in a process of its own."""

import os
import signal
import subprocess
import sys

import pytest
from toy_harness import Toy, repository, wait_until

from pyspeech.engine import process
from pyspeech.engine.locks import birth_of
from pyspeech.engine.parallel import run_parallel
from pyspeech.engine.stages import Stage
from tests.engine.test_run_killed import files_of

# left and right each wait until the other has begun; "after" needs both. A stage that finds the file "fail" fails.
RECIPE = '''
import sys, time
from dataclasses import dataclass
from pathlib import Path
import pyspeech.compat
from pyspeech.errors import UserError
from pyspeech.engine.recipe import Recipe
from pyspeech.engine.process import stage_cores
pyspeech.compat.describe_environment = lambda: "Python of the tests"

@dataclass
class Config:
    patience: float = 60.0

recipe = Recipe("Parallel", Config)

def wait_for(path, seconds):
    deadline = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > deadline:
            raise UserError(f"{path.name} did not come")
        time.sleep(0.01)

def stage(name, inputs, other):
    @recipe.stage(name=name, inputs=inputs, outputs=[f"{name}.txt"], scratch=[f"{name}.begun"])
    def run(exp, conf):
        """Wait for another."""
        import os
        (exp.dir / f"{name}.begun").write_text(str(os.getpid()))
        wait_for(exp.dir / other, conf.patience)
        if (exp.dir / "fail").exists() and name == "left":
            raise UserError("left was told to fail")
        if (exp.dir / "hang").exists():
            time.sleep(600)
        exp.log.info("threads %s on %d cores", os.environ.get("OMP_NUM_THREADS"), stage_cores())
        (exp.dir / f"{name}.txt").write_text(name)

stage("first", [], "first.begun")
stage("left", ["first.txt"], "right.begun")
stage("right", ["first.txt"], "left.begun")
stage("after", ["left.txt", "right.txt"], "after.begun")
if __name__ == "__main__":
    recipe.main()
'''


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run.py").write_text(RECIPE, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}

    def start(*arguments):
        return subprocess.Popen(
            [sys.executable, "run.py", "--exp", "exp", *arguments],
            cwd=tmp_path,
            encoding="utf-8",
            env={**environment, "PYTHONPATH": str(repository)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def finish(*arguments, status=0):
        process = start(*arguments)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == status, output + errors
        return output, errors

    finish.start, finish.exp = start, tmp_path / "exp"
    return finish


def hanging(run):
    """(a command whose stages left and right have begun and do not end, the files with their process ids)."""
    run("--stop-stage", "first")
    (run.exp / "hang").touch()
    process = run.start("--jobs", "2")
    begun = [run.exp / f"{name}.begun" for name in ("left", "right")]
    wait_until(lambda: all(path.exists() and path.read_text() for path in begun))
    return process, begun


def test_stages_that_need_nothing_of_each_other_run_at_once(run):
    output, errors = run("--jobs", "2")
    assert errors == "" and output.count("done in") == 5
    assert "[left] stage 1 left: runs" in output and "[right] stage 2 right: runs" in output
    assert output.index("[right] stage 2 right: done") < output.index("[after] stage 3 after: runs")
    cores = process.num_cores()
    for names, number in ((("left", "right"), max(1, cores // 2)), (("first", "after"), cores)):  # the latter run alone
        assert all(f"[{name}] threads 1 on {number} cores" in output for name in names)
    assert run("--jobs", "2")[0].count("up to date") == 4
    assert "left did not come" not in run()[0]  # one after the other: up to date as well


def test_one_after_the_other_they_would_wait_for_ever(run):
    assert "right.begun did not come" in run("patience=0.1", status=1)[1]


def test_a_failure_stops_the_others_and_the_same_command_goes_on(run):
    run("--stop-stage", "first")
    (run.exp / "fail").touch()
    (run.exp / "hang").touch()
    _, errors = run("--jobs", "2", status=1)
    assert "left was told to fail" in errors and "go on, once that is mended, with:" in errors and "--jobs 2" in errors
    assert not birth_of((run.exp / "right.begun").read_text())
    (run.exp / "fail").unlink()
    (run.exp / "hang").unlink()
    assert "done in" in run("--jobs", "2")[0]


@pytest.mark.parametrize(
    "number, reason",
    [(signal.SIGKILL, "signal 9 (Killed); out of memory?"), (signal.SIGSEGV, "signal 11 (Segmentation fault)")],
)
def test_a_stage_that_is_killed_is_named(run, number, reason):
    process, begun = hanging(run)
    os.kill(int(begun[0].read_text()), number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    lines = errors.splitlines()[-3:]
    assert lines[0].endswith(f"ERROR stage 1 left was ended by {reason}")
    assert lines[1] == f"log: exp{os.sep}logs{os.sep}1-left.log"
    assert lines[2].startswith("go on, once that is mended, with: ") and lines[2].endswith("--jobs 2")


@pytest.mark.parametrize("number, status", [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143)])
def test_ended_with_all_its_stages_and_resumed(run, number, status):
    process, begun = hanging(run)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == status
    wait_until(lambda: not any(birth_of(path.read_text()) for path in begun))
    (run.exp / "hang").unlink()
    assert "done in" in run("--jobs", "2")[0]


def test_jobs_is_a_number(run):
    for text in ("0", "two", "-1"):
        assert "--jobs" in run("--jobs", text, status=1)[1]


def test_without_jobs_as_many_as_the_recipe_says(run, tmp_path):
    recipe = (tmp_path / "run.py").read_text(encoding="utf-8")
    (tmp_path / "run.py").write_text(recipe.replace('Recipe("Parallel", Config)', 'Recipe("Parallel", Config, jobs=2)'))
    assert "one after the other [2]" in run("--help")[0]
    assert "right.begun did not come" in run("--jobs", "1", "patience=0.1", status=1)[1]
    assert run()[0].count("done in") == 4  # three stages and the whole


@pytest.mark.parametrize("cores, gpu, expected", [(1, False, 1), (2, False, 2), (64, False, 4), (64, True, 1)])
def test_stages_at_once(cores, gpu, expected, monkeypatch):
    monkeypatch.setattr(process.os, "sched_getaffinity", lambda pid: range(cores))
    monkeypatch.setattr(process, "has_gpu", lambda: gpu)
    assert process.stages_at_once() == expected


def test_the_same_files_as_one_after_the_other(tmp_path):
    toy = Toy(tmp_path / "toy")
    toy()
    undisturbed = files_of(toy.exp)
    toy("--exp", "parallel", "--jobs", "3")
    assert files_of(toy.folder / "parallel") == undisturbed


def test_what_takes_longest_begins_first():
    """Of those whose inputs are there. All are up to date here, so nothing is forked."""
    some = [
        Stage(0, "first", print, outputs=("a",), hours=0.5),
        Stage(1, "short", print, inputs=("a",)),
        Stage(2, "long", print, inputs=("a",), outputs=("b",), hours=12),
        Stage(3, "longest", print, inputs=("b",), hours=20),
        Stage(4, "middle", print, inputs=("a",), hours=2),
        Stage(5, "other", print, hours=2),
    ]
    begun = []
    run_parallel(some, some, 2, begun.append, print, print)
    assert [stage.name for stage in begun] == ["other", "first", "long", "longest", "middle", "short"]
