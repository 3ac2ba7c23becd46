"""Reading labels: every format that we or others write, encodings, words for speech, names, and every refusal."""

import json

import numpy as np
import pytest

from pyspeech.audio.recordings import find_recordings
from pyspeech.errors import UserError
from pyspeech.sad.formats import FORMATS, render, write_hypothesis, write_reference
from pyspeech.sad.label_files import NotLabelsError
from pyspeech.sad.labels import labels_of, pair, read_labels

SPEECH, DURATION = [[0.5, 1.25], [3.0, 4.0]], 4.5
LONG_GRID = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 4.5
tiers? <exists>
size = 3
item []:
    item [1]:
        class = "TextTier"
        name = "clicks 1"
        xmin = 0
        xmax = 4.5
        points: size = 1
        points [1]:
            number = 0.3
            mark = "click"
    item [2]:
        class = "IntervalTier"
        name = "A"
        xmin = 0
        xmax = 4.5
        intervals: size = 3
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = ""
        intervals [2]:
            xmin = 0.5
            xmax = 1.25
            text = "he said ""3 4""
and went"
        intervals [3]:
            xmin = 1.25
            xmax = 4.5
            text = "<sil>"
    item [3]:
        class = "IntervalTier"
        name = "B"
        xmin = 0
        xmax = 4.5
        intervals: size = 3
        intervals [1]:
            xmin = 0
            xmax = 3
            text = " "
        intervals [2]:
            xmin = 3
            xmax = 4
            text = "día"
        intervals [3]:
            xmin = 4
            xmax = 4.5
            text = ""
"""
SHORT_GRID = """File type = "ooTextFile"
"TextGrid"

0
4.5
<exists>
2
"IntervalTier"
"words"
0
4.5
1
0
4.5
"everything"
"IntervalTier"
"Speech"
0
4.5
4
0
0.5
"ns"
0.5
1.25
"s"
1.25
3
"ns"
3
4
"s"
"""
AS_OTHERS_WRITE = {
    "reel.rttm": ";; comment\nSPKR-INFO reel 1 <NA> <NA> <NA> unknown A <NA>\nSPEAKER reel 1 3.0 1.0 <NA> <NA> A <NA> <NA>\n"
    "SPEAKER reel 1 0.5 0.5 <NA> <NA> B 0.7\nSPEAKER reel 2 0.8 0.45 <NA> <NA> 0 <NA> <NA>\n"
    "NON-SPEECH reel 1 1.3 0.2 <NA> noise <NA> <NA> <NA>\nLEXEME reel 1 0.1 0.2 word lex A 0.5 <NA>\n",
    "reel.txt": "0,5\t1,25\tspeech\n\\\t100.0\t3000.0\n3,0\t4,0\tSpeech\n4.2\t4.2\tspeech\n4.25\t4.3\tnoise\n",
    "reel.lab": "0.0 0.5 non-speech\n0.5 1.25 speech\n1.25 3 Non_Speech\n3 4 speech\n",
    "reel.labels.txt": "0.5\t1.25\n3\t4\n",
    "words.lab": "0.5 1.0 well\n1.0 1.25 said\n1.3 1.4 [noise]\n3 4 it is\n",
    "reel.TextGrid": LONG_GRID,
    "short.TextGrid": SHORT_GRID,
    "list.csv": "filename;onset;offset\naudio/reel.wav;0.5;1.25\naudio/reel.wav;3;4\n",
    "list.tsv": "Begin Time (s)\tEnd Time (s)\tAnnotation\tNotes\n0.5\t1.25\t1\t\n3\t4\t1\t\n1.25\t3\t0\t\n",
    "table.csv": 'start,duration,recording,label\n0.5,0.75,"reel",S\n3,1,"reel",S\n1.25,1,reel,NS\n',
    "exported.csv": "# exported 2024\nstart;end\n0,5;1,25\n3;4,0\n",
    "segments": "reel-a reel 0.5 1.25\nreel-b reel 3.0 4.0\n",
    "cuts.jsonl": json.dumps(
        {
            "id": "reel",
            "start": 10.0,
            "duration": 4.5,
            "channel": 0,
            "supervisions": [{"start": 0.5, "duration": 0.75}, {"start": 3.0, "duration": 1.0}],
            "recording": {"id": "whole"},
        }
    ),
}


def write(path, text, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)
    return path


@pytest.mark.parametrize("format", FORMATS)
def test_what_we_write_is_read(tmp_path, format):
    path = write(tmp_path / f"a b{FORMATS[format][1]}", render(format, "a b", SPEECH, DURATION))
    assert {name: found.speech.tolist() for name, found in read_labels(path).items()} == {"a b": SPEECH}
    write(tmp_path / f"quiet{FORMATS[format][1]}", render(format, "quiet", [], DURATION))
    found = read_labels(tmp_path)
    assert {name: found.speech.tolist() for name, found in found.items()} == {"a b": SPEECH, "quiet": []}
    assert found["a b"].length == (DURATION if format in ("fearless", "json", "textgrid") else None)


def test_official_rows_are_as_written(tmp_path):
    write_reference(tmp_path / "r.txt", "x", SPEECH, DURATION)
    write(tmp_path / "r2.txt", (tmp_path / "r.txt").read_text().replace("\tNS\t", "\tRX\t").replace("\tS\t", "\tspeech\t"))
    found = read_labels(tmp_path)
    assert [label for _, _, label in found["r"].rows] == ["NS", "S", "NS", "S", "NS"] and found["r"].whole
    assert [label for _, _, label in found["r2"].rows] == ["RX", "S", "RX", "S", "RX"]


@pytest.mark.parametrize("name", AS_OTHERS_WRITE)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_others_write(tmp_path, name, encoding):
    path = write(tmp_path / name, AS_OTHERS_WRITE[name].replace("\n", "\r\n"), encoding)
    (found,) = read_labels(path, warn=lambda line: None).values()
    assert found.speech.tolist() == SPEECH


def test_lhotse_writes(tmp_path):
    from lhotse import SupervisionSegment, SupervisionSet

    segments = [SupervisionSegment(f"s{n}", "reel", start, end - start) for n, (start, end) in enumerate(SPEECH)]
    SupervisionSet.from_segments(segments).to_file(tmp_path / "sups.jsonl.gz")
    assert read_labels(tmp_path / "sups.jsonl.gz")["reel"].speech.tolist() == SPEECH


@pytest.mark.parametrize("format", ["rttm", "fearless", "segments", "audacity", "textgrid", "csv", "json", "lhotse"])
def test_several_recordings_as_the_screen_shows_them(tmp_path, format):
    texts = [render(format, name, speech, DURATION) for name, speech in (("one", SPEECH), ("two", [[1.0, 2.0]]))]
    if format in ("fearless", "audacity", "textgrid"):
        texts = [f"# {name}\n{text}" for name, text in zip(("one", "two"), texts, strict=True)]
    if format == "csv":
        texts[1] = texts[1].split("\n", 1)[1]
    found = read_labels(write(tmp_path / "all.out", "".join(texts)))
    assert {name: found.speech.tolist() for name, found in found.items()} == {"one": SPEECH, "two": [[1.0, 2.0]]}


@pytest.mark.parametrize("name", ["segments", "all.segments", "list.txt"])
def test_kaldi_names_of_digits(tmp_path, name):
    """Of digits alone they could be times, in a file of another name; those of LibriSpeech are none anywhere."""
    ids = ["1089_134686_0001 1089_134686", "1089_134686_0002 1089_134686"]
    ids = ids if name == "list.txt" else [*ids, "0003 0004"]
    path = write(tmp_path / name, "".join(f"{one} {2 * place}.00 {2 * place + 1}.50\n" for place, one in enumerate(ids)))
    found = {name: found.speech.tolist() for name, found in read_labels(path).items()}
    assert found.pop("1089_134686") == [[0.0, 1.5], [2.0, 3.5]]
    assert found == ({} if name == "list.txt" else {"0004": [[4.0, 5.5]]})
    first = write(tmp_path / "first.segments", "0001 0002 0.00 1.50\n")
    assert {name: found.speech.tolist() for name, found in read_labels(first).items()} == {"0002": [[0.0, 1.5]]}


def test_names_of_two_lines_in_csv(tmp_path):
    texts = [render("csv", name, SPEECH, DURATION) for name in ("new\nline", 'a "b", c')]
    found = read_labels(write(tmp_path / "all.csv", texts[0] + texts[1].split("\n", 1)[1]))
    assert {name: found.speech.tolist() for name, found in found.items()} == {"new\nline": SPEECH, 'a "b", c': SPEECH}
    empty = write(tmp_path / "empty.csv", "start,end,duration\n0.5,1.25,\n3,4,\n")  # a column that nothing needs
    assert read_labels(empty)["empty"].speech.tolist() == SPEECH
    with pytest.raises(UserError, match="line 4: 'x' is not a time"):
        read_labels(write(tmp_path / "bad.csv", 'recording,start,end\n"a\nb",0,1\nc,x,1\n'))


@pytest.mark.parametrize("separator", ["\t", ","])
def test_quotes_of_texts(tmp_path, separator):
    """As who writes tables without a thought for CSV has them: they hide no line."""
    rows = ["recording,start,end,text", 'a,0,1,"Hi" she said', 'a,2,3,he said "hi"', 'a,4,5,"oh']
    path = write(tmp_path / "said.tsv", "".join(f"{row}\n" for row in rows).replace(",", separator))
    assert read_labels(path)["a"].speech.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]


@pytest.mark.parametrize("rest", ["", "d,4,5\n" * 50_000], ids=["to the end", "beyond the limit of a field"])
def test_quotes_of_csv_that_do_not_end(tmp_path, rest):
    """They would take the lines behind them, and with these their speech."""
    path = write(tmp_path / "bad.csv", f'recording,start,end\na,0,1\n"b,0,1\nc,2,3\n{rest}')
    with pytest.raises(UserError, match=r"bad\.csv, line 3: .*; expected the quotes of CSV"):
        read_labels(path)


def test_words_and_other_labels(tmp_path):
    said = []
    write(tmp_path / "a.txt", "0\t1\tpilot\n2\t3\tsilence\n4\t5\tUncertain\n")
    found = read_labels(tmp_path, said.append)["a"]
    assert found.speech.tolist() == [[0, 1]] and [label for _, _, label in found.rows][1:] == ["NS", "nonScorable"]
    assert said == [f"{tmp_path}: labels such as pilot are taken for speech"]
    write(tmp_path / "b.txt", "0\t1\tspeech\n2\t3\tbeep\n")
    found = read_labels(tmp_path, said.append)
    assert found["a"].speech.tolist() == [] and found["b"].speech.tolist() == [[0, 1]] and len(said) == 1


def test_names_are_those_of_the_audio(tmp_path):
    """One rule: the stem, and where that is not enough as many folders as tell files apart."""
    for place in ("a/1", "b/1", "b/x/2", "my call"):
        for folder, ending in (("audio", ".wav"), ("labels", ".rttm")):
            write(tmp_path / folder / (place + ending), render("rttm", place.split("/")[-1], SPEECH, DURATION))
    recordings = find_recordings([tmp_path / "audio"])
    labels = read_labels(tmp_path / "labels")
    assert sorted(labels) == sorted(recording.name for recording in recordings) == ["2", "a_1", "b_1", "my call"]
    (tmp_path / "labels/b/1.rttm").unlink()
    found = labels_of(recordings, read_labels(tmp_path / "labels"))
    assert {name: labels.path.relative_to(tmp_path).as_posix() for name, labels in found.items()} == {
        "a_1": "labels/a/1.rttm",
        "2": "labels/b/x/2.rttm",
        "my call": "labels/my call.rttm",
    }
    found = labels_of(find_recordings([tmp_path / "audio" / "b"]), labels)
    assert {name: labels.path.parent.name for name, labels in found.items()} == {"1": "b", "2": "x"}


def test_pairs():
    def names(*names):
        return {name: (name,) for name in names}

    assert pair(names("caf\u00e9"), names("cafe\u0301")) == {"caf\u00e9": "cafe\u0301"}
    assert pair(names("my call"), names("my_call")) == {"my call": "my_call"}
    assert pair(names("my call", "my_call"), names("my_call")) == {"my_call": "my_call"}
    assert pair(names("my call"), names("my_call", "my\tcall")) == {}
    assert pair({"b_1": ("b_1", "x_b_1")}, {"1": ("1", "a_1")}) == {}
    assert pair({"1": ("1", "a_1")}, names("a_1", "b_1")) == {"1": "a_1"}


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.txt", "This is a letter.\n", "first line fits no label format"),
        ("a.rttm", "SPEAKER reel 1 0.5 x <NA> <NA> A <NA>\n", "line 1: 'x' is not a time"),
        ("a.rttm", "SPEAKER my reel 1 0.5 1 <NA> <NA> A <NA>\n", "line 1: 'reel' is not a channel"),
        ("a.rttm", "SPEAKER a 1 0.5 1 <NA>\nspeaks 1\n", "line 2: 'speaks 1'; expected RTTM"),
        ("a.txt", "0.5 1\n2 1.5 speech\n", "line 2: the segment ends [(]1.5 s[)] before it starts"),
        ("segments", "u r 0.5 1\nu r 1\n", "line 2: 3 columns"),
        ("segments", "u r 0.5 -1\n", "'-1' is not a time"),
        ("a.csv", "start,end,recording\n1,2\n", "line 2: 2 columns"),
        ("a.csv", "start,end\n1,x\n", "line 2: 'x' is not a time"),
        ("a.TextGrid", LONG_GRID[:600], "not a whole TextGrid"),
        ("a.TextGrid", "ooBinaryFile\x08TextGrid", "not a whole TextGrid"),
        ("a.jsonl", '{"recording_id": "a", "start": 0, "duration": 1}\n{"id"\n', "line 2: not JSON"),
        ("a.txt", "REEL\t0\t0.0\t1.0\tS\nREEL\t0\t1.5\t2.0\tNS\n", "line 2: gap from 1.0 to 1.5 s"),
        ("a.txt", "# x\n0 1\n# x\n0 1\n", "labels of 'x' stand in two places"),
    ],
)
def test_damaged_files(tmp_path, name, text, message):
    path = write(tmp_path / name, text)
    write(tmp_path / "good.rttm", render("rttm", "good", SPEECH, DURATION))
    with pytest.raises(UserError, match=message) as caught:
        read_labels(tmp_path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
    problems = {}
    assert list(read_labels(tmp_path, problems=problems)) == ["good"] and list(problems) == [str(path)]


def test_folders(tmp_path):
    with pytest.raises(UserError, match="absent: no such file or folder"):
        read_labels(tmp_path / "absent")
    with pytest.raises(UserError, match="no label files in this folder or below"):
        read_labels(tmp_path)
    write_hypothesis(tmp_path / "x" / "reel.txt", SPEECH, DURATION)
    write(tmp_path / "manifest.tsv", "id\tpath\tdur_s\n1\ta.wav\t2\n")
    write(tmp_path / "results.json", '{\n "a": 1\n}\n')
    write(tmp_path / "wav.scp", "reel reel.wav\n")
    said = []
    assert read_labels(tmp_path, said.append)["reel"].speech.tolist() == SPEECH
    assert [line.split(": ")[0] for line in said] == [str(tmp_path / name) for name in ("manifest.tsv", "results.json")]
    with pytest.raises(NotLabelsError, match="id, path, dur_s"):
        read_labels(tmp_path / "manifest.tsv")
    write(tmp_path / "y" / "other.rttm", render("rttm", "reel", SPEECH, DURATION))
    with pytest.raises(UserError, match="other.rttm: same recording as reel.txt, 'reel'; one of the two must go"):
        read_labels(tmp_path)
    (tmp_path / "y" / "other.rttm").write_bytes(bytes(range(128, 256)))
    with pytest.raises(UserError, match="not a text file"):
        read_labels(tmp_path)


def test_an_empty_file(tmp_path):
    """It is a recording without speech."""
    write(tmp_path / "quiet.rttm", "")
    assert np.array_equal(read_labels(tmp_path)["quiet"].speech, np.zeros((0, 2)))
