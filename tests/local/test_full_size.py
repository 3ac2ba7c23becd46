"""Corpora of official sizes from hard links: each is one that its own module prepares, with the numbers that it should have."""

import logging
import os
import unicodedata

import numpy as np
import pytest
import soundfile
from tiny_audio import read_cuts
from tiny_corpora import voiced

from local import full_size
from local.add2022 import add2022
from local.fearless import fearless_steps as fearless
from local.indic import mucs
from local.zerospeech import zerospeech2019
from pyspeech.errors import UserError

SCALE = 0.0005
LOG = logging.getLogger("test")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("recordings"), np.random.default_rng(3)
    for name, rate in (("a", 8000), ("b", 44100)):
        soundfile.write(folder / f"{name}.wav", voiced(40, rng, rate), rate)
    return folder


@pytest.fixture
def lay_out(recordings, tmp_path):
    """lay_out(name): the folder of a small corpus, whose files are what is told of them."""

    def make(name):
        folder = tmp_path / name
        made = full_size.lay_out(name, recordings, folder, SCALE)
        files = [path for path in folder.rglob("*.wav")]
        assert len(files) == made["files"] and sum(soundfile.info(path).duration for path in files) == pytest.approx(
            3600 * made["hours"]
        )
        assert not list(folder.glob(".*"))
        return folder

    return make


def test_mucs(lay_out, tmp_path):
    mucs.prepare(lay_out("mucs"), tmp_path / "out", LOG)
    cuts = {part: read_cuts(tmp_path / "out", part) for part in ("train", "dev", "test")}
    assert len(cuts["train"]) + len(cuts["dev"]) == sum(
        round(SCALE * number) for _, _, (number, _), _ in full_size.LANGUAGES.values()
    )
    assert sorted({cut.supervisions[0].language for cut in cuts["test"]}) == [
        "gu-IN",
        "hi-IN",
        "mr-IN",
        "or-IN",
        "ta-IN",
        "te-IN",
    ]
    texts = [cut.supervisions[0].text for cut in cuts["train"] if cut.supervisions[0].language == "ta-IN"]
    assert {unicodedata.name(letter).split()[0] for letter in "".join(texts) if letter != " "} == {"TAMIL"}


def test_fearless(lay_out, tmp_path):
    assert fearless.prepare(lay_out("fearless"), tmp_path / "out", LOG) == {"train": 2, "dev": 2, "eval": 2}
    for cut in read_cuts(tmp_path / "out", "train"):
        samples, speech = cut.load_audio()[0], np.zeros(cut.num_samples, bool)
        for part in cut.supervisions:
            speech[round(part.start * 8000) : round(part.end * 8000)] = True
        assert cut.duration == pytest.approx(90.0) and samples[speech].std() > 5 * samples[~speech].std()


def test_add2022(lay_out, tmp_path):
    folder = lay_out("add2022")
    assert len({os.stat(path).st_ino for path in folder.rglob("*.wav")}) == full_size.PIECES < 81
    counts = add2022.prepare(folder, tmp_path / "out", LOG)
    assert counts == {
        "train": {"genuine": 2, "fake": 12},
        "dev": {"genuine": 2, "fake": 11},
        "adapt": {"genuine": 2, "fake": 2},
        "eval": {"unlabelled": 50},
    }


def test_zerospeech(lay_out, tmp_path):
    counts = zerospeech2019.prepare(lay_out("zerospeech"), tmp_path / "out", LOG)
    assert (counts["unit"], counts["voice"], counts["test"]) == (3, 4, 2)
    assert {cut.supervisions[0].speaker for cut in read_cuts(tmp_path / "out", "voice")} == {"V001", "V002"}


def test_official_sizes():
    assert sum(number for _, _, (number, _), _ in full_size.LANGUAGES.values()) == 345959
    assert sum(hours for _, _, (_, hours), _ in full_size.LANGUAGES.values()) == pytest.approx(403.48)
    assert full_size.STREAMS["Train"] * full_size.STREAM_SECONDS == 62.5 * 3600
    genuine_and_fake = [full_size.FAKES[part][0] + full_size.FAKES[part][1] for part in ("train", "dev", "adapt")]
    assert genuine_and_fake == [27084, 23602, 1000] == [sum(add2022.RELEASED[part]) for part in ("train", "dev", "adapt")]


def test_lengths_are_about_the_mean(recordings, tmp_path):
    corpus = full_size.Corpus(full_size.read_recordings(recordings), tmp_path, 1.0)
    seconds = [one for _, one in corpus.pieces("x", 4.0, 8000)]
    assert np.mean(seconds) == pytest.approx(4.0, abs=0.01) and min(seconds) < 2.5 and max(seconds) > 7


def test_what_cannot_be(recordings, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a.txt").write_text("x")
    with pytest.raises(UserError, match="there: not empty"):
        full_size.lay_out("fearless", recordings, tmp_path / "there", SCALE)
    soundfile.write(tmp_path / "there" / "a.wav", np.zeros(16000), 16000)
    with pytest.raises(UserError, match="1 s of audio; expected recordings of speech, half a minute or more"):
        full_size.lay_out("fearless", tmp_path / "there", tmp_path / "new", SCALE)
