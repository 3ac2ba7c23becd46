"""One-dimensional Gaussian mixtures against scikit-learn and the definition."""

import numpy as np
import pytest

from pyspeech.sad import gmm


def test_fit_equals_scikit_learn(rng):
    from sklearn.mixture import GaussianMixture

    values = np.concatenate([rng.normal(-30, 3, 3000), rng.normal(-5, 6, 2000)])
    ours = gmm.fit(values, max_iterations=1000, tolerance=1e-12)
    theirs = GaussianMixture(2, means_init=[[-30], [-5]], tol=1e-10, max_iter=1000, reg_covar=0).fit(values[:, None])
    order = np.argsort(theirs.means_[:, 0])
    assert np.argsort(ours.means).tolist() == [0, 1]
    np.testing.assert_allclose(ours.means, theirs.means_[order, 0], rtol=1e-3)
    np.testing.assert_allclose(ours.weights, theirs.weights_[order], rtol=1e-3)
    np.testing.assert_allclose(ours.variances, theirs.covariances_[order, 0, 0], rtol=1e-3)
    grid = np.linspace(-60, 30, 50)
    np.testing.assert_allclose(gmm.log_likelihood(ours, grid), theirs.score_samples(grid[:, None]), atol=1e-2)


def test_log_likelihood_is_the_density():
    mixture = gmm.GaussianMixture(np.array([0.3, 0.7]), np.array([0.0, 4.0]), np.array([1.0, 2.25]))
    grid = np.linspace(-30, 40, 20001)
    density = np.exp(gmm.log_likelihood(mixture, grid))
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1, abs=1e-6)
    expected = 0.3 * np.exp(-0.5) / np.sqrt(2 * np.pi) + 0.7 * np.exp(-0.5 * 9 / 2.25) / np.sqrt(2 * np.pi * 2.25)
    assert np.exp(gmm.log_likelihood(mixture, 1.0)) == pytest.approx(expected)


def test_histogram_changes_little(rng):
    values = np.concatenate([rng.normal(-30, 3, 30000), rng.normal(-5, 6, 20000)])
    plain, binned = gmm.fit(values), gmm.fit(*gmm.histogram(values))
    np.testing.assert_allclose(binned.means, plain.means, atol=0.1)
    np.testing.assert_allclose(binned.weights, plain.weights, atol=0.01)


def test_weights_stand_for_repetitions(rng):
    values, counts = rng.normal(0, 5, 40), rng.integers(1, 5, 40)
    repeated, weighted = gmm.fit(np.repeat(values, counts)), gmm.fit(values, counts)
    np.testing.assert_allclose(repeated.means, weighted.means)
    np.testing.assert_allclose(repeated.variances, weighted.variances)


def test_edges():
    constant = gmm.fit(np.full(50, 3.0), variance_floor=0.5)
    assert np.allclose(constant.means, 3) and np.allclose(constant.variances, 0.5)
    assert np.isfinite(gmm.log_likelihood(constant, np.array([-1e3, 3.0, 1e3]))).all()
    assert np.isfinite(gmm.fit(np.array([1.0])).means).all()
    with pytest.raises(ValueError, match="no values"):
        gmm.fit(np.zeros(0))
