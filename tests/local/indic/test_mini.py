"""The synthetic Indian corpus: words, speakers and texts apart, spoken as words, the same samples every time."""

import ctypes
import logging
import random
import unicodedata
from collections import Counter

import numpy as np
import pytest
import soundfile
from kill_harness import killed_until_it_ends
from tiny_audio import read_cuts

from local.indic import mini as indic_mini, text as indic_text
from local.synthesis import espeak
from pyspeech.data import audio_files
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError

log = logging.getLogger("test")
SCRIPTS = {"en-IN": "LATIN", "hi-IN": "DEVANAGARI", "ta-IN": "TAMIL", "gu-IN": "GUJARATI"}
TINY = 0.005
TINY_DIGEST = "c1f887e715f60fe826cf76cc5c620cfc45ced9b7593f92cacf6348cc53e98669"


@pytest.fixture(scope="module")
def where():
    return espeak.library()


@pytest.fixture(scope="module")
def corpus(where, tmp_path_factory):
    folder = tmp_path_factory.mktemp("indic")
    indic_mini.prepare(folder, log, scale=TINY, where=where)
    return folder


@pytest.mark.parametrize("language", SCRIPTS)
def test_words(language):
    words = indic_text.words(language)
    assert 145 <= len(words) == len(set(words)) <= 160
    for word in words:
        assert word == unicodedata.normalize("NFC", word) and not any(letter.isspace() for letter in word)
        assert all(unicodedata.name(letter).startswith(SCRIPTS[language]) for letter in word)


def test_texts():
    rng = np.random.Generator(np.random.PCG64(1))
    words, taken = [f"w{index}" for index in range(20)], set()
    train = indic_mini.make_texts(rng, words, 100, taken, (0.25, 0.25, 0.5))
    test = indic_mini.make_texts(rng, words, 30, taken, (0, 0.5, 0.25, 0.25))
    assert len(train) == 100 and len(test) == 30 and not set(train) & set(test) and len(set(test)) == 30
    assert all(2 <= len(text.split()) <= 4 for text in test)
    counts = Counter(word for text in train for word in text.split())
    assert set(counts) == set(words) and max(counts.values()) - min(counts.values()) <= 2
    with pytest.raises(ValueError, match="2 words"):
        indic_mini.make_texts(rng, words[:2], 100, set(), (0, 1.0))


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_plan(scale, tmp_path):
    variants = {split: set() for split in indic_mini.SPLITS}
    for language, count in indic_mini.TRAIN.items():
        planned = indic_mini.plan(tmp_path, language, scale)
        by_split = {split: [one for one in planned if one.split == split] for split in indic_mini.SPLITS}
        assert len(by_split["train"]) == round(scale * count)
        assert len({one.id for one in planned}) == len(planned)
        heard = {word for one in by_split["train"] for word in one.text.split()}
        sequences = {one.text for one in by_split["train"]}
        for split in ("dev", "test"):
            assert len(by_split[split]) == round(scale**0.5 * indic_mini.HELD_OUT[split])
            assert all(set(one.text.split()) <= heard and one.text not in sequences for one in by_split[split])
        for split in by_split:
            variants[split] |= {one.voice.variant for one in by_split[split]}
            speakers = {one.speaker: (one.voice.variant, one.tract, one.tilt) for one in by_split[split]}
            assert len(set(speakers.values())) == len(speakers)  # one variant with another tract and microphone
            counts = Counter(one.speaker for one in by_split[split])
            assert max(counts.values()) <= 2 * indic_mini.UTTERANCES_PER_SPEAKER
    assert not variants["train"] & variants["test"] and not variants["train"] & variants["dev"]
    assert not variants["dev"] & variants["test"]


@pytest.mark.network
def test_corpus(corpus):
    for split in indic_mini.SPLITS:
        cuts = read_cuts(corpus, split)
        assert {cut.supervisions[0].language for cut in cuts} == set(SCRIPTS)
        for cut in cuts:
            assert cut.sampling_rate == 16000 and 0.4 < cut.duration < 7.0
            info = soundfile.info(cut.recording.sources[0].source)
            assert info.subtype == "PCM_16" and info.frames == cut.recording.num_samples
            samples = cut.load_audio()[0]
            assert 0.07 < np.abs(samples).max() < 0.81 and samples.std() > 0.005
            # speech is within: the ends are quieter than the middle
            assert samples[:1200].std() < 0.5 * samples.std()


@pytest.mark.network
def test_same_samples_after_kills(corpus, where, tmp_path, monkeypatch, caplog):
    """Killed again and again, with one process instead of two; and other samples than published are said."""
    folder = tmp_path / "killed"

    def make():
        indic_mini.prepare(folder / "corpus", log, scale=TINY, where=where, jobs=1, parts=Parts(folder / "parts"))

    assert killed_until_it_ends(make, folder, random.Random(2), 150) > 1
    monkeypatch.setitem(indic_mini.DIGESTS, TINY, "of another C library")
    with caplog.at_level("WARNING"):
        make()
    assert "not the very same samples" in caplog.text
    assert [audio_files.digest(made.glob("spoken/*/*/*.flac")) for made in (folder / "corpus", corpus)] == 2 * [TINY_DIGEST]


SPEAK_WORDS = """
import sys
from local.indic import text as indic_text
from local.synthesis import espeak
engine = espeak.Engine(espeak.library())
for language in indic_text.LEXICON:
    for word in indic_text.words(language):
        phonemes = engine.phonemes(word, language[:2])
        wanted = espeak.indian_english(phonemes).strip("[]").split("|") if language == "en-IN" else sum(phonemes, [])
        samples, spoken = engine.speak(espeak.Voice(language, "m1"), word)
        print(language, len(phonemes), len([name for name in wanted if name.strip("_:;,'-")]), len(spoken),
              len(samples) // 2, "(" in "".join(wanted), word)
"""


@pytest.mark.network
def test_every_word_is_spoken_whole_in_its_own_language(where):
    """One word each, no phonemes of another language, none on which the voice falls silent, no spelling."""
    import subprocess
    import sys

    lines = subprocess.run([sys.executable, "-c", SPEAK_WORDS], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in lines.splitlines()]
    assert len(rows) == sum(len(indic_text.words(language)) for language in SCRIPTS)
    for language, words, wanted, spoken, samples, foreign, word in rows:
        assert words == "1" and foreign == "False", word
        assert abs(int(wanted) - int(spoken)) <= (0 if language == "en-IN" else 1), word
        assert 0.15 < int(samples) / espeak.RATE < 1.5, word
        assert int(spoken) <= 2 * len(word) + 1, word


@pytest.mark.network
def test_voices_differ_and_the_same_list_sounds_the_same(where):
    items = [
        (espeak.Voice("hi-IN", "f3"), "एक दो"),
        (espeak.Voice("hi-IN", "m1"), "एक दो"),
        (espeak.Voice("hi-IN", "m1", rate=120), "एक दो"),
        (espeak.Voice("gu-IN", "m1"), "એક બે"),
    ]
    first, second = espeak.synthesize(items, where), espeak.synthesize(items, where)
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1]) and len(first[2]) > 1.2 * len(first[1])


def test_indian_english():
    assert espeak.indian_english([["w", "'0", "n"], ["T", "'3:", "t", "i"]]) == "[[v#|'O|n t|'@|r|t.|i:]]"
    with pytest.raises(RuntimeError, match="phoneme Q"):
        espeak.indian_english([["Q"]])


@pytest.mark.network
@pytest.mark.parametrize(
    "voice, message",
    [(espeak.Voice("hi-IN", "nobody"), "no voice variant nobody"), (espeak.Voice("xx", "m1"), "espeak_SetVoiceByName")],
)
def test_bad_voices(where, voice, message):
    with pytest.raises(UserError, match=message):
        espeak.synthesize([(voice, "एक")], where)


@pytest.mark.network
def test_damaged_library(where, tmp_path):
    (tmp_path / "libespeak-ng.so").write_bytes(where[0].read_bytes()[:5000])
    with pytest.raises(UserError, match="eSpeak NG"):
        espeak.synthesize([(espeak.Voice("hi-IN", "m1"), "एक")], (tmp_path / "libespeak-ng.so", where[1]))
    with pytest.raises(UserError, match="eSpeak NG"):
        espeak.synthesize([(espeak.Voice("hi-IN", "m1"), "एक")], (where[0], tmp_path))


def test_events_have_the_layout_of_speak_lib():
    # Private, but its layout is the library's, whose header says these numbers.
    assert ctypes.sizeof(espeak._Event) == 40 and espeak._Event.id.offset == 32


@pytest.mark.network
def test_languages_can_be_chosen(where, corpus, tmp_path):
    indic_mini.prepare(tmp_path, log, scale=TINY, where=where, languages=["Hindi"])
    made, all_made = ({cut.id for cut in read_cuts(folder, "train")} for folder in (tmp_path, corpus))
    assert made == {name for name in all_made if name.startswith("hi-IN")}
    with pytest.raises(UserError, match="corpus=mini: languages: there is no te-IN; there are en-IN, hi-IN, ta-IN, gu-IN"):
        indic_mini.prepare(tmp_path, log, languages=["te-IN"])
