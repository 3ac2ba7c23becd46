"""A corpus of Kaldi data directories: which of them are used, segments, commands and archives of wav.scp, problems."""

import logging
import shutil

import kaldiio
import numpy as np
import pytest
import soundfile
from tiny_audio import noise, read_cuts, write_audio
from tool_harness import one_line_error

from local.indic import kaldi
from pyspeech.data.cuts import read_samples
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.kaldi.reading import KaldiUtterance
from pyspeech.kaldi.writing import write_data_dir

log = logging.getLogger("test")


def make_set(folder, audio, count=4, language=None, speaker="s", text="one two", segments=False):
    """A data directory of `count` utterances of half a second, whole files or parts of one, in the folder `audio`."""
    recording = write_audio(audio / f"{speaker}.wav", seconds=count / 2)
    utterances = []
    for number in range(count):
        name = f"{speaker}-{number}"
        path = recording if segments else write_audio(audio / f"{name}.wav", seed=number)
        span = (number / 2, number / 2 + 0.5) if segments else (None, None)
        place = (speaker if segments else name, str(path), speaker, *span)
        utterances.append(KaldiUtterance(name, *place, text, language, "f"))
    write_data_dir(folder, utterances, {one.recording: count / 2 if segments else 0.5 for one in utterances})
    return folder


@pytest.fixture
def corpus(tmp_path):
    """Three sets in a folder data, of one language, one of them of segments."""
    for split, segments in (("train", True), ("dev", False), ("test", False)):
        make_set(tmp_path / "data" / split, tmp_path / "wav" / split, 4, "hi", split, segments=segments)
    return tmp_path / "data"


def test_sets_with_and_without_segments(corpus, tmp_path):
    assert kaldi.prepare(corpus, tmp_path / "out", log) == {"hi-IN": {"train": 4, "dev": 4, "test": 4}}
    cuts = read_cuts(tmp_path / "out", "train")
    assert [(cut.id, cut.recording_id, cut.start, cut.duration) for cut in cuts][1] == ("train-1", "train", 0.5, 0.5)
    supervision = cuts[1].supervisions[0]
    said = [getattr(supervision, name) for name in ("text", "language", "speaker", "gender")]
    assert said == ["one two", "hi-IN", "train", "f"]
    whole, rate = soundfile.read(tmp_path / "wav/train/train.wav", dtype="float32")
    np.testing.assert_array_equal(read_samples(cuts[1], rate), whole[8000:16000])
    test = read_cuts(tmp_path / "out", "test")[2]
    assert (test.id, test.recording_id, test.start, test.duration) == ("test-2", "test-2", 0.0, 0.5)


def test_commands_archives_stereo_and_relative_paths(corpus, tmp_path, monkeypatch):
    folder, audio = corpus / "test", tmp_path / "wav/test"
    samples, rate = soundfile.read(audio / "test-1.wav", dtype="int16")
    kaldiio.save_ark(str(corpus / "x.ark"), {"test-1": (rate, samples)})
    write_audio(audio / "test-2.flac", samples=noise(0.5, channels=2))
    rows = ["cat %s |" % (audio / "test-0.wav"), f"{corpus.name}/x.ark:7", "wav/test/test-2.flac", str(audio / "test-3.wav")]
    (folder / "wav.scp").write_text("".join(f"test-{number} {row}\n" for number, row in enumerate(rows)))
    monkeypatch.chdir("/")
    kaldi.prepare(corpus, tmp_path / "out", log)
    cuts = read_cuts(tmp_path / "out", "test")
    for number, cut in enumerate(cuts):
        path = audio / ("test-2.flac" if number == 2 else f"test-{number}.wav")
        expected = soundfile.read(path, dtype="float32", always_2d=True)[0].mean(axis=1)
        np.testing.assert_allclose(read_samples(cut, rate), expected, atol=2e-5)
    kept = [str(tmp_path / "out") in cut.recording.sources[0].source for cut in cuts]
    assert kept == [True, True, True, False]


def test_a_segment_of_a_stereo_recording_is_read_from_one_copy(corpus, tmp_path):
    path = tmp_path / "wav/train/train.wav"
    write_audio(path, samples=noise(2.0, channels=2))
    kaldi.prepare(corpus, tmp_path / "out", log)
    cuts = read_cuts(tmp_path / "out", "train")
    assert len({cut.recording.sources[0].source for cut in cuts}) == 1
    expected = soundfile.read(path, dtype="float32")[0].mean(axis=1)[24000:]
    np.testing.assert_allclose(read_samples(cuts[3], 16000), expected, atol=2e-5)


def test_recordings_are_made_anew_but_not_by_a_stage_that_resumes(corpus, tmp_path):
    """A command runs once in a stage; a file that was replaced in between is copied again, and what failed is tried again."""
    path, runs = tmp_path / "wav/train/train.wav", tmp_path / "runs"
    ends = tmp_path / "status"
    place = f"echo >> {runs}; cat {tmp_path}/wav/test/test-0.wav; exit $(cat {ends}) |"
    (corpus / "test/wav.scp").write_text(
        f"test-0 {place}\n" + "".join((corpus / "test/wav.scp").read_text().splitlines(keepends=True)[1:])
    )

    def prepared(status, seed, parts=None):
        ends.write_text(str(status))
        write_audio(path, samples=noise(2.0, channels=2, seed=seed))
        counts = kaldi.prepare(corpus, tmp_path / "out", log, parts=parts)
        expected = soundfile.read(path, dtype="float32")[0].mean(axis=1)[24000:]
        np.testing.assert_allclose(read_samples(read_cuts(tmp_path / "out", "train")[3], 16000), expected, atol=2e-5)
        return counts["hi-IN"]["test"], len(runs.read_text().splitlines())

    parts = Parts(tmp_path / "parts")
    assert prepared(0, 1) == (4, 1)
    assert prepared(0, 2) == (4, 2)
    assert prepared(1, 3, parts) == (3, 3)
    assert prepared(0, 4, parts) == (4, 4)
    assert prepared(0, 5, parts) == (4, 4)


def test_problems_are_listed_and_the_others_used(corpus, tmp_path):
    lines = (corpus / "train/segments").read_text().splitlines()
    lines[3] = "train-3 train 1.5 2.4"  # ends with the recording
    (corpus / "train/segments").write_text("\n".join([*lines, "train-4 train 1.5 2.6", "train-5 train 0.5 0.55"]) + "\n")
    for name, rest in (("utt2spk", "train"), ("text", "one"), ("utt2lang", "hi"), ("utt2dur", "1")):
        with open(corpus / "train" / name, "a") as stream:
            stream.write(f"train-4 {rest}\ntrain-5 {rest}\n")
    (corpus / "train/spk2utt").write_text("train " + " ".join(f"train-{number}" for number in range(6)) + "\n")
    (corpus / "test/text").write_text("test-0 a\ntest-1\ntest-2 a\ntest-3 a\n")
    (corpus / "test/wav.scp").write_text((corpus / "test/wav.scp").read_text().replace("test-2.wav", "none.wav"))
    assert kaldi.prepare(corpus, tmp_path / "out", log) == {"hi-IN": {"train": 4, "dev": 4, "test": 2}}
    listed = (tmp_path / "out/problems.txt").read_text()
    assert "train.wav, train-4: a segment to 2.6 s; its recording ends at 2.00 s" in listed
    assert "train.wav, train-5: a segment of 0.050 s" in listed and f"{corpus}/test/text, test-1: no text" in listed
    assert "none.wav: no such audio file" in listed and len(listed.splitlines()) == 4
    cuts = read_cuts(tmp_path / "out", "train")
    assert (cuts[3].start, cuts[3].duration) == (1.5, 0.5)


def test_a_command_or_archive_that_fails_is_a_problem_of_its_utterance(corpus, tmp_path):
    rows = ["false |", "/none.ark:7", tmp_path / "wav/test/test-2.wav", tmp_path / "wav/test/test-3.wav"]
    (corpus / "test/wav.scp").write_text("".join(f"test-{number} {row}\n" for number, row in enumerate(rows)))
    kaldi.prepare(corpus, tmp_path / "out", log)
    listed = (tmp_path / "out/problems.txt").read_text().splitlines()
    assert len(listed) == 2 and listed[0].startswith(f"{corpus}/test/wav.scp, test-0: false |: ")
    assert [cut.id for cut in read_cuts(tmp_path / "out", "test")] == ["test-2", "test-3"]


@pytest.mark.parametrize(
    "names, code",
    [
        (("train",), None),
        (("train_clean_100",), None),
        (("data", "train"), None),
        (("train_hi",), "hi-IN"),
        (("Tamil", "test"), "ta-IN"),
        (("gu-IN", "data", "dev"), "gu-IN"),
        (("Tulu", "train"), "tulu"),
    ],
)
def test_languages_of_folders(names, code):
    assert kaldi.folder_language(names) == code


def test_folders_of_languages_with_equal_ids_and_one_left_out(tmp_path, caplog):
    for language in ("Hindi", "Tamil", "Odia"):
        for split in ("train", "test"):
            if (language, split) != ("Odia", "test"):
                make_set(tmp_path / "data" / language / split, tmp_path / "wav" / language / split, speaker="x" + split)
    assert kaldi.prepare(tmp_path / "data", tmp_path / "out", log) == {
        "hi-IN": {"train": 3, "dev": 1, "test": 4},
        "ta-IN": {"train": 3, "dev": 1, "test": 4},
    }
    assert read_cuts(tmp_path / "out", "test")[0].id == "hi-IN-test-xtest-0"
    assert "or-IN: no test set; the language is left out" in caplog.text
    with one_line_error("or-IN: no test set"):
        kaldi.prepare(tmp_path / "data", tmp_path / "out", log, languages=["Odia"])


def test_the_plain_set_stands_for_those_beside_it(corpus, tmp_path, caplog):
    shutil.copytree(corpus / "train", corpus / "train_sp")
    shutil.copytree(corpus / "train", corpus / "train/split2/1")
    shutil.copytree(corpus / "train", corpus / "extra")
    (corpus / "test").rename(corpus / "test_clean")
    make_set(corpus / "test_other", tmp_path / "wav/other", 2, "hi", "other")
    assert kaldi.prepare(corpus, tmp_path / "out", log) == {"hi-IN": {"train": 4, "dev": 4, "test": 6}}
    assert f"{corpus}/train_sp: not used, as {corpus}/train is there" in caplog.text
    assert f"{corpus}/extra: not used, as no folder's name says" in caplog.text and "split2" not in caplog.text


def test_the_language_is_said_by_the_option_where_nothing_else_does(tmp_path):
    for split in ("train", "test"):
        make_set(tmp_path / "data" / split, tmp_path / "wav" / split, speaker=split)
    with one_line_error("neither utt2lang nor a folder's name says which language it is; .*languages="):
        kaldi.prepare(tmp_path / "data", tmp_path / "out", log)
    assert list(kaldi.prepare(tmp_path / "data", tmp_path / "out", log, languages=["ta"])) == ["ta-IN"]


def test_what_is_no_such_corpus(corpus, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder, message in (
        (tmp_path / "none", "no such folder"),
        (tmp_path / "empty", "no Kaldi data directory in it"),
        (corpus / "train", "is a data directory itself"),
    ):
        with one_line_error(f"corpus={folder}: {message}; expected"):
            kaldi.prepare(folder, tmp_path / "out", log)
    (corpus / "dev/text").unlink()
    with one_line_error("data/dev: no text"):
        kaldi.prepare(corpus, tmp_path / "out", log)
    (corpus / "dev/spk2utt").unlink()
    with pytest.raises(UserError, match="dev/spk2utt: no such file"):
        kaldi.prepare(corpus, tmp_path / "out", log)


def test_ids_without_their_speaker_in_front_are_a_warning(corpus, tmp_path, caplog):
    (corpus / "test/utt2spk").write_text("test-0 z\ntest-1 a\ntest-2 z\ntest-3 z\n")
    (corpus / "test/spk2utt").write_text("a test-1\nz test-0 test-2 test-3\n")
    (corpus / "test/spk2gender").unlink()
    kaldi.prepare(corpus, tmp_path / "out", log)
    assert "not in the order of speakers (a after z)" in caplog.text
    assert [cut.supervisions[0].speaker for cut in read_cuts(tmp_path / "out", "test")] == ["z", "a", "z", "z"]
