"""utils/bench/paper_scale.py at a thousandth of a corpus's size."""

import json
import runpy

import numpy as np
import pytest
import soundfile
import torch
from recipe_harness import ROOT
from tiny_corpora import voiced
from tool_harness import run_tool

from local.full_size import LAYOUTS
from steps.benchmark.plans import PLANS


@pytest.mark.slow
def test_a_recipe(tmp_path):
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    soundfile.write(recordings / "a.wav", voiced(40, np.random.default_rng(1)), 8000)
    options = ["--recipes", "zerospeech", "--scale", "0.004", "--seconds", "5", "--recordings", recordings]
    options += ["--folder", tmp_path, "--json", tmp_path / "scale.json", "--set", "data.batch_seconds=60"]
    done = run_tool("bench/paper_scale", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "scale.json").read_text())["recipes"]["zerospeech"]
    assert [row["part"] for row in rows] == ["corpus", "prepare", "epoch", "resume"]
    laid_out, prepared, epoch, resumed = rows
    assert laid_out["files"] == 24 + 4 + 10 + 2 and all(row["seconds"] > 0 and row["gigabytes"] > 0 for row in rows[1:])
    assert "unit 24, voice 14, test 2" in prepared["note"]
    assert epoch["batches"] == epoch["read"] > 1 and epoch["audio"] < 24 * 4.0  # crops of 4 s at most
    assert resumed["note"].startswith(f"batch {epoch['batches'] // 2} after ")


def test_a_stage_that_fails_is_told(tmp_path):
    (tmp_path / "zerospeech").mkdir()
    done = run_tool("bench/paper_scale", "--recipes", "zerospeech", "--folder", tmp_path)
    assert done.returncode == 1 and "prepare ...: status 1" not in done.stdout
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1 and "no audio in folders" in done.stderr


@pytest.mark.parametrize(
    "name, batch, seconds",
    [
        ("fearless", {"samples": torch.zeros(3, 10)}, 3 * 4.0),
        ("zerospeech", {"seconds": 7.5}, 7.5),
        ("add2022", {"seconds": 7.5}, 7.5),
        ("indic", {"lengths": torch.tensor([10, 30])}, 40 * 0.03),
    ],
)
def test_plans_are_of_the_recipes(name, batch, seconds):
    recipe, plan = runpy.run_path(str(ROOT / "egs" / name / "run.py"))["recipe"], PLANS[name]
    conf = recipe.configure("full", plan.options)[1]
    assert plan.seconds(batch, conf) == pytest.approx(seconds) and plan.corpus in LAYOUTS
    stages = [stage.name for stage in recipe.stages]
    assert stages[: len(plan.stages)] == list(plan.stages) and plan.training in stages
