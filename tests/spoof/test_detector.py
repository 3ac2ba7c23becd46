"""Scores of any length, rate and cut into blocks, and the detector's file."""

import numpy as np
import pytest
import soxr
import torch

from pyspeech.errors import UserError
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.checkpoint import load_model, save_model
from pyspeech.spoof.config import CropConfig, DetectorConfig, LogMelConfig
from pyspeech.spoof.detector import Detector, score_blocks, score_samples, score_utterances
from pyspeech.spoof.networks import LcnnBlstm

CROP = CropConfig(samples=4096, hop=3000)


@pytest.fixture(scope="module")
def detector():
    torch.manual_seed(0)
    model = LcnnBlstm(DetectorConfig(residual=True)).eval()
    with torch.no_grad():
        model.train()(0.1 * torch.randn(4, 4096))  # statistics of batch normalisation that are not the initial ones
    return Detector(model.eval(), CROP, Calibration(0.8, -0.1), 0.3)


def score_by_hand(detector, piece):
    with torch.no_grad():
        outputs = detector.model(torch.from_numpy(piece)[None])[0]
    return (outputs[1] - outputs[0]).item()


@pytest.mark.parametrize("length", [1, 100, 4095, 4096])
@pytest.mark.parametrize("short", ["zeros", "repeat"])
def test_short_ones_are_filled_up_as_in_training(detector, rng, length, short):
    detector = Detector(detector.model, CropConfig(samples=4096, hop=3000, short=short), detector.calibration)
    samples = (0.1 * rng.standard_normal(length)).astype(np.float32)
    piece = np.concatenate([samples, np.zeros(4096, np.float32)]) if short == "zeros" else np.tile(samples, 4096)
    assert score_samples(detector, samples, 16000) == pytest.approx(score_by_hand(detector, piece[:4096]), abs=1e-5)


def test_long_ones_are_the_mean_over_windows(detector, rng):
    samples = (0.1 * rng.standard_normal(60000)).astype(np.float32)
    starts = [*range(0, 60000 - 4096, 3000), 60000 - 4096]
    expected = [score_by_hand(detector, samples[start : start + 4096]) for start in starts]
    assert len(starts) > 16  # more than one batch
    for blocks in ([samples], np.array_split(samples, 50)):
        limits, scores = score_blocks(detector, blocks)
        assert np.allclose(limits * 16000, [(start, start + 4096) for start in starts])
        assert np.allclose(scores, expected, atol=1e-5)
    assert score_samples(detector, samples, 16000) == pytest.approx(np.mean(expected), abs=1e-5)
    assert np.std(expected) > 1e-4


def test_many_utterances_at_once(detector, rng):
    utterances = [(0.1 * rng.standard_normal(size)).astype(np.float32) for size in (5000, 10, 30000, 4096, 9000)]
    expected = [score_samples(detector, samples, 16000) for samples in utterances]
    assert np.allclose(score_utterances(detector.model, CROP, iter(utterances)), expected, atol=1e-5)
    assert len(score_utterances(detector.model, CROP, [])) == 0


def test_whole_utterances(detector, rng):
    """One piece each, whatever its length, alone and among others."""
    crop = CropConfig(samples=4096, hop=3000, whole=20000)
    whole = Detector(detector.model, crop, detector.calibration)
    utterances = [(0.1 * rng.standard_normal(size)).astype(np.float32) for size in (4096, 5000, 5000, 20000, 700, 30000)]
    for samples in utterances[:4]:
        assert score_samples(whole, samples, 16000) == pytest.approx(score_by_hand(detector, samples), abs=1e-5)
    expected = [score_samples(whole, samples, 16000) for samples in utterances]
    assert np.allclose(score_utterances(detector.model, crop, iter(utterances)), expected, atol=1e-5)
    halves = [score_by_hand(detector, utterances[-1][start : start + 20000]) for start in (0, 10000)]
    assert expected[-1] == pytest.approx(np.mean(halves), abs=1e-5)  # windows 12000 apart, but for the last


@pytest.mark.parametrize("whole", [0, 20000])
def test_neither_level_nor_digital_silence_count(detector, rng, whole):
    """Where the model says so: the score is that of the same speech as loud as in training, without zeros."""
    crop = CropConfig(samples=4096, hop=3000, whole=whole, level=-26.0, silence=800)
    level = Detector(detector.model, crop, detector.calibration)
    speech = (0.1 * rng.standard_normal(9600)).astype(np.float32)
    expected = score_samples(level, speech, 16000)
    padded = np.concatenate([np.zeros(32000), speech[:4800], np.zeros(7000), speech[4800:], np.zeros(32077)])
    assert abs(score_samples(detector, 0.01 * speech, 16000) - score_samples(detector, speech, 16000)) > 1e-3
    assert score_samples(level, 0.001 * speech, 16000) == pytest.approx(expected, abs=1e-4)
    assert score_samples(level, padded, 16000) == pytest.approx(expected, abs=2e-3)  # 7000 is no multiple of a frame
    limits, scores = score_blocks(level, np.array_split(padded, 7))
    assert (limits[0, 0], limits[-1, 1]) == pytest.approx((2.0, (len(padded) - 32077) / 16000), abs=0.011)
    assert scores.mean() == pytest.approx(score_samples(level, padded, 16000), abs=1e-5)
    (one,) = score_utterances(level.model, crop, [padded])
    assert one == pytest.approx(scores.mean(), abs=1e-5)
    if not whole:
        quiet = 10 ** (-26 / 20) / np.std(speech[:4096])
        assert scores[0] == pytest.approx(score_by_hand(detector, quiet * speech[:4096]), abs=1e-4)
    with pytest.raises(UserError, match="digital silence"):
        score_samples(level, np.zeros(20000), 16000)
    assert np.isfinite(score_utterances(level.model, crop, [np.zeros(20000, np.float32), speech])).all()


def test_other_sampling_rates_and_types(detector, rng):
    samples = (0.1 * rng.standard_normal(12000)).astype(np.float32)
    for rate in (8000, 44100, 11025):
        resampled = soxr.resample(samples, rate, 16000)
        assert score_samples(detector, samples, rate) == pytest.approx(score_samples(detector, resampled, 16000))
    assert score_samples(detector, samples.astype(np.float64), 16000) == score_samples(detector, samples, 16000)
    assert np.isfinite(score_samples(detector, np.zeros(20000), 16000))
    assert np.isfinite(score_samples(detector, [1.0], 16000))
    for nothing, rate in (([], 16000), ([], 8000), ([1.0], 48000)):
        with pytest.raises(UserError, match="no samples"):
            score_samples(detector, nothing, rate)


def test_the_file_gives_all_back(detector, rng, tmp_path):
    features = LogMelConfig(num_bins=64, floor=1e-5)
    other = Detector(
        LcnnBlstm(DetectorConfig(dropout=0.1), features).eval(),
        CropConfig(samples=5000, short="repeat", hop=100),
        Calibration(1.5, 0.25),
        -2.5,
    )
    samples = 0.1 * rng.standard_normal(9000)
    for number, saved in enumerate((detector, other)):
        save_model(tmp_path / str(number), saved)
        loaded = load_model(tmp_path / str(number))
        assert (loaded.crop, loaded.calibration, loaded.threshold) == (saved.crop, saved.calibration, saved.threshold)
        assert loaded.model.config == saved.model.config and not loaded.model.training
        assert loaded.model.log_mel.config == saved.model.log_mel.config and loaded.sampling_rate == 16000
        assert score_samples(loaded, samples, 16000) == score_samples(saved, samples, 16000)
