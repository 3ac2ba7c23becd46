"""Stages that split, here and as arrays of jobs: what a local run gives, and only what is missing is made again."""

import json
import random
import re

import pytest
from kill_harness import full_at_event
from toy_harness import Toy

from pyspeech.engine.queues import QUEUES

SPLIT = """
import os
import sys
import types
from dataclasses import dataclass
from pathlib import Path

sys.modules["pyspeech.compat"] = types.SimpleNamespace(describe_environment=lambda: "Python of the tests")
from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.engine.parts import in_parts
from pyspeech.engine.recipe import Recipe


@dataclass
class Config:
    numbers: int = 10  # how many

    def check(self):
        pass


recipe = Recipe("Squares", Config, conf=Path(__file__).resolve().parent / "conf", profile="mini")


@recipe.stage(config=["numbers"], outputs=["numbers.json"])
def numbers(exp, conf):
    '''Numbers.'''
    write_json(exp.dir / "numbers.json", list(range(conf.numbers)))


@recipe.stage(inputs=["numbers.json"], outputs=["squares.json"], resumable=True, shards=4, cpus=1)
def squares(exp, conf):
    '''Their squares.'''
    import json

    def square(number):
        with open(exp.dir / "made", "a") as stream:
            stream.write(f"{number}\\n")
        if str(number) in os.environ.get("FAIL", "").split():
            raise UserError(f"{number} cannot be squared")
        return number**2

    parts = {str(number): number for number in json.loads((exp.dir / "numbers.json").read_text())}
    found = in_parts(exp.parts, "squares", square, parts)
    write_json(exp.dir / "squares.json", list(found.values()))


@recipe.stage(inputs=["squares.json"], outputs=["results.json"])
def total(exp, conf):
    '''Their sum.'''
    import json

    write_json(exp.dir / "results.json", sum(json.loads((exp.dir / "squares.json").read_text())))


if __name__ == "__main__":
    recipe.main()
"""


@pytest.fixture
def split(tmp_path, monkeypatch):
    """A recipe whose second stage splits; made(): the numbers that were squared since it was asked last, sorted."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    toy = Toy(tmp_path / "töy [1]")
    (toy.folder / "run.py").write_text(SPLIT, encoding="utf-8")
    (toy.folder / "conf" / "mini.yaml").write_text("", encoding="utf-8")

    def made():
        path = toy.exp / "made"
        found = sorted(map(int, path.read_text().split())) if path.exists() else []
        path.unlink(missing_ok=True)
        return found

    toy.made = made
    return toy


@pytest.fixture
def slurmed(slurm, split):
    yield split
    split.run("--cancel")


def results(toy):
    return json.loads((toy.exp / "results.json").read_text())


def shards(toy):
    return sorted(path.name for path in (toy.exp / "stages").glob("squares.*"))


def test_here_all_parts_are_made_by_the_stage_itself(split):
    output, _ = split()
    assert results(split) == 285 and split.made() == list(range(10)) and "share" not in output
    assert shards(split) == ["squares.json"]


def test_twenty_write_errors(split):
    """Each ends with one line, or is passed over where nothing is lost by it; the same command goes on to the same results."""
    split()
    whole = {path.name: path.read_bytes() for path in split.exp.glob("*.json")}
    rng, failed = random.Random(20), 0
    for trial in range(20):
        folder, event = split.folder / f"full{trial}", rng.randint(8, 75)
        status, _, errors = split.run("--exp", folder.name, before=lambda: full_at_event(folder, event))
        assert "Traceback" not in errors and status in (0, 1), errors
        failed += status
        if status:
            assert len([line for line in errors.splitlines() if "No space left on device" in line]) == 1, errors
            split("--exp", folder.name)
        assert {path.name: path.read_bytes() for path in folder.glob("*.json")} == whole
    assert failed > 10


def test_an_array_of_jobs(slurmed, slurm):
    output, _ = slurmed("--cluster", "slurm", "cluster.at_once=2")
    number = output.split("stage 1 squares: array ")[1].split()[0]
    assert f"array {number} of 4 jobs" in output and "stage 1 squares: 4 of 4 shares are made" in output
    told = slurm.call("scontrol", "show", "job", number)
    assert told.count("JobState=COMPLETED") == 4 and "ArrayTaskThrottle=2" in told
    assert results(slurmed) == 285 and slurmed.made() == list(range(10))
    assert shards(slurmed) == ["squares.json"] and slurmed.record("squares")["attempts"] == 1
    assert "share 4 of 4 made" in (slurmed.exp / "logs" / "1-squares.shard3of4.log").read_text()
    assert set(slurmed.plan().values()) == {"up to date"}
    output, _ = slurmed("--cluster", "slurm", "numbers=3", "cluster.shards.squares=1")
    assert results(slurmed) == 5 and slurmed.made() == [0, 1, 2] and "array" not in output


def test_only_shares_that_failed_are_made_again(slurmed):
    output, errors = slurmed("--cluster", "slurm", FAIL="5 7", status=1)
    assert "5 cannot be squared" in errors and "stage 1 squares failed: job" in errors and "stage 2 total: not run" in errors
    assert ".shard1of4.job" in errors
    assert set(slurmed.made()) == {0, 4, 8, 1, 5, 2, 6, 3, 7}  # 9 comes after 5, in the same share
    assert re.findall(r"shard\dof4.json", " ".join(shards(slurmed))) == ["shard0of4.json", "shard2of4.json"]
    output, _ = slurmed("--cluster", "slurm")
    assert "of 2 jobs" in output and results(slurmed) == 285
    assert slurmed.made() == [5, 7, 9]


def test_an_array_that_an_earlier_driver_has_submitted(slurmed, slurm):
    """Its shares are counted, and what failed of it explained, as by the driver that submitted it."""
    slurmed("--stop-stage", "numbers")
    slurm.call("scontrol", "update", "nodename=ALL", "state=drain", "reason=test")  # no job starts
    driver = slurmed.start("--cluster", "slurm", FAIL="5")
    slurm.wait_for(lambda: {"squares", "squares.shards", "total"} <= set(slurm.jobs(slurmed.exp)))
    driver.kill()
    driver.communicate()
    slurm.call("scontrol", "update", "nodename=ALL", "state=resume")
    output, errors = slurmed("--cluster", "slurm", status=1)
    assert "stage 1 squares: is job" in output and "of 4 shares are made" in output
    assert ".shard1of4.job" in errors and "somebody ended it" not in errors


def test_a_job_that_cannot_begin(slurm, tmp_path):
    """What became of the one that it waited for is told; where somebody has ended it before, that."""
    options = ("sbatch", "--parsable", "--mem=100", "--output=/dev/null")
    first = slurm.call(*options, "--array=0-2", "--wrap", "[ $SLURM_ARRAY_TASK_ID != 1 ] || kill -9 $$").strip()
    after = f"--dependency=afterok:{first}"
    second = slurm.call(*options, after, "--kill-on-invalid-dep=yes", "--wrap", "true").strip()
    held = slurm.call(*options, "--hold", "--wrap", "true").strip()
    slurm.call("scancel", held)
    slurm.wait_for(lambda: not {first, second, held} & set(slurm.call("squeue", "-h", "-o", "%F").split()))
    became = QUEUES["slurm"].became(second)
    assert became.startswith(f"never began, as job {first}, which it waited for, FAILED by signal 9 (out of memory?) on n")
    assert QUEUES["slurm"].became(held) == "CANCELLED before it began"


def test_here_after_some_shares_were_made(slurmed):
    slurmed("--cluster", "slurm", FAIL="9", status=1)
    slurmed.made()
    slurmed()
    assert results(slurmed) == 285 and slurmed.made() == [9]


def test_arrays_of_grid_engine(grid_engine, split, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")
    output, _ = split("--cluster", "sge", "cluster.at_once=3")
    assert "of 4 jobs" in output and results(split) == 285 and split.made() == list(range(10))
    records = [json.loads(path.read_text(encoding="utf-8")) for path in split.exp.glob("stages/*.json")]
    assert {record["threads"] for record in records} == {1}
    (array,) = [line for line in grid_engine() if "-t " in line]
    assert "-t 1-4 -tc 3" in array and "squares.shards " in array
    assert [line for line in grid_engine() if "squares -S" in line and "squares,1,2" in line]  # the stage waits for its array


def test_a_stage_that_splits_has_to_be_resumable(split):
    path = split.folder / "run.py"
    path.write_text(path.read_text(encoding="utf-8").replace("resumable=True, ", ""), encoding="utf-8")
    assert "shards=4, so it has to be resumable" in split.run("--list")[2]
