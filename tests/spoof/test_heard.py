"""What there is to judge in a recording."""

import collections

import numpy as np
import pytest
import soxr
from tiny_voice import voice

from pyspeech.errors import UserError
from pyspeech.spoof.heard import NARROW, SHORT, Heard


def heard(samples, rate=16000, blocks=1):
    found = Heard(np.array_split(samples, blocks), rate)
    collections.deque(found, maxlen=0)
    return found


@pytest.mark.parametrize("gain", [1.0, 0.3])
def test_the_telephone_is_noticed(gain):
    """At its own level or lower, after it was resampled in 16 bit; not at its own rate, where nothing is to be seen."""
    wide = gain * voice(3)
    narrow = np.rint(32768 * soxr.resample(soxr.resample(wide, 16000, 8000), 8000, 16000)) / 32768
    assert heard(wide).notes() == () and heard(narrow, blocks=7).notes() == (NARROW,)
    assert heard(soxr.resample(wide, 16000, 8000), 8000).notes() == ()


def test_zeros_are_no_sound():
    samples = np.concatenate([np.zeros(32000), voice(1.0), np.zeros(40000)])
    found = heard(samples, blocks=9)
    assert found.sound == pytest.approx(1.0, abs=0.02) and found.notes() == (SHORT,)
    found.check("x")


@pytest.mark.parametrize("seconds, left", [(0.5, 0.5), (1.0, 0.5**0.5), (2.5, 1.0)])
def test_scores_of_short_recordings(seconds, left):
    """A share of the distance from where a score says nothing is left: they keep their order."""
    found = heard(voice(seconds)).calibrated(np.array([-3.0, 1.2, 5.0]), neutral=1.5)
    assert found == pytest.approx(1.5 + left * np.array([-4.5, -0.3, 3.5]), abs=0.02 if left < 1 else 1e-12)


@pytest.mark.parametrize(
    "samples, message",
    [
        (voice(0.45), "^x: 0.45 s of sound; expected at least 0.5 s"),
        (0.05 * np.random.default_rng(0).standard_normal(48000), "^x: no speech found"),
    ],
)
def test_what_cannot_be_judged(samples, message):
    with pytest.raises(UserError, match=message):
        heard(samples).check("x")
