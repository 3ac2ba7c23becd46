"""The layouts of MUCS 2021 and of Microsoft's Indian corpora: what is found, mended, left out, and what stops."""

import logging
import os
import shutil
import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from tiny_audio import read_cuts, write_audio

from local.indic import languages, mucs
from local.splits import hold_out
from pyspeech.data.manifests import Utterance
from pyspeech.errors import UserError
from steps.asr.corpus import make_units

log = logging.getLogger("test")
HINDI = ["शून्य", "एक", "दो", "तीन", "चार", "पाँच"]
WORDS = {"Hindi": HINDI, "Tamil": ["ஒன்று", "இரண்டு", "மூன்று"], "English": ["One.", "Two!", "three"]}


def make_set(folder, words, count, audio="audio", rates=(8000,), separator=" ", suffix=".wav"):
    lines = []
    for number in range(count):
        name = f"{number:04d}"
        write_audio(folder / audio / f"{name}{suffix}", rate=rates[number % len(rates)], seed=number)
        lines.append(f"{name}{separator}{words[number % len(words)]}\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "transcription.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def make_mucs(root, languages=("Hindi", "Tamil"), train=20, test=6, **options):
    for language in languages:
        make_set(root / language / "train", WORDS[language], train, **options)
        make_set(root / language / "test", WORDS[language], test, **options)
    return root


def test_mucs_layout_with_odd_rates_and_isolated_problems(tmp_path, caplog):
    corpus = make_mucs(tmp_path / "MUCS", ("Hindi", "Tamil", "English"), rates=(8000, 11025, 44100, 7350))
    (corpus / "Hindi/train/audio/0003.wav").write_bytes(b"")
    (corpus / "Tamil/test/audio/0002.wav").unlink()
    write_audio(corpus / "Tamil/train/audio/extra.wav")
    out = tmp_path / "out"
    with caplog.at_level(logging.INFO):
        counts = mucs.prepare(corpus, out, log)
    assert counts == {
        "en-IN": {"train": 18, "dev": 2, "test": 6},
        "hi-IN": {"train": 17, "dev": 2, "test": 6},
        "ta-IN": {"train": 18, "dev": 2, "test": 5},
    }
    listed = (out / "problems.txt").read_text().splitlines()
    assert len(listed) == 3
    for line, words in zip(
        sorted(listed),
        [
            "Hindi/train/audio/0003.wav: the audio file is empty (0 bytes)",
            "Tamil/test/transcription.txt, 0002: transcript without audio",
            "Tamil/train/audio/extra.wav: audio without transcript",
        ],
        strict=True,
    ):
        assert line.endswith(words) and line in caplog.text
    assert "left out 3 of 79" in caplog.text and "7350 Hz" in caplog.text
    train = {cut.id: cut for split in ("train", "dev") for cut in read_cuts(out, split)}
    cut = train["en-IN-train-0003"]
    assert cut.sampling_rate == 7350 and cut.supervisions[0].text == "One." and cut.supervisions[0].language == "en-IN"
    assert cut.supervisions[0].speaker is None and cut.load_audio().shape == (1, 3675) and cut.duration == 0.5
    assert not {cut.id for cut in read_cuts(out, "train")} & {cut.id for cut in read_cuts(out, "dev")}
    assert [cut.id for cut in read_cuts(out, "test")] == sorted(cut.id for cut in read_cuts(out, "test"))


def test_prepared_twice_gives_the_same_bytes(tmp_path):
    corpus = make_mucs(tmp_path / "MUCS")
    for name in ("a", "b"):
        mucs.prepare(corpus, tmp_path / name, log)
    for name in ("train.jsonl.gz", "dev.jsonl.gz", "test.jsonl.gz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert not (tmp_path / "a/problems.txt").exists()


@pytest.mark.parametrize(
    "folders, audio", [("{}-in-{}", "Audios"), ("{}-IN/{}", "."), ("data/{}_{}", "wav/speaker1"), ("{0}/{0}-in-{1}", "AUDIO")]
)
def test_microsoft_and_other_layouts(tmp_path, folders, audio):
    corpus = tmp_path / "corpus"
    for split, count in (("Train", 12), ("Test", 4)):
        make_set(corpus / folders.format("ta", split), WORDS["Tamil"], count, audio, separator="\t", suffix=".WAV")
    assert mucs.prepare(corpus, tmp_path / "out", log) == {"ta-IN": {"train": 11, "dev": 1, "test": 4}}


def test_both_transcriptions_beside_one_folder_of_audio(tmp_path):
    folder = make_set(tmp_path / "corpus/Hindi", HINDI, 20)
    lines = (folder / "transcription.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "transcription.txt").unlink()
    (folder / "transcription_train.txt").write_text("".join(lines[:15]), encoding="utf-8")
    (folder / "transcription_test.txt").write_text("".join(lines[15:]), encoding="utf-8")
    assert mucs.prepare(tmp_path / "corpus", tmp_path / "out", log) == {"hi-IN": {"train": 13, "dev": 2, "test": 5}}
    assert not (tmp_path / "out/problems.txt").exists()


def test_one_language_whose_folder_is_given(tmp_path):
    corpus = make_mucs(tmp_path / "MUCS", ["Hindi"])
    assert list(mucs.prepare(corpus / "Hindi", tmp_path / "out", log)) == ["hi-IN"]


def test_names_that_mean_languages_and_splits():
    for name, code in {
        "Gujarati": "gu-IN",
        "gu": "gu-IN",
        "GU_in": "gu-IN",
        "gu-IN": "gu-IN",
        "Odia": "or-IN",
        "hindi speech": "hi-IN",
        "French": "fr",
        "fr-FR": "fr-FR",
        "en": "en-IN",
        "en-US": "en-US",
        "in": None,
        "data": None,
        "": None,
        "or else": None,
    }.items():
        assert languages.language_code(name) == code, name
    assert mucs.language_of(("MUCS", "subtask1", "Gujarati", "train")) == "gu-IN"
    assert mucs.language_of(("MUCS", "Gujarati_train", "audio")) == "gu-IN"
    assert mucs.language_of(("MUCS", "HindiTrain")) == "hi-IN"
    assert mucs.language_of(("MUCS", "Klingon", "train")) == "klingon"
    assert mucs.language_of(("english digits", "Klingon", "train", "set1")) == "klingon"
    assert mucs.language_of(("Hindi", "v1", "train")) == "hi-IN" and mucs.language_of(("Hindi", "train")) == "hi-IN"
    assert mucs.language_of(("train", "train")) is None
    assert mucs.split_of(("test", "ta-in-Train")) == "train" and mucs.split_of(("Hindi", "blindtest")) is None


def test_transcriptions_of_all_sorts(tmp_path):
    corpus = make_mucs(tmp_path / "MUCS", ["Hindi"])
    name = unicodedata.normalize("NFD", "é1")
    write_audio(corpus / "Hindi/train/audio" / f"{name}.wav")
    path = corpus / "Hindi/train/transcription.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[0] = "audio/" + lines[0].replace(" ", ".wav\t ") + "  "
    lines += ["", "\u00e91\t\tएक  दो "]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode("utf-8"))
    out = tmp_path / "out"
    assert mucs.prepare(corpus, out, log)["hi-IN"] == {"train": 19, "dev": 2, "test": 6}
    assert not (out / "problems.txt").exists()
    texts = {cut.id: cut.supervisions[0].text for split in ("train", "dev") for cut in read_cuts(out, split)}
    assert texts["hi-IN-train-0000"] == "शून्य" and texts["hi-IN-train-\u00e91"] == "एक  दो"
    path.write_bytes("\n".join(lines).encode("utf-16"))
    assert len(mucs.read_transcription(path)) == 21
    path.write_bytes(b"0000 a\n0001 \xff\xe9\n")
    with pytest.raises(UserError, match="transcription.txt, line 2: not UTF-8"):
        mucs.prepare(corpus, out, log)


def test_bad_audio_is_named_and_too_much_of_it_stops(tmp_path, caplog):
    corpus = make_mucs(tmp_path / "MUCS", ["Hindi"])
    audio = corpus / "Hindi/train/audio"
    whole = (audio / "0001.wav").read_bytes()
    (audio / "0001.wav").write_bytes(whole[:2000])
    soundfile.write(str(audio / "0002.wav"), np.zeros(4000), 8000)
    write_audio(audio / "0004.wav", seconds=0.05)
    write_audio(audio / "0005.wav", rate=1000)
    (audio / "0006.wav").write_text("not audio")
    soundfile.write(str(audio / "0007.wav"), np.zeros(0), 8000)
    transcription = corpus / "Hindi/train/transcription.txt"
    text = transcription.read_text(encoding="utf-8").replace("0008 दो\n", "0008\n").replace("0009 तीन", "0009 ।!")
    transcription.write_text(text + "0000 चार\n0010 चार\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        mucs.prepare(corpus, tmp_path / "out", log)
    for name, words in [
        ("0001.wav", "truncated"),
        ("0002.wav", "silent"),
        ("0004.wav", "only 0.050 s"),
        ("0005.wav", "1000 Hz"),
        ("0006.wav", "cannot be read as audio"),
        ("0007.wav", "no samples"),
        ("0008", "no text"),
        ("0009.wav", "has no word"),
        ("0000", "2 lines with this id"),
    ]:
        assert any(name in line and words in line for line in caplog.text.splitlines()), name
    assert "0010" not in caplog.text  # the same line twice: nothing to complain of
    assert sum(len(read_cuts(tmp_path / "out", split)) for split in ("train", "dev")) == 11
    (audio / "0011.wav").write_bytes(b"")
    (audio / "0012.wav").write_bytes(b"")
    with pytest.raises(UserError, match="11 of 26 utterances have problems") as error:
        mucs.prepare(corpus, tmp_path / "out", log)
    assert "skip_bad=true" in str(error.value) and "0011.wav" in str(error.value)
    assert mucs.prepare(corpus, tmp_path / "out", log, skip_bad=True)["hi-IN"]["train"] < 10


def test_stereo_and_rare_formats_are_copied(tmp_path):
    corpus = make_mucs(tmp_path / "MUCS", ["Hindi"])
    write_audio(corpus / "Hindi/test/audio/0000.wav", rate=22050, channels=2)
    (corpus / "Hindi/test/audio/0001.wav").unlink()
    write_audio(corpus / "Hindi/test/audio/0001.aiff", rate=8000, format="AIFF")
    write_audio(corpus / "Hindi/test/audio/0002.flac")
    (corpus / "Hindi/test/audio/0002.wav").unlink()
    mucs.prepare(corpus, tmp_path / "out", log)
    test = read_cuts(tmp_path / "out", "test")
    assert [cut.recording.sources[0].source.startswith(str(tmp_path / "out/mixed")) for cut in test[:3]] == [True, True, False]
    samples, _ = soundfile.read(str(corpus / "Hindi/test/audio/0000.wav"))
    np.testing.assert_allclose(test[0].load_audio()[0], samples.mean(axis=1), atol=2 / 32768)
    assert test[0].sampling_rate == 22050 and test[1].load_audio().shape == (1, 4000)


def test_language_without_test_set_is_left_out(tmp_path, caplog):
    corpus = make_mucs(tmp_path / "MUCS")
    (corpus / "Tamil/test/transcription.txt").unlink()
    write_audio(corpus / "Odia/train/audio/0.wav")
    (corpus / "Hindi/train/transcription_old.txt").write_text("no longer used")
    (corpus / "Hindi/up").symlink_to(corpus)
    assert list(mucs.prepare(corpus, tmp_path / "out", log)) == ["hi-IN"]
    assert "ta-IN: no test set" in caplog.text and "left out" in caplog.text
    assert "Odia: not used" in caplog.text and not (tmp_path / "out/problems.txt").exists()
    with pytest.raises(UserError, match="ta-IN: no test set"):
        mucs.prepare(corpus, tmp_path / "out", log, languages=["ta-IN"])


def test_languages_can_be_chosen(tmp_path):
    corpus = make_mucs(tmp_path / "MUCS")
    assert list(mucs.prepare(corpus, tmp_path / "out", log, languages=["Tamil"])) == ["ta-IN"]
    assert {cut.supervisions[0].language for cut in read_cuts(tmp_path / "out", "train")} == {"ta-IN"}
    with pytest.raises(UserError, match="there is no gu-IN; there are hi-IN, ta-IN"):
        mucs.prepare(corpus, tmp_path / "out", log, languages=["gu-IN"])


def test_linked_folders_of_languages_and_sets(tmp_path):
    corpus, elsewhere = make_mucs(tmp_path / "MUCS"), tmp_path / "disk 2"
    elsewhere.mkdir()
    for name in ("Hindi", "Tamil/train"):
        (corpus / name).rename(elsewhere / name.replace("/", "_"))
        (corpus / name).symlink_to(elsewhere / name.replace("/", "_"))
    counts = mucs.prepare(corpus, tmp_path / "out", log)
    assert counts == {code: {"train": 18, "dev": 2, "test": 6} for code in ("hi-IN", "ta-IN")}
    (corpus / "Tamil/test/audio").rename(corpus / "Tamil/audio")  # found beside the set's folder, which is a link
    assert mucs.prepare(corpus, tmp_path / "out", log)["ta-IN"]["test"] == 6


def test_names_that_are_not_utf8_are_problems(tmp_path):
    corpus = make_mucs(tmp_path / "MUCS")
    stray = os.path.join(os.fsencode(corpus / "Tamil/train/audio"), b"caf\xe9.wav")
    shutil.copy(corpus / "Tamil/train/audio/0000.wav", stray)
    assert len(mucs.prepare(corpus, tmp_path / "out", log)) == 2
    problems = (tmp_path / "out/problems.txt").read_text(encoding="utf-8")
    assert problems.endswith("/caf\\xe9.wav: audio without transcript\n")
    (corpus / "Hindi").rename(os.fsdecode(os.path.join(os.fsencode(corpus), b"Hindi\xe9")))
    with pytest.raises(UserError, match=r"(?s)27 of 53 .*Hindi\\xe9/test/audio/0000.wav: its name is not UTF-8"):
        mucs.prepare(corpus, tmp_path / "out", log)
    assert list(mucs.prepare(corpus, tmp_path / "out", log, skip_bad=True)) == ["ta-IN"]


def test_tags_are_dropped_and_what_looks_like_one_is_said(tmp_path, caplog):
    corpus = make_mucs(tmp_path / "MUCS", ["English"])
    path = corpus / "English/train/transcription.txt"
    text = path.read_text(encoding="utf-8")
    text = text.replace("0001 Two!", "0001 <noise> Two! [laughter]").replace("0003 One.", "0003 <UNK>")
    path.write_text(text.replace("0004 Two!", "0004 Two {hm}"), encoding="utf-8")
    with caplog.at_level(logging.INFO):
        mucs.prepare(corpus, tmp_path / "out", log)
    texts = {cut.id.split("-")[-1]: cut.supervisions[0].text for cut in read_cuts(tmp_path / "out", "train")}
    assert texts["0001"] == "Two!" and "0003" not in texts and texts["0004"] == "Two {hm}"
    assert "0003.wav: its transcript '<UNK>' has no word" in (tmp_path / "out/problems.txt").read_text()
    assert "tags in transcripts, dropped: <UNK> (1), <noise> (1), [laughter] (1)" in caplog.text
    assert "looks like tags, taken for words: {hm} (1); add to tags= what is not said" in caplog.text
    mucs.prepare(corpus, tmp_path / "out", log, tags=["{hm}"])
    texts = {cut.id.split("-")[-1]: cut.supervisions[0].text for cut in read_cuts(tmp_path / "out", "train")}
    assert texts["0001"] == "<noise> Two! [laughter]" and texts["0004"] == "Two"


def test_characters_that_training_lacks_are_named(tmp_path, caplog):
    corpus = make_mucs(tmp_path / "MUCS", ["Hindi"])
    for split, old, new in (("train", "0003 तीन", "0003 तीन ok ॐ"), ("test", "0002 दो", "0002 दो घर घ")):
        path = corpus / "Hindi" / split / "transcription.txt"
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    mucs.prepare(corpus, tmp_path / "corpus", log)
    with caplog.at_level(logging.INFO):
        make_units(SimpleNamespace(dir=tmp_path, log=log), SimpleNamespace(units="grapheme"))
    assert "hi-IN: letters of other scripts in training: k (1), o (1)" in caplog.text
    assert "hi-IN: characters that training has once: ॐ" in caplog.text
    assert "hi-IN: characters of test that training lacks, in 1 of 6 utterances: घ (2)" in caplog.text


def test_a_transcript_too_long_for_its_audio(tmp_path):
    corpus = make_mucs(tmp_path / "MUCS", ["English"])
    path = corpus / "English/train/transcription.txt"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("0003 One.", f"0003 {'ab ' * 7}").replace("0004 Two!", f"0004 {'one ' * 120}"))
    assert mucs.prepare(corpus, tmp_path / "out", log)["en-IN"] == {"train": 17, "dev": 2, "test": 6}
    assert (
        (tmp_path / "out/problems.txt")
        .read_text()
        .endswith("0004.wav: a transcript of 479 characters for 0.50 s of audio; expected at most 40 a second\n")
    )


def test_languages_without_a_usable_test_utterance(tmp_path, caplog):
    corpus = make_mucs(tmp_path / "MUCS", test=2)
    for name in ("0000", "0001"):
        (corpus / f"Tamil/test/audio/{name}.wav").write_bytes(b"")
    mucs.prepare(corpus, tmp_path / "out", log)
    assert "no usable test utterance in ta-IN" in caplog.text
    with pytest.raises(UserError, match=r"no usable test utterance in any language \(ta-IN\)"):
        mucs.prepare(corpus, tmp_path / "out", log, languages=["ta-IN"])


def test_a_transcription_that_cannot_be_read(tmp_path):
    corpus = make_mucs(tmp_path / "MUCS")
    (corpus / "Hindi/test/transcription.txt").unlink()
    (corpus / "Hindi/test/transcription.txt").symlink_to(tmp_path / "gone.txt")
    with pytest.raises(UserError, match="Hindi/test/transcription.txt: cannot be read: No such file"):
        mucs.prepare(corpus, tmp_path / "out", log)


def test_what_is_no_corpus(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        mucs.prepare(tmp_path / "nowhere", tmp_path / "out", log)
    with pytest.raises(UserError, match="no transcription.txt"):
        mucs.prepare(tmp_path, tmp_path / "out", log)
    make_set(tmp_path / "Hindi", HINDI, 3)
    with pytest.raises(UserError, match="no transcription.txt"):
        mucs.prepare(tmp_path, tmp_path / "out", log)


def test_a_dev_set_of_its_own_is_used(tmp_path):
    corpus = make_mucs(tmp_path / "MUCS")
    make_set(corpus / "Hindi/dev", HINDI, 5)
    counts = mucs.prepare(corpus, tmp_path / "out", log)
    assert counts == {"hi-IN": {"train": 20, "dev": 5, "test": 6}, "ta-IN": {"train": 18, "dev": 2, "test": 6}}


def test_held_out_utterances():
    few = [Utterance(f"{n}", "", HINDI[n % 6], "hi-IN") for n in range(200)]
    split = {utterance.id: utterance.split for utterance in hold_out(few, 0.1)}
    assert sum(name == "dev" for name in split.values()) == 20
    again = hold_out(few[::-1] + [Utterance("x", "", "a", "en-IN")], 0.1)
    assert {utterance.id: utterance.split for utterance in again if utterance.id != "x"} == split
    assert next(utterance.split for utterance in again if utterance.id == "x") == "train"  # never all
    many = [Utterance(f"{n}", "", f"this is text {n % 300}", "en-IN") for n in range(900)]
    texts = {name: {item.text for item in hold_out(many, 0.1) if item.split == name} for name in ("train", "dev")}
    assert len(texts["dev"]) == 30 and not texts["train"] & texts["dev"]
    assert sum(item.split == "dev" for item in hold_out(many, 0.5, limit=50)) == 48
    two = [Utterance(f"{n}", "", ["one two three", "four five six"][n % 2], "en-IN") for n in range(40)]
    assert sum(item.split == "dev" for item in hold_out(two, 0.1)) == 4  # too few texts for a share


def test_held_out_speakers():
    """Whole ones where five are named, of which each is at most twice the share; else as if none were."""

    def held(sizes, share=0.1):
        names = [f"s{speaker}" for speaker, size in enumerate(sizes) for _ in range(size)]
        given = [Utterance(f"{n}", "", f"these are some words {n}", "hi-IN", name) for n, name in enumerate(names)]
        found = hold_out(given, share)
        both = {one.speaker for one in found if one.split == "dev"} & {one.speaker for one in found if one.split == "train"}
        return sum(one.split == "dev" for one in found), bool(both)

    assert held([20] * 10) == (20, False)
    assert held([1] * 200) == (20, False)
    count, both = held([1, 30, 2, 60, 35, 3, 50, 7])  # the share is 19
    assert 1 <= count <= 38 and not both
    assert held([50] * 4) == (20, True)
    assert held([100] * 5) == (100, False) and held([100] * 5, 0.09) == (45, True)
