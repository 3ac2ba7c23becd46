"""From scores to decisions, and the threshold sweep against the official scorer's figures at each threshold."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pyspeech.errors import UserError
from pyspeech.sad.config import OperatingPoint
from pyspeech.sad.scoring import score_pair
from pyspeech.sad.segments import frames_to_segments
from pyspeech.sad.smoothing import (
    SMOOTHINGS,
    decide,
    decide_thresholds,
    find_speech,
    hmm_smooth,
    hmm_smooth_thresholds,
    majority,
    median_filter,
)
from pyspeech.sad.thresholds import sweep, sweep_decisions


@pytest.mark.parametrize("length", [1, 3, 25])
@pytest.mark.parametrize("count", [1, 2, 10, 200])
def test_median_filter(count, length):
    values = np.random.default_rng(count).random(count)
    half = length // 2
    padded = np.pad(values, half, mode="edge")
    plain = np.array([np.median(padded[t : t + length]) for t in range(count)])
    np.testing.assert_array_equal(median_filter(values, length), plain)
    np.testing.assert_array_equal(median_filter(values > 0.4, length), plain > 0.4)


def test_median_filter_at_its_edges():
    assert len(median_filter(np.zeros(0, dtype=bool))) == len(median_filter(np.zeros(0))) == 0
    with pytest.raises(ValueError, match="odd"):
        median_filter(np.zeros(5), 4)


def test_hmm_removes_short_bursts_and_fills_short_gaps():
    scores = np.full(300, 0.1)
    scores[50:52] = 0.9
    scores[100:200] = 0.9
    scores[150:152] = 0.1
    expected = np.zeros(300, dtype=bool)
    expected[100:200] = True
    np.testing.assert_array_equal(hmm_smooth(scores, 0.5), expected)
    np.testing.assert_array_equal(decide(scores, 0.5, "hmm"), expected)


@pytest.mark.parametrize("threshold, speech", [(0.0, True), (1.0, False)])
@pytest.mark.parametrize("smoothing", ["none", "median", "hmm"])
def test_outermost_thresholds(smoothing, threshold, speech):
    scores = np.random.default_rng(0).uniform(1e-3, 1 - 1e-3, 400).astype(np.float32)
    assert np.all(decide(scores, threshold, smoothing) == speech)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_stretches_without_a_peak_are_no_speech(rng, smoothing):
    scores = np.clip(np.repeat(rng.random(100), 20) + 0.1 * rng.standard_normal(2000), 0, 1)
    plain, found = decide(scores, 0.5, smoothing), decide(scores, 0.5, smoothing, 0.9)
    for speech, stretch in itertools.groupby(range(2000), lambda frame: plain[frame]):
        frames = list(stretch)
        assert (found[frames] == (speech and scores[frames].max() > 0.9)).all()
    assert 0 < found.sum() < plain.sum()


@pytest.mark.parametrize("frames, found", [(99, True), (100, False)])
def test_a_brief_recording_needs_a_lower_peak(frames, found):
    scores = np.full(frames, 0.1)
    scores[20:40] = 0.75
    point = OperatingPoint(0.4, peak=0.93, brief_peak=0.7)
    assert (len(find_speech(scores, point, 0.02)) > 0) == found
    assert len(find_speech(scores, replace(point, brief_peak=None), 0.02)) == 0
    assert len(find_speech(scores, replace(point, peak=0.5), 0.02)) == 1  # no higher one


def test_unknown_smoothing():
    with pytest.raises(UserError, match="none, median, hmm"):
        decide(np.zeros(3), 0.5, "mean")


def test_hmm_at_many_thresholds_is_the_loop_over_them(rng):
    scores = np.clip(np.repeat(rng.random(40), 50) + 0.2 * rng.standard_normal(2000), 1e-3, 1 - 1e-3).astype(np.float32)
    thresholds = np.linspace(0, 1, 41)
    together = np.array(list(hmm_smooth_thresholds(scores, thresholds)))
    np.testing.assert_array_equal(together, [hmm_smooth(scores, threshold) for threshold in thresholds])
    assert 0 < together.mean() < 1


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_scores_that_are_not_numbers(smoothing):
    scores, references, durations = made_up_recordings()
    scores[1][[7, 9]] = np.nan
    with pytest.raises(UserError, match="2 of 600 scores are NaN, the first that of frame 7"):
        decide(scores[1], 0.5, smoothing)
    with pytest.raises(UserError, match="2 of 600 scores are NaN"):
        sweep(scores, references, durations, smoothing)


@pytest.mark.parametrize("temporal", ["cnn", "rnn", "seg_rnn"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_network_decides_nothing_about_samples_that_are_not_numbers(rng, temporal, value):
    from pyspeech.sad.config import NetworkConfig, StftConfig
    from pyspeech.sad.decoding import score_samples
    from pyspeech.sad.networks import SadNetwork

    config = NetworkConfig(temporal=temporal, channels=[2, 2, 4, 4], rnn_size=8, cnn_channels=8)
    network = SadNetwork(config, StftConfig())
    samples = 0.1 * rng.standard_normal(8000).astype(np.float32)
    decide(score_samples(network, samples), 0.5)
    samples[4000] = value
    with pytest.raises(UserError, match="scores are NaN"):
        decide(score_samples(network, samples), 0.5)


def made_up_recordings():
    """Scores that follow the labels more or less; labels off the frame grid, one file's beyond its audio, one all speech."""
    rng = np.random.default_rng(5)
    references = [
        [(0.0, 1.203, "NS"), (1.203, 2.5, "S"), (2.5, 4.0, "NS"), (4.0, 4.351, "S"), (4.351, 8.0, "NS")],
        [(0.0, 2.0, "S"), (2.0, 3.3, "NS"), (3.3, 6.5, "S")],
        [(0.0, 3.0, "S")],
    ]
    durations = [8.0, 6.0, 3.0]
    scores = []
    for reference, duration in zip(references, durations, strict=True):
        times = np.arange(round(duration * 100)) / 100
        speech = sum((times >= start) & (times < end) for start, end, label in reference if label == "S")
        noise = np.convolve(rng.standard_normal(len(times)), np.ones(5) / 5, mode="same")
        scores.append(np.clip(0.3 + 0.4 * speech + 0.5 * noise, 1e-3, 1 - 1e-3).astype(np.float32))
    return scores, references, durations


COLLARS = (0.0, 0.25, 0.5)


def official_dcf(decisions, references, durations, collar, offset):
    """The mean over the recordings of what the official scorer gives for the segments that the decisions make."""
    files = []
    for decided, reference, duration in zip(decisions, references, durations, strict=True):
        speech = frames_to_segments(decided, duration=duration, offset=offset)
        files.append(round(score_pair(reference, speech, collar)["dcf"], 5))
    return np.mean(files)


@pytest.mark.parametrize("offset", [0.0, 0.02])
@pytest.mark.parametrize("smoothing", ["none", "median", "hmm"])
def test_sweep_is_the_official_dcf_at_each_threshold(smoothing, offset):
    scores, references, durations = made_up_recordings()
    swept = sweep(scores, references, durations, smoothing, COLLARS, frame_offset=offset, num_thresholds=21)
    assert len(swept) == len(COLLARS)
    for collar, found in zip(COLLARS, swept, strict=True):
        assert found.thresholds[[0, 1, -1]] == pytest.approx([0, 0.05, 1])
        for threshold, dcf in zip(found.thresholds, found.dcf, strict=True):
            decisions = [decide(frame_scores, threshold, smoothing) for frame_scores in scores]
            assert dcf == pytest.approx(official_dcf(decisions, references, durations, collar, offset), abs=1.1e-5)
        assert found.best_dcf == found.dcf.min() < found.dcf[0]
        assert found.dcf[list(found.thresholds).index(found.threshold)] <= 1.05 * found.best_dcf
    assert swept[0].best_dcf > swept[-1].best_dcf


def test_threshold_is_in_the_middle_of_those_that_are_nearly_as_good():
    """The DCF falls to its lowest at the first of a row of thresholds that nothing lies between, then rises in steps."""
    scores = [np.array([0.02] * 500 + [0.9] * 480 + [0.42] * 20)]
    (found,) = sweep(scores, [[(0.0, 5.0, "NS"), (5.0, 10.0, "S")]], [10.0], num_thresholds=11)
    assert found.dcf.argmin() == 1
    missed = 0.75 * 0.2 / 5  # beyond 0.42: more than 5 % worse than nothing missed
    np.testing.assert_allclose(found.dcf, [0.25, *[0.0] * 4, *[missed] * 4, 0.75, 0.75], atol=1e-5)
    assert found.threshold == pytest.approx(0.2)  # of 0.1, 0.2, 0.3 and 0.4 the second
    (split,) = sweep_decisions(
        [np.repeat([[0], [1], [0], [1], [0]], 1000, axis=1).astype(bool)], np.linspace(0, 1, 5), [[(0.0, 10.0, "S")]], [10.0]
    )
    assert split.threshold == 0.25  # the other one that is as good lies beyond one that is not


def test_sweep_of_any_decisions():
    """As of a detector whose threshold is no score: here one that calls a frame speech by the scores around it."""
    scores, references, durations = made_up_recordings()
    means = [np.convolve(frame_scores, np.ones(9) / 9, mode="same") for frame_scores in scores]
    thresholds = np.linspace(-3, 3, 13)
    deciders = [lambda threshold, mean=mean: mean > 0.5 + threshold / 10 for mean in means]
    decisions = ((decider(threshold) for threshold in thresholds) for decider in deciders)
    swept = sweep_decisions(decisions, thresholds, references, durations, COLLARS)
    for collar, found in zip(COLLARS, swept, strict=True):
        expected = [
            official_dcf([decider(threshold) for decider in deciders], references, durations, collar, 0.0)
            for threshold in thresholds
        ]
        assert found.dcf == pytest.approx(expected, abs=1.1e-5)
        assert found.dcf[list(thresholds).index(found.threshold)] <= 1.05 * found.dcf.min()


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_decisions_at_many_thresholds_are_the_loop_over_them(smoothing):
    scores, thresholds = made_up_recordings()[0][0], np.linspace(0, 1, 11)
    together = np.array(list(decide_thresholds(scores, thresholds, smoothing)))
    np.testing.assert_array_equal(together, [decide(scores, threshold, smoothing) for threshold in thresholds])


def test_majority():
    votes = [np.array(row, bool) for row in ([1, 1, 0, 0, 1], [1, 0, 1, 0, 1], [1, 1, 0, 0, 0])]
    assert majority(votes).tolist() == [True, True, False, False, True]
    assert majority(votes[:1]).tolist() == votes[0].tolist()
    assert majority(votes[:2]).tolist() == [True, False, False, False, True]  # a tie is not speech


def test_sweep_has_201_thresholds():
    (found,) = sweep(*made_up_recordings())
    assert len(found.thresholds) == len(found.dcf) == 201
