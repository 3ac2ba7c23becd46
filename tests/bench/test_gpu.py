"""utils/bench/gpu.py on a CPU, on a tiny corpus, and what it makes of its measurements."""

import json
import runpy

import pytest
import torch
from recipe_harness import ROOT
from tiny_corpora import make_fearless
from tool_harness import assert_usage_error, run_tool

from pyspeech.compat import save_checkpoint
from utils.bench import gpu

TINY = "simulated=never network.channels=[2,4,8] network.rnn_size=8 network.cnn_channels=8 data.batch_size=4"


@pytest.mark.slow
def test_a_recipe_on_a_cpu(tmp_path):
    corpus = make_fearless(tmp_path / "FSC_P2", {"Train": 2, "Dev": 1, "Eval": 1}, seconds=20.0)
    options = ["--device", "cpu", "--steps", 4, "--recipes", "fearless", "--profile", "quick", "--no-tests"]
    done = run_tool("bench/gpu", *options, "--json", tmp_path / "gpu.json", "--set", f"corpus={corpus}", *TINY.split())
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "gpu.json").read_text())
    found = results["trainings"]["fearless train_seg_rnn"]
    assert len(found["losses"]) == 4 and found["steps_per_second"] > 0 and 0 <= found["waiting"] <= 1
    assert found["resumed"]["identical"] and found["resumed"]["largest_difference"] == 0.0
    assert 1 <= found["resumed"]["from"] <= found["resumed"]["killed_at"] and found["resumed"]["killed_at"] >= 3
    assert results["good"] and "| fearless train_seg_rnn |" in done.stdout and " identical |" in done.stdout


def test_a_recipe_that_fails_is_told(tmp_path):
    options = ["--device", "cpu", "--steps", 2, "--recipes", "fearless", "--no-tests", "--folder", tmp_path]
    done = run_tool("bench/gpu", *options, "--set", "corpus=/nowhere")
    assert done.returncode == 1 and "fearless's corpus: status 1: " in done.stdout and "/nowhere" in done.stdout


@pytest.mark.parametrize("name", gpu.RECIPES)
def test_its_trainings_are_the_recipes(name):
    recipe, chosen = runpy.run_path(str(ROOT / "egs" / name / "run.py"))["recipe"], gpu.RECIPES[name]
    conf = recipe.configure("full", chosen.options)[1]
    stages = {stage.name: stage.bind(conf) for stage in recipe.stages}
    assert list(stages).index(chosen.prepared) < min(map(list(stages).index, chosen.trainings))
    for stage, (section, folder) in chosen.trainings.items():
        assert section in stages[stage].config and hasattr(conf, section)
        assert [path for path in [*stages[stage].scratch, *stages[stage].outputs] if f"training/{folder}".startswith(path)]


def test_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "usable_gpus", lambda: ([], ""))
    with pytest.raises(gpu.UserError, match="no GPU here; --device cpu --steps 3"):
        gpu.main([])
    assert_usage_error(capsys, gpu.main, ["--steps", "1"], "1 is not a whole number of 2 or more")


def test_speeds_leave_out_the_first_tenth(tmp_path):
    """The first of ten steps takes 100 s, each other one 2 s, of which it waits 0.5 s."""
    speeds = [(0.01, 0.9), *[(0.5, 0.25)] * 9]
    history = [{"step": 1, "valid/loss": 1.0}]
    history += [
        {"speed/steps_per_second": speed, "speed/waiting": share, "speed/gpu_gigabytes": 3.0} for speed, share in speeds
    ]
    save_checkpoint(tmp_path / "checkpoint-10.pt", {"position": {"history": history}})
    assert gpu.read_speeds(tmp_path) == pytest.approx({"steps_per_second": 0.5, "waiting": 0.25, "gpu_gigabytes": 3.0})


def result(weight, loss):
    return {"model": {"w": torch.tensor([1.0, weight]), "n": torch.tensor(3)}, "history": [{"train/loss": loss}]}


def test_results_are_compared_bit_by_bit():
    assert gpu.compare(result(2.0, 0.5), result(2.0, 0.5)) == {"identical": True, "largest_difference": 0.0}
    assert gpu.compare(result(2.0, 0.5), result(2.25, 0.5)) == {"identical": False, "largest_difference": 0.25}
    assert gpu.compare(result(2.0, 0.5), result(2.0, 0.25)) == {"identical": False, "largest_difference": 0.0}


@pytest.mark.parametrize(
    "change, expected",
    [
        ({}, []),
        ({"losses": [1.0] * 120}, ["the loss does not fall"]),
        ({"cpu": [1.5, 1.49]}, ["the losses are not the CPU's"]),
        ({"resumed": {"identical": False}, "repeated": {"identical": True}}, ["resumed, it is not what it is undisturbed"]),
        ({"resumed": {"identical": False}, "repeated": {"identical": False}}, []),
        ({"problem": "it stopped"}, ["it stopped"]),
    ],
)
def test_what_is_wrong(change, expected):
    good = {"losses": [1 - step / 200 for step in range(120)], "cpu": [1.01, 0.99], "resumed": {"identical": True}}
    assert gpu.problems_of({**good, **change}) == expected


def test_the_cell_of_a_training_that_was_not_repeated():
    found = {"resumed": {"identical": False, "largest_difference": 0.001}}
    assert gpu.resumed_cell(found) == "1.0e-03"
    assert gpu.resumed_cell({**found, "repeated": {"largest_difference": 0.002}}) == "1.0e-03, repeated 2.0e-03"
