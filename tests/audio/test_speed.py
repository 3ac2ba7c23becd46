"""Speed perturbation against scipy's resampling."""

import numpy as np
import pytest
from scipy.signal import resample_poly

from pyspeech.audio.speed import play


@pytest.mark.parametrize("speed", [50, 88, 99, 100, 107, 150])
def test_playing_at_another_speed_is_resampling(rng, speed):
    for count in (1, 99, 100, 4321):
        samples = rng.standard_normal(count).astype(np.float32)
        expected = resample_poly(samples.astype(np.float64), 100, speed)
        np.testing.assert_allclose(play(samples, speed), expected, atol=3e-6)
