"""Levels, and whether there is any sound."""

import numpy as np
import pytest

from pyspeech.audio.level import Watched, limited, rms, scaled


def test_scaled_to_a_level(rng):
    for samples in (0.3 * rng.standard_normal(9000), 0.001 * rng.standard_normal(9000) + 0.1):
        found = scaled(samples.astype(np.float32), -26)
        assert 20 * np.log10(rms(found)) == pytest.approx(-26, abs=1e-4)
        assert np.allclose(found / found[0], samples / samples[0], rtol=1e-3, atol=1e-3)
    assert np.array_equal(scaled(np.full(9, 0.5), -26), np.full(9, 0.5))


def test_silence(rng):
    def silent(*blocks):
        watched = Watched(blocks)
        assert len(list(watched)) == len(blocks)
        return watched.silent

    assert silent() and silent(np.zeros(0)) and silent(np.full(9, 0.5), np.full(9, 0.50005))
    assert not silent(np.zeros(9), np.full(9, 0.5)) and not silent(0.001 * rng.standard_normal(9))


def test_peaks_are_limited_and_the_level_stays(rng):
    samples = 0.1 * rng.standard_normal((2, 32000))
    samples[0, ::4000] = 1.8
    found = limited(samples, 0.999, 16000)
    assert np.abs(found).max() <= 0.999 and rms(found.ravel()) == pytest.approx(rms(samples.ravel()), rel=0.002)
    far = slice(4200, 7800)  # from any peak: louder as a whole, by what the peaks lost
    gains = found[:, far] / samples[:, far]
    assert np.ptp(gains) < 1e-6 and 1 < gains[0, 0] < 1.2
    assert np.array_equal(limited(0.5 * samples / 1.8, 0.999, 16000), 0.5 * samples / 1.8)
    flat = limited(np.full((1, 9000), 3.0), 0.999, 16000)
    assert np.allclose(flat, 0.999)
