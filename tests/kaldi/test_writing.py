"""What is written keeps Kaldi's rules, whatever ids are like, and comes back the same."""

import random
from dataclasses import replace

import pytest
from kaldi_validation import validate_data_dir
from tool_harness import one_line_error

from pyspeech.kaldi.reading import KaldiUtterance, read_data_dir, require_sound
from pyspeech.kaldi.rules import speaker_order
from pyspeech.kaldi.writing import kaldi_ids, write_data_dir

UTTERANCES = [
    KaldiUtterance("s1-b", "s1-b", "/data/b.wav", "s1", text="two", language="hi-IN", gender="f"),
    KaldiUtterance("s1-a", "s1-a", "/data/a.wav", "s1", text="एक दो", language="hi-IN", gender="f"),
    KaldiUtterance("s2-a", "s2-a", "/data/c.wav", "s2", text="three", language="ta-IN", gender="m", custom={"n": [1, "x"]}),
]
CHARACTERS = "ab -_.!A1é\u00a0हि/#\u3000\n\"'"


def written(folder, utterances, seconds=4.0):
    write_data_dir(folder, utterances, {one.recording: seconds for one in utterances})
    assert validate_data_dir(folder) is None
    require_sound(folder)
    return {one.id: replace(one, number=0, stated=None, recording_stated=None) for one in read_data_dir(folder)}


def test_whole_recordings_come_back_the_same(tmp_path):
    assert written(tmp_path / "data", UTTERANCES) == {one.id: one for one in UTTERANCES}
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "reco2dur", "spk2gender", "spk2utt", "text", "utt2custom", "utt2dur", "utt2lang", "utt2spk", "wav.scp"
    ]  # fmt: skip
    assert (tmp_path / "data/spk2utt").read_text() == "s1 s1-a s1-b\ns2 s2-a\n"
    assert (tmp_path / "data/reco2dur").read_text().startswith("s1-a 4.0\n")


def test_parts_of_recordings_come_back_the_same(tmp_path):
    parts = [
        KaldiUtterance("s1-a", "tape 1", "/data/t.wav", "s1", 0.1, 1 / 3, "one"),
        KaldiUtterance("s1-b", "tape 1", "/data/t.wav", "s1", 1 / 3, 4.0, "two"),
        KaldiUtterance("s2-a", "tape-2", "sox x.mp3 -t wav - |", "s2", 0.0, 2.5, "three"),
    ]
    assert written(tmp_path / "data", parts) == {one.id: one for one in parts}
    assert "s1-a tape_1.8e6d0583 0.1 0.3333333333333333\n" in (tmp_path / "data/segments").read_text()
    assert (tmp_path / "data/reco2name").read_text() == 'tape_1.8e6d0583 "tape 1"\n'
    assert not (tmp_path / "data/spk2gender").exists()


def test_a_whole_recording_of_another_name_is_a_segment(tmp_path):
    back = written(tmp_path / "data", [replace(UTTERANCES[0], recording="r")])
    assert (back["s1-b"].recording, back["s1-b"].start, back["s1-b"].end) == ("r", 0.0, 4.0)


def test_ids_that_keep_the_rules_stay_and_others_get_their_speaker():
    assert kaldi_ids([("011c02", "011"), ("012c01", "012")]) == [("011c02", "011"), ("012c01", "012")]
    assert kaldi_ids([("b", None), ("a", None)]) == [("b", "b"), ("a", "a")]
    assert kaldi_ids([("1", "z"), ("2", "y")]) == [("z-1", "z"), ("y-2", "y")]
    assert kaldi_ids([("1", "z"), ("z-1", "z"), ("2", "y")]) == [("z-1", "z"), ("z-z-1", "z"), ("y-2", "y")]
    with one_line_error("two utterances are named a"):
        kaldi_ids([("a", None), ("b", None), ("a", "x")])


def test_ids_of_any_characters_keep_the_rules_and_come_back(tmp_path):
    rng = random.Random(1)
    for number in range(60):
        names = {"".join(rng.choices(CHARACTERS, k=rng.randint(1, 5))) for _ in range(rng.randint(1, 9))}
        speakers = ["".join(rng.choices(CHARACTERS, k=rng.randint(1, 4))) for _ in range(3)] + [None]
        utterances = [
            KaldiUtterance(name, name, "/x.wav", speaker, text="x", custom={"a": name})
            for name in sorted(names)
            for speaker in [rng.choice(speakers)]
            if speaker != name
        ]
        if utterances:
            assert written(tmp_path / str(number), utterances) == {one.id: one for one in utterances}
            assert speaker_order(tmp_path / str(number)) is None


def test_words_of_a_text_are_kept_and_other_tables_said_where_not_all_have_one(tmp_path, caplog):
    utterances = [replace(UTTERANCES[0], text=" p\u00a0q\tr  s\n"), replace(UTTERANCES[2], language=None, gender=None)]
    back = written(tmp_path / "data", utterances)
    assert back["s1-b"].text == "p q r s" and back["s1-b"].language is None
    assert "utt2lang: not written, as 1 of 2 have none" in caplog.text and "spk2gender: not written" in caplog.text


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"text": None}, "s1-b: no text, though others have one"),
        ({"text": "the <s> of it"}, "s1-b: its text has <s>, a symbol of Kaldi's own"),
        ({"recording": "s1-a", "start": 1.0}, "s1-a: two recordings have this name"),
        ({"start": 2.0, "end": 2.0}, "s1-b: from 2.0 s to 2.0 s; expected an end after its start"),
    ],
)
def test_what_kaldi_does_not_allow(tmp_path, changed, message):
    with one_line_error(message):
        written(tmp_path / "data", [replace(UTTERANCES[0], **changed), *UTTERANCES[1:]])


def test_a_directory_that_kaldi_filtered_is_read_with_our_tables_of_more(tmp_path):
    folder = tmp_path / "data"
    parts = [replace(one, id=one.id.replace("-", " "), recording="r", audio="/r.wav", end=1.0) for one in UTTERANCES]
    written(folder, parts)
    for path in folder.iterdir():
        if path.name not in ("utt2name", "utt2custom", "spk2name", "reco2name", "wav.scp", "reco2dur"):
            path.write_text("".join(line for line in path.open() if not line.startswith("s1")))
    require_sound(folder)
    assert [(one.id, one.custom) for one in read_data_dir(folder)] == [("s2 a", {"n": [1, "x"]})]
    (folder / "utt2name").write_text("s2-a {\n")
    with one_line_error("utt2name, line 1: '{' is no JSON"):
        list(read_data_dir(folder))
