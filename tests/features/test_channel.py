"""Random gains over frequency: against audio at another level, a filter with a slope, and silence."""

import math

import numpy as np
import pytest
import torch

from pyspeech.features.channel import random_channel
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import FLOOR, fbank
from pyspeech.features.frame_store import to_stored

CONFIG = FbankConfig(num_bins=40)
NOISE = 0.02 * np.random.RandomState(0).randn(16000)


def with_gains(monkeypatch, low, high):
    monkeypatch.setattr(np.random, "uniform", lambda *_: np.array([low, high]))


@pytest.mark.parametrize("decibels", [-6.0, 9.0])
def test_equal_gains_are_another_level(decibels, monkeypatch):
    with_gains(monkeypatch, decibels, decibels)
    found = random_channel(fbank(NOISE, CONFIG), 10, CONFIG)
    assert torch.allclose(found, fbank(NOISE * 10 ** (decibels / 20), CONFIG), atol=1e-3)


def test_gains_are_a_line_over_the_bins(monkeypatch):
    with_gains(monkeypatch, -8.0, 4.0)
    frames = fbank(NOISE, CONFIG)
    change = (random_channel(frames, 10, CONFIG) - frames) * 10 / math.log(10)
    for bin in range(40):
        assert change[:, bin].numpy() == pytest.approx(-8 + 12 * bin / 39, abs=1e-3)


def test_more_corners_are_at_equal_distances(monkeypatch):
    monkeypatch.setattr(np.random, "uniform", lambda low, high, count: np.array([6.0, -3.0, 9.0, 0.0])[:count])
    frames = fbank(NOISE, CONFIG)
    change = (random_channel(frames, 10, CONFIG, corners=4) - frames).mean(dim=0) * 10 / math.log(10)
    assert change[[0, 13, 26, 39]].tolist() == pytest.approx([6, -3, 9, 0], abs=1e-3)
    assert change[5].item() == pytest.approx(6 - 9 * 5 / 13, abs=1e-3)


def test_what_has_no_energy_gets_none():
    frames = to_stored(fbank(np.zeros(16000), CONFIG))  # half precision, as it is stored
    for _ in range(5):
        assert torch.equal(random_channel(frames, 40, CONFIG), frames)
    quiet = random_channel(fbank(1e-5 * NOISE + 1e-4 * NOISE, CONFIG), 60, CONFIG)
    assert quiet.min() >= math.log(FLOOR) - 1e-6 and random_channel(frames[:0], 10, CONFIG).shape == (0, 40)


def test_gains_differ_between_utterances_and_lie_in_range():
    np.random.seed(1)
    frames = fbank(NOISE, CONFIG)
    changes = torch.stack([(random_channel(frames, 10, CONFIG) - frames).mean(dim=0) for _ in range(200)]) * 10 / math.log(10)
    assert changes.abs().max() <= 10 + 1e-3
    for edge in (0, -1):  # uniform: a third of them beyond +-6.7 dB
        assert 0.2 < (changes[:, edge].abs() > 20 / 3).float().mean() < 0.47
    assert abs(np.corrcoef(changes[:, 0], changes[:, -1])[0, 1]) < 0.2
