"""What a training of egs/add2022 begins with."""

import logging
import os
import shutil
import subprocess
import sys
import types
from dataclasses import replace

import pytest
import torch
from tiny_spoof import write_corpus

from pyspeech.engine.artifacts import Artifacts
from pyspeech.errors import UserError
from pyspeech.launch import ROOT
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.checkpoint import SHIPPED, load_model, save_model
from pyspeech.spoof.config import AugmentConfig, CropConfig, DetectorConfig, LogMelConfig
from pyspeech.spoof.detector import Detector
from pyspeech.spoof.networks import LcnnBlstm
from pyspeech.training.config import TrainConfig
from steps.spoof.start import check_start, first_model
from steps.spoof.train import read_by_training, train_detector

DATA = CropConfig(samples=4096, hop=4096, batch_size=4)
TRAIN = TrainConfig(max_steps=1, log_every=1, minimize="eer", lr=1e-9)


def configured(start_from, **options):
    options = {"features": LogMelConfig(), "network": DetectorConfig(), "leave_out": [], **options}
    return types.SimpleNamespace(start_from=str(start_from), data=DATA, augment=AugmentConfig(), train=TRAIN, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of a detector with other weights than a training has by its seed."""
    folder = tmp_path_factory.mktemp("a detector ü")
    torch.manual_seed(77)
    save_model(folder, Detector(LcnnBlstm(), DATA, Calibration()))
    return folder


@pytest.mark.parametrize("dropout", [0.3, 0.7])
def test_a_training_begins_with_the_weights_of_a_detector(folder, tmp_path, dropout):
    """Next to nothing is learnt in one step of this rate."""
    (tmp_path / "corpus").mkdir()
    for seed, name in enumerate(("train", "dev")):
        write_corpus(tmp_path / name, 6, seed, longest=0.6).to_file(tmp_path / "corpus" / f"{name}.jsonl.gz")
    exp = types.SimpleNamespace(dir=tmp_path, log=logging.getLogger("test"), parts=None)
    conf = configured(folder, network=DetectorConfig(dropout=dropout))
    check_start(conf)
    train_detector(exp, conf, "none", 3, {}, "none/3")
    before, after = (dict(load_model(path).model.named_parameters()) for path in (folder, tmp_path / "models/none/3"))
    for name, values in before.items():
        torch.testing.assert_close(after[name], values, rtol=0, atol=1e-6)
    conf.start_from = "random"
    train_detector(exp, conf, "none", 4, {}, "none/4")
    others = dict(load_model(tmp_path / "models/none/4").model.named_parameters())
    assert (others["output.weight"] - before["output.weight"]).abs().max() > 1e-3


def test_the_statistics_of_normalisation_are_taken_too():
    model = first_model(configured("shipped", features=load_model(SHIPPED).model.log_mel.config))
    for (name, value), other in zip(model.state_dict().items(), load_model(SHIPPED).model.state_dict().values(), strict=True):
        assert torch.equal(value, other), name


def test_another_network_in_its_place_makes_the_training_stale(folder, tmp_path):
    model = tmp_path / "x" / "model.pt"
    model.parent.mkdir()
    shutil.copy(folder / "model.pt", model)
    files = Artifacts(tmp_path / "exp")
    for given in (model, model.parent):
        conf = configured(given, systems=["none", "rnm"])
        assert read_by_training("rnm")(conf) == ["corpus", "backgrounds", str(model)]
        *others, own = read_by_training("none")(conf)
        assert others == ["corpus"]
        recorded = files.fingerprints([own])
        shutil.copy(folder / "model.pt", model)
        assert files.changes(recorded, [own]) == []
        shutil.copy(SHIPPED / "model.pt", model)
        assert files.changes(recorded, [own]) == [(str(model), "has changed")]
        shutil.copy(folder / "model.pt", model)
    assert read_by_training("none")(configured("shipped", systems=["none"])) == ["corpus", str(SHIPPED / "model.pt")]
    assert read_by_training("none")(configured("random", systems=["none"])) == ["corpus"]
    assert read_by_training("none")(configured(folder, systems=["rnm"])) == []


def test_weights_that_do_not_fit_are_refused(folder, tmp_path):
    check_start(configured("random", leave_out=["all"]))
    with pytest.raises(
        UserError, match=r"^start_from=shipped: .*features\.window=160 features\.shift=80 features\.scale=linear"
    ):
        check_start(configured("shipped"))
    with pytest.raises(UserError, match="its weights are for other features; expected features.remove_mean=false$"):
        check_start(configured(folder, features=replace(LogMelConfig(), remove_mean=True)))
    with pytest.raises(UserError, match="^start_from=.*may have met the engines of leave_out"):
        check_start(configured(folder, leave_out=["all"]))
    with pytest.raises(UserError, match=f"^start_from={tmp_path}: .*model.pt"):
        check_start(configured(tmp_path))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted as Linux shows them")
def test_the_check_leaves_no_threads(folder):
    """Stages are forked from the process that has checked the options; what torch computes in it leaves threads, and a forked
    training waits for them forever."""
    code = """if True:
        import os, sys, types, torch
        from pyspeech.spoof.config import CropConfig, LogMelConfig
        from steps.spoof.start import check_start, first_model
        threads = lambda: len(os.listdir("/proc/self/task"))
        options = {"features": LogMelConfig(), "network": None, "data": CropConfig()}
        conf = types.SimpleNamespace(start_from=sys.argv[1], leave_out=[], **options)
        before = threads()
        check_start(conf)
        checked = threads()
        first_model(conf)(torch.zeros(4, 16000))
        print(checked - before, threads() - before)
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    command = [sys.executable, "-c", code, str(folder)]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    checked, computed = map(int, found.split())
    assert checked == 0 < computed
