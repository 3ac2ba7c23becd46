"""The detector of fake audio that comes along: its file, its card, and what utils/detect_fake.py says by it."""

import json

import numpy as np
import pytest
import soundfile
from tool_harness import run_tool

from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.checkpoint import SHIPPED, load_model
from pyspeech.spoof.detector import score_samples


def test_the_file():
    detector = load_model(SHIPPED)
    assert sum(parameter.numel() for parameter in detector.model.parameters()) == 467_586  # the paper's
    assert (SHIPPED / "model.pt").stat().st_size <= 2_000_000
    assert detector.sampling_rate == 16000 and detector.calibration != Calibration()
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert f"{float(detector.calibration.log_likelihood_ratio(detector.threshold)):.2f}" in card


def buzz(seconds, pitch, rate, seed=0):
    """Pulses through two fixed resonances, as no throat makes them: (N,)."""
    from scipy.signal import lfilter

    pulses = (np.arange(int(seconds * rate)) % int(rate / pitch) == 0).astype(float)
    for frequency, width in ((700, 90), (1200, 110)):
        radius, angle = np.exp(-np.pi * width / rate), 2 * np.pi * frequency / rate
        pulses = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], pulses)
    noise = 1e-3 * np.random.default_rng(seed).standard_normal(len(pulses))
    return 0.3 * pulses / np.abs(pulses).max() + noise


@pytest.mark.parametrize("rate, seconds, windows", [(8000, 2, 1), (16000, 25, 4), (44100, 0.1, 1)])
def test_what_it_says_without_a_model(rate, seconds, windows, tmp_path):
    """Recordings of any rate, length and number of channels; scores are those of the network, calibrated."""
    path = tmp_path / "señal 1.wav"
    samples = buzz(seconds, 110.0, rate)
    soundfile.write(path, np.stack([samples, samples], axis=1), rate, subtype="FLOAT")
    run = run_tool("detect_fake", path, "--format", "json")
    assert run.returncode == 0 and str(SHIPPED / "README.md") in run.stderr
    (found,) = json.loads(run.stdout)
    detector = load_model(SHIPPED)
    score = float(detector.calibration.log_likelihood_ratio(score_samples(detector, samples, rate)))
    assert found["score"] == pytest.approx(score, abs=0.02)
    assert found["decision"] == ("genuine" if found["score"] >= found["threshold"] else "fake")
    assert len(found["windows"]) == windows  # of ten seconds, half of it apart, the last at the end
