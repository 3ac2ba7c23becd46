"""A corpus of manifests: lhotse cuts, JSON lines of NeMo, tables; which are used, what they say, what is wrong with them."""

import gzip
import json
import logging
import shutil
import types

import numpy as np
import pytest
import soundfile
from lhotse import CutSet, MonoCut, Recording, SupervisionSegment
from tiny_audio import noise, read_cuts, write_audio
from tool_harness import one_line_error

from local.indic import manifests
from pyspeech.data.cuts import read_samples
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from steps.asr.corpus import prepare

log = logging.getLogger("test")
TEXTS = ["one two", "two three four", "five six", "seven one"]


def nemo_lines(folder, split, count=4, language="hi", **more):
    """Entries of NeMo's manifests, of files of half a second in folder/wav/<split>."""
    paths = [write_audio(folder / f"wav/{split}/{split}-{number}.wav", seed=number) for number in range(count)]
    lang = {} if language is None else {"lang": language}
    return [
        {"audio_filepath": str(path.relative_to(folder)), "duration": 0.5, "text": TEXTS[number % 4], **lang, **more}
        for number, path in enumerate(paths)
    ]


def write_lines(path, entries):
    path.parent.mkdir(parents=True, exist_ok=True)
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    return path


def said(cut):
    one = cut.supervisions[0]
    return cut.id, cut.recording_id, round(cut.start, 6), round(cut.duration, 6), one.text, one.language, one.speaker


@pytest.fixture
def nemo(tmp_path):
    """Three manifests of NeMo in a folder, with relative paths."""
    for split, speaker in (("train", "s1"), ("val", 7), ("test", None)):
        entries = nemo_lines(tmp_path / "data", split, speaker=speaker)
        write_lines(tmp_path / f"data/{split}_manifest.json", entries)
    return tmp_path / "data"


def test_manifests_of_nemo_from_any_folder(nemo, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert manifests.prepare(nemo, tmp_path / "out", log) == {"hi-IN": {"train": 4, "dev": 4, "test": 4}}
    train, dev = (read_cuts(tmp_path / "out", part) for part in ("train", "dev"))
    assert said(train[1]) == ("train-1", "train-1", 0, 0.5, "two three four", "hi-IN", "s1")
    assert said(dev[0])[6] == "7" and dev[0].recording.sources[0].source == str(nemo / "wav/val/val-0.wav")


def test_parts_of_a_recording_of_two_channels(tmp_path):
    """They are parts of one mono copy."""
    path = write_audio(tmp_path / "a b.wav", samples=noise(2.0, channels=2))
    parts = [{"audio": path.name, "offset": start, "duration": 0.7, "sentence": "one two"} for start in (0, 0.7, 1.25)]
    write_lines(tmp_path / "train.jsonl.gz", [{**one, "language": "Hindi"} for one in parts])
    write_lines(tmp_path / "test.jsonl", nemo_lines(tmp_path, "test"))
    manifests.prepare(tmp_path, tmp_path / "out", log)
    cuts = [cut for part in ("train", "dev") for cut in read_cuts(tmp_path / "out", part)]
    cuts = sorted(cuts, key=lambda cut: cut.start)
    assert [said(cut)[:5] for cut in cuts][1:] == [
        ("a b-0000700", "a b", 0.7, 0.7, "one two"),
        ("a b-0001250", "a b", 1.25, 0.7, "one two"),
    ]
    assert len({cut.recording.sources[0].source for cut in cuts}) == 1
    expected = soundfile.read(path, dtype="float32")[0].mean(axis=1)[11200:22400]
    np.testing.assert_allclose(read_samples(cuts[1], 16000), expected, atol=2e-5)


def test_a_table_that_says_the_sets(tmp_path):
    """Languages are those of the folders; files of the same name in two folders have other ids."""
    for folder in ("hi_read", "cv_ta"):
        rows = ["path\ttext\tspeaker\tsplit" if folder == "hi_read" else "Path\tText\tSpeaker\tSplit"]
        for number, split in enumerate(("train", "train", "train", "test", "dev")):
            name = f"{'ab'[number % 2]}/{number // 2}.wav"
            write_audio(tmp_path / folder / name, seed=number)
            rows.append(f'{name}\tone "two\ts{number}\t{split}')
        (tmp_path / folder / "manifest.tsv").write_text("\n".join(rows) + "\n")
    counts = {"train": 3, "dev": 1, "test": 1}
    assert manifests.prepare(tmp_path, tmp_path / "out", log) == {"hi-IN": counts, "ta-IN": counts}
    cuts = read_cuts(tmp_path / "out", "train")
    assert [cut.id for cut in cuts[:3]] == ["hi-IN-train-a-0", "hi-IN-train-a-1", "hi-IN-train-b-0"]
    assert cuts[0].supervisions[0].text == 'one "two'


def test_a_name_that_a_manifest_has_twice(tmp_path, caplog):
    """Where another set or language tells them apart, these alone are renamed; else they are problems, and named."""
    entries = nemo_lines(tmp_path, "x", 8)
    for number, (entry, name) in enumerate(zip(entries, "abcadeeb", strict=True)):
        entry.update(id=name, split="test" if number in (3, 4) else "train")
    write_lines(tmp_path / "corpus.json", entries)
    manifests.prepare(tmp_path / "corpus.json", tmp_path / "out", log)
    ids = {part: [cut.id for cut in read_cuts(tmp_path / "out", part)] for part in ("train", "dev", "test")}
    assert sorted(ids["train"] + ids["dev"]) == ["c", "hi-IN-train-a"] and ids["test"] == ["d", "hi-IN-test-a"]
    said = f"{tmp_path}/corpus.json: has several utterances of the same name"
    assert f"{said} (a): these begin with language and set" in caplog.text
    assert f"{said} (b, e): give each a name of its own" in caplog.text
    assert "several manifests" not in caplog.text
    problems = (tmp_path / "out/problems.txt").read_text()
    assert problems.count("2 utterances have the id e") == problems.count("2 utterances have the id b") == 2


def test_a_name_twice_in_one_of_several_manifests(nemo, tmp_path, caplog):
    entries = nemo_lines(nemo, "train", 4)
    write_lines(nemo / "train_manifest.json", [*entries, entries[0]])
    caplog.set_level("INFO")
    manifests.prepare(nemo, tmp_path / "out", log)
    assert "train_manifest.json: has several utterances of the same name (train-0): give each a name of its own" in caplog.text
    assert [cut.id for cut in read_cuts(tmp_path / "out", "test")] == [f"test-{number}" for number in range(4)]
    for name in ("train", "test"):
        write_lines(nemo / f"{name}_manifest.json", [{**one, "id": str(n)} for n, one in enumerate(nemo_lines(nemo, name))])
    manifests.prepare(nemo, tmp_path / "out", log)
    assert "several manifests have utterances of the same name: all begin with language and set" in caplog.text
    assert [cut.id for cut in read_cuts(tmp_path / "out", "dev")] == [f"hi-IN-dev-val-{number}" for number in range(4)]


def test_one_manifest_has_its_test_and_dev_sets_drawn(tmp_path, caplog):
    entries = [{**one, "text": f"text number {number}"} for number, one in enumerate(nemo_lines(tmp_path, "x", 30))]
    path = write_lines(tmp_path / "corpus.json", entries)
    assert manifests.prepare(path, tmp_path / "out", log) == {"hi-IN": {"train": 24, "dev": 3, "test": 3}}
    assert "no test set of hi-IN: 3 utterances are held out as one, of speakers that training has, in hi-IN" in caplog.text


def test_whole_speakers_are_held_out_where_they_are_named(tmp_path, caplog):
    lines = enumerate(nemo_lines(tmp_path, "x", 30))
    entries = [{**one, "text": f"text number {number}", "speaker": f"s{number % 10}"} for number, one in lines]
    path = write_lines(tmp_path / "corpus.json", entries)
    assert manifests.prepare(path, tmp_path / "out", log) == {"hi-IN": {"train": 24, "dev": 3, "test": 3}}
    speakers = [{cut.supervisions[0].speaker for cut in read_cuts(tmp_path / "out", name)} for name in ("train", "dev", "test")]
    assert len(set.union(*speakers)) == sum(map(len, speakers)) == 10
    assert "3 utterances are held out as one, of other speakers" in caplog.text


def test_which_manifests_are_used(nemo, tmp_path, caplog):
    shutil.copy(nemo / "train_manifest.json", nemo / "train_small.json")
    shutil.copy(nemo / "train_manifest.json", nemo / "everything.json")
    (nemo / "config.json").write_text('{\n "text": 1\n}\n')
    (nemo / "notes.json").write_text("not at all\n")
    assert manifests.prepare(nemo, tmp_path / "out", log) == {"hi-IN": {"train": 4, "dev": 4, "test": 4}}
    assert "train_small.json: not used, as" in caplog.text and "everything.json: not used, as neither its name" in caplog.text
    others = [str(nemo / name) for name in ("config.json", "notes.json")]
    assert f"neither cuts nor lines with audio and text: {', '.join(others)}" in caplog.text


@pytest.mark.parametrize(
    "names, code",
    [
        (("corpus", "train_manifest"), None),
        (("corpus", "hi", "train"), "hi-IN"),
        (("tamil", "test_cuts"), "ta-IN"),
        (("corpus", "indicvoices_or_train"), "or-IN"),
        (("gu_in", "train"), "gu-IN"),
        (("v1", "train-de"), "de"),
    ],
)
def test_languages_of_names(names, code):
    assert manifests.named_language(names) == code


def test_a_language_that_nothing_says(tmp_path):
    for split in ("train", "test"):
        write_lines(tmp_path / f"{split}.json", nemo_lines(tmp_path, split, language=None))
    with pytest.raises(
        UserError, match=r"8 of 8 .*\n.*test.json, line 1: no language; expected lang in it, .* languages=\[hi\]"
    ):
        manifests.prepare(tmp_path, tmp_path / "out", log)
    counts = {"train": 3, "dev": 1, "test": 4}
    assert manifests.prepare(tmp_path, tmp_path / "out", log, languages=["tulu"]) == {"tulu": counts}


BAD = {
    "not JSON; is the file cut off?": '{"audio_filepath": "a.w',
    "it is '7'; expected an object with audio_filepath and text": "7",
    "audio_filepath is None; expected the path of an audio file": '{"text": "one", "lang": "hi"}',
    "text is None; expected what is said": '{"audio_filepath": "a.wav", "lang": "hi"}',
    "text is 'a \\ud800'; expected what is said": r'{"audio_filepath": "a.wav", "text": "a \ud800", "lang": "hi"}',
    "lang is 3; expected a code such as hi": '{"audio_filepath": "a.wav", "text": "a", "lang": 3}',
    "duration is '1 s'; expected a number of seconds, 0 or more": '{"audio_filepath": "a.wav", "text": "a", "duration": "1 s"}',
    "offset is -1; expected a number of seconds, 0 or more": '{"audio_filepath": "a.wav", "text": "a", "offset": -1}',
    "offset is 3, and duration None; expected a number of seconds above 0": '{"audio": "a.wav", "text": "a", "offset": 3}',
    "split is 'x'; expected train, dev or test": '{"audio_filepath": "a.wav", "text": "a", "lang": "hi", "split": "x"}',
}


@pytest.mark.parametrize("problem", BAD)
def test_bad_lines_are_named_and_left_out(nemo, tmp_path, problem):
    path = nemo / "train_manifest.json"
    path.write_text(path.read_text() + BAD[problem] + "\n", encoding="utf-8")
    assert manifests.prepare(nemo, tmp_path / "out", log)["hi-IN"] == {"train": 4, "dev": 4, "test": 4}
    assert (tmp_path / "out/problems.txt").read_text() == f"{path}, line 5: {problem}\n"


def test_many_bad_lines_stop(nemo, tmp_path):
    with open(nemo / "test_manifest.json", "a") as stream:
        stream.write("{\n" * 20)
    with pytest.raises(UserError, match="20 of 32 utterances have problems"):
        manifests.prepare(nemo, tmp_path / "out", log)
    assert manifests.prepare(nemo, tmp_path / "out", log, skip_bad=True)["hi-IN"]["test"] == 4


def test_audio_that_is_not_as_long_or_not_there(nemo, tmp_path):
    entries = nemo_lines(nemo, "train")
    entries[0]["duration"], entries[1]["audio_filepath"] = 5.0, "none.wav"
    write_lines(nemo / "train_manifest.json", entries)
    manifests.prepare(nemo, tmp_path / "out", log)
    listed = (tmp_path / "out/problems.txt").read_text()
    assert "train-0.wav: 0.50 s of audio; its corpus says 5 s" in listed
    assert f"{nemo}/none.wav: no such audio file" in listed


def test_the_recipe_takes_a_manifest_whatever_its_kind_says(tmp_path, caplog):
    """A longer utterance is left out."""
    entries = [{**one, "text": f"text number {number}"} for number, one in enumerate(nemo_lines(tmp_path, "x", 30))]
    path = write_lines(tmp_path / "corpus.json", [{**entries[0], "duration": 2.0}, *entries[1:]])
    write_audio(tmp_path / entries[0]["audio_filepath"], seconds=2.0)
    options = {"corpus": str(path), "kind": "mucs", "languages": [], "skip_bad": False, "tags": []}
    conf = types.SimpleNamespace(**options, longest=1.5, cut_longer=False)
    prepare(types.SimpleNamespace(dir=tmp_path / "exp", log=log, parts=None), conf)
    assert sum(len(read_cuts(tmp_path / "exp/corpus", part)) for part in ("train", "dev", "test")) == 29
    assert "left out 1 of" in caplog.text


# lhotse


def lhotse_cut(folder, name, number=0, channels=1, language="hi", **options):
    path = write_audio(folder / f"wav/{name}.wav", seed=number, seconds=2.0, channels=channels)
    recording = Recording.from_file(path)
    one = SupervisionSegment(name, name, 0.0, 2.0, text=TEXTS[number % 4], language=language, speaker="s", gender="f")
    return MonoCut(name, 0.0, 2.0, 0, supervisions=[one], recording=recording, **options)


@pytest.fixture
def cuts(tmp_path):
    """{set: its cuts}, four each."""
    return {
        part: [lhotse_cut(tmp_path / "data", f"{part}-{number}", number) for number in range(4)]
        for part in ("train", "dev", "test")
    }


def write_cuts(folder, cuts):
    for part, entries in cuts.items():
        CutSet.from_cuts(entries).to_file(folder / f"hindi_cuts_{part}.jsonl.gz")
    return folder


def test_cuts_of_lhotse(cuts, tmp_path):
    """Whole files, a part of one, several utterances in a cut, and one without any."""
    part = SupervisionSegment("p", "train-1", 0, 1.0, text=TEXTS[1], language="hi", speaker="s")
    cuts["train"][1] = MonoCut("part", 0.5, 1.0, 0, supervisions=[part], recording=cuts["train"][1].recording)
    pair = [SupervisionSegment(f"u{n}", "train-2", n / 2, 0.5, text="one", language="hi") for n in range(2)]
    cuts["train"][2] = MonoCut("c", 1.0, 1.0, 0, supervisions=pair, recording=cuts["train"][2].recording)
    cuts["train"][3].supervisions = []
    write_cuts(tmp_path / "data", cuts)
    assert manifests.prepare(tmp_path / "data", tmp_path / "out", log) == {"hi-IN": {"train": 4, "dev": 4, "test": 4}}
    found = read_cuts(tmp_path / "out", "train")
    assert sorted(said(cut) for cut in found) == [
        ("part", "train-1", 0.5, 1.0, "two three four", "hi-IN", "s"),
        ("train-0", "train-0", 0, 2, "one two", "hi-IN", "s"),
        ("u0", "train-2", 1.0, 0.5, "one", "hi-IN", None),
        ("u1", "train-2", 1.5, 0.5, "one", "hi-IN", None),
    ]
    by_id = {cut.id: cut for cut in found}
    np.testing.assert_allclose(
        read_samples(by_id["u1"], 16000), soundfile.read(tmp_path / "data/wav/train-2.wav", dtype="float32")[0][24000:]
    )


def test_recordings_that_are_no_plain_files_are_copied(cuts, tmp_path):
    """A channel of two, a command, another speed; and a relative path."""
    folder = tmp_path / "data"
    two = lhotse_cut(folder, "two", channels=2)
    two.channel, two.supervisions[0].channel = 1, 1
    command = cuts["train"][1]
    command.recording.sources[0].type, command.recording.sources[0].source = "command", f"cat {folder}/wav/train-1.wav"
    cuts["train"][2].recording.sources[0].source = "wav/train-2.wav"
    cuts["train"] = [two, command, cuts["train"][2], cuts["train"][3].perturb_speed(1.1)]
    write_cuts(folder, cuts)
    manifests.prepare(folder, tmp_path / "out", log)
    found = read_cuts(tmp_path / "out", "train")
    expected = {
        "two": soundfile.read(folder / "wav/two.wav", dtype="float32")[0][:, 1],
        "train-1": soundfile.read(folder / "wav/train-1.wav", dtype="float32")[0],
        "train-2": soundfile.read(folder / "wav/train-2.wav", dtype="float32")[0],
        cuts["train"][3].id: cuts["train"][3].load_audio()[0],
    }
    assert [str(tmp_path / "out") in cut.recording.sources[0].source for cut in found].count(True) == 3
    for cut in found:
        np.testing.assert_allclose(read_samples(cut, 16000), expected[cut.id], atol=2e-5)


def test_a_file_that_is_named_as_a_command_is_read(cuts, tmp_path, monkeypatch):
    folder = tmp_path / "data"
    monkeypatch.chdir(folder)
    recording = cuts["train"][1].recording
    (folder / "wav/train-1.wav").rename(folder / "touch run |")
    recording.sources[0].source = "touch run |"
    write_cuts(folder, cuts)
    manifests.prepare(folder, tmp_path / "out", log)
    found = read_samples(read_cuts(tmp_path / "out", "train")[1], 16000)
    np.testing.assert_allclose(found, soundfile.read(folder / "touch run |")[0], atol=2e-5)
    assert not (folder / "run").exists()


def test_a_replaced_recording_is_copied_by_a_stage_that_resumes(cuts, tmp_path):
    folder, parts = (
        write_cuts(tmp_path / "data", {**cuts, "train": [lhotse_cut(tmp_path / "data", "two", channels=2)]}),
        Parts(tmp_path / "parts"),
    )
    for seed in (1, 2):
        write_audio(folder / "wav/two.wav", seed=seed, seconds=2.0, channels=2)
        manifests.prepare(folder, tmp_path / "out", log, parts=parts)
        found = read_samples(read_cuts(tmp_path / "out", "train")[0], 16000)
        np.testing.assert_allclose(found, soundfile.read(folder / "wav/two.wav")[0][:, 0], atol=2e-5)


def test_supervisions_before_and_across_the_start(cuts, tmp_path):
    one, other = cuts["train"][:2]
    one.start, one.duration, one.supervisions[0].start, one.supervisions[0].duration = 0.5, 1.0, -0.75, 1.0
    other.start, other.duration, other.supervisions[0].start, other.supervisions[0].duration = 0.5, 1.0, -1.5, 1.0
    manifests.prepare(write_cuts(tmp_path / "data", cuts), tmp_path / "out", log)
    found = read_cuts(tmp_path / "out", "train")
    assert [(cut.id, cut.start, cut.duration) for cut in found][0] == ("train-0", 0.0, 0.75) and len(found) == 3
    assert "train-1: a segment of 0.000 s" in (tmp_path / "out/problems.txt").read_text()


def test_cuts_that_are_none(cuts, tmp_path):
    folder = write_cuts(tmp_path / "data", cuts)
    missing = cuts["train"][0].to_dict()
    del missing["recording"]
    with gzip.open(folder / "hindi_cuts_train.jsonl.gz", "at") as stream:
        stream.write(json.dumps(missing) + "\n")
    manifests.prepare(folder, tmp_path / "out", log)
    expected = "line 5: 'train-0' is no cut with a recording; expected cuts of one recording and channel: save others as audio"
    assert expected in (tmp_path / "out/problems.txt").read_text()


def test_a_folder_without_manifests(cuts, tmp_path):
    """Recordings and supervisions apart are not read; the message says what makes cuts of them."""
    recordings, supervisions, _ = CutSet.from_cuts(cuts["train"]).decompose()
    recordings.to_file(tmp_path / "data/recordings_train.jsonl.gz")
    supervisions.to_file(tmp_path / "data/supervisions_train.jsonl.gz")
    named = "data/recordings_train.jsonl.gz, .*: neither cuts nor lines with audio and text"
    with one_line_error(rf"no manifest \(.*{named}\); expected lhotse cuts, .*lhotse cut simple"):
        manifests.prepare(tmp_path / "data", tmp_path / "out", log)
    with one_line_error("no such file or folder; expected lhotse cuts"):
        manifests.prepare(tmp_path / "none", tmp_path / "out", log)
