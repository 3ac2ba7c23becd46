"""utils/average_detectors.py: the mean of weights, and what is wrong with its input."""

import gzip

import pytest
import torch
from lhotse import CutSet
from tiny_spoof import write_corpus

from pyspeech.commands import average_detectors
from pyspeech.errors import UserError
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.checkpoint import load_model, save_model
from pyspeech.spoof.config import CropConfig, DetectorConfig, LogMelConfig
from pyspeech.spoof.detector import Detector, score_utterances
from pyspeech.spoof.formats import label_of
from pyspeech.spoof.networks import LcnnBlstm
from pyspeech.spoof.score_files import read_scores
from pyspeech.spoof.scoring import equal_error_rate

CROP = CropConfig(samples=8000, hop=4000)


def save(folder, seed, features=None, crop=CROP, network=None):
    torch.manual_seed(seed)
    model = LcnnBlstm(network or DetectorConfig(), features or LogMelConfig())
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.running_mean.uniform_(-1, 1)
    save_model(folder, Detector(model.eval(), crop, Calibration()))
    return str(folder)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus é 1")
    write_corpus(folder / "audio", 6).to_file(folder / "dev.jsonl.gz")
    return folder


def test_the_mean_of_weights_with_a_threshold_of_its_own(corpus, tmp_path):
    folders = [save(tmp_path / name, seed) for seed, name in enumerate("abc")]
    assert average_detectors.main([*folders, "--corpus", str(corpus), "-o", str(tmp_path / "mean é")]) == 0
    found, weights = load_model(tmp_path / "mean é"), [load_model(folder).model.state_dict() for folder in folders]
    for name, value in found.model.state_dict().items():
        expected = torch.stack([one[name].double() for one in weights]).mean(dim=0)
        torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=1e-7)
    assert any("running_mean" in name for name in weights[0])
    cuts = CutSet.from_file(corpus / "dev.jsonl.gz")
    scores = score_utterances(found.model, found.crop, (cut.load_audio()[0] for cut in cuts))
    assert read_scores(tmp_path / "mean é" / "dev.txt") == pytest.approx(dict(zip(cuts.ids, scores, strict=True)), abs=1e-5)
    genuine, fake = (
        [s for s, cut in zip(scores, cuts, strict=True) if label_of(cut).genuine is kind] for kind in (True, False)
    )
    assert found.threshold == pytest.approx(equal_error_rate(genuine, fake)[1], abs=1e-5)
    assert found.calibration != Calibration() and found.crop == CROP


def test_what_is_wrong_is_one_line(corpus, tmp_path):
    first, second = (save(tmp_path / name, seed) for seed, name in enumerate("ab"))
    short = save(tmp_path / "short", 0, LogMelConfig(window=256, shift=128))
    whole = save(tmp_path / "whole", 0, crop=CropConfig(samples=8000, hop=4000, whole=16000))
    residual = save(tmp_path / "residual", 0, network=DetectorConfig(residual=True))
    for name in ("broken", "empty", "genuine"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken" / "dev.jsonl.gz").write_bytes(gzip.compress(b"x"))
    genuine = [cut for cut in CutSet.from_file(corpus / "dev.jsonl.gz") if label_of(cut).genuine]
    CutSet.from_cuts(genuine).to_file(tmp_path / "genuine" / "dev.jsonl.gz")
    out = tmp_path / "out"
    for models, folder, message in (
        ([first], corpus, "one detector alone; expected two or more"),
        (
            [first, short],
            corpus,
            f"{short}: made with features.window=256, but {first} with 512; expected trainings from the same start",
        ),
        ([first, whole], corpus, "made with data.whole=16000, but"),
        ([first, residual], corpus, "made with network.residual=True, but"),
        ([first, str(tmp_path)], corpus, "model.pt"),
        ([first, second], tmp_path / "genuine", "expected labelled utterances, genuine and fake"),
        ([first, second], tmp_path / "broken", "no manifest of cuts .*; run the stage prepare again"),
        ([first, second], tmp_path / "empty", "no dev.jsonl.gz in it; expected that of an experiment"),
    ):
        with pytest.raises(UserError, match=message):
            average_detectors.main([*models, "--corpus", str(folder), "-o", str(out)])
    assert not out.exists()
    out.touch()
    for place, message in (
        (out, "is a file; expected a new folder"),
        (tmp_path / "b", "has a model.pt; expected a new folder"),
    ):
        with pytest.raises(UserError, match=message):
            average_detectors.main([first, second, "--corpus", str(corpus), "-o", str(place)])
