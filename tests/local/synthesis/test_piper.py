"""Piper: what the network reads, the same speech from the same seed, one line for what fails."""

import json

import numpy as np
import pytest
from scipy.signal import resample_poly

from local.synthesis import piper
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.pitch import fundamental_frequency

pytestmark = pytest.mark.network  # the engine comes in packages


@pytest.fixture(scope="module")
def where():
    return piper.model()


def test_what_the_network_reads(where, monkeypatch):
    """Between start and end every symbol, and a pause after each (the voice's own numbers for them)."""
    given = []

    class Network:
        def run(self, names, feed):
            given.append(feed)
            return [np.array([[[[0.0, 0.5, -2.0, 1.0]]]], dtype=np.float32)]

    monkeypatch.setattr(piper, "load_network", lambda path, name, seed: Network())
    ((samples, rate),) = piper.synthesize([(1, "en-us", "A day…")], where)
    assert rate == 22050 and samples.dtype == np.int16 and samples.tolist() == [0, 8192, -32767, 16384]
    with open(where["symbols"], encoding="utf-8") as stream:
        numbers = {symbol: number for symbol, (number,) in json.load(stream)["phoneme_id_map"].items()}
    read = given[0]["input"][0].tolist()
    assert read == [numbers[symbol] for symbol in "^_ɐ_ _d_ˈ_e_ɪ_._$"]
    assert given[0]["input_lengths"].tolist() == [len(read)] and given[0]["scales"].dtype == np.float32


def test_speech(where):
    text = "A small house."
    (one, rate), (same, _), (other, _) = piper.synthesize([(1, "en-us", text), (1, "en-us", text), (2, "en-us", text)], where)
    assert np.array_equal(one, same) and not np.array_equal(one, other[: len(one)])
    assert 0.5 * rate < len(one) < 3 * rate and 3000 < np.abs(one.astype(int)).max() <= 32767
    f0 = fundamental_frequency(resample_poly(one / 32768.0, 320, 441), MfccConfig().log_mel).numpy()
    assert 70 < np.median(f0[f0 > 0]) < 180 and 0.2 < np.mean(f0 > 0) < 0.95  # a man


def test_what_fails(where, tmp_path):
    with pytest.raises(UserError, match="Piper cannot speak the en-us text ' [?]! ': it has no symbols"):
        piper.synthesize([(1, "en-us", " ?! ")], where)
    broken = tmp_path / "brökn network.onnx"
    broken.write_bytes(b"no network at all")
    with pytest.raises(UserError, match="brökn network.onnx: ONNX Runtime cannot load it .*remove it") as caught:
        piper.synthesize([(1, "en-us", "Duck.")], {**where, "network": str(broken)})
    assert "\n" not in str(caught.value)
