"""Model files of every kind: what comes back, and one line for what is no model, damaged, or of another kind or format."""

import re

import numpy as np
import pytest
import torch
from tiny_units import make_pair

import pyspeech
from pyspeech import model_file
from pyspeech.asr import checkpoint as transducer
from pyspeech.asr.config import TransducerConfig
from pyspeech.asr.networks import Transducer
from pyspeech.compat import load_checkpoint, save_checkpoint
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import GlobalStats
from pyspeech.model_file import find_model, newest_model
from pyspeech.sad import checkpoint as sad
from pyspeech.sad.config import NetworkConfig, StftConfig
from pyspeech.sad.networks import SadNetwork
from pyspeech.spoof import checkpoint as spoofing
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.config import CropConfig
from pyspeech.spoof.detector import Detector
from pyspeech.spoof.networks import LcnnBlstm
from pyspeech.text.units import GraphemeUnits
from pyspeech.units import checkpoint as units
from pyspeech.units.config import INVERTER, VQVAE

KINDS = (sad.KIND, spoofing.KIND, transducer.KIND, VQVAE, INVERTER)


def save_sad(folder):
    model = SadNetwork(NetworkConfig(channels=[2, 2], rnn_size=8), StftConfig())
    sad.save_model(folder, model, 0.25, "median")
    return model


def save_detector(folder):
    model = LcnnBlstm()
    spoofing.save_model(folder, Detector(model, CropConfig(samples=5000, hop=100), Calibration(2.0, 0.5), -1.0))
    return model


def save_transducer(folder):
    sizes = dict(encoder_layers=1, encoder_size=8, predictor_size=8, embedding=4, joint=8, features=16, lid_sizes=[4, 4])
    model = Transducer(TransducerConfig(structure="monolingual", **sizes), {"hi-IN": 5})
    transducer.save_model(folder, model, {"hi-IN": GraphemeUnits(list("ab"))}, GlobalStats([1.0], [2.0]), FbankConfig())
    return model


def save_part(place, folder):
    bundle = make_pair()[place]
    units.save_model(folder, bundle.model, bundle.speakers, bundle.features)
    return bundle.model


SAVE = {
    "SAD network": save_sad,
    "fake audio detector": save_detector,
    "transducer": save_transducer,
    "vqvae": lambda folder: save_part(0, folder),
    "inverter": lambda folder: save_part(1, folder),
}
LOAD = {
    "SAD network": sad.load_model,
    "fake audio detector": lambda place: spoofing.load_model(place).model,
    "transducer": lambda place: transducer.load_model(place).model,
    "vqvae": lambda place: units.load_model(place, VQVAE).model,
    "inverter": lambda place: units.load_model(place, INVERTER).model,
}


@pytest.fixture(params=SAVE)
def kind(request):
    return request.param


def error_of(kind, place):
    with pytest.raises(UserError) as caught:
        LOAD[kind](place)
    message = str(caught.value)
    assert "\n" not in message
    return message


def change(folder, **values):
    path = folder / "model.pt"
    content = {**load_checkpoint(path), **values}
    save_checkpoint(path, {name: value for name, value in content.items() if value is not None})


def test_every_kind_is_tested():
    assert set(SAVE) == set(LOAD) == {kind.name for kind in KINDS}


def test_weights_and_options_come_back(kind, tmp_path):
    saved = SAVE[kind](tmp_path / "a folder ñ")
    for place in (tmp_path / "a folder ñ", str(tmp_path / "a folder ñ" / "model.pt")):
        loaded = LOAD[kind](place)
        assert loaded.config == saved.config and not loaded.training
        for name, value in saved.state_dict().items():
            assert torch.equal(loaded.state_dict()[name], value), name
    assert [path.name for path in (tmp_path / "a folder ñ").iterdir()] == ["model.pt"]
    content = load_checkpoint(tmp_path / "a folder ñ" / "model.pt")
    assert (content["kind"], content["format"], content["version"]) == (kind, model_file.FORMAT, pyspeech.__version__)


def test_the_same_model_is_the_same_file(kind, tmp_path):
    for name in ("one", "two"):
        torch.manual_seed(0)
        SAVE[kind](tmp_path / name)
    assert (tmp_path / "one" / "model.pt").read_bytes() == (tmp_path / "two" / "model.pt").read_bytes()


def test_a_missing_file_names_what_makes_it(kind, tmp_path):
    recipe = next(known.recipe for known in KINDS if known.name == kind)
    assert f"{tmp_path}/model.pt: no such model; expected a {kind} that the recipe {recipe} trained" in error_of(kind, tmp_path)
    assert f"{tmp_path}/none/model.pt: no such model" in error_of(kind, tmp_path / "none")


def test_a_flipped_bit_in_a_weight_is_noticed(kind, tmp_path):
    SAVE[kind](tmp_path)
    path = tmp_path / "model.pt"
    data = path.read_bytes()
    matrices = [value for value in load_checkpoint(path)["model"].values() if value.dim() == 2]
    weight = max(matrices, key=torch.numel).numpy().tobytes()
    changed = data.replace(weight, weight[:2] + bytes([weight[2] ^ 16]) + weight[3:])
    assert len(changed) == len(data) and changed != data
    path.write_bytes(changed)
    assert re.match(rf"{path}: damaged or not a checkpoint \(checksum", error_of(kind, tmp_path))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_named(kind, tmp_path, share):
    SAVE[kind](tmp_path)
    path = tmp_path / "model.pt"
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    assert f"{path}: not a checkpoint or cut short" in error_of(kind, tmp_path)


def test_another_kind_is_named(kind, tmp_path):
    for other in set(SAVE) - {kind}:
        SAVE[other](tmp_path)
        assert error_of(kind, tmp_path) == f"{tmp_path}/model.pt: holds a model of kind {other}; expected {kind}"


def test_an_unknown_format_says_which_version_wrote_it(kind, tmp_path):
    SAVE[kind](tmp_path)
    change(tmp_path, format=model_file.FORMAT + 1, version="9.8", surprise=[1, 2])
    message = error_of(kind, tmp_path)
    assert "has format 2, written by pyspeech 9.8; this is pyspeech " in message and "which reads format 1" in message
    assert "use that version, or train it again with the recipe " in message


def test_what_has_no_format_number_is_refused(kind, tmp_path):
    SAVE[kind](tmp_path)
    change(tmp_path, format=None)
    assert "one without a format number" in error_of(kind, tmp_path)
    save_checkpoint(tmp_path / "model.pt", [1, 2])
    assert "holds no model, or one without" in error_of(kind, tmp_path)


def test_content_that_does_not_fit(kind, tmp_path):
    SAVE[kind](tmp_path)
    weights = load_checkpoint(tmp_path / "model.pt")["model"]
    for wrong in ({}, {name: torch.zeros(3) for name in weights}):
        change(tmp_path, model=wrong)
        assert f"{tmp_path}/model.pt: no {kind} of this version (" in error_of(kind, tmp_path)
    weights.pop(next(iter(weights)))
    change(tmp_path, model=weights)
    assert f"{tmp_path}/model.pt: no {kind} of this version (" in error_of(kind, tmp_path)
    assert "); train it again with the recipe " in error_of(kind, tmp_path)


def test_options_of_another_version(tmp_path):
    save_detector(tmp_path)
    network = load_checkpoint(tmp_path / "model.pt")["network"]
    change(tmp_path, network={**network, "layers": 3})
    assert "TypeError" in (message := error_of("fake audio detector", tmp_path)) and "layers" in message
    save_sad(tmp_path)
    change(tmp_path, smoothing="mean")
    assert "smoothing 'mean'; expected one of none, median, hmm" in error_of("SAD network", tmp_path)


def test_the_values_beside_the_weights(tmp_path):
    save_sad(tmp_path / "sad")
    loaded = sad.load_model(tmp_path / "sad")
    assert (loaded.threshold, loaded.smoothing, loaded.stft.config) == (0.25, "median", StftConfig())
    save_detector(tmp_path / "spoofing")
    detector = spoofing.load_model(tmp_path / "spoofing")
    assert detector.crop == CropConfig(samples=5000, hop=100) and detector.threshold == -1.0
    assert detector.calibration == Calibration(2.0, 0.5)


# What tools are given


def touch(*folders):
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "model.pt").touch()


def test_a_model_is_found_in_what_is_given(tmp_path):
    touch(*(tmp_path / "exp" / name for name in ("models/b/1", "models/a/1", "training/c/1")))
    for given in (tmp_path / "exp/models/a/1", str(tmp_path / "exp/models/a/1/model.pt")):
        assert find_model(given, transducer.KIND) == tmp_path / "exp/models/a/1"
    listed = f"choose one of {tmp_path}/exp/models/a/1, {tmp_path}/exp/models/b/1"
    for given in (tmp_path, tmp_path / "exp", tmp_path / "exp/models"):
        with pytest.raises(UserError, match=rf"^--model {given}: no model.pt in it; {listed}$"):
            find_model(given, transducer.KIND)
    (tmp_path / "other.pt").touch()
    (tmp_path / "empty").mkdir()
    found = {"nowhere": "no such file or folder", "other.pt": "is not a model.pt", "empty": "no model.pt in it"}
    for given, what in found.items():
        with pytest.raises(UserError, match=f"{given}: {what}; expected a folder that the recipe indic made: exp/NAME"):
            find_model(tmp_path / given, transducer.KIND)


def test_a_long_list_is_cut(tmp_path):
    touch(*(tmp_path / str(number) for number in range(8)))
    with pytest.raises(UserError, match=rf"{tmp_path}/4 \(3 more\)$"):
        find_model(tmp_path, VQVAE)


def test_the_folder_may_be_relative(tmp_path, monkeypatch):
    touch(tmp_path / "a", tmp_path / "b")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="^--model .: no model.pt in it; choose one of a, b$"):
        find_model(".", VQVAE)


def test_the_newest_needs_to_be_there(tmp_path):
    touch(tmp_path / "mini" / "models" / "cnn")
    assert newest_model(tmp_path, "cnn", sad.KIND) == tmp_path / "mini" / "models" / "cnn"
    with pytest.raises(UserError, match="no trained rnn in .*models/rnn; train one with the recipe fearless, or name a folder"):
        newest_model(tmp_path, "rnn", sad.KIND)


def test_content_becomes_plain_data(tmp_path):
    model_file.write(tmp_path, VQVAE, torch.nn.Linear(2, 1), sizes=(1, 2), nested={"crop": CropConfig(), "x": torch.ones(2)})
    content = model_file.read(tmp_path, VQVAE, lambda content: content)
    assert content["sizes"] == [1, 2] and CropConfig(**content["nested"]["crop"]) == CropConfig()
    np.testing.assert_array_equal(content["nested"]["x"], [1, 1])
