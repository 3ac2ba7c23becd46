"""The loss, masks, validation, and a tiny training that learns and resumes exactly."""

import functools
import json
import logging
import math
import types

import numpy as np
import pytest
import torch
from tiny_spoof import RATE, write_corpus

from pyspeech.compat import load_checkpoint
from pyspeech.features.config import SpecAugmentConfig
from pyspeech.spoof.calibration import fit_calibration
from pyspeech.spoof.checkpoint import load_model
from pyspeech.spoof.config import AugmentConfig, CropConfig, DetectorConfig, LogMelConfig
from pyspeech.spoof.dataset import CropDataset, UtteranceSampler
from pyspeech.spoof.detector import score_utterances
from pyspeech.spoof.formats import KINDS
from pyspeech.spoof.networks import LcnnBlstm
from pyspeech.spoof.score_files import read_scores
from pyspeech.spoof.scoring import equal_error_rate
from pyspeech.spoof.training import compute_loss, mask, validation
from pyspeech.training.config import TrainConfig
from pyspeech.training.data import BatchLoader
from pyspeech.training.optimization import make_optimizer
from pyspeech.training.randomness import seed_everything
from pyspeech.training.trainer import Trainer
from steps.spoof.results import own_probability
from steps.spoof.score import score_system
from steps.spoof.tables import TABLE_3
from steps.spoof.train import SYSTEMS, augment_config, chosen_by, seeds_of, train_config, train_detector, trained_on

DATA = CropConfig(samples=4096, hop=4096, batch_size=8)
MASKS = SpecAugmentConfig(frequency_masks=1, frequency_width=8, time_masks=1, time_width=4)


@pytest.fixture(scope="module")
def cuts(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("audio"), 24, longest=0.6)


class Fixed(torch.nn.Module):
    """Outputs that were given, whatever the input."""

    def __init__(self, outputs):
        super().__init__()
        self.outputs = torch.tensor(outputs)
        self.front_end, self.classify = torch.nn.Identity(), lambda features: self.outputs


def test_loss_is_equation_1():
    # log odds of genuine: 2, -1, 0.5, -3; the third is fake and taken for genuine.
    model = Fixed([[0.0, 2.0], [1.0, 0.0], [0.0, 0.5], [3.0, 0.0]])
    targets = torch.tensor([1, 0, 0, 0])
    loss, values = compute_loss(model, {"samples": torch.zeros(4, 1), "targets": targets, "seconds": 3.5, "clean": False})
    genuine = [1 / (1 + math.exp(-value)) for value in (2, -1, 0.5, -3)]
    truth = (1, 0, 0, 0)
    expected = -sum(y * math.log(p) + (1 - y) * math.log(1 - p) for y, p in zip(truth, genuine, strict=True)) / 4
    assert loss.item() == pytest.approx(expected)
    assert values == {"accuracy": pytest.approx((1 + 2 / 3) / 2), "audio_seconds": 3.5}
    one_kind = {"samples": torch.zeros(4, 1), "targets": torch.zeros(4, dtype=torch.int64), "seconds": 1, "clean": False}
    assert compute_loss(model, one_kind)[1]["accuracy"] == pytest.approx(0.5)


def test_masks_have_the_utterances_mean():
    features = torch.randn(6, 30, 80) + torch.arange(6.0)[:, None, None]
    np.random.seed(1)
    masked = mask(features, MASKS)
    changed = ~torch.isclose(masked, features, atol=1e-5)
    means = features.mean(dim=(1, 2))[:, None, None].expand_as(features)
    assert torch.allclose(masked[changed], means[changed], atol=1e-5)
    assert 0.01 < changed.float().mean() < 0.3 and len(set(changed.sum(dim=(1, 2)).tolist())) > 2


def test_clean_batches_are_not_masked():
    class Seen(torch.nn.Module):
        def front_end(self, samples):
            return samples

        def classify(self, features):
            self.features = features
            return torch.zeros(len(features), 2)

    features, model = torch.randn(4, 30, 80), Seen()
    for clean in (True, False):
        batch = {"samples": features, "targets": torch.tensor([0, 1, 0, 1]), "seconds": 1, "clean": clean}
        compute_loss(model, batch, MASKS)
        assert torch.equal(model.features, features) == clean


def test_validation(cuts):
    torch.manual_seed(0)
    model = LcnnBlstm().eval()
    found = validation(cuts, DATA, RATE)(model)
    scores = []
    for cut in cuts:
        samples = torch.from_numpy(cut.load_audio()[0])
        padded = torch.nn.functional.pad(samples, (0, max(0, 4096 - len(samples))))
        starts = [*range(0, len(padded) - 4096, 4096), len(padded) - 4096]
        with torch.no_grad():
            outputs = torch.cat([model(padded[None, start : start + 4096]) for start in starts])
        scores.append((outputs[:, 1] - outputs[:, 0]).mean().item())
    genuine = [cut.supervisions[0].text == "genuine" for cut in cuts]
    expected = np.mean([math.log1p(math.exp(-score if kind else score)) for score, kind in zip(scores, genuine, strict=True)])
    assert found["loss"] == pytest.approx(expected, abs=1e-5)
    assert set(found) == {"eer", "loss"} and 0 <= found["eer"] <= 1


def run(cuts, dev, folder, steps):
    config = TrainConfig(max_steps=steps, lr=1e-3, log_every=8, save_every=8, valid_every=16, minimize="loss")
    seed_everything(config.seed)
    model = LcnnBlstm(DetectorConfig(dropout=0.2))
    augment = lambda samples, rng: samples * np.float32(rng.uniform(0.7, 1.4))  # noqa: E731
    batches = BatchLoader(CropDataset(DATA, RATE, augment), UtteranceSampler(cuts, DATA, config.seed), config.seed)
    loss = functools.partial(compute_loss, specaugment=MASKS)
    Trainer(model, make_optimizer(model, config), batches, loss, config, folder, validate=validation(dev, DATA, RATE)).run()
    history = load_checkpoint(folder / "best.pt")["history"]
    return model, [{name: point[name] for name in point if name != "time"} for point in history]


def test_training_learns_and_resumes_exactly(cuts, tmp_path):
    dev = write_corpus(tmp_path / "dev", 12, seed=1, longest=0.6)
    model, history = run(cuts, dev, tmp_path / "whole", 32)
    points = [point for point in history if "train/loss" in point]
    assert points[-1]["train/loss"] < 0.5 * points[0]["train/loss"] and points[-1]["train/accuracy"] > 0.9
    assert [point for point in history if "valid/eer" in point][-1]["valid/eer"] < 0.2

    run(cuts, dev, tmp_path / "halves", 12)
    resumed, resumed_history = run(cuts, dev, tmp_path / "halves", 32)
    assert [point for point in resumed_history if "train/loss" in point] == points
    assert all(torch.equal(*pair) for pair in zip(model.state_dict().values(), resumed.state_dict().values(), strict=True))


def test_a_system_is_trained_calibrated_and_saved(cuts, tmp_path, rng):
    """All that a row of Table 3 is made of, for a few steps."""
    (tmp_path / "corpus").mkdir()
    cuts.to_file(tmp_path / "corpus" / "train.jsonl.gz")
    dev = write_corpus(tmp_path / "dev", 6, seed=1, longest=0.6)
    dev.to_file(tmp_path / "corpus" / "dev.jsonl.gz")
    conf = types.SimpleNamespace(
        features=LogMelConfig(),
        network=DetectorConfig(),
        data=DATA,
        augment=AugmentConfig(),
        specaugment=MASKS,
        train=TrainConfig(max_steps=3, log_every=1, minimize="eer"),
        start_from="random",
    )
    exp = types.SimpleNamespace(dir=tmp_path, log=logging.getLogger("test"), parts=None)
    backgrounds = {
        "noises": [rng.standard_normal(9000)],
        "musics": [rng.standard_normal(100)],
        "rirs": [np.array([0.0, 1.0, 0.3])],
    }
    train_detector(exp, conf, "rnm_sm_mc0.9", 7, backgrounds, "rnm_sm_mc0.9/7")
    detector = load_model(tmp_path / "models" / "rnm_sm_mc0.9" / "7")
    scores = score_utterances(detector.model, DATA, [cut.load_audio()[0] for cut in dev])
    assert read_scores(tmp_path / "models/rnm_sm_mc0.9/7/dev.txt") == dict(
        zip((cut.id for cut in dev), scores.tolist(), strict=True)
    )
    genuine, fake = (
        [score for score, cut in zip(scores, dev, strict=True) if cut.supervisions[0].text == kind] for kind in KINDS
    )
    error, threshold = equal_error_rate(genuine, fake)
    assert detector.threshold == pytest.approx(threshold) and detector.calibration == fit_calibration(genuine, fake)
    saved = load_checkpoint(tmp_path / "training" / "rnm_sm_mc0.9" / "7" / "best.pt")
    assert saved["metrics"]["eer"] == error and saved["config"]["seed"] == 7


def test_adapt_chooses_for_a_system_that_is_trained_on_train_and_dev(cuts, tmp_path, rng, monkeypatch):
    """Dev is trained on; adapt chooses, calibrates, and is not scored again when it is scored."""
    from pyspeech.spoof import detector as module

    (tmp_path / "corpus").mkdir()
    sets = {"train": cuts}
    sets.update({name: write_corpus(tmp_path / name, 6, seed, longest=0.6) for seed, name in enumerate(("dev", "adapt"), 1)})
    for name, found in sets.items():
        found.to_file(tmp_path / "corpus" / f"{name}.jsonl.gz")
    conf = types.SimpleNamespace(
        corpus="mini",
        test={},
        features=LogMelConfig(),
        network=DetectorConfig(),
        data=DATA,
        augment=AugmentConfig(noise=1.0, music=0.0, reverberation=0.0),
        specaugment=MASKS,
        train=TrainConfig(max_steps=2, log_every=1, minimize="eer"),
        start_from="random",
        pooled_steps=0.5,
        seeds=[7],
        repeated=[],
    )
    exp = types.SimpleNamespace(dir=tmp_path, log=logging.getLogger("test"), parts=None)
    train_detector(exp, conf, "traindev_rnm", 7, {"noises": [rng.standard_normal(9000)]}, "traindev_rnm/7")
    saved = load_checkpoint(tmp_path / "training/traindev_rnm/7/best.pt")
    detector = load_model(tmp_path / "models/traindev_rnm/7")
    scores = read_scores(tmp_path / "models/traindev_rnm/7/adapt.txt")
    genuine, fake = ([scores[cut.id] for cut in sets["adapt"] if cut.supervisions[0].text == kind] for kind in KINDS)
    assert saved["metrics"]["eer"] == equal_error_rate(genuine, fake)[0]
    assert detector.calibration == fit_calibration(genuine, fake)
    scored = []
    usual = module.score_utterances
    monkeypatch.setattr(module, "score_utterances", lambda model, crop, all: usual(model, crop, scored.extend(all) or scored))
    score_system(exp, conf, "traindev_rnm")
    assert scored == []
    calibrated = read_scores(tmp_path / "scores/traindev_rnm/7/adapt.txt")
    assert calibrated == {name: detector.calibration.log_likelihood_ratio(score) for name, score in scores.items()}
    figures = json.loads((tmp_path / "scores/traindev_rnm.json").read_text())
    assert set(figures["sets"]) == {"adapt"}
    own = own_probability(np.array(list(calibrated.values())), figures["calibrations"][0])
    np.testing.assert_allclose(own, 1 / (1 + np.exp(-np.array(list(scores.values())))), rtol=1e-6)


def test_systems_are_the_rows_of_table_3():
    conf = types.SimpleNamespace(
        augment=AugmentConfig(codec=0.2),
        train=TrainConfig(max_steps=100, patience=3),
        pooled_steps=0.5,
        seeds=[1, 2],
        repeated=["rnm"],
    )
    found = {}
    for name, options in SYSTEMS.items():
        config = augment_config(conf, name)
        shares = (("R", config.reverberation), ("N", config.noise), ("M", config.music))
        kinds = [letter for letter, share in shares if share]
        assert config.codec == (0.2 if kinds else 0)
        drawn = " to ".join(map(str, sorted({min(config.coefficients), max(config.coefficients)})))
        kinds += ["SM"] * ("masks" in options) + [f"MC ({drawn})"] * (config.mcadams > 0)
        sets, chooses = trained_on(name), chosen_by(name)
        assert chooses not in sets and chooses == {1: "dev", 2: "adapt", 3: None}[len(sets)]
        for chosen in (True, False):
            train = train_config(conf, name, 1, chosen)
            stops = (50 if "dev" in sets else 100, None)  # where no set is left
            assert (train.max_steps, train.patience) == ((100, 3) if chosen else stops)
        data = "+".join({"train": "Train", "dev": "Dev.", "adapt": "Adp."}[one] for one in sets)
        found[name] = (data, "+".join(kinds) or "none")
    assert found == {name: row[:2] for name, row in TABLE_3.items()}
    assert seeds_of(conf, "rnm") == [1, 2] and seeds_of(conf, "none") == [1]
