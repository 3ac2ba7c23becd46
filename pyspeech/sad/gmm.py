"""One-dimensional Gaussian mixtures fitted with expectation maximisation, for the log energies of section 2.1 of
Heitkaemper et al., Interspeech 2020 (one mixture for noise, one for speech).

A half-hour stream has 180,000 frames but its log energies fill a few hundred histogram bins, so the fit works on weighted
values and `histogram` makes them: the cost of an iteration no longer depends on the length of the recording. Nothing is
random: components start at quantiles of the data, so the same recording always gets the same model.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass
class GaussianMixture:
    weights: np.ndarray  # (K,), sum 1
    means: np.ndarray  # (K,)
    variances: np.ndarray  # (K,)


def histogram(values: np.ndarray, bins: int = 512) -> tuple[np.ndarray, np.ndarray]:
    """Bin centres and counts, (B,) each, over the range of values (N,): weighted data for `fit`. Empty bins are left out."""
    counts, edges = np.histogram(values, bins)
    filled = counts > 0
    return (0.5 * (edges[:-1] + edges[1:]))[filled], counts[filled].astype(np.float64)


def fit(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    components: int = 2,
    variance_floor: float = 1e-2,
    max_iterations: int = 100,
    tolerance: float = 1e-6,
) -> GaussianMixture:
    """Maximum-likelihood mixture of `components` Gaussians.

    values (N,), weights (N,) not negative (default: all 1); variance_floor: smallest variance, in units of values squared.
    Stops when the mean log-likelihood rises by less than `tolerance` or after max_iterations.
    Raises ValueError where there is no value of positive weight.
    """
    values = np.asarray(values, np.float64)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    total = weights.sum()
    if not total > 0:
        raise ValueError("no values to fit a Gaussian mixture to")
    mean = (weights * values).sum() / total
    variance = (weights * (values - mean) ** 2).sum() / total
    mixture = GaussianMixture(
        weights=np.full(components, 1.0 / components),
        means=_quantiles(values, weights, (np.arange(components) + 0.5) / components),
        variances=np.full(components, max(variance, variance_floor)),
    )
    previous = -np.inf
    for _ in range(max_iterations):
        joint = _log_joint(mixture, values)
        likelihood = np.logaddexp.reduce(joint, axis=0)
        average = (weights * likelihood).sum() / total
        if average - previous < tolerance:
            break
        previous = average
        responsibility = np.exp(joint - likelihood) * weights
        counts = np.maximum(responsibility.sum(1), np.finfo(np.float64).tiny)
        means = responsibility @ values / counts
        spread = (responsibility * (values - means[:, None]) ** 2).sum(1) / counts
        mixture = GaussianMixture(weights=counts / counts.sum(), means=means, variances=np.maximum(spread, variance_floor))
    return mixture


def log_likelihood(mixture: GaussianMixture, values: ArrayLike) -> np.ndarray:
    """log p(x) of every value, natural logarithm, the shape of `values`."""
    values = np.asarray(values, np.float64)
    return np.logaddexp.reduce(_log_joint(mixture, values.ravel()), axis=0).reshape(values.shape)


def _log_joint(mixture, values):
    """log(weight_k) + log N(x; mean_k, variance_k), (K, N)."""
    distance = (values - mixture.means[:, None]) ** 2 / mixture.variances[:, None]
    return (np.log(mixture.weights) - 0.5 * np.log(2 * np.pi * mixture.variances))[:, None] - 0.5 * distance


def _quantiles(values, weights, levels):
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.minimum(np.searchsorted(share, levels), len(values) - 1)]
