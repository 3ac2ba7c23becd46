"""The layout of ZeroSpeech 2019: what is found wherever it lies, kept, left out, and what stops."""

import gzip
import logging
import os
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import soundfile
from tiny_audio import read_cuts, write_audio
from tiny_zerospeech import TEST_SPEAKERS, UNIT_SPEAKERS, VOICES, make_zerospeech

from local.zerospeech import zerospeech2019
from pyspeech.errors import UserError
from pyspeech.units import challenge
from pyspeech.units.bitrate import read_filelist
from pyspeech.units.challenge import list_utterances
from pyspeech.units.phones import read_alignment

log = logging.getLogger("test")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_zerospeech(tmp_path_factory.mktemp("zerospeech") / "2019", utterances=3)


def read(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_official_layout(made, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        counts = zerospeech2019.prepare(made, tmp_path, log)
    assert counts == {"language": "english", "unit": 9, "voice": 6, "test": 24, "items": 18}
    assert {cut.supervisions[0].speaker for cut in read_cuts(tmp_path, "unit")} == set(UNIT_SPEAKERS)
    assert {cut.supervisions[0].speaker for cut in read_cuts(tmp_path, "voice")} == set(VOICES)
    test = read_cuts(tmp_path, "test")
    assert {cut.supervisions[0].speaker for cut in test} == set(TEST_SPEAKERS)
    assert all(cut.id == cut.supervisions[0].id and cut.supervisions[0].text is None for cut in test)
    assert min(cut.duration for cut in test) == 0.095
    assert [cut.id for cut in test if not cut.load_audio().any()] == ["S002_0000000024"]  # digital silence is kept
    items = read(tmp_path / "abx.item")
    assert items == read(made / "english/triphone.item") and len(items) == 19
    assert read_filelist(tmp_path / "bitrate_filelist") == read_filelist(made / "english/bitrate_filelist.txt")
    assert read(tmp_path / "synthesis.txt") == read(made / "english/synthesis.txt")
    assert not (tmp_path / "problems.txt").exists() and "2 parallel utterances are not used" in caplog.text


def test_an_alignment(made, tmp_path):
    corpus = shutil.copytree(made, tmp_path / "2019")
    name = read_filelist(corpus / "english/bitrate_filelist.txt")[0][0]
    (corpus / "english/alignment.ctm").write_text(f"{name} 1 0.0 0.05 a\n{name} 1 0.05 0.05 i\nX_1 1 0.0 0.1 a\n")
    zerospeech2019.prepare(corpus, tmp_path / "out", log)
    assert read_alignment(tmp_path / "out/alignment.ctm") == {name: [(0.0, 0.05, "a"), (0.05, 0.1, "i")]}
    (corpus / "english/alignment.ctm").write_text("X_1 1 0.0 0.1 a\n")
    fails("alignment.ctm: names no usable test utterance", corpus, tmp_path / "out")
    (corpus / "english/alignment.ctm").unlink()
    zerospeech2019.prepare(corpus, tmp_path / "out", log)
    assert not (tmp_path / "out/alignment.ctm").exists()


def test_prepared_twice_gives_the_same_bytes(made, tmp_path):
    for name in ("a", "b"):
        zerospeech2019.prepare(made, tmp_path / name, log)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["abx.item", "bitrate_filelist", "synthesis.txt", "test.jsonl.gz", "unit.jsonl.gz", "voice.jsonl.gz"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


@pytest.mark.parametrize(
    "moves, given",
    [
        ({}, "english"),
        ({"english": "data/release 1/2019/ENGLISH"}, "."),
        ({"english/train/unit": "english/Unit"}, "."),
        ({"english/train/unit": "english/train/Unit_Discovery", "english/test": "english/TEST/wav"}, "."),
        (
            {
                "english/triphone.item": "ABXTasks/english_byCtxt.item",
                "english/bitrate_filelist.txt": "share/2019/english/bitrate_filelist.txt",
            },
            ".",
        ),
    ],
)
def test_folders_are_found_wherever_they_lie(corpus, tmp_path, moves, given):
    for source, target in moves.items():
        (corpus / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(corpus / source, corpus / "moved")
        shutil.move(corpus / "moved", corpus / target)
    counts = zerospeech2019.prepare(corpus / given, tmp_path / "out", log)
    assert (counts["language"], counts["unit"], counts["voice"], counts["test"], counts["items"]) == ("english", 9, 6, 24, 18)
    assert len(read(tmp_path / "out/bitrate_filelist")) == 6


def test_folders_of_librispeech_keep_its_speakers_and_ids():
    """Above a file is the chapter; Libri-light's items name utterances as they are."""
    root = Path("/data/train/unit")
    paths = [root / "dev-clean/1272/128104/1272-128104-0000.flac", root / "84/84-121123-0001.flac", root / "ann/sa1.wav"]
    found = list_utterances(paths, "unit", "english")
    assert [(utterance.id, utterance.speaker) for utterance in found] == [
        ("1272-128104-0000", "1272"),
        ("84-121123-0001", "84"),
        ("ann_sa1", "ann"),
    ]


def test_columns_of_items_in_the_order_of_their_header(corpus, tmp_path):
    expected = read(corpus / "english/triphone.item")
    rows = [line.split() for line in expected]
    order = [0, 3, 1, 2, 6, 5, 4]
    (corpus / "english/triphone.item").write_text("".join(" ".join(row[place] for place in order) + "\n" for row in rows))
    zerospeech2019.prepare(corpus, tmp_path / "out", log)
    assert read(tmp_path / "out/abx.item") == expected


def test_both_languages_and_the_2017_track_beside(tmp_path, caplog):
    corpus = make_zerospeech(tmp_path / "2020/2019", ("english", "surprise"), utterances=1)
    write_audio(tmp_path / "2020/2017/english/test/1s/aaa.wav")
    with caplog.at_level(logging.INFO):
        assert zerospeech2019.prepare(tmp_path / "2020", tmp_path / "out", log)["language"] == "english"
    assert "taking english; there is also surprise" in caplog.text
    assert zerospeech2019.prepare(corpus, tmp_path / "out", log, language="Surprise")["items"] == 18
    assert "/surprise/test/" in read_cuts(tmp_path / "out", "test")[0].recording.sources[0].source
    with pytest.raises(UserError, match="language=french is not there; there is english, surprise"):
        zerospeech2019.prepare(corpus, tmp_path / "out", log, language="french")
    (corpus / "english").rename(corpus / "anglais")
    with pytest.raises(UserError, match="several languages, anglais, surprise; choose one with language=NAME"):
        zerospeech2019.prepare(corpus, tmp_path / "out", log)
    shutil.copytree(corpus / "surprise", corpus / "again/surprise")
    with pytest.raises(UserError, match="surprise is there 2 times"):
        zerospeech2019.prepare(corpus, tmp_path / "out", log, language="surprise")


def test_without_what_is_optional(corpus, tmp_path, caplog):
    root = corpus / "english"
    zerospeech2019.prepare(corpus, tmp_path / "out", log)
    shutil.rmtree(root / "train/parallel")
    shutil.rmtree(root / "train/voice")
    for name in ("triphone.item", "bitrate_filelist.txt", "synthesis.txt"):
        (root / name).unlink()
    with caplog.at_level(logging.INFO):
        counts = zerospeech2019.prepare(corpus, tmp_path / "out", log)
    assert counts["items"] == 0 and counts["voice"] == 9 and len(read(tmp_path / "out/bitrate_filelist")) == 24
    assert not (tmp_path / "out/abx.item").exists() and not (tmp_path / "out/synthesis.txt").exists()
    for words in (
        "no .item or .abx file with test utterances; there will be no ABX. Where one is added: --force --stage prepare "
        "--stop-stage prepare",
        "no folder voice",
        "no bitrate_filelist",
        "no synthesis.txt",
    ):
        assert sum(words in record.getMessage() for record in caplog.records) == 1, words


def test_names_rates_and_channels_of_all_sorts(corpus, tmp_path):
    test = corpus / "english/test"
    write_audio(test / "S 099_vowel a.wav", rate=44100)
    write_audio(test / (unicodedata.normalize("NFD", "Sé7_ü") + ".WAV"), 0.05, channels=2)
    write_audio(test / "S100_x.flac", rate=11025)
    write_audio(test / "S200/x.wav", 1 / 16000, format="WAV")
    with open(corpus / "english/triphone.item", "a", encoding="utf-8") as stream:
        stream.write(
            "S 099_vowel a 0 0.5 a m n S099\nSé7_ü.wav 0 0.05 a m n Sé7\ntest/S100_x 0 0.5 a m n S100\nnone 0 1 a b c d\n"
        )
    counts = zerospeech2019.prepare(corpus, tmp_path / "out", log)
    assert counts["test"] == 28 and counts["items"] == 21
    found = {cut.id: cut for cut in read_cuts(tmp_path / "out", "test")}
    assert found["S-099_vowel-a"].sampling_rate == 44100 and found["S-099_vowel-a"].supervisions[0].speaker == "S-099"
    stereo = found["Sé7_ü"]
    assert stereo.load_audio().shape == (1, 800) and "/out/mixed/test/" in stereo.recording.sources[0].source
    assert found["S200_x"].supervisions[0].speaker == "S200" and found["S200_x"].load_audio().shape == (1, 1)
    assert [line.split()[0] for line in read(tmp_path / "out/abx.item")[-3:]] == ["S-099_vowel-a", "Sé7_ü", "S100_x"]


def test_bad_audio_is_named_and_more_than_isolated_files_stop(corpus, tmp_path, caplog):
    unit, test = corpus / "english/train/unit", corpus / "english/test"
    names = sorted(path.stem for path in unit.iterdir())
    (unit / f"{names[0]}.wav").write_bytes(b"")
    whole = (unit / f"{names[1]}.wav").read_bytes()
    (unit / f"{names[1]}.wav").write_bytes(whole[:2000])
    soundfile.write(str(unit / f"{names[2]}.wav"), np.zeros(16000), 16000)
    first = sorted(path.stem for path in test.iterdir())[2]
    (test / f"{first}.wav").write_text("not audio")
    write_audio(test / f"{first[:-1]}9.flac")
    with caplog.at_level(logging.WARNING):
        counts = zerospeech2019.prepare(corpus, tmp_path / "out", log)
    assert counts["unit"] == 6 and counts["items"] == 17
    listed = (tmp_path / "out/problems.txt").read_text()
    for name, words in [(names[0], "empty (0 bytes)"), (names[1], "truncated"), (names[2], "silent"), (first, "as audio")]:
        assert any(name in line and words in line for line in listed.splitlines()), name
    assert "left out 4 of 40" in caplog.text
    for path in sorted(test.iterdir())[4:12]:
        path.write_bytes(b"")
    with pytest.raises(UserError, match="12 of 40 utterances have problems") as error:
        zerospeech2019.prepare(corpus, tmp_path / "out", log)
    assert "skip_bad=true" in str(error.value)
    assert zerospeech2019.prepare(corpus, tmp_path / "out", log, skip_bad=True)["test"] == 16


def test_short_and_twin_files(corpus, tmp_path):
    unit, test = corpus / "english/train/unit", corpus / "english/test"
    write_audio(unit / "S001_short.wav", 0.05)
    shutil.copy(unit / "S001_short.wav", os.fsencode(unit) + b"/S001_caf\xe9.wav")
    write_audio(unit / "S001_low.wav", rate=2000)
    soundfile.write(str(test / "S001_none.wav"), np.zeros(0), 16000)
    write_audio(test / "S001_x.wav")
    write_audio(test / "more/S001_x.wav")
    zerospeech2019.prepare(corpus, tmp_path / "out", log)
    listed = (tmp_path / "out/problems.txt").read_text()
    for words in (
        "S001_short.wav: only 0.050 s",
        "S001_low.wav: a sampling rate of 2000 Hz",
        "S001_none.wav: holds no",
        "more/S001_x.wav: 2 files of the name S001_x",
        "S001_caf\\udce9.wav: its name is not UTF-8",
    ):
        assert words in listed, words
    assert len(listed.splitlines()) == 6


def test_lists_that_name_what_is_not_there(corpus, tmp_path, caplog):
    root = corpus / "english"
    (root / "bitrate_filelist.txt").write_text("S002_0000000018.txt 1.0\nX_1.txt 2.0\n")
    (root / "synthesis.txt").write_text("english/test/S002_0000000018.wav,V002\nX_1 V001\nS002_0000000019\n")
    (root / "other.item").write_text("#file\nX_1 0 1 a b c X\n")
    shutil.copy(next((root / "test").iterdir()), root / "train/unit/S002_0000000018.wav")
    zerospeech2019.prepare(corpus, tmp_path / "out", log)
    assert "1 of 2 utterances are not among the usable test utterances" in caplog.text
    assert "1 test utterances are trained on as well (S002_0000000018, ...)" in caplog.text
    assert read(tmp_path / "out/bitrate_filelist") == ["S002_0000000018 1.0"]
    assert read(tmp_path / "out/synthesis.txt") == ["S002_0000000018 V002", "S002_0000000019 V001", "S002_0000000019 V002"]
    for line in ("S002_1 0 1 a b c", "S002_1 x 1 a b c d", "S002_1 2 1 a b c d", "S002_1 0 inf a b c d"):
        (root / "triphone.item").write_text(f"#file\n{line}\n")
        with pytest.raises(UserError, match="triphone.item, line 2: .*; expected `#file onset"):
            zerospeech2019.prepare(corpus, tmp_path / "out", log)


def fails(message, corpus, out, **options):
    with pytest.raises(UserError, match=message) as error:
        zerospeech2019.prepare(corpus, out, log, **options)
    assert "\n" not in str(error.value)


def test_lists_that_cannot_be_followed(corpus, tmp_path):
    """Voices and times that are not there; lists that are of other files altogether; the names of lists in any case."""
    root, out = corpus / "english", tmp_path / "out"
    (root / "triphone.item").rename(root / "Triphone.ITEM")
    (root / "bitrate_filelist.txt").rename(root / "Bitrate_FileList.txt")
    (root / "synthesis.txt").rename(root / "Synthesis.TXT")
    assert zerospeech2019.prepare(corpus, out, log)["items"] == 18
    assert len(read(out / "bitrate_filelist")) == 6 and len(read(out / "synthesis.txt")) == 6
    for voice in ("V009", "v001"):
        (root / "Synthesis.TXT").write_text(f"S002_0000000018 V001\nS002_0000000019 {voice}\n")
        fails(f"Synthesis.TXT: S002_0000000019 is to be spoken by {voice}, of whom .* one of V001, V002", corpus, out)
    (root / "Synthesis.TXT").write_text("X_1 V001\n")
    fails("Synthesis.TXT: names no usable test utterance; expected names such as S002_", corpus, out)
    (root / "Synthesis.TXT").unlink()
    (root / "Bitrate_FileList.txt").write_text("X_1 1.0\n")
    fails("Bitrate_FileList.txt: names no usable test utterance", corpus, out)
    (root / "Bitrate_FileList.txt").write_text("S002_0000000018 -1\n")
    fails("Bitrate_FileList.txt, line 1: a duration of -1 s; expected more than 0", corpus, out)
    (root / "Bitrate_FileList.txt").unlink()
    (root / "Triphone.ITEM").write_text("#file\nS002_0000000018 0 0.1 a m n S002\nS002_0000000018 100 101 a m n S002\n")
    fails("Triphone.ITEM, line 3: an item begins at 100 s, but S002_0000000018 ends at ", corpus, out)


def test_a_voice_of_bad_files_cannot_speak(corpus, tmp_path):
    for path in (corpus / "english/train/voice").glob("V002_*"):
        path.write_bytes(b"")
    fails(
        "synthesis.txt: S002_.* is to be spoken by V002, of whom there is no usable recording; expected one of V001$",
        corpus,
        tmp_path / "out",
    )


def test_links_to_one_folder(corpus, tmp_path, caplog):
    """Each is followed, unless it leads back up; a language or file that several lead to is one."""
    root = corpus / "english"
    shutil.rmtree(root / "train/voice")
    (root / "train/unit").rename(corpus / "pool")
    for part in ("unit", "voice"):
        (root / "train" / part).symlink_to(corpus / "pool")
    (root / "test/again").symlink_to(root / "test")
    (corpus / "pool/back").symlink_to(corpus)
    (corpus / "surprise").symlink_to(root)
    (root / "synthesis.txt").unlink()
    counts = zerospeech2019.prepare(corpus, tmp_path / "out", log, language="surprise")
    assert (counts["unit"], counts["voice"], counts["test"]) == (9, 9, 24) and "no folder voice" not in caplog.text
    (corpus / "latest").mkdir()
    (corpus / "latest/english").symlink_to(root)
    (root / "test/part").mkdir()
    (root / "test/same").symlink_to(root / "test/part")
    write_audio(root / "test/part/S001_x.wav")
    assert zerospeech2019.prepare(corpus, tmp_path / "out", log, language="english")["test"] == 25


def test_lists_of_two_languages(tmp_path):
    """Those that name no language serve the one whose utterances they name; one language's serve no other."""
    corpus = make_zerospeech(tmp_path / "2019", ("english",), utterances=1)
    make_zerospeech(corpus, ("english_small",), utterances=1, snippets=1)
    for path in [*(corpus / "english").glob("*.*"), corpus / "english_small/bitrate_filelist.txt"]:
        path.unlink() if path.parent.name == "english" and path.suffix != ".item" else path.rename(corpus / path.name)
    (corpus / "ABX/english_small").mkdir(parents=True)
    (corpus / "english_small/triphone.item").rename(corpus / "ABX/english_small/b.item")
    counts = [zerospeech2019.prepare(corpus, tmp_path / name, log, language=name) for name in ("english", "english_small")]
    assert [one["items"] for one in counts] == [18, 9]
    assert not (tmp_path / "english/synthesis.txt").exists() and (tmp_path / "english_small/synthesis.txt").exists()


def test_shorter_than_a_sample_after_resampling(corpus, tmp_path):
    for name, samples, rate in (("S001_one", 1, 48000), ("S001_three", 3, 48000), ("S001_ones", 1, 16000)):
        write_audio(corpus / f"english/test/{name}.wav", samples / rate, rate)
    assert zerospeech2019.prepare(corpus, tmp_path / "out", log)["test"] == 26
    assert "S001_one.wav: only 0.000 s of audio, less than a sample at 16000 Hz" in (tmp_path / "out/problems.txt").read_text()


def test_what_a_submission_of_another_language_is_expected_to_hold(corpus):
    assert set(challenge.expected_files(corpus, "ENGLISH")) == {"english"}
    shutil.copytree(corpus / "english", corpus / "surprise")
    assert set(challenge.expected_files(corpus)) == {"english", "surprise"}
    (corpus / "english").rename(corpus / "French")
    assert set(challenge.expected_files(corpus, "french")) == {"english"}
    assert set(challenge.expected_files(corpus / "French")) == {"english"}
    assert set(challenge.expected_files(corpus, "surprise")) == {"surprise"}


def test_what_a_submission_is_expected_to_hold(corpus):
    utterances, pairs = challenge.expected_files(corpus)["english"]
    assert len(utterances) == 24 and len(pairs) == 6 and ("S002_0000000018", "V001") in pairs
    (corpus / "english/synthesis.txt").unlink()
    assert challenge.expected_files(corpus, "english")["english"][1] is None
    with pytest.raises(UserError, match="no language surprise with a folder test"):
        challenge.expected_files(corpus, "surprise")


def test_names_without_speakers_are_remarked_on(corpus, tmp_path, caplog):
    for number, path in enumerate(sorted((corpus / "english/train/unit").iterdir())):
        path.rename(path.with_name(f"{number}.wav"))
    zerospeech2019.prepare(corpus, tmp_path / "out", log)
    assert "unit: a single speaker, unit; expected many, named before the underscore" in caplog.text


def test_what_is_no_corpus(corpus, tmp_path):
    with pytest.raises(UserError, match="nowhere: no such folder; expected one with english/train/unit"):
        zerospeech2019.prepare(tmp_path / "nowhere", tmp_path / "out", log)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no audio in folders named unit, voice or test"):
        zerospeech2019.prepare(tmp_path / "empty", tmp_path / "out", log)
    shutil.rmtree(corpus / "english/test")
    with pytest.raises(UserError, match="no audio in a folder test of .*english"):
        zerospeech2019.prepare(corpus, tmp_path / "out", log)


def test_manifests_hold_no_time_of_day(made, tmp_path):
    zerospeech2019.prepare(made, tmp_path, log)
    assert (tmp_path / "unit.jsonl.gz").read_bytes()[4:8] == bytes(4)
    with gzip.open(tmp_path / "unit.jsonl.gz") as stream:
        assert len(stream.readlines()) == 9
