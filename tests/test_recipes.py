"""Whole recipes on tiny made-up corpora: from raw audio to the table, killed in every stage and resumed."""
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tiny_corpora import make_fearless

ROOT = Path(__file__).resolve().parents[1]
FEARLESS = ROOT / "egs" / "fearless" / "run.py"
# Networks of a few parameters, a few steps over two epochs, a checkpoint in the middle of each.
TINY = ["--profile", "quick", "simulated=never", "network.channels=[2,4,8]", "network.rnn_size=8", "network.cnn_channels=8",
        "train.max_steps=12", "train.valid_every=6", "train.save_every=2", "train.log_every=2", "data.batch_size=4"]


def run(*arguments, **options):
    environment = {**os.environ, "PYSPEECH_ENV": "system", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, str(FEARLESS), *map(str, arguments)], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def finish(process):
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 0, output
    return output


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_fearless(tmp_path_factory.mktemp("with a space, ä") / "FSC_P2")


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    output = finish(run(f"corpus={corpus}", *TINY, "--exp", folder))
    return folder, output


def test_table_and_figures(corpus, undisturbed):
    folder, output = undisturbed
    results = json.loads((folder / "results.json").read_text())
    for system in ("statistical", "cnn", "rnn", "seg_rnn"):
        for name in ("dev", "eval"):
            scores = results["scores"][system][name]["0"]
            assert scores["dcf"] == pytest.approx(0.75 * scores["p_miss"] + 0.25 * scores["p_fa"], abs=0.02)
    assert results["scores"]["statistical"]["eval"]["0"]["dcf"] < 0.1  # clean-cut transmissions, 20 dB above the noise
    assert "Seg. RNN" in output and "97.42" in output  # the paper's precision beside ours
    assert {path.name for path in (folder / "figures").iterdir()} == {"denoising.png", "histogram.png", "thresholds.png"}
    up_to_date = finish(run("--dry-run", *TINY, f"corpus={corpus}", "--exp", folder))
    assert up_to_date.count("up to date") == 9, up_to_date


def test_killed_in_every_stage_and_resumed(corpus, undisturbed, tmp_path):
    """SIGKILL at a random moment of each stage, then the same command: the same results.json, byte for byte."""
    moments = random.Random(17)
    command = [f"corpus={corpus}", *TINY, "--exp", tmp_path / "exp"]
    stages = [line.split()[1] for line in finish(run("--list")).splitlines()]
    assert stages[0] == "prepare" and stages[-1] == "results"
    for stage in stages:
        process = run(*command, start_new_session=True)
        for line in process.stdout:
            if f" {stage}: runs" in line:
                break
        time.sleep(moments.uniform(0.0, 3.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finish(run(*command))
    assert (tmp_path / "exp" / "results.json").read_bytes() == (undisturbed[0] / "results.json").read_bytes()


@pytest.mark.parametrize("arguments, expected", [
    (["--stage", "trian"], "Did you mean 'train_cnn'?"),
    (["train.lrr=1"], "did you mean 'train.lr'"),
    (["corpus=/nowhere"], "/nowhere"),
])
def test_one_line_for_a_mistake(arguments, expected, tmp_path):
    process = run(*arguments, "--exp", tmp_path / "exp")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert [line for line in output.splitlines() if expected in line], output
    assert "Traceback" not in output
