"""egs/fearless on a tiny made-up corpus: from raw audio to the table, killed in every stage and resumed."""

import json
import runpy
import shlex
import shutil

import pytest
from recipe_harness import ROOT, Recipe
from tiny_corpora import make_fearless

# Networks of a few parameters, a few steps over two epochs, a checkpoint in the middle of each.
FEARLESS = Recipe(
    "fearless",
    "--profile",
    "quick",
    "simulated=never",
    "network.channels=[2,4,8]",
    "network.rnn_size=8",
    "network.cnn_channels=8",
    "train.max_steps=12",
    "train.valid_every=6",
    "train.save_every=2",
    "train.log_every=2",
    "data.batch_size=4",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_fearless(tmp_path_factory.mktemp("with a space, ä") / "FSC_P2")


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, FEARLESS.run(f"corpus={corpus}", "--exp", folder)


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
    assert {path.name for path in (folder / "figures").iterdir()} == {"denoising.png", "histogram.png", "thresholds.png"}
    up_to_date = FEARLESS.run("--dry-run", f"corpus={corpus}", "--exp", folder)
    assert up_to_date.count("up to date") == 9, up_to_date


def test_killed_in_every_stage_and_resumed(corpus, undisturbed, tmp_path):
    """SIGKILL at a random moment of each stage, then the same command: the same results.json, byte for byte."""
    command = [f"corpus={corpus}", "--exp", tmp_path / "exp"]
    stages = FEARLESS.stages()
    assert stages[0] == "prepare" and stages[-1] == "results"
    FEARLESS.kill_in_stages(stages, 3.0, *command)
    FEARLESS.run(*command)
    assert (tmp_path / "exp" / "results.json").read_bytes() == (undisturbed[0] / "results.json").read_bytes()


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--stage", "trian"], "Did you mean 'train_cnn'?"),
        (["train.lrr=1"], "did you mean 'train.lr'"),
        (["corpus=/nowhere"], "/nowhere"),
    ],
)
def test_one_line_for_a_mistake(arguments, expected, tmp_path):
    output = Recipe("fearless").fail(*arguments, "--exp", tmp_path / "exp")
    assert [line for line in output.splitlines() if expected in line], output


# A value that makes no sense, for each group of options that has a check.
BAD = {
    "fearless": [
        "statistical.decision=x",
        "features.shift=0",
        "network.rnn_merge=x",
        "data.batch_size=0",
        "train.lr=-1.0",
        "statistical.sampling_rate=16000",
        "features.sampling_rate=16000",
        "data.crop_seconds=0.001",
        "statistical.band_hertz=0.0",
        "minutes=[1]",
        "minutes=[0, 0, 0]",
        "minutes=[-5, 1, 1]",
    ],
    "indic": [
        "features.stack=0",
        "specaugment.time_fraction=2.0",
        "model.dropout=1.0",
        "loss.prune_range=0",
        "train.lr=-1.0",
        "search.beam=0",
        "monolingual_lr=-1.0",
        "finetune_steps=nan",
    ],
    "zerospeech": [
        "features.kind=x",
        "vqvae.codes=1",
        "data.warp=0.0",
        "train.lr=-1.0",
        "inverter.power=0.0",
        "inverter_data.batch_seconds=0.0",
        "inverter_train.lr=-1.0",
        "train.seed=-1",
    ],
    "add2022": ["network.dropout=1.0", "data.samples=0", "train.lr=-1.0"],
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_option_is_refused_before_anything_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PYSPEECH_ENV", "system")
    recipe = runpy.run_path(str(ROOT / "egs" / name / "run.py"), run_name="run")["recipe"]
    for option in BAD[name]:
        with pytest.raises(SystemExit):
            recipe.main([option, "--exp", str(tmp_path / "exp"), "--dry-run"])
        output, errors = capsys.readouterr()
        key, value = option.split("=")
        assert f"{key.split('.')[-1]}={value}" in errors and errors.count("\n") == 1 and output == "", errors


@pytest.mark.parametrize("name", ["zerospeech", "add2022"])
def test_a_bad_seed_is_refused_before_anything_runs(name, tmp_path):
    output = Recipe(name).fail("seeds=[42,-1]", "--exp", tmp_path / "exp", "--dry-run")
    assert output == "training option seed=-1: expected 0 to 2^63 - 1\n"


def test_a_bad_option_removes_nothing(corpus, undisturbed, tmp_path):
    folder = tmp_path / "exp"
    shutil.copytree(undisturbed[0], folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    output = FEARLESS.fail(f"corpus={corpus}", "--exp", folder, "--stage", "train_cnn", "train.lr=-1")
    assert output == "training option lr=-1.0: expected a positive number\n"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
