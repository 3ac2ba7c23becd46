"""Viterbi smoothing: the form over all chunks at once against the one that goes frame by frame."""

import tracemalloc

import numpy as np
import pytest

from pyspeech.sad import hmm
from pyspeech.sad.hmm import CHUNK, LARGEST_RATIO, RESOLUTION, HmmConfig, viterbi, viterbi_thresholds


def viterbi_sequential(llr, config=None):
    """Decode like `viterbi`, but frame by frame: the plain form."""
    config = config or HmmConfig()
    llr = _on_grid(np.clip(np.asarray(llr, np.float64), -LARGEST_RATIO, LARGEST_RATIO))
    stay, move = _on_grid(np.log(config.stay)), _on_grid(np.log1p(-config.stay))
    num_states = 2 * config.states
    scores, moved = np.zeros(num_states), np.zeros((len(llr), num_states), bool)
    for t, ratio in enumerate(llr):
        arriving, kept = np.roll(scores, 1) + move, scores + stay
        moved[t] = arriving > kept
        scores = np.maximum(arriving, kept) + ratio * (np.arange(num_states) >= config.states)
        scores -= scores.max()
    decisions, state = np.zeros(len(llr), bool), int(scores.argmax())
    for t in reversed(range(len(llr))):
        decisions[t] = state >= config.states
        state = (state - moved[t, state]) % num_states
    return decisions


def _on_grid(values):
    return np.round(values / RESOLUTION) * RESOLUTION


@pytest.mark.parametrize("num_frames", [0, 1, 4, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17, 5000])
@pytest.mark.parametrize("scale", [0.01, 0.3, 2.0, 20.0])
def test_equals_the_sequential_form(rng, num_frames, scale):
    """Weak evidence keeps rival paths alive over many chunks; strong evidence decides each frame."""
    slow = np.repeat(rng.standard_normal(num_frames // 50 + 1), 50)[:num_frames]
    ratio = scale * (slow + rng.standard_normal(num_frames))
    assert np.array_equal(viterbi(ratio), viterbi_sequential(ratio))


@pytest.mark.parametrize("config", [HmmConfig(states=1), HmmConfig(states=3, stay=0.5), HmmConfig(states=8, stay=0.99)])
def test_equals_the_sequential_form_for_other_models(rng, config):
    ratio = np.repeat(rng.standard_normal(300), 7) + 0.5 * rng.standard_normal(2100)
    assert np.array_equal(viterbi(ratio, config), viterbi_sequential(ratio, config))


def test_ties_and_constant_evidence():
    """No evidence at all for hours, and evidence that cancels, decide ties the same way in both forms."""
    for ratio in (np.zeros(2000), np.tile([1.0, -1.0], 1000), np.full(2000, 1e9), np.full(2000, -np.inf)):
        assert np.array_equal(viterbi(ratio), viterbi_sequential(ratio))
    assert viterbi(np.full(700, 3.0)).all() and not viterbi(np.full(700, -3.0)).any()


@pytest.mark.parametrize("num_frames", [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 17])
@pytest.mark.parametrize("side_by_side", [1, 8, 10**6])
def test_many_thresholds_equal_one_at_a_time(rng, monkeypatch, num_frames, side_by_side):
    """Singly, in groups and all at once; with thresholds that call every frame, none, and some."""
    monkeypatch.setattr(hmm, "SIDE_BY_SIDE", side_by_side)
    monkeypatch.setattr(hmm, "SLAB", 3)
    slow = np.repeat(rng.standard_normal(num_frames // 60 + 1), 60)[:num_frames]
    ratio = slow + 0.5 * rng.standard_normal(num_frames)
    thresholds = [0.7, -20.0, -0.3, 20.0, 0.0, np.inf, -np.inf]
    config = HmmConfig(states=3, stay=0.8)
    found = list(viterbi_thresholds(ratio, thresholds, config))
    assert len(found) == len(thresholds)
    for threshold, decisions in zip(thresholds, found, strict=True):
        assert np.array_equal(decisions, viterbi(ratio - threshold, config))
        assert np.array_equal(decisions, viterbi_sequential(ratio - threshold, config))


def test_one_long_pause_after_another(rng):
    """Chunks of noise alone keep the scores that they began with: what came before is passed on from chunk to chunk."""
    ratio = np.full(40 * CHUNK, -4.0)
    ratio[3 * CHUNK + 100 : 3 * CHUNK + 140] = 4.0
    ratio[30 * CHUNK - 2 : 30 * CHUNK + 5] = 2.0
    ratio += 0.1 * rng.standard_normal(len(ratio))
    for threshold, decisions in zip((-6.0, 0.0, 1.0), viterbi_thresholds(ratio, (-6.0, 0.0, 1.0)), strict=True):
        assert np.array_equal(decisions, viterbi_sequential(ratio - threshold))


def test_memory_does_not_grow_with_the_number_of_thresholds(monkeypatch):
    monkeypatch.setattr(hmm, "SIDE_BY_SIDE", 10)
    peaks = []
    for count in (7, 70):
        tracemalloc.start()
        assert (
            sum(len(decisions) for decisions in viterbi_thresholds(np.zeros(3 * CHUNK), np.zeros(count))) == count * 3 * CHUNK
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_short_bursts_are_smoothed_away():
    """Five frames of speech take six moves instead of six stays: 6 ln 9 = 13.18 nats (noise waits in its last state)."""
    ratio = np.full(400, -1.0)
    ratio[200:205] = 2.6  # 13.0 nats: less than it costs
    assert not viterbi(ratio).any()
    ratio[200:205] = 2.7  # 13.5 nats
    assert np.flatnonzero(viterbi(ratio)).tolist() == [200, 201, 202, 203, 204]


def test_best_path_among_all(rng):
    """Against the score of every path of a tiny model, written out."""
    from itertools import product

    config, ratio = HmmConfig(states=2, stay=0.7), rng.standard_normal(6)

    def score(path):
        total = sum(ratio[t] for t, state in enumerate(path) if state >= 2)
        for before, after in zip(path, path[1:], strict=False):
            if after not in (before, (before + 1) % 4):
                return -np.inf
            total += np.log(0.7 if after == before else 0.3)
        return total

    best = max(product(range(4), repeat=6), key=score)
    assert viterbi(ratio, config).tolist() == [state >= 2 for state in best]


def test_errors():
    with pytest.raises(ValueError, match="NaN in 1 of 3"):
        viterbi(np.array([0.0, np.nan, 1.0]))
    with pytest.raises(ValueError, match="NaN in 1 of 3"):
        list(viterbi_thresholds(np.array([0.0, np.nan, 1.0]), [0.0, 1.0]))
    with pytest.raises(ValueError, match=r"\(T,\)"):
        viterbi(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="stay=1.0"):
        HmmConfig(stay=1.0)


@pytest.mark.parametrize("begin", [-20.0, 5.0])
def test_long_pauses_take_few_rounds(rng, monkeypatch, begin):
    """However many chunks pass on what came before them, they are not decoded one after the other."""
    counts = {"_forward": 0, "_trace_back": 0}

    def counted(name, plain):
        def run(*arguments):
            counts[name] += 1
            return plain(*arguments)

        return run

    for name in counts:
        monkeypatch.setattr(hmm, name, counted(name, getattr(hmm, name)))
    ratio = np.clip(-15 + 5 * rng.standard_normal(200 * CHUNK), -20, -2)
    ratio[:300] = begin
    ratio[-1000:-700] = 5.0
    assert np.array_equal(viterbi(ratio), viterbi_sequential(ratio))
    assert max(counts.values()) <= 8
