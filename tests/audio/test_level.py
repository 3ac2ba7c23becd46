"""Levels, and whether there is any sound."""

import numpy as np
import pytest

from pyspeech.audio.level import is_silent, rms, scaled


def test_scaled_to_a_level(rng):
    for samples in (0.3 * rng.standard_normal(9000), 0.001 * rng.standard_normal(9000) + 0.1):
        found = scaled(samples.astype(np.float32), -26)
        assert 20 * np.log10(rms(found)) == pytest.approx(-26, abs=1e-4)
        assert np.allclose(found / found[0], samples / samples[0], rtol=1e-3, atol=1e-3)
    assert np.array_equal(scaled(np.full(9, 0.5), -26), np.full(9, 0.5))


def test_silence(rng):
    assert is_silent([]) and is_silent([np.zeros(0)]) and is_silent([np.full(9, 0.5), np.full(9, 0.50005)])
    assert not is_silent([np.zeros(9), np.full(9, 0.5)]) and not is_silent([0.001 * rng.standard_normal(9)])
