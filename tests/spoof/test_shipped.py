"""The detector of fake audio that comes along: its file, its card, and what utils/detect_fake.py says by it."""

import json
import shutil

import numpy as np
import pytest
import soundfile
from tiny_voice import voice
from tool_harness import run_tool

from pyspeech import FakeDetector
from pyspeech.errors import UserError
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.checkpoint import SHIPPED, load_model
from pyspeech.spoof.config import CropConfig, saved_crop
from pyspeech.spoof.detector import score_samples
from pyspeech.spoof.own_calibration import OwnCalibration, save_own


def test_the_file():
    detector = load_model(SHIPPED)
    assert sum(parameter.numel() for parameter in detector.model.parameters()) == 467_586  # the paper's
    assert (SHIPPED / "model.pt").stat().st_size <= 2_000_000
    assert detector.sampling_rate == 16000 and detector.calibration != Calibration()
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert f"{float(detector.calibration.log_likelihood_ratio(detector.threshold)):.2f}" in card


def test_files_with_a_removed_option():
    assert saved_crop({"samples": 8000, "hop": 8000, "pair_loss": 1.0}) == CropConfig(samples=8000, hop=8000)
    with pytest.raises(TypeError, match="pairs"):
        saved_crop({"pairs": 1.0})
    with pytest.raises(UserError, match="hop=9000: expected 1 to samples"):
        saved_crop({"samples": 8000, "hop": 9000})


@pytest.mark.parametrize("rate, seconds, windows", [(8000, 2, 1), (16000, 25, 5), (44100, 0.6, 1)])
def test_what_it_says_without_a_model(rate, seconds, windows, tmp_path):
    """Recordings of any rate, length and number of channels; scores are those of the network, calibrated."""
    path = tmp_path / "señal 1.wav"
    samples = voice(seconds, rate)
    soundfile.write(path, np.stack([samples, samples], axis=1), rate, subtype="FLOAT")
    run = run_tool("detect_fake", path, "--format", "json")
    assert run.returncode == 0 and str(SHIPPED / "README.md") in run.stderr
    (found,) = json.loads(run.stdout)
    detector = load_model(SHIPPED)
    score = float(detector.calibration.log_likelihood_ratio(score_samples(detector, samples, rate)))
    if seconds < 2:  # as certain as the square root of its length
        neutral = found["threshold"] + 1.3
        score = neutral + (seconds / 2) ** 0.5 * (score - neutral)
    assert found["score"] == pytest.approx(score, abs=0.02)
    assert found["decision"] == ("genuine" if found["score"] >= found["threshold"] else "fake")
    assert len(found["windows"]) == windows  # of ten seconds, some five apart, the last at the end


def test_genuine_begins_lower_over_the_telephone(tmp_path):
    """Of the bundled detector alone, and unless a threshold is given; a score is what it is."""
    wide, narrow = voice(3), (voice(3, 8000), 8000)
    detector = FakeDetector()
    found = detector.score([(wide, 16000), narrow])
    assert [one.threshold for one in found] == pytest.approx([detector.threshold, detector.threshold - 0.3])
    assert found[1].p_genuine() == pytest.approx(1 / (1 + np.exp(found[1].threshold - found[1].score)))
    assert FakeDetector(threshold=0.5).score(narrow).threshold == 0.5
    assert FakeDetector(prior=0.5).score(narrow).threshold == 0.0
    copy = tmp_path / "model.onnx"
    shutil.copy(SHIPPED / "model.onnx", copy)
    other = FakeDetector(copy).score(narrow)
    assert (other.threshold, other.score) == (pytest.approx(detector.threshold), pytest.approx(found[1].score))


def test_a_calibration_of_ones_own_knows_how_short_recordings_are(tmp_path):
    """Its scores of short ones keep to its threshold; those of the bundled detector are drawn beyond."""
    copy = tmp_path / "model.onnx"
    shutil.copy(SHIPPED / "model.onnx", copy)
    save_own(copy, OwnCalibration(1.0, 0.0, 0.4, 5, 5, 0.1, 0.3))
    own, forced, bundled = FakeDetector.load(copy), FakeDetector.load(copy, force=True), FakeDetector.load()
    samples = voice(1.0, 16000)
    raw, score = (detector.score(samples, 16000).score for detector in (forced, own))
    assert score - 0.4 == pytest.approx(0.5**0.5 * (raw - 0.4), rel=1e-3)
    raw = FakeDetector.load(force=True).score(samples, 16000).score
    left = bundled.score(samples, 16000).score - 0.5**0.5 * raw
    assert left == pytest.approx((1 - 0.5**0.5) * (bundled.threshold + 1.3), rel=1e-3)
