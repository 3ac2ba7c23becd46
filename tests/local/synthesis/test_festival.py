"""Festival from unpacked packages: all voices, rates and pitch, the same samples every time, one line for what fails."""

import numpy as np
import pytest
from scipy.signal import resample_poly

from local.synthesis import festival
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.pitch import fundamental_frequency

TEXTS = {
    "en": ("A large duck.", "A large duck, on the lake of our old town."),
    "it": ("Perché no?", "Perché no? Il gatto dorme sotto l’albero della città."),
    "fi": ("Hyvää päivää.", "Hyvää päivää, kissa nukkuu puun alla ja tyttö syö puuroa."),
    "hi": ("मेरा नाम राम है।", "मेरा नाम राम है और मैं दिल्ली में रहता हूँ।"),
    "te": ("నా పేరు రాముడు.", "నా పేరు రాముడు, నేను హైదరాబాద్ లో ఉంటాను."),
    "mr": ("माझे नाव राम आहे.", "माझे नाव राम आहे आणि मी पुण्यात राहतो."),
    "ca": ("Bon dia.", "Bon dia, el gat dorm sota l’arbre i la nena juga a la plaça."),
    "cs": ("Dobrý den.", "Dobrý den, příliš žluťoučký kůň úpěl ďábelské ódy."),
}
RATES = {"slt": 32000, "lj": 22050, "mv": 22050, "ph": 44100, "machac": 32000, "dita": 32000, "krb": 32000}  # others: 16000
PITCH = {"m": (65, 150), "f": (145, 240), "boy": (230, 280)}


def test_written():
    """Strings of Scheme in the encoding of the voice, with what it does not have replaced."""
    assert festival.written("A “café” – it’s\n 5 €…", "ascii") == rb"A \"cafe\" - it's 5 ..."
    assert festival.written("c\u0327a ła\\ €\x00\u200d", "iso-8859-15") == b"\xe7a a  \xa4"
    assert festival.written("kůň", "iso-8859-2") == b"k\xf9\xf2" and festival.written("kůň", "iso-8859-1") == b"kun"
    assert festival.written("है “", "utf-8") == "है “".encode()


def test_packages():
    """Those of the voices asked for, the program's, the libraries'; folders as in the archive."""
    english, all_of_them = festival.packages(["ked"]), festival.packages()
    names = {package.name for package in english}
    assert {"festival", "libpulse0", "festvox-kdlpc16k", "festlex-cmu"} < names and "festvox-kallpc16k" not in names
    needed = {name for voice in festival.VOICES.values() for name in voice.packages}
    assert needed < {package.name for package in all_of_them} and len(all_of_them) == len(set(all_of_them)) > len(english)
    pools = {package.name: package.pool for package in all_of_them}
    assert pools["libasyncns0"] == "pool/main/liba/libasyncns/libasyncns0_0.8-6+b3_amd64.deb"
    assert pools["festlex-ifd"] == "pool/main/f/festival-it/festlex-ifd_2.0+debian0-6_all.deb"


@pytest.fixture(scope="module")
def where():
    return festival.installation()


@pytest.mark.network
@pytest.mark.parametrize("voice", festival.VOICES)
def test_voices(where, voice):
    person = festival.VOICES[voice]
    short, long = TEXTS[person.language]
    (first, rate), (second, _), (again, _) = festival.synthesize([(voice, short), (voice, long), (voice, short)], where)
    assert rate == RATES.get(voice, 16000) and first.dtype == second.dtype == np.int16
    assert np.array_equal(first, again)
    ((alone, _),) = festival.synthesize([(voice, long)], where)
    assert np.array_equal(alone, second)
    assert 0.5 < len(first) / rate < 2.5 and 1.5 < len(second) / len(first) < 6
    assert np.abs(second.astype(int)).max() > 3000
    heard = resample_poly(second / 32768.0, 160, rate // 100)
    f0 = fundamental_frequency(heard, MfccConfig().log_mel).numpy()
    low, high = PITCH["boy" if voice == "krb" else person.sex]
    assert low < np.median(f0[f0 > 0]) < high


@pytest.mark.network
def test_order(where):
    """Each text in its place, with voices in turns; accents are heard; nothing asked, nothing made."""
    items = [("ked", "One."), ("lp", "Sì"), ("ked", "Two, three, four."), ("lp", "Si")]
    made = festival.synthesize(items, where)
    for item, (samples, _) in zip(items, made, strict=True):
        ((alone, _),) = festival.synthesize([item], where)
        assert np.array_equal(samples, alone)
    assert len(made[2][0]) > len(made[0][0])
    assert festival.synthesize([], where) == []


@pytest.mark.network
@pytest.mark.parametrize("voice", ("lj", "krb"))
def test_installed_alone(voice):
    """A voice's own packages are enough."""
    text = TEXTS[festival.VOICES[voice].language][0]
    ((samples, rate),) = festival.synthesize([(voice, text)])
    assert len(samples) > 0.5 * rate


@pytest.mark.network
@pytest.mark.parametrize(
    "voice, text, message",
    [
        ("nobody", "Duck.", "Festival cannot speak: it has no voice nobody; expected one of kal, ked"),
        ("ked", "", "Festival cannot speak the text '' as ked: no letters that the voice knows are in it"),
        ("slt", "кот…", "Festival cannot speak the text 'кот…' as slt: no letters that the voice knows"),
        ("nsk-hi", "duck", "Festival cannot speak the text 'duck' as nsk-hi: Festival ended with status -11"),
        ("lp", "Il 50%", "Festival cannot speak the text 'Il 50%' as lp: "),
    ],
)
def test_what_cannot_be_said(where, voice, text, message):
    with pytest.raises(UserError, match=message) as caught:
        festival.synthesize([("lp", "Mare"), (voice, text), ("lp", "Mare")], where)
    assert "\n" not in str(caught.value)


@pytest.mark.network
@pytest.mark.parametrize("broken", ("festival", "lib", "data"))
def test_what_does_not_run(where, tmp_path, broken):
    with pytest.raises(UserError, match="Festival cannot speak") as caught:
        festival.synthesize([("ked", "Duck.")], {**where, broken: str(tmp_path)})
    assert "\n" not in str(caught.value)
