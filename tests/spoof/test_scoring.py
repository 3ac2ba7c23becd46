"""Error rates against published figures, plain slow versions and what follows from their definitions."""

import math

import numpy as np
import pytest

from pyspeech.errors import UserError
from pyspeech.spoof.calibration import Calibration, fit_calibration
from pyspeech.spoof.score_files import AsvScores
from pyspeech.spoof.scoring import (
    AsvRates,
    actual_cost,
    asv_rates,
    cllr,
    det_points,
    eer_draws,
    eer_interval,
    equal_error_rate,
    min_cost,
    min_tandem_cost,
)

GENUINE, FAKE = [2.1, 1.5, 0.3, -0.2, 1.1], [-1.5, -0.8, 0.5, -2.2, 0.1, -0.3, 1.2]


def plain_eer(genuine, fake):
    """Every threshold tried, one utterance after the other, in exact fractions."""
    best = None
    for threshold in [*sorted({*genuine, *fake}), math.inf]:
        misses = sum(score < threshold for score in genuine)
        alarms = sum(score >= threshold for score in fake)
        difference = abs(misses * len(fake) - alarms * len(genuine))
        if best is None or difference < best[0]:
            best = difference, (misses / len(genuine) + alarms / len(fake)) / 2
    return best[1]


def test_published_figures():
    assert equal_error_rate(GENUINE, FAKE)[0] == pytest.approx(0.242857, abs=5e-7)
    assert cllr(GENUINE, FAKE) == pytest.approx(0.737132, abs=5e-7)
    assert min_tandem_cost(GENUINE, FAKE, AsvRates(0.02, 0.03, 0.40)) == pytest.approx(0.428571, abs=5e-7)


@pytest.mark.parametrize("levels", [2, 3, 10, 1000])
def test_eer_is_the_plain_one_with_any_ties(levels, rng):
    for _ in range(60):
        genuine = rng.integers(levels, size=rng.integers(1, 12)) + rng.integers(2)
        fake = rng.integers(levels, size=rng.integers(1, 12))
        found, threshold = equal_error_rate(genuine, fake)
        assert found == pytest.approx(plain_eer(genuine.tolist(), fake.tolist()), abs=1e-12)
        assert found == pytest.approx((np.mean(genuine < threshold) + np.mean(fake >= threshold)) / 2, abs=1e-12)


def test_eer_at_its_ends():
    assert equal_error_rate([3.0] * 5, [3.0] * 9)[0] == 0.5
    assert equal_error_rate([2, 3], [0, 1]) == (0, 1.5)
    assert equal_error_rate([0, 1], [2, 3])[0] == 1
    assert equal_error_rate([1.0], [0.0]) == (0, 0.5)
    shift = np.array(GENUINE) * 1e-9, np.array(FAKE) * 1e-9
    assert equal_error_rate(*shift)[0] == equal_error_rate(GENUINE, FAKE)[0]


def test_det_curve_is_what_the_thresholds_give(rng):
    genuine, fake = rng.integers(5, size=20), rng.integers(5, size=30) - 1
    thresholds, false_alarms, misses = det_points(genuine, fake)
    assert (false_alarms[0], misses[0], false_alarms[-1], misses[-1]) == (1, 0, 0, 1)
    for threshold, false_alarm, miss in zip(thresholds, false_alarms, misses, strict=True):
        assert false_alarm == pytest.approx(np.mean(fake >= threshold))
        assert miss == pytest.approx(np.mean(genuine < threshold))


def test_cllr():
    assert cllr([0.0] * 3, [0.0]) == 1
    assert cllr([40.0], [-40.0]) < 1e-12 and cllr([-1000.0], [1000.0]) == pytest.approx(1000 / math.log(2))
    assert cllr([math.log(3)], [math.log(3)]) == pytest.approx((math.log2(4 / 3) + math.log2(4)) / 2)


def plain_tandem_cost(genuine, fake, asv):
    """The cost of every threshold by the formulas of the evaluation plan of ASVspoof 2019."""
    first = 0.9405 * (1 - 1 * asv.miss) - 0.0095 * 10 * asv.false_alarm
    second = 10 * 0.05 * (1 - asv.spoof_miss)
    return min(
        first * sum(score < threshold for score in genuine) / len(genuine)
        + second * sum(score >= threshold for score in fake) / len(fake)
        for threshold in [*genuine, *fake, math.inf]
    ) / min(first, second)


def test_tandem_cost(rng):
    for _ in range(40):
        genuine, fake = rng.normal(1, 1, 15).round(1), rng.normal(-0.5, 1, 25).round(1)
        asv = AsvRates(*rng.uniform(0, 0.5, 2), rng.uniform(0, 0.9))
        assert min_tandem_cost(genuine, fake, asv) == pytest.approx(plain_tandem_cost(genuine, fake, asv))
    asv = AsvRates(0.02, 0.03, 0.40)
    assert min_tandem_cost([1, 1], [1, 1], asv) == pytest.approx(1)
    assert min_tandem_cost([1, 2], [0, -1], asv) == 0
    with pytest.raises(UserError, match="t-DCF: not defined for speaker verification that accepts 100.0% of other"):
        min_tandem_cost([1], [0], AsvRates(1.0, 0.95, 0.4))


def test_tandem_cost_of_2021(rng):
    """Against equations 10 and 11 of Kinnunen et al. 2020, and what a perfect detector leaves of the ASV's cost."""
    asv = AsvRates(0.02, 0.03, 0.40)
    genuine, fake = rng.normal(1, 1, 15).round(1), rng.normal(-0.5, 1, 25).round(1)
    base = 0.9405 * 0.03 + 0.0095 * 10 * 0.02
    first, second = 0.9405 - base, 0.05 * 10 * 0.6
    expected = min(
        (base + first * np.mean(genuine < threshold) + second * np.mean(fake >= threshold)) / (base + min(first, second))
        for threshold in [*genuine, *fake, math.inf]
    )
    assert min_tandem_cost(genuine, fake, asv, whole=True) == pytest.approx(expected)
    assert min_tandem_cost([1, 2], [0, -1], asv, whole=True) == pytest.approx(base / (base + second))
    assert min_tandem_cost([1, 1], [1, 1], asv, whole=True) == pytest.approx(1)


def test_detection_costs_of_asvspoof_5(rng):
    """Priors of 0.95 and 0.05, costs of 1 and 10: a miss counts 0.95, a false alarm 0.5, the threshold is ln(0.5 / 0.95)."""
    for _ in range(20):
        genuine, fake = rng.normal(1, 1, 15).round(1), rng.normal(-0.5, 1, 25).round(1)
        costs = [
            (0.95 * np.mean(genuine < threshold) + 0.5 * np.mean(fake >= threshold)) / 0.5
            for threshold in [*genuine, *fake, math.inf, -math.log(1.9)]
        ]
        assert min_cost(genuine, fake) == pytest.approx(min(costs[:-1]))
        assert actual_cost(genuine, fake) == pytest.approx(costs[-1])
    assert min_cost([1, 2], [0, -1]) == 0 and min_cost([1, 1], [1, 1]) == 1
    assert actual_cost([0, 0], [0, 0]) == 1 and actual_cost([-1, -1], [-1]) == pytest.approx(1.9)


def test_asv_rates_are_those_at_its_eer():
    scores = AsvScores(target=[3, 4, 5, 1.5], nontarget=[0, 1, 2, -1], spoof=[4, 4, 1, 0, 3])
    assert asv_rates(scores) == AsvRates(0.25, 0.25, 0.4)


def plain_intervals(genuine, fake, draws, speakers=None):
    rng, rates = np.random.default_rng(5), []
    for _ in range(draws):
        if speakers is None:
            chosen = rng.choice(genuine, len(genuine)), rng.choice(fake, len(fake))
        else:
            names = sorted({*speakers[0], *speakers[1]})
            drawn = rng.choice(names, len(names))
            chosen = [
                np.concatenate([scores[labels == name] for name in drawn])
                for scores, labels in zip((genuine, fake), map(np.array, speakers), strict=True)
            ]
        if min(map(len, chosen)):
            rates.append(plain_eer(chosen[0].tolist(), chosen[1].tolist()))
    return np.percentile(rates, [2.5, 97.5])


def test_interval_is_that_of_a_plain_bootstrap(rng):
    genuine, fake = rng.normal(1, 1, 30).round(1), rng.normal(-0.5, 1, 45).round(1)
    found = eer_interval(genuine, fake, draws=3000)
    assert found == pytest.approx(plain_intervals(genuine, fake, 1000), abs=0.02)
    assert found == eer_interval(genuine, fake, draws=3000) != eer_interval(genuine, fake, draws=3000, seed=1)
    assert found[0] < equal_error_rate(genuine, fake)[0] < found[1]
    narrow = eer_interval(genuine, fake, draws=3000, level=0.5)
    assert found[0] < narrow[0] < narrow[1] < found[1]


def test_speakers_that_differ_make_the_interval_wider(rng):
    offsets = rng.normal(0, 1.5, 12)
    who = rng.integers(12, size=200)
    genuine, fake = offsets[who[:80]] + rng.normal(1, 0.3, 80), offsets[who[80:]] + rng.normal(-1, 0.3, 120)
    speakers = [[f"s{index}" for index in part] for part in (who[:80], who[80:])]
    found = eer_interval(genuine, fake, speakers)
    assert found == pytest.approx(plain_intervals(genuine, fake, 100, speakers), abs=0.06)
    alone = eer_interval(genuine, fake)
    assert found[1] - found[0] > 1.3 * (alone[1] - alone[0])
    # One speaker is genuine alone and the other fake alone: a draw that has but one of them gives no rate.
    assert eer_interval([1, 2], [0, 3], (["a", "a"], ["b", "b"]), draws=50) == (0.5, 0.5)


def test_draws_by_bisection_have_the_distribution_of_drawn_utterances(rng):
    genuine, fake = rng.normal(1, 1, 400), rng.normal(-0.5, 1, 900)
    drawn = eer_draws(genuine, fake, draws=4000)
    for level in (0.5, 0.8, 0.95):
        expected = np.percentile(drawn, [50 * (1 - level), 50 * (1 + level)])
        assert eer_interval(genuine, fake, draws=4000, level=level) == pytest.approx(expected, abs=0.003)
    few = [2.0, 1, 1, 0], [0.0, 1, -1]
    searched = eer_draws(*few, draws=6000, paired=False)
    expected, counts = np.unique(eer_draws(*few, draws=6000).round(9), return_counts=True)
    for rate, count in zip(expected, counts, strict=True):
        assert np.count_nonzero(searched.round(9) == rate) == pytest.approx(count, abs=200)


def test_draws_of_speakers_are_those_of_their_utterances(rng):
    """More utterances than are counted at a time, with many ties."""
    genuine, fake = rng.normal(1, 1, 1100).round(1), rng.normal(-0.5, 1, 1900).round(1)
    speakers = [[f"s{number}" for number in rng.integers(9, size=len(scores))] for scores in (genuine, fake)]
    drawn, names = np.random.default_rng(4), np.array(sorted({*speakers[0], *speakers[1]}))
    expected = []
    for row in drawn.integers(9, size=(30, 9)):
        chosen = [
            np.concatenate([scores[np.array(of_kind) == name] for name in names[row]])
            for scores, of_kind in zip((genuine, fake), speakers, strict=True)
        ]
        expected.append(equal_error_rate(*chosen)[0])
    assert eer_draws(genuine, fake, speakers, draws=30, seed=4) == pytest.approx(expected, abs=1e-12)


def test_interval_of_many_draws_at_once_and_of_few_is_of_one_kind(rng, monkeypatch):
    genuine, fake = rng.normal(1, 1, 300), rng.normal(-0.5, 1, 450)
    whole = np.percentile(eer_draws(genuine, fake, draws=1000), [2.5, 97.5])
    assert eer_interval(genuine, fake, draws=1000) == pytest.approx(whole, abs=0.006)
    monkeypatch.setattr("pyspeech.spoof.scoring.DRAWN_AT_ONCE", 7 * 750)
    parts = np.percentile(eer_draws(genuine, fake, draws=1000), [2.5, 97.5])
    assert parts == pytest.approx(whole, abs=0.006)
    assert eer_interval([1.0], [0.0]) == (0, 0)


def test_calibration_is_the_best_line(rng):
    truth = rng.normal(2, 2, 2000), rng.normal(-2, 2, 3000)  # log-likelihood ratios: 2 mean / variance is 1
    scores = [(values + 3) / 1.7 for values in truth]
    found = fit_calibration(*scores)
    assert found.slope == pytest.approx(1.7, rel=0.08) and found.offset == pytest.approx(-3, rel=0.08)
    best = cllr(*map(found.log_likelihood_ratio, scores))
    assert best < cllr(*truth) + 1e-4
    for slope, offset in ((1.02, 0), (0.98, 0), (1, 0.04), (1, -0.04)):
        other = Calibration(slope * found.slope, found.offset + offset)
        assert cllr(*map(other.log_likelihood_ratio, scores)) > best


def test_calibration_at_its_ends():
    separated = fit_calibration([5, 6, 7], [1, 2, 3, 4])
    assert 0 < separated.slope < 20 and separated.log_likelihood_ratio(4.5) == pytest.approx(0, abs=1)
    constant = fit_calibration([2.0, 2.0], [2.0])
    assert constant.log_likelihood_ratio(2.0) == pytest.approx(0, abs=0.2)
    inverted = fit_calibration([0, 1], [2, 3])  # says nothing, and leaves the order of scores as it is
    assert 0 < inverted.slope < 0.01 and inverted.probability(-1.0) < inverted.probability(4.0)
    assert inverted.probability(1.5) == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(UserError, match="0 genuine and 1 fake scores"):
        fit_calibration([], [1.0])


def test_probability():
    plain = Calibration()
    assert plain.probability(0.0) == 0.5 and plain.probability(math.log(4)) == pytest.approx(0.8)
    assert plain.probability(0.0, prior=0.1) == pytest.approx(0.1)
    assert plain.probability(math.log(3), prior=0.2) == pytest.approx(3 / 7)
    assert plain.probability(np.array([-1e4, 1e4])).tolist() == [0, 1]
    for prior in (0, 1, math.nan):
        with pytest.raises(UserError, match="expected the probability of genuine speech"):
            plain.probability(0.0, prior)


def test_scores_that_are_none():
    for call, message in (
        (lambda: equal_error_rate([], [1]), "no scores of genuine"),
        (lambda: cllr([1], []), "no scores of fake"),
        (lambda: equal_error_rate([1, math.nan], [1]), "1 of 2 scores of genuine utterances are not"),
        (lambda: eer_interval([1], [math.inf]), "1 of 1 scores of fake"),
    ):
        with pytest.raises(UserError, match=message):
            call()
