"""Real voices from prompts and stamps: which clips are taken, whose voice is where; on made-up clips."""

import gzip
import logging

import numpy as np
import pytest
import soundfile
from tiny_audio import read_cuts
from tiny_corpora import voiced

from local import voices
from local.indic import prompts as prompts_mini
from pyspeech.errors import UserError

log = logging.getLogger("test")
LETTERS = "abcdefghijklmnopqrstuvw"


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Thirty clips of 20 characters a second for each voice, at 22.05 kHz in stereo."""
    folder, found = tmp_path_factory.mktemp("clips"), {}
    for language, sources in prompts_mini.SOURCES.items():
        for source in sources:
            rng = np.random.default_rng([ord(source[0]), *map(ord, language)])
            voice = found[f"{source}-{language}"] = []
            for index in range(30):
                text = "".join(rng.choice(list(LETTERS), 12)) + " uno"
                samples = voiced(len(text) / 20.0, rng, rate=22050)
                path = folder / f"{source}-{language}-{index}.wav"
                soundfile.write(str(path), 0.3 * np.stack([samples, samples], 1), 22050, subtype="PCM_16")
                voice.append((path, text))
    return found


def test_corpus(clips, tmp_path):
    prompts_mini.prepare(tmp_path, log, clips=clips)
    cuts = {split: read_cuts(tmp_path, split) for split in ("train", "dev", "test")}
    assert sum(map(len, cuts.values())) == 30 * 8
    speakers = {split: {cut.supervisions[0].speaker for cut in found} for split, found in cuts.items()}
    assert speakers["train"] == {"tuxpaint-es", "tuxpaint-fr", "asterisk-it", "tuxpaint-ro", "tuxpaint-ru"}
    assert speakers["test"] >= {"asterisk-es", "asterisk-fr", "asterisk-ru"}
    assert speakers["test"] & speakers["train"] <= {"asterisk-it", "tuxpaint-ro"}
    texts = {split: {cut.supervisions[0].text for cut in found} for split, found in cuts.items()}
    assert not texts["train"] & texts["test"] and not texts["train"] & texts["dev"]
    for cut in cuts["train"]:
        assert cut.sampling_rate == 8000 and cut.num_channels == 1 and cut.load_audio().std() > 0.01


def test_scale(clips, tmp_path):
    prompts_mini.prepare(tmp_path, log, scale=0.3, clips=clips)
    assert 20 < len(read_cuts(tmp_path, "train")) < 80


def test_shares():
    counts = {split: 0 for split in ("train", "dev", "test")}
    for index in range(4000):
        counts[prompts_mini.split_of(f"text {index}", trained=True, tested=True)] += 1
        assert prompts_mini.split_of(f"text {index}", trained=False, tested=True) == "test"
        assert prompts_mini.split_of(f"text {index}", trained=True, tested=False) != "test"
    for index in range(100):
        one, other = (prompts_mini.split_of(text, True, True) for text in (f"Text {index}...", f"text, {index}"))
        assert one == other
    assert counts["dev"] == pytest.approx(320, abs=60) and counts["test"] == pytest.approx(480, abs=70)


def test_clips_of_another_pace_are_left_out(tmp_path):
    clips = []
    for index, seconds in enumerate([1.0, 1.1, 0.9, 3.0, 0.5, 13.0, 0.2]):
        path = tmp_path / f"{index}.wav"
        soundfile.write(str(path), np.zeros(int(8000 * seconds)), 8000)
        clips.append((path, "ten letter"))
    assert [path.stem for path, _ in voices.usable_clips(clips, "fr")] == ["0", "1", "2"]


@pytest.mark.parametrize(
    "language, text, expected",
    [
        ("es", " Contraseña de la estación. ", "Contrasena de la estacion."),
        ("fr", "L'été à Noël", "L'été à Noël"),
        ("es", "Marque 1", None),
        ("fr", "[beep]", None),
        ("it", "N B S (in inglese)", None),
        ("it", "non pu? essere", None),
        ("es", "¿Como?", "¿Como?"),
        ("fr", "visitez www.asterisk.org", None),
        ("ru", "Чай", "Чай"),
        ("ru", "...", None),
        ("ro", "", None),
    ],
)
def test_texts(language, text, expected):
    assert voices.spoken_text(text, language) == expected


def test_lists_of_texts(tmp_path):
    sounds = tmp_path / "usr/share/asterisk/sounds/es_MX_f_Allison"
    paths = [sounds / "digits/1.wav", sounds / "menu.wav", sounds / "unknown.wav"]
    (tmp_path / "list.txt.gz").write_bytes(gzip.compress("; title\nmenu: menu: Hola: tú\ndigits/1: uno\n".encode()))
    assert prompts_mini.prompt_texts(paths, tmp_path / "list.txt.gz") == [(paths[0], "uno"), (paths[1], "Hola: tú")]
    folder = tmp_path / "stamps"
    folder.mkdir()
    (folder / "cat.txt").write_text("A cat.\nes.utf8=Un gato.\nes_MX.utf8=Otro.\n")
    paths = [folder / "cat_desc_es.ogg", folder / "dog_desc_es.ogg"]
    assert prompts_mini.stamp_texts(paths, folder, folder, "es") == [(paths[0], "Un gato.")]


def test_languages_can_be_chosen(clips, tmp_path):
    prompts_mini.prepare(tmp_path, log, clips=clips, languages=["fr", "Spanish", "fr"])
    assert {cut.supervisions[0].language for cut in read_cuts(tmp_path, "train")} == {"es", "fr"}
    with pytest.raises(UserError, match="corpus=prompts: languages: there is no hi-IN; there are es, fr, it, ro, ru"):
        prompts_mini.prepare(tmp_path, log, clips=clips, languages=["hi"])
