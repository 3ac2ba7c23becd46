"""Runs of equal units."""

import numpy as np
import pytest

from pyspeech.units.units_files import is_codes, runs


@pytest.mark.parametrize("codes", [[], [4], [0, 0], [-1, 0, 0], [3, 3, 1, 1, 1, 3], list("aab")])
def test_runs_give_the_codes_again(codes):
    codes = np.array([ord(code) if isinstance(code, str) else code for code in codes], dtype=np.int64)
    found, lengths = runs(codes)
    assert np.repeat(found, lengths).tolist() == codes.tolist() and (np.diff(found) != 0).all() and (lengths > 0).all()


def test_what_is_a_line_of_codes():
    assert is_codes([[3, 3, 1]]) and is_codes([[0, 0]]) and is_codes([[1, 1, 0]])
    for rows in ([[3]], [[0, 1, 0]], [[1.5, 2]], [[-1, 2]], [[1, 2], [3, 4]], [], [[float("nan"), 1]]):
        assert not is_codes(rows)
