"""Combo-SAD: its features against their definitions, frame by frame; the direction; recordings without anything to find."""

import numpy as np
import pytest
from scipy.linalg import solve_toeplitz
from tiny_corpora import RATE, radio_stream

from pyspeech.sad import combo
from pyspeech.sad.combo import combo_features, combo_scores, prediction_gain, principal_direction
from pyspeech.sad.segments import segments_to_frames


def test_prediction_gain_is_that_of_the_normal_equations(rng):
    frames = np.cumsum(rng.standard_normal((6, 300)), axis=1)
    correlation = np.array([[frame[: len(frame) - lag] @ frame[lag:] for lag in range(9)] for frame in frames])
    correlation[:, 0] *= 1 + 1e-6  # as there
    expected = []
    for row in correlation:
        predictor = solve_toeplitz(row[:-1], row[1:])
        expected.append(10 * np.log10(row[0] / (row[0] - predictor @ row[1:])))
    correlation[:, 0] /= 1 + 1e-6
    np.testing.assert_allclose(prediction_gain(correlation), expected, rtol=1e-9)
    assert np.ptp(expected) > 1


def plain_features(samples):
    """Each frame by itself, from the definitions: (T, 5), before they are normalised over the recording."""
    window = np.hanning(256)
    padded = np.pad(samples, (88, 400))
    floor = combo.FLOOR * np.mean(samples**2) + 1e-20
    rows, before = [], None
    for t in range(-(-len(samples) // 80)):
        power = np.abs(np.fft.rfft(padded[80 * t : 80 * t + 256] * window, 1024)) ** 2
        power[:38] = 0  # below 300 Hz
        power += 256 * floor
        signal = np.fft.irfft(power)
        fall = [window[: 256 - lag] @ window[lag:] for lag in range(129)]
        normal = np.array([signal[lag] / signal[0] / (fall[lag] / fall[0]) for lag in range(20, 129)])
        highest = min(max(normal.max(), 1e-3), 1 - 1e-3)
        valleys = np.sqrt(np.maximum(1 - normal, 0))
        product = [np.mean([np.log(power[f * r]) for r in range(1, 9) if f * r < 513]) for f in range(8, 52)]
        mel = power @ combo.mel_filters(8000)
        mel /= mel.sum()
        rows.append(
            [
                10 * np.log10(highest / (1 - highest)),
                1 - valleys.min() / valleys.max(),
                prediction_gain(signal[None, :11])[0],
                max(product) - np.log(power).mean(),
                0 if before is None else np.abs(mel - before).sum(),
            ]
        )
        before = mel
    return np.array(rows)


def test_features_are_those_of_their_definitions(rng, monkeypatch):
    monkeypatch.setattr(combo, "CHUNK", 37)  # so that the recording is taken in several parts
    samples, _ = radio_stream(3.0, rng)
    expected = plain_features(samples)
    expected = (expected - expected.mean(axis=0)) / expected.std(axis=0)
    np.testing.assert_allclose(combo_features(samples, RATE), expected, atol=1e-6)


def test_finds_transmissions():
    features, truths = [], []
    for seed in (1, 2):
        samples, segments = radio_stream(60.0, np.random.default_rng(seed))
        features.append(combo_features(samples, RATE))
        truths.append(segments_to_frames(segments, len(features[-1])))
    direction = principal_direction(features)
    assert np.linalg.norm(direction) == pytest.approx(1) and direction[0] > 0
    for each, truth in zip(features, truths, strict=True):
        found = combo_scores(each, direction) > 0.5
        assert found[truth].mean() > 0.9 and found[~truth].mean() < 0.25


def test_gain_does_not_matter(rng):
    samples, _ = radio_stream(5.0, rng)
    np.testing.assert_allclose(combo_features(1e-3 * samples, RATE), combo_features(samples, RATE), atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 79, 80, 81, 4000])
def test_silence(count):
    features = combo_features(np.zeros(count), RATE)
    assert features.shape == (-(-count // 80), 5) and np.isnan(features).all()
    assert combo_scores(features, np.full(5, 0.2**0.5)).tolist() == [0.0] * len(features)


def test_gaps_and_what_is_the_same_everywhere(rng):
    samples, _ = radio_stream(5.0, rng)
    samples[8000:16000] = 0
    features = combo_features(samples, RATE)
    silent = np.isnan(features).any(axis=1)
    assert silent[102:198].all() and not silent[:98].any() and not silent[202:].any()
    assert not combo_scores(features, principal_direction([features]))[silent].any()
    constant = combo_features(np.ones(8000), RATE)
    assert np.isfinite(constant).all() and np.isfinite(combo_scores(constant, principal_direction([features]))).all()
