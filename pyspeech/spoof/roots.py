"""Roots of many real polynomials at once, as linear prediction has them: even order, inside the unit circle.

Real roots are told by the signs on a grid, and refined by Newton's method; the others by the simultaneous iteration of
Ehrlich and Aberth (O. Aberth, "Iteration methods for finding all zeros of a polynomial simultaneously", Mathematics of
Computation 27, 1973) on one root of each conjugate pair, in single precision first, and then twice in double, which
triples the digits each time. Each polynomial is multiplied out again from what was found; those that it does not give
back to the last digits, as with multiple roots, are solved by the eigenvalues of their companion matrices.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

GRID = np.cos(np.linspace(np.pi, 0.0, 160))  # denser where real roots are: near the unit circle
MOST_SWEEPS = 14  # in single precision; half of the polynomials of speech need 6
WHOLE_SWEEPS = 5  # so many before those that are done are looked for
NEAR = 1e-2  # a change from which the two sweeps in double precision lead to rounding errors
EXACT = 3e-12  # of the largest coefficient: what the eigenvalues give back is as far away


def find_roots(polynomials: np.ndarray) -> NDArray[np.complex128]:
    """Roots of polynomials (order + 1, F), the first coefficient 1, the order even: (order, F), real ones exactly so.

    In any order; conjugates are so to the last bit. Roots outside of the unit circle are found too, by eigenvalues.
    """
    order, count = len(polynomials) - 1, polynomials.shape[1]
    with np.errstate(all="ignore"):  # what is not finite in the end is not accepted
        pairs = real_pairs(polynomials)
        roots = complex_roots(polynomials, pairs)
        real = ~np.isnan(pairs)
        found = np.empty((order, count), dtype=np.complex128)
        found[0::2] = np.where(real[0::2], pairs[0::2], roots)
        found[1::2] = np.where(real[1::2], pairs[1::2], roots.conj())
        wrong = np.abs(multiply_out(found) - polynomials).max(axis=0)
        bad = ~(wrong <= EXACT * np.abs(polynomials).max(axis=0))
    if bad.any():
        found[:, bad] = eigenvalues(polynomials[:, bad])
    return found


def real_pairs(polynomials: np.ndarray) -> np.ndarray:
    """Real roots between -1 and 1 where the sign changes: (order, F), rising, as many as come in pairs, then NaN."""
    order, count = len(polynomials) - 1, polynomials.shape[1]
    values = polynomials.T @ GRID ** np.arange(order, -1, -1)[:, None]
    negative = values < 0
    which, place = np.nonzero(negative[:, 1:] != negative[:, :-1])
    before, behind = values[which, place], values[which, place + 1]
    roots = GRID[place] + (GRID[place + 1] - GRID[place]) * before / (before - behind)
    chosen = polynomials[:, which]
    for _ in range(4):
        value, slope = evaluate(chosen, roots)
        roots -= value / slope
    number = np.bincount(which, minlength=count)
    index = np.arange(len(which)) - (np.cumsum(number) - number)[which]
    paired = index < np.minimum(number // 2 * 2, order)[which]
    pairs = np.full((order, count), np.nan)
    pairs[index[paired], which[paired]] = roots[paired]
    return pairs


def evaluate(polynomials: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes (..., F) of polynomials (order + 1, F), the first coefficient 1, at places (..., F): Horner's rule."""
    value, slope = np.ones_like(places), np.zeros_like(places)
    for coefficient in polynomials[1:]:
        slope *= places
        slope += value
        value *= places
        value += coefficient
    return value, slope


def complex_roots(polynomials: np.ndarray, pairs: np.ndarray) -> NDArray[np.complex128]:
    """One root of each conjugate pair (order / 2, F), where `pairs` has no real ones; there, any values.

    They are right where the iteration converges, which it does not for each polynomial.
    """
    order, count = len(polynomials) - 1, polynomials.shape[1]
    fixed = ~np.isnan(pairs[0::2])
    number = fixed.sum(axis=0)
    angles = (np.arange(order // 2)[:, None] - number + 0.5) * np.pi / np.maximum(order // 2 - number, 1)
    # What the iteration works on: roots, coefficients, and x^2 + sum x + product of the real pairs, 0 elsewhere.
    first, second = np.where(fixed, pairs[0::2], 0.0), np.where(fixed, pairs[1::2], 0.0)
    state = [0.95 * np.exp(1j * angles), polynomials, -(first + second), first * second]
    roots, left = state[0].copy(), np.arange(count)
    single = [array.astype(np.complex64) for array in state]
    for sweep in range(1, MOST_SWEEPS + 1):
        changes = improve(single, fixed[:, left])
        if sweep >= WHOLE_SWEEPS:
            near = changes < NEAR
            roots[:, left[near]] = single[0][:, near]
            left, single = left[~near], [np.ascontiguousarray(array[:, ~near]) for array in single]
            if len(left) == 0:
                break
    double = [roots, *(array.astype(np.complex128) for array in state[1:])]
    for _ in range(2):
        improve(double, fixed)
    return roots


def improve(state: Sequence[NDArray[np.complexfloating]], fixed: np.ndarray) -> np.ndarray:
    """Improve the roots in place by one step of Ehrlich and Aberth; return the largest change of each column (F,).

    state: roots (P, F); polynomials (2 P + 1, F); sums and products (P, F), the quadratic factors x^2 + sum x + product
    of the pairs that are fixed (P, F). All of one complex type, as numpy is slow where types mix.
    """
    roots, polynomials, sums, products = state
    value, slope = evaluate(polynomials, roots)
    np.copyto(sums, -2 * roots.real, where=~fixed)
    np.copyto(products, roots.real**2 + roots.imag**2, where=~fixed)
    # The product of the distances to all other roots, those of its own pair first, and its derivative.
    rest, derivative = roots - roots.conj(), np.ones_like(roots)
    sums, products, number = np.concatenate([sums, sums]), np.concatenate([products, products]), len(roots)
    factor, change = np.empty_like(roots), np.empty_like(roots)
    for other in range(1, number):
        np.add(roots, sums[other : other + number], out=change)
        np.multiply(change, roots, out=factor)
        factor += products[other : other + number]
        change += roots
        change *= rest
        derivative *= factor
        derivative += change
        rest *= factor
    # value / (slope - value * derivative / rest), with one division: it is slow for complex numbers.
    np.multiply(value, rest, out=change)
    slope *= rest
    derivative *= value
    slope -= derivative
    change /= slope
    change[fixed] = 0
    roots -= change
    return (np.abs(change.real) + np.abs(change.imag)).max(axis=0)


def multiply_out(roots: NDArray[np.complex128]) -> np.ndarray:
    """Real polynomials with these roots (order, F), pairs of conjugates among them: (order + 1, F), the first row 1."""
    coefficients = np.zeros((len(roots) + 1, roots.shape[1]), dtype=roots.dtype)
    coefficients[0] = 1.0
    for index, root in enumerate(roots):
        coefficients[1 : index + 2] -= root * coefficients[: index + 1]
    return coefficients.real


def eigenvalues(polynomials: np.ndarray) -> NDArray[np.complex128]:
    """The roots by the eigenvalues of companion matrices."""
    order, count = len(polynomials) - 1, polynomials.shape[1]
    companion = np.zeros((count, order, order))
    companion[:, 0] = -polynomials[1:].T
    companion[:, np.arange(1, order), np.arange(order - 1)] = 1.0
    return np.ascontiguousarray(np.linalg.eigvals(companion).T.astype(np.complex128))
