"""The bundled detector of fakes in ONNX Runtime: the scores of torch, of short, whole and long recordings."""

import numpy as np
import pytest

from pyspeech.spoof.checkpoint import SHIPPED, load_model
from pyspeech.spoof.detector import score_samples
from pyspeech.spoof.onnx_network import load_onnx


@pytest.mark.parametrize("seconds", [0.3, 5.12, 13.7])
def test_scores_are_those_of_torch(seconds, rng):
    reference, detector = load_model(SHIPPED), load_onnx()
    assert detector.crop == reference.crop and detector.threshold == pytest.approx(reference.threshold)
    times = np.arange(round(seconds * 16000)) / 16000
    for samples in (0.1 * rng.standard_normal(len(times)), 0.3 * np.sign(np.sin(800 * times)) * np.sin(2 * times)):
        expected = score_samples(reference, samples, 16000)
        assert score_samples(detector, samples, 16000) == pytest.approx(expected, abs=1e-4)
