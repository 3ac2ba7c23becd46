"""Error rates of fake audio detection: EER with confidence interval, DCF, Cllr, min t-DCF, DET curve.

Scores are float, higher means more likely genuine; an utterance counts as genuine where its score is at least the
threshold. FRR is the share of genuine utterances below it (misses), FAR that of fake ones not below it (false alarms).

* EER: the mean of FRR and FAR at the threshold where they differ least, the lowest one of several. Equal scores are
  never parted, so constant scores give 0.5, perfect ones 0, and those with the wrong sign 1.
* min DCF and actual DCF (evaluation plan of ASVspoof 5): the cost of misses and false alarms at the best threshold, and at
  the one that the costs prescribe for log-likelihood ratios, relative to that of accepting, or refusing, everything.
* Cllr (Brümmer and du Preez 2006) in bits, of scores that are log-likelihood ratios (natural logarithm); 1 is what
  scores of 0 give.
* min t-DCF: the cost of detector and speaker verification in tandem at the best threshold, relative to that of accepting,
  or refusing, everything, whichever costs less. That of ASVspoof 2019 (Kinnunen et al. 2018) counts what the detector adds,
  that of 2021 (Kinnunen et al. 2020, eqs. 10 and 11) also what speaker verification costs by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.errors import UserError
from pyspeech.spoof.score_files import AsvScores

DRAWS = 1000  # of the bootstrap
DRAWN_AT_ONCE = 4_000_000
BLOCK = 1024  # utterances whose speakers are counted at a time
# Priors and costs of ASVspoof 2019, 2021 and 5
SPOOF_PRIOR, TARGET_PRIOR, NONTARGET_PRIOR = 0.05, 0.95 * 0.99, 0.95 * 0.01
ASV_MISS, ASV_FALSE_ALARM = 1.0, 10.0
DETECTOR_MISS, DETECTOR_FALSE_ALARM = 1.0, 10.0
# What the rates of misses and of false alarms count in the DCF
MISS_WEIGHT, ALARM_WEIGHT = (1 - SPOOF_PRIOR) * DETECTOR_MISS, SPOOF_PRIOR * DETECTOR_FALSE_ALARM


@dataclass(frozen=True)
class AsvRates:
    """Error rates of speaker verification, 0 to 1: non-targets accepted, targets refused, fakes of targets refused."""

    false_alarm: float
    miss: float
    spoof_miss: float


def equal_error_rate(genuine: ArrayLike, fake: ArrayLike) -> tuple[float, float]:
    """(EER as a fraction, its threshold) of scores (n,) and (m,). UserError where one is empty or not finite.

    The threshold lies half way to the next lower score, so that equal decisions follow from it on other machines.
    """
    thresholds, misses, alarms = _counts(*_checked(genuine, fake))
    best = np.argmin(_differences(misses, alarms))
    threshold = thresholds[best] if best == 0 else 0.5 * (thresholds[best - 1] + thresholds[best])
    return 0.5 * (misses[best] / misses[-1] + alarms[best] / alarms[0]), float(threshold)


def det_points(genuine: ArrayLike, fake: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The DET curve: thresholds, FAR and FRR (K + 1,) each, from accepting everything to refusing everything (inf)."""
    thresholds, misses, alarms = _counts(*_checked(genuine, fake))
    return thresholds, alarms / alarms[0], misses / misses[-1]


def cllr(genuine: ArrayLike, fake: ArrayLike) -> float:
    """The cost of log-likelihood ratios (n,) and (m,), in bits, 0 or more."""
    genuine, fake = _checked(genuine, fake)
    return float((np.logaddexp(0, -genuine).mean() + np.logaddexp(0, fake).mean()) / (2 * np.log(2)))


def min_cost(genuine: ArrayLike, fake: ArrayLike) -> float:
    """Return the min DCF, normalised, 0 to 1."""
    _, alarm_rates, miss_rates = det_points(genuine, fake)
    return float(np.min(MISS_WEIGHT * miss_rates + ALARM_WEIGHT * alarm_rates) / min(MISS_WEIGHT, ALARM_WEIGHT))


def actual_cost(genuine: ArrayLike, fake: ArrayLike) -> float:
    """Return the DCF at the threshold that is best for log-likelihood ratios (natural logarithm), normalised, 0 or more."""
    genuine, fake = _checked(genuine, fake)
    threshold = np.log(ALARM_WEIGHT / MISS_WEIGHT)
    cost = MISS_WEIGHT * np.mean(genuine < threshold) + ALARM_WEIGHT * np.mean(fake >= threshold)
    return float(cost / min(MISS_WEIGHT, ALARM_WEIGHT))


def min_tandem_cost(genuine: ArrayLike, fake: ArrayLike, asv: AsvRates, whole: bool = False) -> float:
    """Return the min t-DCF, normalised, 0 to 1.

    Args:
        genuine: Scores (n,).
        fake: Scores (m,).
        asv: Rates of speaker verification.
        whole: Whether the cost of speaker verification by itself counts too, as in ASVspoof 2021.

    Raises:
        UserError: where ASV is so bad that the cost is not defined.
    """
    miss_weight, alarm_weight = tandem_weights(asv)
    _, alarm_rates, miss_rates = det_points(genuine, fake)
    base = 0.0
    if whole:
        base = TARGET_PRIOR * ASV_MISS * asv.miss
        base += NONTARGET_PRIOR * ASV_FALSE_ALARM * asv.false_alarm
    cost = base + miss_weight * miss_rates + alarm_weight * alarm_rates
    return float(np.min(cost) / (base + min(miss_weight, alarm_weight)))


def tandem_weights(asv: AsvRates) -> tuple[float, float]:
    """Weights of the detector's miss and false-alarm rates in the t-DCF, both more than 0; UserError otherwise."""
    miss_weight = TARGET_PRIOR * (DETECTOR_MISS - ASV_MISS * asv.miss) - NONTARGET_PRIOR * ASV_FALSE_ALARM * asv.false_alarm
    alarm_weight = DETECTOR_FALSE_ALARM * SPOOF_PRIOR * (1 - asv.spoof_miss)
    if not min(miss_weight, alarm_weight) > 0:
        raise UserError(
            f"t-DCF: not defined for speaker verification that accepts {asv.false_alarm:.1%} of other "
            f"speakers and refuses {asv.miss:.1%} of targets and {asv.spoof_miss:.1%} of fakes; check its "
            "scores"
        )
    return miss_weight, alarm_weight


def asv_rates(scores: AsvScores) -> AsvRates:
    """AsvRates at the equal error rate of target and other speakers. scores: formats.AsvScores."""
    target, nontarget = _checked(scores.target, scores.nontarget)
    _, threshold = equal_error_rate(target, nontarget)
    return AsvRates(
        float(np.mean(nontarget >= threshold)),
        float(np.mean(target < threshold)),
        float(np.mean(np.asarray(scores.spoof) < threshold)),
    )


def eer_interval(
    genuine: ArrayLike,
    fake: ArrayLike,
    speakers: Sequence[Sequence[str]] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[float, float]:
    """(low, high): percentile interval of the EER over a bootstrap; see `eer_draws`. UserError where no draw has both
    kinds."""
    rates = eer_draws(genuine, fake, speakers, draws, seed, paired=False)
    if len(rates) == 0:
        raise UserError(
            f"{draws} draw{'s' * (draws != 1)} of speakers: none has both kinds of utterances; an interval needs more draws"
        )
    low, high = np.percentile(rates, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)


def eer_draws(
    genuine: ArrayLike,
    fake: ArrayLike,
    speakers: Sequence[Sequence[str]] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    paired: bool = True,
) -> np.ndarray:
    """EER of each draw of a bootstrap, (draws,) at most.

    Drawn with replacement are the genuine and the fake utterances, as many of each as there are.

    Args:
        genuine: Scores (n,).
        fake: Scores (m,).
        speakers: Labels (n,) and (m,): speakers are drawn instead, each with all that is said in their name; this allows for
            what one speaker's utterances have in common. A draw that leaves one kind out is drawn no further.
        draws: How many.
        seed: Of the draws.
        paired: Whether systems that are given the same utterances in the same order are given the same draws: then
            differences and means over systems, draw by draw, have intervals too. False takes far less time for many
            utterances.
    """
    genuine, fake = _checked(genuine, fake)
    rng = np.random.default_rng(seed)
    if speakers is not None:
        names = np.concatenate([np.asarray(of_kind, dtype=str) for of_kind in speakers])
        return _speaker_draws(genuine, fake, names, draws, rng)
    if not paired:
        return _searched_draws(genuine, fake, draws, rng)
    order, ends, is_genuine = _sorted(genuine, fake)
    rates, at_once = [], max(1, DRAWN_AT_ONCE // len(order))
    for first in range(0, draws, at_once):
        count = min(at_once, draws - first)
        weights = np.concatenate([_times(len(scores), count, rng) for scores in (genuine, fake)], axis=1)[:, order]
        below, total = _running(weights * is_genuine, ends), _running(weights, ends)
        rates.append(_rates(below, total - below))
    return np.concatenate(rates)


def _sorted(genuine, fake):
    """Of the joined scores in rising order: their numbers (N,), the last place of each run of equal ones, which are genuine."""
    scores = np.concatenate([genuine, fake])
    order = np.argsort(scores, kind="stable")
    return order, np.flatnonzero(np.append(np.diff(scores[order]) != 0, True)), order < len(genuine)


def _times(count, draws, rng):
    """How often each of `count` is drawn in as many draws with replacement: int64 (draws, count)."""
    drawn = rng.integers(count, size=(draws, count)) + count * np.arange(draws)[:, None]
    return np.bincount(drawn.reshape(-1), minlength=draws * count).reshape(draws, count)


def _running(weights, ends):
    """Sums (draws, K + 1) of the weights of what has no more than each distinct score, from 0 on."""
    return np.pad(np.cumsum(weights, axis=1)[:, ends], ((0, 0), (1, 0)))


def _searched_draws(genuine, fake, draws, rng):
    """EER (draws,) of a bootstrap over utterances, without the N numbers of each draw.

    How many of the drawn utterances lie below a threshold in the middle of a range follows a binomial distribution, given
    how many lie in the range: two binomial numbers for each step of a bisection.
    """
    _, misses, alarms = _counts(genuine, fake)
    edges = np.stack([misses, len(fake) - alarms])  # utterances below each threshold, (2, K + 1) of genuine and fake

    def below(_, middle, low, high):
        inside = edges[:, high[0]] - edges[:, low[0]]
        share = (edges[:, middle] - edges[:, low[0]]) / np.maximum(inside, 1)
        return low[1] + rng.binomial(high[1] - low[1], share)

    return _crossings(edges.shape[1] - 1, np.repeat([[len(genuine)], [len(fake)]], draws, axis=1), below)


def _speaker_draws(genuine, fake, speakers, draws, rng):
    """EER of each draw of speakers, (N,) of the joined scores, that has both kinds, without the N numbers of each draw."""
    order, ends, is_genuine = _sorted(genuine, fake)
    names, groups = np.unique(speakers, return_inverse=True)
    kinds = 2 * groups[order] + ~is_genuine  # a number for each speaker and kind
    whole = kinds[: len(kinds) // BLOCK * BLOCK].reshape(-1, BLOCK)
    until = np.cumsum([np.zeros(2 * len(names), np.int64), *map(partial(np.bincount, minlength=2 * len(names)), whole)], axis=0)
    edges = np.append(0, ends + 1)

    def counts(place):
        """Genuine and fake utterances of each speaker among the first `place` in the order of scores, (S, 2)."""
        block = place // BLOCK
        rest = np.bincount(kinds[block * BLOCK : place], minlength=2 * len(names))
        return (rest + until[block]).reshape(-1, 2)

    def below(rows, middle, *_):
        places, numbers = np.unique(middle, return_inverse=True)
        found = np.empty((2, len(rows)), np.int64)
        for number, place in enumerate(places):
            chosen = np.flatnonzero(numbers == number)
            found[:, chosen] = (weights[rows[chosen]] @ counts(edges[place])).T
        return found

    weights = _times(len(names), draws, rng)
    totals = (weights @ counts(len(kinds))).T
    weights, totals = weights[(totals > 0).all(axis=0)], totals[:, (totals > 0).all(axis=0)]
    return _crossings(len(edges) - 1, totals, below)


def _crossings(last, totals, below):
    """EER (draws,) where FRR and FAR cross, by bisection of the thresholds 0 to `last`.

    totals: genuine and fake utterances of each draw, (2, draws). below(draws, thresholds, (thresholds, utterances below
    them) of the ends of the ranges that the thresholds lie in): genuine and fake utterances below the thresholds, (2, n).
    """
    low, high = np.zeros(totals.shape[1], np.int64), np.full(totals.shape[1], last)
    at_low, at_high = np.zeros_like(totals), totals.copy()
    while len(rows := np.flatnonzero(high - low > 1)):
        middle = (low[rows] + high[rows]) // 2
        found = below(rows, middle, (low[rows], at_low[:, rows]), (high[rows], at_high[:, rows]))
        right = _excess(found, totals[:, rows]) < 0
        for chosen, place, at in ((right, low, at_low), (~right, high, at_high)):
            place[rows[chosen]], at[:, rows[chosen]] = middle[chosen], found[:, chosen]
    better = np.where(np.abs(_excess(at_low, totals)) <= np.abs(_excess(at_high, totals)), at_low, at_high)
    return 0.5 * (better[0] / totals[0] + (totals[1] - better[1]) / totals[1])


def _excess(below, totals):
    """FRR less FAR, times the numbers of genuine and fake utterances."""
    return below[0] * totals[1] - (totals[1] - below[1]) * totals[0]


def _rates(below, fakes_below):
    """EER of each draw that has both kinds, from the numbers of genuine and fake utterances below K + 1 thresholds."""
    both = (below[:, -1] > 0) & (fakes_below[:, -1] > 0)
    misses, alarms = below[both], fakes_below[both, -1:] - fakes_below[both]
    best = np.argmin(_differences(misses, alarms), axis=1)
    rows = np.arange(len(best))
    return 0.5 * (misses[rows, best] / misses[:, -1] + alarms[rows, best] / alarms[:, 0])


def _counts(genuine, fake):
    """Thresholds (K + 1,), the distinct scores and infinity, and the numbers of misses and false alarms at each."""
    distinct = np.unique(np.concatenate([genuine, fake]))
    thresholds = np.append(distinct, np.inf)
    misses = np.searchsorted(np.sort(genuine), thresholds, side="left")
    alarms = len(fake) - np.searchsorted(np.sort(fake), thresholds, side="left")
    return thresholds, misses, alarms


def _differences(misses, alarms):
    """|FRR - FAR|, times the number of genuine and of fake utterances: whole numbers, of which equal ones are equal."""
    return np.abs(misses * alarms[..., :1] - alarms * misses[..., -1:])


def _checked(genuine, fake):
    arrays = [np.asarray(scores, dtype=np.float64) for scores in (genuine, fake)]
    for scores, kind in zip(arrays, ("genuine", "fake"), strict=True):
        if len(scores) == 0:
            raise UserError(f"no scores of {kind} utterances; error rates need both kinds")
        bad = np.count_nonzero(~np.isfinite(scores))
        if bad:
            raise UserError(f"{bad} of {len(scores)} scores of {kind} utterances are not finite numbers")
    return arrays
