"""Stages that train in several processes, on one machine and as tasks of a Slurm job: the weights of one process, and what a
user sees where one of them dies, or all are asked to stop."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from toy_harness import wait_until

from pyspeech.engine import cli, process, ranks
from pyspeech.engine.stages import Stage
from pyspeech.errors import UserError
from pyspeech.training.distributed import Place

ROOT = Path(__file__).resolve().parents[2]


class Tiny:
    """The tiny recipe in a folder of its own; tiny(arguments) runs it as a command, to its end."""

    def __init__(self, folder):
        self.folder, self.exp = folder, folder / "exp"
        (folder / "conf").mkdir(parents=True)
        shutil.copy(ROOT / "tests" / "tiny_recipe.py", folder / "run.py")

    def start(self, *arguments, **environment):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYSPEECH_ENV": "system", **environment}
        command = [sys.executable, "run.py", "--exp", str(self.exp), "--device", "cpu", *arguments]
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def __call__(self, *arguments, status=0, **environment):
        process = self.start(*arguments, **environment)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == status, output
        return output

    def model(self):
        return (self.exp / "model.txt").read_text(encoding="utf-8")

    def record(self, stage):
        return json.loads((self.exp / "stages" / f"{stage}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """The weights that one process gives."""
    tiny = Tiny(tmp_path_factory.mktemp("one") / "tiny")
    tiny()
    return tiny.model()


@pytest.fixture
def tiny(tmp_path):
    return Tiny(tmp_path / "with a space, ä")


def test_more_processes_than_batches_in_a_step_are_refused_before_anything_runs(tiny):
    for more in (["--dry-run"], [], ["--cluster", "slurm"]):
        assert "train.accumulate=2: expected at least 3, a batch in each step" in tiny("--gpus", "3", *more, status=1)
    assert not (tiny.exp / "logs").exists()
    assert "copy needs model.txt" in tiny("--gpus", "3", "--stage", "copy", "--dry-run", status=1)  # it does not train


@pytest.mark.slow  # processes that load torch
def test_one_is_killed_and_one_process_goes_on(tiny, one):
    output = tiny("--gpus", "2", TINY_END=f"1 5 {signal.SIGKILL:d}", status=1)
    assert "2 processes" in output and "process 1 of 2 has ended with status -9; out of memory?" in output
    assert "stage 0 train failed: another process of this training has ended" in output
    assert "go on, once that is mended, with: " in output and "--gpus 2" in output and "Traceback" not in output
    assert "resumed from" in tiny()
    assert tiny.model() == one == (tiny.exp / "copy.txt").read_text(encoding="utf-8")
    assert tiny.record("train")["attempts"] == 2


@pytest.mark.slow
def test_asked_to_stop(tiny, one):
    """The other one is asked, as by a batch system; both stop behind that step, and the run ends as by the signal."""
    output = tiny("--gpus", "2", TINY_END=f"1 5 {signal.SIGTERM:d}", status=128 + signal.SIGTERM)
    assert "training stopped by SIGTERM at step 7" in output and output.count("go on with") == 1
    assert "resumed from" in tiny()
    assert tiny.model() == one


@pytest.mark.slow
def test_as_tasks_of_a_job_on_two_nodes(tiny, slurm, monkeypatch):
    """As Slurm's time is nearly up, both get a signal; the job is queued again and goes on."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tiny.folder))
    slow, options = tiny.folder / "slow", ["train.max_steps=100", "train.save_every=10"]
    slow.touch()
    driver = tiny.start("--cluster", "slurm", "--gpus", "2", "cluster.gpus_per_node=1", *options, TINY_SLOW=str(slow))
    wait_until(lambda: list(tiny.exp.glob("training/checkpoint-*.pt")))
    number, _, nodes = slurm.jobs(tiny.exp)["train"]
    assert nodes in ("n[1-2]", "n[2-3]", "n[1,3]")
    slurm.call("scancel", "--signal=USR2", number)
    wait_until(lambda: tiny.record("train.attempt")["attempts"] == 2)
    slow.unlink()
    output, _ = driver.communicate(timeout=120)
    assert driver.returncode == 0, output
    assert tiny.record("train")["attempts"] == 2
    printed = (tiny.exp / "logs" / "0-train.job").read_text(encoding="utf-8")
    assert "training stopped by SIGUSR2" in printed and "queued again" in printed
    assert printed.count("2 processes") == 2
    model = tiny.model()
    tiny("--force", *options)
    assert tiny.model() == model


STARTED = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
TRAIN, COPY = Stage(0, "train", print, trains=True), Stage(1, "copy", print)


@pytest.mark.parametrize(
    "arguments, selected, environment, expected",
    [
        ([], [TRAIN, COPY], STARTED, "WORLD_SIZE=2 in the environment: expected one stage that trains, --stage X"),
        ([], [COPY], STARTED, "WORLD_SIZE=2 in the environment: expected one stage that trains"),
        (["--gpus", "3"], [TRAIN], STARTED, "--gpus 3: expected 2, as WORLD_SIZE in the environment says"),
        (["--gpus", "0"], [TRAIN], {}, "--gpus 0: expected a number of GPUs, at least 1"),
        (["--gpus", "2", "--jobs", "2"], [TRAIN], {}, "--jobs 2 --gpus 2: one stage at a time has all GPUs"),
        (["--gpus", "2"], [TRAIN], {"PYSPEECH_DEVICE": ""}, "--gpus 2: found 1 GPU; add --device cpu"),
        (["--gpus", "2"], [TRAIN], {}, Place()),
        (["--gpus", "2"], [TRAIN], STARTED, Place(1, 2, 1)),
        (["--cluster", "slurm", "--gpus", "64"], [TRAIN, COPY], STARTED, Place()),
    ],
)
def test_which_process_of_how_many(monkeypatch, arguments, selected, environment, expected):
    monkeypatch.setattr(ranks, "usable_gpus", lambda: (["NVIDIA X"], ""))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    try:
        found = ranks.place_of(selected, cli.parse(arguments, {}))
    except UserError as error:
        assert str(error).startswith(str(expected))
    else:
        assert found == expected


def test_each_process_has_its_share_of_the_cores(monkeypatch, tmp_path):
    monkeypatch.setattr(ranks, "stage_cores", lambda: 7)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    code = (
        "import os; open(os.environ['RANK'], 'w').write(' '.join(os.environ[k] for k in ('PYSPEECH_CORES', 'OMP_NUM_THREADS')))"
    )
    monkeypatch.chdir(tmp_path)
    with ranks.started([sys.executable, "-c", code], 3, print) as place:
        assert (place.rank, place.size) == (0, 3) and process.stage_cores() <= 2
    assert [Path(str(rank)).read_text() for rank in (1, 2)] == ["2 2"] * 2
    assert process.CORES not in os.environ and "MASTER_PORT" not in os.environ
