"""Flite through ctypes: voices, rates, the same samples every time, one line for what does not run."""

import numpy as np
import pytest

from local.synthesis import flite
from pyspeech.errors import UserError

pytestmark = pytest.mark.network  # the engine comes in packages


@pytest.fixture(scope="module")
def where():
    return flite.libraries()


def test_voices(where):
    items = [("kal16", "A large duck."), ("slt", "A large duck."), ("kal16", "A large duck, on the lake of the town.")]
    made, again = flite.synthesize(items, where), flite.synthesize(items, where)
    assert all(np.array_equal(one, other) for (one, _), (other, _) in zip(made, again, strict=True))
    for samples, rate in made:
        assert rate == 16000 and samples.dtype == np.int16 and np.abs(samples.astype(int)).max() > 3000
    lengths = [len(samples) for samples, _ in made]
    assert 0.5 * 16000 < lengths[0] < 2 * 16000 and lengths[2] > 1.5 * lengths[0]
    assert len(made[1][0]) != lengths[0] or not np.array_equal(made[0][0], made[1][0])
    assert flite.synthesize([], where) == []


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda where, folder: (where, "nobody"), "Flite cannot speak: KeyError: 'libflite_cmu_us_nobody'"),
        (lambda where, folder: ({**where, "libflite": str(folder)}, "kal16"), "Flite cannot speak: OSError.*Debian 12"),
    ],
)
def test_what_does_not_run(where, tmp_path, change, message):
    libraries, voice = change(where, tmp_path)
    with pytest.raises(UserError, match=message) as caught:
        flite.synthesize([(voice, "Duck.")], libraries)
    assert "\n" not in str(caught.value)
