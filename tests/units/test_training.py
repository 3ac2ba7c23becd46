"""Batches, the loss, a tiny training that resumes exactly, and checkpoints."""

import json
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import torch

from pyspeech.compat import load_checkpoint
from pyspeech.data.cuts import read_samples
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.mfcc import compute_features, normalise, raw_features
from pyspeech.features.stft import MagnitudeStft
from pyspeech.features.warping import warp
from pyspeech.training.config import TrainConfig
from pyspeech.training.data import BatchLoader
from pyspeech.training.optimization import make_optimizer
from pyspeech.training.randomness import seed_everything
from pyspeech.training.trainer import Trainer
from pyspeech.units.checkpoint import load_model, save_model
from pyspeech.units.config import INVERTER, VQVAE, InverterConfig, UnitDataConfig, VqVaeConfig
from pyspeech.units.dataset import DurationSampler, UnitDataset, corpus_stats, speakers_of
from pyspeech.units.inverter import Inverter
from pyspeech.units.training import VqVaeTraining, compute_loss
from pyspeech.units.vqvae import VqVae
from steps.units.train import kept_stats

FEATURES = MfccConfig()
SMALL = dict(dim=32, heads=2, feedforward=64, layers=1, codes=16, code_dim=8, speaker_dim=4, quantise_after=20)


def sound(speaker, seconds, rng):
    """Runs of eight 'phones' of 40 to 160 ms, noise through a resonance each; the speakers' differ by a factor."""
    samples = []
    while sum(map(len, samples)) < seconds * 16000:
        size = int(rng.uniform(640, 2560))
        spectrum = np.fft.rfft(rng.standard_normal(size))
        frequency = np.fft.rfftfreq(size, 1 / 16000)
        centre = (300, 500, 800, 1200, 1800, 2700, 4000, 6000)[rng.integers(8)] * (1.0, 1.2)[speaker]
        samples.append(np.fft.irfft(spectrum * np.exp(-0.5 * ((frequency - centre) / (0.1 * centre)) ** 2), size))
    return 0.1 * np.concatenate(samples)[: int(seconds * 16000)]


@pytest.fixture(scope="module")
def cuts(tmp_path_factory):
    from lhotse import CutSet, MonoCut, Recording, SupervisionSegment

    folder, rng, cuts = tmp_path_factory.mktemp("audio"), np.random.default_rng(1), []
    for index in range(20):
        seconds = 0.1 if index == 7 else 0.5 + 0.1 * index
        soundfile.write(folder / f"u{index}.wav", sound(index % 2, seconds, rng), 16000)
        recording = Recording.from_file(folder / f"u{index}.wav")
        supervision = SupervisionSegment(f"u{index}", recording.id, 0, recording.duration, speaker="AB"[index % 2])
        cuts.append(MonoCut(f"u{index}", 0, recording.duration, 0, supervisions=[supervision], recording=recording))
    return CutSet.from_cuts(cuts)


def test_a_batch_has_each_utterance_whole(cuts):
    dataset = UnitDataset(speakers_of(cuts), FEATURES, UnitDataConfig(), magnitudes=True)
    chosen = [cuts["u3"], cuts["u7"], cuts["u0"]]
    batch = dataset[chosen]
    assert batch["speakers"].tolist() == [1, 1, 0] and batch["lengths"].tolist() == [78, 8, 48]
    assert batch["seconds"] == pytest.approx(1.34)
    for row, cut in enumerate(chosen):
        samples = torch.from_numpy(soundfile.read(cut.recording.sources[0].source, dtype="float32")[0])
        length = int(batch["lengths"][row])
        expected = compute_features(samples, FEATURES)
        assert torch.equal(batch["features"][row, :length], expected) and not batch["features"][row, length:].any()
        magnitudes = MagnitudeStft(FEATURES.magnitudes)(samples[None], length)[0]
        assert torch.equal(batch["magnitudes"][row, :length], magnitudes) and not batch["magnitudes"][row, length:].any()


@pytest.mark.parametrize("gigabytes", [2.0, 1e-4, 0.0])
def test_the_cache_changes_nothing(cuts, gigabytes, monkeypatch):
    read = []
    monkeypatch.setattr(
        "pyspeech.units.dataset.read_samples", lambda cut, rate: (read.append(cut.id), read_samples(cut, rate))[1]
    )
    dataset = UnitDataset("AB", FEATURES, UnitDataConfig(cache_gigabytes=gigabytes))
    first, second = dataset[list(cuts)[:5]], dataset[list(cuts)[:5]]
    assert torch.equal(first["features"], second["features"])
    kept = (np.cumsum(first["lengths"].numpy()) * FEATURES.dim * 4 <= gigabytes * 2**30).sum()
    assert len(read) == 10 - kept


def test_crops_are_pieces_of_the_whole(cuts):
    data = UnitDataConfig(crop_seconds=0.6, shortest_crop=0.2)
    dataset, whole = (UnitDataset("AB", FEATURES, one, magnitudes=True) for one in (data, UnitDataConfig()))
    np.random.seed(0)
    sizes, starts = set(), set()
    for _ in range(20):
        batch, expected = dataset[[cuts["u3"], cuts["u7"]]], whole[[cuts["u3"], cuts["u7"]]]
        size = int(batch["lengths"][0])
        found = [
            start
            for start in range(78 - size + 1)
            if torch.equal(batch["features"][0], expected["features"][0, start : start + size])
        ]
        assert len(found) == 1 and batch["lengths"][1] == 8
        assert torch.equal(batch["magnitudes"][0], expected["magnitudes"][0, found[0] : found[0] + size])
        sizes.add(size)
        starts.add(found[0])
    assert min(sizes) >= 20 and max(sizes) <= 60 and len(sizes) > 10 and len(starts) > 10


def test_warped_voices_have_targets_as_they_are(cuts):
    data, chosen = UnitDataConfig(warp=1.5), [cuts["u3"], cuts["u7"]]
    plain = UnitDataset("AB", FEATURES, UnitDataConfig())[chosen]
    assert "targets" not in plain
    np.random.seed(3)
    batch = UnitDataset("AB", FEATURES, data)[chosen]
    assert torch.equal(batch["targets"], plain["features"]) and torch.equal(batch["lengths"], plain["lengths"])
    np.random.seed(3)
    for row, cut in enumerate(chosen):
        samples = soundfile.read(cut.recording.sources[0].source, dtype="float32")[0]
        factor = 1.5 ** np.random.uniform(-1, 1)
        assert 1 / 1.5 < factor < 1.5 and abs(factor - 1) > 0.02
        expected = normalise(warp(raw_features(samples, FEATURES), factor, FEATURES), FEATURES)
        torch.testing.assert_close(batch["features"][row, : len(expected)], expected, rtol=0, atol=1e-4)
    batch = UnitDataset("AB", FEATURES, data, magnitudes=True)[chosen]  # for the inverter
    assert torch.equal(batch["features"], plain["features"]) and "targets" not in batch


def test_the_loss_is_of_the_targets(cuts):
    training = make_training().eval()
    batch = UnitDataset("AB", FEATURES, UnitDataConfig())[list(cuts)[:4]]
    reconstruction, _ = training.vqvae(batch["features"], batch["lengths"], batch["speakers"])
    _, values = compute_loss(training, {**batch, "targets": reconstruction.detach()})
    assert values["reconstruction"] == pytest.approx(0, abs=1e-9) and values["commitment"] > 0


def test_sampler(cuts):
    data = UnitDataConfig(batch_seconds=6.0, max_utterances=5)
    sampler = DurationSampler(cuts, data, seed=1)
    epochs = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        epochs.append([[cut.id for cut in batch] for batch in sampler])
    assert epochs[0] == epochs[2] != epochs[1]
    for batches in epochs:
        assert sorted(sum(batches, [])) == sorted(cuts.ids)
        for batch in batches:
            assert len(batch) <= 5 and len(batch) * max(cuts[name].duration for name in batch) <= 6.0


def make_training(seed=0, **options):
    seed_everything(seed)
    return VqVaeTraining(VqVae(VqVaeConfig(**{**SMALL, **options}), 2))


def test_loss_is_the_equations(cuts):
    batch = UnitDataset("AB", FEATURES, UnitDataConfig())[list(cuts)[:4]]
    training = make_training(commitment=0.3, smoothing=0.02).eval()
    loss, values = compute_loss(training, batch)
    _, parts = training.vqvae(batch["features"], batch["lengths"], batch["speakers"])
    expected = (parts["reconstruction"] + 0.3 * parts["commitment"] + 0.02 * parts["smoothing"]) / 39
    assert loss.item() == pytest.approx(expected.item()) and values["audio_seconds"] == batch["seconds"]
    assert values["reconstruction"] == pytest.approx(parts["reconstruction"].item() / 39)
    assert set(values) == {"reconstruction", "commitment", "smoothing", "perplexity", "used_codes", "audio_seconds"}


def run(cuts, folder, steps, **options):
    training = make_training(**options)
    config = TrainConfig(max_steps=steps, lr=3e-3, log_every=20, save_every=20)
    data = UnitDataConfig(batch_seconds=15.0, crop_seconds=1.5)
    batches = BatchLoader(UnitDataset("AB", FEATURES, data), DurationSampler(cuts, data, seed=1), config.seed)
    Trainer(training, make_optimizer(training, config), batches, compute_loss, config, folder).run()
    return training.vqvae, json.dumps(load_checkpoint(folder / "best.pt")["history"])


def test_training_learns_uses_its_codes_and_resumes_exactly(cuts, tmp_path):
    vqvae, history = run(cuts, tmp_path / "whole", 80, jitter=0.05, smoothing=1e-3)
    points = [point for point in json.loads(history) if "train/loss" in point]
    assert points[-1]["train/reconstruction"] < 0.9  # of the variance, most of which is that of noise
    assert points[-1]["train/used_codes"] >= 14 and points[-1]["train/perplexity"] > 7

    run(cuts, tmp_path / "halves", 40, jitter=0.05, smoothing=1e-3)
    resumed, resumed_history = run(cuts, tmp_path / "halves", 80, jitter=0.05, smoothing=1e-3)
    assert resumed_history == history
    assert all(torch.equal(*pair) for pair in zip(vqvae.state_dict().values(), resumed.state_dict().values(), strict=True))


def test_checkpoints(cuts, tmp_path):
    stats = corpus_stats(list(cuts)[:3], FEATURES)
    features = MfccConfig(prior_frames=50)
    vqvae = make_training().vqvae
    save_model(tmp_path / "vqvae", vqvae, ["A", "B"], features, stats)
    bundle = load_model(tmp_path / "vqvae", VQVAE)
    batch = UnitDataset("AB", features, UnitDataConfig(), stats)[list(cuts)[:2]]
    inputs = batch["features"], batch["lengths"]
    assert torch.equal(bundle.model.encode(*inputs)[0], vqvae.eval().encode(*inputs)[0])
    assert (bundle.features, bundle.stats, bundle.speaker_index("B")) == (features, stats, 1)
    inverter = Inverter(InverterConfig(dim=16, heads=2, feedforward=8, layers=1), vqvae.codebook, 1)
    save_model(tmp_path / "inverter", inverter, ["B"], features, stats)
    loaded = load_model(tmp_path / "inverter", INVERTER)
    assert all(
        torch.equal(*pair) for pair in zip(inverter.state_dict().values(), loaded.model.state_dict().values(), strict=True)
    )

    for call, message in (
        (lambda: load_model(tmp_path / "inverter", VQVAE), "a model of kind inverter; expected vqvae"),
        (lambda: load_model(tmp_path, VQVAE), "no such model"),
        (lambda: bundle.speaker_index("C"), "the model knows A, B"),
        (lambda: save_model(tmp_path, vqvae, ["A"], features, stats), "1 speakers"),
        (lambda: save_model(tmp_path, vqvae, ["A", "B"], features), "there is none"),
        (lambda: save_model(tmp_path, vqvae, ["A", "B"], MfccConfig(kind="log_mel")), "80 values"),
        (lambda: UnitDataset("A", FEATURES, UnitDataConfig(warp=0.8)), "data option warp=0.8: expected 1 to 3"),
        (lambda: UnitDataset("A", FEATURES, UnitDataConfig())[[cuts["u1"]]], "u1: speaker 'B'"),
    ):
        with pytest.raises(UserError, match=message):
            call()


def test_statistics_are_computed_once(cuts, tmp_path, monkeypatch):
    features = replace(FEATURES, prior_frames=50)
    expected = corpus_stats(cuts, features)
    assert kept_stats(tmp_path / "training", cuts, features) == expected
    monkeypatch.setattr("pyspeech.units.dataset.corpus_stats", None)
    assert kept_stats(tmp_path / "training", cuts, features) == expected
