"""The model that a training of egs/indic begins with."""

import types
from dataclasses import replace

import pytest
from tiny_asr import save_random_model

from pyspeech.asr.checkpoint import read_options
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import GlobalStats
from steps.asr.options import read_by_training
from steps.asr.start import check_start, first_bundle, start_place, stats_of
from steps.asr.train import SEEDS, STRUCTURES


def configured(start_from, systems=("multi_softmax",), **options):
    options = {"features": FbankConfig(), "freeze": [], **options}
    return types.SimpleNamespace(start_from=str(start_from), systems=list(systems), **options)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """An experiment [x] with two systems."""
    folder = tmp_path_factory.mktemp("e") / "exp [x]"
    for system in ("vanilla", "multi_softmax"):
        save_random_model(folder / "models" / system, system)
    return folder


def test_a_model_or_the_system_of_the_same_name(experiment):
    model = experiment / "models/vanilla"
    for given in (model, model / "model.pt"):
        assert start_place(configured(given), "multi_softmax") == model
    assert start_place(configured(experiment), "multi_softmax") == experiment / "models/multi_softmax"
    check_start(configured(experiment, ["vanilla", "multi_softmax", "multi_softmax_finetuned"]), SEEDS, STRUCTURES)
    with pytest.raises(UserError, match="^start_from /.*: no model.pt in it; choose one of .*multi_softmax, .*vanilla$"):
        check_start(configured(experiment, ["multi_softmax_lid"]), SEEDS, STRUCTURES)


def test_the_model_file_is_an_input_of_the_training(experiment):
    conf = configured(experiment, ["multi_softmax", "multi_softmax_finetuned"])
    files = read_by_training("multi_softmax")(conf)
    assert files[-1] == str(experiment / "models/multi_softmax/model.pt").replace("[x", "[[]x")
    assert read_by_training("multi_softmax_finetuned")(conf)[-1] == "models/multi_softmax"
    assert read_by_training("vanilla")(conf) == []
    conf.start_from = "random"
    assert read_by_training("multi_softmax")(conf)[-1] == "features/*.json"


def test_the_statistics_of_the_features_come_with_it(experiment, tmp_path):
    exp = types.SimpleNamespace(dir=tmp_path, log=types.SimpleNamespace(info=lambda *_: None))
    GlobalStats([1.0] * 80, [2.0] * 80).save(tmp_path / "features/stats.json")
    start = first_bundle(exp, configured(experiment), "multi_softmax", None)
    assert stats_of(exp, start).mean == [-8.0] * 80
    assert first_bundle(exp, configured("random"), "multi_softmax", None) is None
    assert stats_of(exp, None).mean == [1.0] * 80


def test_other_features_are_refused(experiment):
    message = r"^start_from=.*: its weights are for other features; expected features.stack_shift=3 features.mean_frames=0$"
    with pytest.raises(UserError, match=message):
        check_start(configured(experiment, features=replace(FbankConfig(), stack_shift=4, mean_frames=300)), SEEDS, STRUCTURES)


@pytest.mark.parametrize(
    "part, changes, message",
    [
        ("lid", {}, "^freeze=lid: the system multi_softmax has no language identification; leave it out"),
        (
            "encoder",
            {"encoder_size": 7},
            "^freeze=encoder: model.encoder_size=7; expected .*, as the model of start_from has it",
        ),
        ("predictor", {"embedding": 7}, "^freeze=predictor: model.embedding=7; expected"),
        ("joint", {"joint": 7}, "^freeze=joint: model.joint=7; expected"),
    ],
)
def test_parts_that_cannot_be_frozen_are_said_before_anything_runs(experiment, part, changes, message):
    model, _ = read_options(experiment / "models/multi_softmax")
    conf = configured(experiment, freeze=[part], model=replace(model, **changes))
    with pytest.raises(UserError, match=message):
        check_start(conf, SEEDS, STRUCTURES)
    if changes:
        model.encoder_options = {}  # as a user has them, without defaults
        check_start(configured(experiment, freeze=[part], model=model), SEEDS, STRUCTURES)
    if part in ("encoder", "predictor"):
        with pytest.raises(UserError, match=f"^freeze={part}: start_from=.* has no inputs for languages, as onehot has"):
            check_start(configured(experiment / "models/vanilla", ["onehot"], freeze=[part], model=model), SEEDS, STRUCTURES)
