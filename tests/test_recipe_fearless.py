"""egs/fearless on a tiny made-up corpus: from raw audio to the table, killed in every stage and resumed."""

import json
import shlex

import pytest
from recipe_harness import Recipe, fixtures, mistakes
from tiny_corpora import make_fearless

pytestmark = pytest.mark.slow  # the recipe runs, is killed and resumed

# Networks of a few parameters, a few steps over two epochs, a checkpoint in the middle of each.
OPTIONS = """
    --profile quick simulated=never network.channels=[2,4,8] network.rnn_size=8 network.cnn_channels=8
    train.max_steps=12 train.valid_every=6 train.save_every=2 train.log_every=2 data.batch_size=4
"""
FEARLESS = Recipe("fearless", *OPTIONS.split())


corpus, undisturbed = fixtures(FEARLESS, make_fearless, "FSC_P2")


def test_killed_and_resumed(corpus, undisturbed, tmp_path):
    FEARLESS.check_killed_and_resumed(undisturbed[0], tmp_path / "exp", f"corpus={corpus}")


def test_table_and_figures(corpus, undisturbed):
    folder, output = undisturbed
    assert shlex.quote(f"corpus={corpus}") in (folder / "RESULTS.md").read_text(encoding="utf-8")  # to be copied
    results = json.loads((folder / "results.json").read_text())
    for system in ("statistical", "cnn", "rnn", "seg_rnn"):
        for name in ("dev", "eval"):
            scores = results["scores"][system][name]["0"]
            assert scores["dcf"] == pytest.approx(0.75 * scores["p_miss"] + 0.25 * scores["p_fa"], abs=0.02)
    assert results["scores"]["statistical"]["eval"]["0"]["dcf"] < 0.1  # clean-cut transmissions, 20 dB above the noise
    assert "Seg. RNN" in output and "97.42" in output  # the paper's precision beside ours
    assert {path.name for path in (folder / "figures").rglob("*.png")} == {"denoising.png", "histogram.png", "thresholds.png"}
    assert FEARLESS.would_run(folder, f"corpus={corpus}") == []


test_one_line_for_a_mistake = mistakes(
    Recipe("fearless"),
    (["--stage", "trian"], "Did you mean 'train_cnn'?"),
    (["train.lrr=1"], "did you mean 'train.lr'"),
    (["corpus=/nowhere"], "/nowhere"),
)
