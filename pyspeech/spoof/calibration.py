"""Scores to log-likelihood ratios and probabilities: linear logistic calibration (Brümmer and du Preez 2006).

The calibrated log-likelihood ratio is slope * score + offset; slope and offset minimise the cross entropy that Cllr
measures (scoring.cllr), in which both classes weigh the same, however many each has. The targets are those of Platt
1999, (n + 1) / (n + 2) instead of 1 and so on, which keeps the slope finite where development scores are perfectly
separated. The slope is at least LEAST_SLOPE: where fake speech scores higher than genuine speech, it says next to nothing,
and scores keep their order and their meaning.
"""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.errors import UserError

Score = TypeVar("Score", float, np.ndarray)
LEAST_SLOPE = 1e-3  # nats for a standard deviation of the scores


@dataclass(frozen=True)
class Calibration:
    """slope, offset: of the log-likelihood ratio of genuine against fake. The default takes scores for such ratios."""

    slope: float = 1.0
    offset: float = 0.0

    def log_likelihood_ratio(self, score: Score) -> Score:
        """Natural logarithm; of a number, or of an array (n,)."""
        return self.slope * score + self.offset

    def score(self, ratio: Score) -> Score:
        """The score that has this log-likelihood ratio; of a number, or of an array (n,)."""
        return (ratio - self.offset) / self.slope

    def probability(self, score: Score, prior: float = 0.5) -> Score:
        """P(genuine), 0 to 1, where a share of `prior` is genuine before anything is heard; of a number or an array."""
        if not 0 < prior < 1:
            raise UserError(f"prior {prior}: expected the probability of genuine speech, more than 0 and less than 1")
        log_odds = self.log_likelihood_ratio(score) + math.log(prior) - math.log1p(-prior)
        # The logistic function, without overflow.
        return 0.5 * (1 + np.tanh(0.5 * log_odds))  # pyright: ignore[reportReturnType]


def fit_calibration(genuine: ArrayLike, fake: ArrayLike) -> Calibration:
    """Calibration by the scores (n,) of genuine and (m,) of fake development utterances; UserError without either."""
    from scipy.optimize import minimize

    genuine, fake = (np.asarray(scores, dtype=np.float64) for scores in (genuine, fake))
    if len(genuine) == 0 or len(fake) == 0:
        raise UserError(f"calibration: {len(genuine)} genuine and {len(fake)} fake scores; expected some of both")
    scores = np.concatenate([genuine, fake])
    centre, spread = scores.mean(), scores.std() or 1.0
    values = (scores - centre) / spread
    targets = np.concatenate(
        [np.full(len(genuine), (len(genuine) + 1) / (len(genuine) + 2)), np.full(len(fake), 1 / (len(fake) + 2))]
    )
    weights = np.concatenate([np.full(len(genuine), 0.5 / len(genuine)), np.full(len(fake), 0.5 / len(fake))])

    def objective(parameters):
        """The loss at (slope, offset), and its gradient."""
        log_odds = parameters[0] * values + parameters[1]
        loss = weights @ (np.logaddexp(0, log_odds) - targets * log_odds)
        error = weights * (0.5 * (1 + np.tanh(0.5 * log_odds)) - targets)
        return loss, np.array([error @ values, error.sum()])

    slope, offset = minimize(objective, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    if slope < LEAST_SLOPE:
        slope = LEAST_SLOPE

        def at_least_slope(offset):
            loss, gradient = objective((slope, *offset))
            return loss, gradient[1:]

        offset = minimize(at_least_slope, np.zeros(1), jac=True, method="BFGS", options={"gtol": 1e-8}).x[0]
    return Calibration(float(slope / spread), float(offset - slope * centre / spread))
