"""Hibari: its pulses and spectra, the same speech from the same seed, one line for what fails."""

import json

import numpy as np
import pytest
from scipy.signal import resample_poly

from local.synthesis import hibari
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.pitch import fundamental_frequency


@pytest.fixture(scope="module")
def where():
    return hibari.model()


def test_pulses_are_a_sum_of_cosines():
    f0 = np.concatenate([np.zeros(4), np.linspace(3000, 90, 12), np.full(4, 20.0)])
    found = hibari.pulses(f0)
    assert found.shape == (20 * 300,)
    each = np.interp((np.arange(6000) + 0.5) / 300 - 0.5, np.arange(20), f0)  # values are those of the frames' middles
    phase = 2 * np.pi * np.cumsum(np.maximum(each, 40)) / 24000
    count = np.arange(1, 276)[:, None]
    expected = np.sum(np.cos(count * phase) * (count * each <= 11000), axis=0) * (each > 40)
    assert np.abs(found - expected).max() < 0.05 and found.max() > 50
    assert not found[:1000].any() and not found[-1000:].any() and (each[:1000] <= 40).all()


def test_three_spectra():
    """Harmonics through a flat filter are the pulses; noise and the third spectrum have the magnitudes told."""
    frames, silent, flat = 40, np.full((601, 40), -50.0), np.zeros((601, 40))
    f0 = np.full(frames, 200.0)

    def vocode(filters, noise, free, phases=flat):
        return hibari.vocode(np.random.default_rng(3), f0, filters, flat, noise, free, phases)

    inner = slice(900, -900)
    assert np.allclose(300 * vocode(flat, silent, silent)[inner], hibari.pulses(f0)[inner], atol=1e-6)
    noise = vocode(silent, flat, silent)
    assert noise.shape == (frames * 300,) and np.array_equal(noise, vocode(silent, flat, silent))
    louder = vocode(silent, flat + np.log(10), silent)
    assert np.allclose(louder, 10 * noise) and noise[inner].std() > 0.01
    assert np.allclose(vocode(silent, silent, flat)[600:9000:300], vocode(silent, silent, flat)[600])  # an impulse each frame
    assert np.allclose(vocode(silent, silent, flat + 9), vocode(silent, silent, flat + 7))


@pytest.mark.network
def test_speech(where):
    text = "A small house."
    (one, rate), (same, _), (other, _) = hibari.synthesize([(1, "en-us", text), (1, "en-us", text), (2, "en-us", text)], where)
    assert rate == 24000 and one.dtype == np.int16 and np.array_equal(one, same)
    assert len(one) == len(other) and not np.array_equal(one, other)  # the noise alone is another
    assert np.corrcoef(one, other)[0, 1] > 0.8
    assert 0.5 * rate < len(one) < 3 * rate and 3000 < np.abs(one.astype(int)).max() <= 32767
    f0 = fundamental_frequency(resample_poly(one / 32768.0, 2, 3), MfccConfig().log_mel).numpy()
    assert 130 < np.median(f0[f0 > 0]) < 300 and 0.2 < np.mean(f0 > 0) < 0.95  # a woman


@pytest.mark.network
def test_what_the_network_reads(where, monkeypatch):
    given = []

    class Network:
        def run(self, names, feed):
            given.append(feed)
            return [np.zeros((1, *shape), dtype=np.float32) for shape in ((5,), *[(601, 5)] * 5)]

    monkeypatch.setattr(hibari, "load_network", lambda path, name: Network())
    ((samples, _),) = hibari.synthesize([(1, "en-us", "A day…")], where)
    assert samples.shape == (1500,)
    with open(where["vocabulary"], encoding="utf-8") as stream:
        numbers = json.load(stream)
    assert given[0]["ids"][0].tolist() == [0, *(numbers[symbol] for symbol in "ɐ dˈA…"), 0]
    assert given[0]["speed"].tolist() == [1.0]


@pytest.mark.network
def test_what_fails(where, tmp_path):
    with pytest.raises(UserError, match="Hibari cannot speak the en-us text ' [?]! ': 0 symbols, expected 1 to 400"):
        hibari.synthesize([(1, "en-us", " ?! ")], where)
    with pytest.raises(UserError, match="expected 1 to 400"):
        hibari.synthesize([(1, "en-us", "a long day " * 80)], where)
    broken = tmp_path / "brökn network.onnx"
    broken.write_bytes(b"no network at all")
    with pytest.raises(UserError, match="brökn network.onnx: ONNX Runtime cannot load it .*remove it") as caught:
        hibari.synthesize([(1, "en-us", "Duck.")], {**where, "network": str(broken)})
    assert "\n" not in str(caught.value)
