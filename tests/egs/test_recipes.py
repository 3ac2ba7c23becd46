"""The options of all recipes: values that make no sense are refused before anything runs."""

import runpy
import shutil

import pytest
from recipe_harness import ROOT, Recipe
from tiny_corpora import make_fearless

from tests.egs.test_fearless import FEARLESS


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_fearless(tmp_path_factory.mktemp("corpus") / "FSC_P2")


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    """An experiment up to a first network."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, FEARLESS.run(f"corpus={corpus}", "--stop-stage", "train_cnn", "--exp", folder)


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
        "network.temporal=cnn",
    ],
    "indic": [
        "data.batch_seconds=-1.0",
        "data.minibatches=0",
        "data.speeds=[-1.0]",
        "data.warp=0.5",
        "data.channel_db=3.0",
        "data.channel_corners=1",
        "pieces=0",
        "stop_after=[-5]",
        "features.stack=0",
        "specaugment.time_fraction=2.0",
        "model.dropout=1.0",
        "loss.prune_range=0",
        "train.lr=-1.0",
        "search.beam=0",
        "monolingual_lr=-1.0",
        "finetune_steps=nan",
        "model.structure=vanilla",
        "model.lid=true",
        "model.features=3",
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
        "train.seed=7",
        "vqvae.features=5",
        "inverter.bins=7",
        "inverter_train.seed=7",
    ],
    "detector": ["train_minutes=[1]", "eval_minutes=[1, 1, 0]", "features.sampling_rate=16000", "network.temporal=cnn"],
    "add2022": ["network.dropout=1.0", "data.samples=0", "train.lr=-1.0", "train.seed=7", "features.sampling_rate=100"],
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
        assert errors.startswith(f"{key}={value}: expected ") and errors.count("\n") == 1 and output == "", errors


@pytest.mark.parametrize("name", ["zerospeech", "add2022"])
def test_a_bad_seed_is_refused_before_anything_runs(name, tmp_path):
    output = Recipe(name).fail("seeds=[42,-1]", "--exp", tmp_path / "exp", "--dry-run")
    assert output == "seeds=[42, -1]: expected 0 to 2^63 - 1\n"


def test_a_bad_option_removes_nothing(corpus, undisturbed, tmp_path):
    folder = tmp_path / "exp"
    shutil.copytree(undisturbed[0], folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    output = FEARLESS.fail(f"corpus={corpus}", "--exp", folder, "--stage", "train_cnn", "train.lr=-1")
    assert output == "train.lr=-1.0: expected a positive number\n"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
