"""egs/fearless on a tiny made-up corpus: from raw audio to the table, killed in every stage and resumed."""

import json
import shlex

import pytest
from browser_harness import check_page
from job_harness import check_as_jobs
from recipe_harness import Recipe, fixtures, mistakes
from tiny_corpora import make_fearless

pytestmark = pytest.mark.slow  # the recipe runs, is killed and resumed

# Networks of a few parameters, a few steps over two epochs, a checkpoint in the middle of each; Figure 7 of three cells, of
# which one is the table's network and two are trained.
OPTIONS = """
    --profile quick simulated=never network.channels=[2,4,8] network.rnn_size=8 network.cnn_channels=8
    train.max_steps=8 train.valid_every=4 train.save_every=2 train.log_every=2 data.batch_size=4
    data.crop_seconds=2 network.segment_length=8 grid.lengths=[3,8] grid.shifts=[2,5] collars=[0.5,0]
"""
FEARLESS = Recipe("fearless", *OPTIONS.split())


corpus, undisturbed = fixtures(FEARLESS, make_fearless, "FSC_P2")


def test_report_page(undisturbed, browser, tmp_path):
    check_page(browser, undisturbed[0] / "report" / "index.html", tmp_path, sliders=True)


def test_killed_and_resumed(corpus, undisturbed, tmp_path):
    FEARLESS.check_killed_and_resumed(undisturbed[0], tmp_path / "exp", f"corpus={corpus}")


def test_as_jobs_of_a_cluster(corpus, undisturbed, tmp_path, slurm):
    """Three jobs are killed, one is preempted, one out of time, and the driver is killed: the same results.json, byte for
    byte. A lost node: test_cluster.py; arrays: test_cluster_arrays.py."""
    kinds = {"kill": ["statistical", "train_cnn", "decode"], "requeue": ["train_rnn"], "time": ["train_seg_rnn"],
             "driver": ["tune"]}  # fmt: skip
    disturbances = {stage: [how] for how, stages in kinds.items() for stage in stages}
    options = [f"corpus={corpus}", "cluster.shards.decode=1", "cluster.shards.grid=1", "--stop-stage", "results"]
    check_as_jobs(FEARLESS, undisturbed[0], tmp_path / "exp", slurm, disturbances, *options)


def test_table_and_figures(corpus, undisturbed):
    folder, output = undisturbed
    assert shlex.quote(f"corpus={corpus}") in (folder / "RESULTS.md").read_text(encoding="utf-8")  # to be copied
    results = json.loads((folder / "results.json").read_text())
    untrained = ("statistical", "voicing", "untuned", "voicing_untuned", "baseline")
    for system in (*untrained, "cnn", "rnn", "seg_rnn", "vote", "vote_tuned"):
        for name in ("dev", "eval"):
            for collar in ("0", "0.5"):
                scores = results["scores"][system][name][collar]
                assert scores["dcf"] == pytest.approx(0.75 * scores["p_miss"] + 0.25 * scores["p_fa"], abs=0.02)
    assert results["scores"]["statistical"]["eval"]["0"]["dcf"] < 0.1  # clean-cut transmissions, 20 dB above the noise
    assert "Seg. RNN" in output and "97.42" in output  # the paper's precision beside ours
    assert "Majority" in output and "1.07" in output
    figures = {"denoising.png", "histogram.png", "thresholds.png", "grid.png"}
    assert {path.name for path in (folder / "figures").rglob("*.png")} == figures
    assert FEARLESS.would_run(folder, f"corpus={corpus}") == []


def test_thresholds_are_those_of_each_collar(undisturbed):
    """The scores on dev are the lowest of the sweep for the collar that they are for; the model has that of the first."""
    from pyspeech.sad.checkpoint import load_model

    folder = undisturbed[0]
    results = json.loads((folder / "results.json").read_text())
    for system, smoothing in (
        ("statistical", "hmm"),
        ("voicing", "hmm"),
        ("baseline", "none"),
        ("cnn", "hmm"),
        ("rnn", "hmm"),
        ("seg_rnn", "none"),
    ):
        points = results["operating_points"][system][smoothing]
        assert set(points) == {"0.5", "0"}
        for collar, point in points.items():
            dcf = results["scores"][system]["dev"][collar]["dcf"]
            assert point["best_dcf"] - 2e-5 <= dcf <= 1.05 * point["best_dcf"] + 2e-5
        if system in ("cnn", "rnn", "seg_rnn"):
            model = load_model(folder / "models" / system)
            assert (model.threshold, model.smoothing) == (points["0.5"]["threshold"], smoothing)
    for collar, point in results["operating_points"]["vote_tuned"]["majority"].items():
        dcf = results["scores"]["vote_tuned"]["dev"][collar]["dcf"]
        assert dcf == pytest.approx(point["best_dcf"], abs=2e-5)
        others = [results["scores"][name]["dev"][collar]["dcf"] for name in ("cnn", "rnn", "seg_rnn", "vote")]
        assert dcf <= min(others) + 2e-5
    for pair in (("untuned", "statistical"), ("voicing_untuned", "voicing")):
        untuned, tuned = (results["scores"][name]["dev"] for name in pair)
        assert all(tuned[collar]["dcf"] <= 1.05 * untuned[collar]["dcf"] + 1e-5 for collar in ("0", "0.5"))


def test_figure_7(undisturbed):
    """The cell of the network of the table is that network; the others have been trained."""
    folder = undisturbed[0]
    results = json.loads((folder / "results.json").read_text())
    cells = {(row["length"], row["shift"]): row["dcf"] for row in results["grid"]}
    assert list(cells) == [(3, 2), (8, 2), (8, 5)]
    for collar, point in results["operating_points"]["seg_rnn"]["none"].items():
        assert cells[8, 2][collar] == pytest.approx(point["best_dcf"], abs=2e-5)
    assert {path.name for path in (folder / "training" / "grid").iterdir()} == {"3_2", "8_5"}
    assert "| L = 3  |" in (folder / "RESULTS.md").read_text(encoding="utf-8")


test_one_line_for_a_mistake = mistakes(
    Recipe("fearless"),
    (["--stage", "trian"], "Did you mean 'train_cnn'?"),
    (["train.lrr=1"], "did you mean 'train.lr'"),
    (["corpus=/nowhere"], "/nowhere"),
    (["collars=[0.5,0.5]"], "collars=[0.5, 0.5]: expected seconds, 0 or more each, at least one and none twice"),
    (["grid.lengths=[5,25]"], "grid.shifts=[]: expected some, as of grid.lengths"),
    (["grid.lengths=[5,25]", "grid.shifts=[6]"], "grid.shifts=[6]: expected a shift of at most 5 frames"),
)
