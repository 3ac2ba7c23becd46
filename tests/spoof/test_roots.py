"""Roots of many polynomials against those that they were made of, and against numpy's; what the iteration cannot do."""

import numpy as np
import pytest

from pyspeech.spoof import mcadams, roots
from pyspeech.spoof.roots import find_roots, multiply_out
from utils.bench.mcadams import make_speech


def random_poles(rng, real, order=20, count=50):
    """Poles (order, count) inside the unit circle, `real` of them real."""
    number = (order - real) // 2
    upper = rng.uniform(0.3, 0.99, (number, count)) * np.exp(1j * rng.uniform(0.05, np.pi - 0.05, (number, count)))
    return np.concatenate([upper, upper.conj(), rng.uniform(-0.99, 0.99, (real, count))])


def assert_same(found, expected, atol):
    """The same roots (order, F) of each polynomial, in any order."""
    assert found.shape == expected.shape
    for mine, theirs in zip(found.T, expected.T, strict=True):
        distances = np.abs(mine[:, None] - theirs)
        assert max(distances.min(axis=0).max(), distances.min(axis=1).max()) < atol


@pytest.fixture
def solved_by_eigenvalues(monkeypatch):
    """How many polynomials were left to the eigenvalues in each call."""
    counts, original = [], roots.eigenvalues
    monkeypatch.setattr(roots, "eigenvalues", lambda rest: counts.append(rest.shape[1]) or original(rest))
    return counts


@pytest.mark.parametrize("real", [0, 2, 4, 20])
def test_finds_the_roots_that_a_polynomial_was_made_of(rng, real):
    poles = random_poles(rng, real)
    found = find_roots(multiply_out(poles))
    assert_same(found, poles, 1e-3 if real == 20 else 1e-6)  # twenty real ones are known to so few digits
    if real < 20:
        assert ((found.imag == 0).sum(axis=0) == real).all()
    assert np.array_equal(np.sort_complex(found.T), np.sort_complex(found.conj().T))  # conjugates to the last bit


def test_equals_numpys_roots_on_speech_and_hardly_needs_eigenvalues(solved_by_eigenvalues):
    samples, (window, shift) = make_speech(3.0), mcadams.analysis_window(16000)
    frames = np.lib.stride_tricks.sliding_window_view(samples, len(window))[::shift].T * window[:, None]
    predictor = mcadams.burg(frames)[0]
    found = find_roots(predictor)
    assert sum(solved_by_eigenvalues) < 0.02 * predictor.shape[1]
    assert_same(found, np.stack([np.roots(one) for one in predictor.T], axis=1), 1e-9)
    back = np.abs(multiply_out(found) - predictor).max(axis=0) / np.abs(predictor).max(axis=0)
    assert back.max() < 1e-11


def test_what_the_iteration_cannot_do_is_left_to_eigenvalues(solved_by_eigenvalues):
    double = np.array([0.5, 0.5, 0.7j, -0.7j, 0.7j, -0.7j])[:, None]
    outside = np.array([1.5, -3.0, 2j, -2j, 0.3, 0.1])[:, None]
    plain = np.array([0.9, -0.8, 0.5j, -0.5j, 0.4 + 0.3j, 0.4 - 0.3j])[:, None]
    nothing = np.zeros((6, 1))
    poles = np.concatenate([double, outside, plain, nothing], axis=1)
    found = find_roots(multiply_out(poles))
    assert sum(solved_by_eigenvalues) == 3
    assert_same(found, poles, 1e-6)
    assert np.array_equal(found[:, 3], nothing[:, 0])


def test_of_order_2_and_of_none():
    assert_same(
        find_roots(np.array([[1.0, 1.0], [-0.1, -1.0], [-0.2, 0.5]])), np.array([[0.5, 0.5 + 0.5j], [-0.4, 0.5 - 0.5j]]), 1e-14
    )
    assert find_roots(np.ones((21, 0))).shape == (20, 0)
