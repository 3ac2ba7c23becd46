"""Error rates of fake audio detection: EER with confidence interval, Cllr, min t-DCF, DET curve, figures by attack.

Scores are float, higher means more likely genuine; an utterance counts as genuine where its score is at least the
threshold. FRR is the share of genuine utterances below it (misses), FAR that of fake ones not below it (false alarms).

* EER: the mean of FRR and FAR at the threshold where they differ least, the lowest one of several. Equal scores are
  never parted, so constant scores give 0.5, perfect ones 0, and those with the wrong sign 1.
* Cllr (Brümmer and du Preez 2006) in bits, of scores that are log-likelihood ratios (natural logarithm); 1 is what
  scores of 0 give.
* min t-DCF (Kinnunen et al. 2018, with the costs of ASVspoof 2019): the cost of detector and speaker verification in
  tandem at the best threshold, relative to that of accepting, or refusing, everything, whichever costs less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.errors import UserError
from pyspeech.spoof.formats import UNKNOWN, AsvScores, Label

DRAWS = 1000  # of the bootstrap
DRAWN_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class TandemCosts:
    """Priors and costs of ASVspoof 2019."""

    spoof_prior: float = 0.05
    target_prior: float = 0.95 * 0.99
    nontarget_prior: float = 0.95 * 0.01
    asv_miss: float = 1.0
    asv_false_alarm: float = 10.0
    detector_miss: float = 1.0
    detector_false_alarm: float = 10.0


@dataclass(frozen=True)
class AsvRates:
    """Error rates of speaker verification, 0 to 1: non-targets accepted, targets refused, fakes of targets refused."""

    false_alarm: float
    miss: float
    spoof_miss: float


def score_set(
    labels: Mapping[str, Label],
    scores: Mapping[str, float],
    by_speaker: bool = False,
    asv: AsvRates | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict:
    """All figures of a set, as plain data. labels: {utterance: formats.Label}; scores: {utterance: float}, one for
    each.

    {"genuine", "fake": numbers of utterances, "eer": a fraction, "interval": [low, high] of 95 %, "threshold": that of
    the
     EER, "cllr", and with asv (AsvRates) "min_tdcf",
     "attacks": {attack: {"genuine", "fake", "eer", "interval"}}, each against all genuine utterances,
     "conditions": {condition: the same}, of the utterances of that condition alone}
    In "attacks" and "conditions", where there are any, eer and interval are None where one kind is missing. by_speaker:
    the intervals are for other speakers; UserError where one is not known.
    """
    if by_speaker:
        for name, label in labels.items():
            if label.speaker == UNKNOWN:
                raise UserError(f"utterance '{name}': its speaker is not known; expected one for intervals by speaker")

    def entry(names):
        kinds = [[name for name in names if labels[name].genuine is wanted] for wanted in (True, False)]
        genuine, fake = ([scores[name] for name in kind] for kind in kinds)
        speakers = [[labels[name].speaker for name in kind] for kind in kinds] if by_speaker else None
        found = {"genuine": len(genuine), "fake": len(fake), "eer": None, "interval": None}
        if genuine and fake:
            found["eer"] = float(equal_error_rate(genuine, fake)[0])
            found["interval"] = list(eer_interval(genuine, fake, speakers, draws, seed))
        return found, genuine, fake

    result, genuine, fake = entry(labels)
    result["threshold"], result["cllr"] = equal_error_rate(genuine, fake)[1], cllr(genuine, fake)
    if asv is not None:
        result["min_tdcf"] = min_tandem_cost(genuine, fake, asv)
    attacks = sorted({label.attack for label in labels.values()} - {UNKNOWN})
    conditions = sorted({label.condition for label in labels.values()} - {UNKNOWN})
    result["attacks"] = {
        attack: entry([name for name, label in labels.items() if label.genuine or label.attack == attack])[0]
        for attack in attacks
    }
    result["conditions"] = {
        condition: entry([name for name, label in labels.items() if label.condition == condition])[0]
        for condition in conditions
    }
    return result


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


def min_tandem_cost(genuine: ArrayLike, fake: ArrayLike, asv: AsvRates, costs: TandemCosts = TandemCosts()) -> float:
    """min t-DCF, normalised, 0 to 1. asv: AsvRates; UserError where ASV is so bad that the cost is not defined."""
    miss_weight, alarm_weight = tandem_weights(asv, costs)
    _, alarm_rates, miss_rates = det_points(genuine, fake)
    return float(np.min(miss_weight * miss_rates + alarm_weight * alarm_rates) / min(miss_weight, alarm_weight))


def tandem_weights(asv: AsvRates, costs: TandemCosts = TandemCosts()) -> tuple[float, float]:
    """What the detector's rates of misses and false alarms count in t-DCF, both more than 0; UserError where they are not."""
    miss_weight = (
        costs.target_prior * (costs.detector_miss - costs.asv_miss * asv.miss)
        - costs.nontarget_prior * costs.asv_false_alarm * asv.false_alarm
    )
    alarm_weight = costs.detector_false_alarm * costs.spoof_prior * (1 - asv.spoof_miss)
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
    rates = eer_draws(genuine, fake, speakers, draws, seed)
    if len(rates) == 0:
        raise UserError(
            f"{draws} draw{'s' * (draws != 1)} of speakers: none has both kinds of utterances; an interval needs more draws"
        )
    low, high = np.percentile(rates, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)


def eer_draws(
    genuine: ArrayLike, fake: ArrayLike, speakers: Sequence[Sequence[str]] | None = None, draws: int = DRAWS, seed: int = 0
) -> np.ndarray:
    """EER of each draw of a bootstrap, (draws,) at most. Systems that are given the same utterances in the same order are
    given the same draws: differences and means over systems, draw by draw, have intervals too.

    Drawn with replacement are the genuine and the fake utterances, as many of each as there are. With speakers =
    (labels (n,), labels (m,)), speakers are drawn instead, each with all that is said in their name; this allows for
    what one speaker's utterances have in common. A draw that leaves one kind out is drawn no further.
    """
    genuine, fake = _checked(genuine, fake)
    scores = np.concatenate([genuine, fake])
    is_genuine = np.arange(len(scores)) < len(genuine)
    order = np.argsort(scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # the last of each run of equal scores
    strata = _strata(len(genuine), len(fake), speakers)
    rng, rates = np.random.default_rng(seed), []
    at_once = max(1, DRAWN_AT_ONCE // len(scores))
    for first in range(0, draws, at_once):
        weights = _weights(strata, min(at_once, draws - first), rng)
        below, total = _running(weights * is_genuine, order, ends), _running(weights, order, ends)
        rates.append(_rates(below, total - below))
    return np.concatenate(rates)


def _strata(num_genuine, num_fake, speakers):
    """[(group (N,) of each utterance or -1, number of groups)]: the groups of a stratum are drawn from each other."""
    if speakers is not None:
        names = np.concatenate([np.asarray(labels, dtype=str) for labels in speakers])
        distinct, groups = np.unique(names, return_inverse=True)
        return [(groups, len(distinct))]
    place = np.arange(num_genuine + num_fake)
    return [
        (np.where(place < num_genuine, place, -1), num_genuine),
        (np.where(place >= num_genuine, place - num_genuine, -1), num_fake),
    ]


def _weights(strata, draws, rng):
    """How often each utterance is drawn: int64 (draws, N)."""
    weights = 0
    for groups, count in strata:
        drawn = rng.integers(count, size=(draws, count)) + count * np.arange(draws)[:, None]
        times = np.bincount(drawn.reshape(-1), minlength=draws * count).reshape(draws, count)
        weights = weights + np.where(groups >= 0, times[:, groups], 0)
    return weights


def _running(weights, order, ends):
    """Sums (draws, K + 1) of the weights of what has no more than each distinct score, from 0 on."""
    sums = np.cumsum(weights[:, order], axis=1)[:, ends]
    return np.pad(sums, ((0, 0), (1, 0)))


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
