"""Early stopping of languages' decoders against equation 1 written out, frame by frame and utterance by utterance."""

import math

import numpy as np
import pytest

from pyspeech.asr import early_stopping
from pyspeech.asr.config import STOPPING_RULES, EarlyStopping
from pyspeech.asr.early_stopping import EarlyStopper, overall_t_avg, run
from pyspeech.errors import UserError


def random_log_posteriors(rng, *shape):
    logits = rng.standard_normal(shape) * 2
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def plain(log_posteriors, config):
    """(T, L) -> (frames that each decoder ran, language chosen), with every sum made anew."""
    languages = range(log_posteriors.shape[1])
    active, frames_run = set(languages), [0] * len(languages)
    for t in range(1, len(log_posteriors) + 1):
        for language in active:
            frames_run[language] += 1
        so_far = log_posteriors[:t]
        scores = {"sum_logp": so_far.sum(0), "mean_logp": so_far.mean(0), "mean_p": np.exp(so_far).mean(0)}[config.rule]
        best = max(scores[language] for language in active)
        if t > config.tau:
            active = {language for language in active if not scores[language] < best - config.threshold}
    means = np.exp(log_posteriors).mean(0)
    return frames_run, max(active, key=lambda language: means[language])


@pytest.mark.parametrize(
    "rule, threshold",
    [("sum_logp", 0.2), ("sum_logp", 8.0), ("mean_logp", 0.3), ("mean_p", 0.05), ("mean_p", 0.0), ("sum_logp", 0.0)],
)
@pytest.mark.parametrize("tau", [0, 1, 7, 100])
def test_equals_equation_1_written_out(rng, rule, threshold, tau, monkeypatch):
    config = EarlyStopping(rule, tau, threshold)
    log_posteriors, lengths = random_log_posteriors(rng, 6, 40, 4), np.array([40, 1, 2, 8, 9, 33])
    stopper = EarlyStopper(6, 4, config)
    for start, end in ((0, 3), (3, 4), (4, 30), (30, 40)):  # in chunks
        running = stopper.add(log_posteriors[:, start:end], np.clip(lengths - start, 0, end - start))
        assert running.shape == (6, end - start, 4)
    wanted = []
    for utterance, length in enumerate(lengths):
        frames_run, language = plain(log_posteriors[utterance, :length], config)
        assert stopper.frames_run[utterance].tolist() == frames_run
        assert stopper.best()[utterance] == language
        expected = sum(frames_run) / length  # equation 2
        assert stopper.t_avg()[utterance] == pytest.approx(expected) and 1 <= expected <= 4
        wanted.append((language, pytest.approx(expected)))
    monkeypatch.setattr(early_stopping, "AT_ONCE", 4)
    assert run([item[:length] for item, length in zip(log_posteriors, lengths, strict=True)], config) == wanted
    assert stopper.active.any(axis=1).all()
    if tau == 100:
        assert stopper.active.all()


def test_the_decoders_that_run_are_marked_up_to_the_frame_that_stops_them():
    """Language 1 falls 0.4 behind each frame; at s_th = 1 it is too far behind after frame 3."""
    log_posteriors = np.log(np.tile([0.6, 0.4], (1, 6, 1)))
    stopper = EarlyStopper(1, 2, EarlyStopping("sum_logp", 0, 1.0))
    assert stopper.add(log_posteriors)[0, :, 1].tolist() == [True, True, True, False, False, False]
    assert stopper.t_avg()[0] == pytest.approx(1.5)
    late = EarlyStopper(1, 2, EarlyStopping("sum_logp", 4, 1.0))  # t > tau: after frame 5
    assert late.add(log_posteriors)[0, :, 1].tolist() == [True] * 5 + [False]


@pytest.mark.parametrize("rule", STOPPING_RULES)
@pytest.mark.parametrize("infinite", [{"tau": math.inf, "threshold": 0.0}, {"tau": 0, "threshold": math.inf}, {}])
def test_infinite_tau_or_threshold_never_stops(rng, rule, infinite):
    log_posteriors = random_log_posteriors(rng, 3, 50, 4)
    stopper = EarlyStopper(3, 4, EarlyStopping(rule, **infinite))
    assert stopper.add(log_posteriors).all()
    assert stopper.t_avg().tolist() == [4.0] * 3
    assert stopper.best().tolist() == np.exp(log_posteriors).mean(axis=1).argmax(axis=1).tolist()


def test_the_last_decoder_runs_even_where_another_would_be_better_by_now():
    """Language 0 leads for 5 frames, which stops language 1; from then on all is for language 1."""
    log_posteriors = np.log(np.array([[[0.9, 0.1]] * 5 + [[1e-9, 1 - 1e-9]] * 50]))
    stopper = EarlyStopper(1, 2, EarlyStopping("sum_logp", 4, 0.0))
    running = stopper.add(log_posteriors)
    assert running[0, :, 0].all() and stopper.best()[0] == 0
    assert stopper.mean_posteriors[0, 1] > stopper.mean_posteriors[0, 0]


def test_edges():
    stopper = EarlyStopper(2, 3, EarlyStopping("mean_p", 0, 0.0))
    assert stopper.add(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert stopper.add(np.zeros((2, 4, 3)), [0, 0]).sum() == 0
    assert stopper.best().tolist() == [0, 0] and stopper.t_avg().tolist() == [0.0, 0.0]
    np.testing.assert_allclose(stopper.mean_posteriors, 1 / 3)
    impossible = np.array([[[0.0, -np.inf], [-np.inf, 0.0]]])  # posteriors of 0
    assert EarlyStopper(1, 2, EarlyStopping("sum_logp", 0, 0.0)).add(impossible).any(axis=2).all()
    assert overall_t_avg([4.0, 0.0, 2.0]) == 3.0 and overall_t_avg([]) == 0.0


def test_wrong_options_are_named():
    for options in ({"rule": "sum"}, {"tau": -1}, {"threshold": -0.1}, {"tau": math.nan}):
        with pytest.raises(UserError, match="early stopping: "):
            EarlyStopper(1, 2, EarlyStopping(**options))
