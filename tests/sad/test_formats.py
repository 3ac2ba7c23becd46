"""Label files: round trips, contiguity under rounding, what other readers make of them, and every refusal."""

import json

import numpy as np
import pytest

from pyspeech.errors import UserError
from pyspeech.sad.formats import FORMATS, read_hypothesis, read_reference, render, write_hypothesis, write_reference

REFERENCE_LINE = "FS01_dev_001\t0\t{}\t{}\t{}\tmanual" + "\tX" * 6 + "\n"
HYPOTHESIS_LINE = "X\tX\tX\tSAD\tX\t{}\t{}\t{}\t0.500000\n"


def write(path, *lines):
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_official_lines(tmp_path):
    write_reference(tmp_path / "r.txt", "FS01_dev_001", [(6.25, 7.63)], 10)
    assert (tmp_path / "r.txt").read_text() == (
        REFERENCE_LINE.format("0.0", "6.25", "NS")
        + REFERENCE_LINE.format("6.25", "7.63", "S")
        + REFERENCE_LINE.format("7.63", "10.0", "NS")
    )
    write_hypothesis(tmp_path / "h.txt", [(6.35, 7.509)], 10)
    assert (tmp_path / "h.txt").read_text() == (
        HYPOTHESIS_LINE.format("0.00", "6.35", "non-speech")
        + HYPOTHESIS_LINE.format("6.35", "7.51", "speech")
        + HYPOTHESIS_LINE.format("7.51", "10.00", "non-speech")
    )


@pytest.mark.parametrize("seed", range(10))
def test_round_trip_stays_contiguous(tmp_path, seed):
    random = np.random.default_rng(seed)
    borders = np.sort(random.random(2 * random.integers(0, 2000)) * 100)  # many closer than 10 ms
    speech, duration = borders.reshape(-1, 2), 100.003
    write_hypothesis(tmp_path / "h.txt", speech, duration)
    write_reference(tmp_path / "r.txt", "r", speech, duration)
    found = read_hypothesis(tmp_path / "h.txt")  # itself refuses gaps and overlaps
    labelled = read_reference(tmp_path / "r.txt")
    times = np.arange(0.0005, 100, 0.001)
    truth = (np.searchsorted(borders, times) % 2).astype(bool)
    close = np.abs(times[:, None] - borders[None, :]).min(axis=1, initial=9) if len(borders) < 400 else None
    for segments, step in ((found, 0.01), ([(s, e) for s, e, label in labelled if label == "S"], 0.001)):
        guess = (np.searchsorted(np.reshape(segments, -1), times) % 2).astype(bool)
        if close is not None:
            assert not (guess != truth)[close > step].any()
    assert labelled[0][0] == 0 and labelled[-1][1] == 100.003
    assert {label for _, _, label in labelled} <= {"S", "NS"}


@pytest.mark.parametrize(
    "speech, expected",
    [
        ([], []),
        ([(0, 10)], [(0, 10)]),
        ([(-1, 2), (9, 12)], [(0, 2), (9, 10)]),
        ([(3, 3.004)], []),
        ([(3, 4), (4.004, 5)], [(3, 5)]),
    ],
)
def test_edges_of_a_hypothesis(tmp_path, speech, expected):
    write_hypothesis(tmp_path / "h.txt", speech, 10)
    assert [tuple(pair) for pair in read_hypothesis(tmp_path / "h.txt")] == expected


def test_recording_without_length(tmp_path):
    write_hypothesis(tmp_path / "h.txt", [], 0)
    assert read_hypothesis(tmp_path / "h.txt").shape == (0, 2)
    with pytest.raises(UserError, match="no length"):
        write_reference(tmp_path / "r.txt", "r", [], 0)
    assert not (tmp_path / "r.txt").exists()


def test_reader_is_lenient_where_it_may_be(tmp_path):
    path = write(
        tmp_path / "r.txt",
        "\ufeff" + REFERENCE_LINE.format("0.5", "2", "RI").replace("\n", "\r\n"),
        "\n",
        "x\t0\t2.00\t3\tMixed\n",
        "\n",
    )
    assert read_reference(path) == [(0.5, 2, "RI"), (2, 3, "Mixed")]
    path = write(
        tmp_path / "h.txt",
        HYPOTHESIS_LINE.format("0", "1", "nonspeech"),
        HYPOTHESIS_LINE.format("1", "2", "speech"),
        HYPOTHESIS_LINE.format("2.0", "3", "speech"),
    )
    assert read_hypothesis(path).tolist() == [[1, 3]]


@pytest.mark.parametrize(
    "lines, message",
    [
        ([("0.0", "1.5", "S"), ("1.6", "2", "NS")], "line 2: gap from 1.5 to 1.6 s"),
        ([("0.0", "1.5", "S"), ("1.4", "2", "NS")], "line 2: overlap, starts at 1.4 s but the segment before ends"),
        ([("0.0", "1.5", "S"), ("1.5", "1", "NS")], "line 2: the segment ends"),
        ([("0.0", "1,5", "S")], "line 1: '1,5' is not a time"),
        ([("0.0", "nan", "S")], "line 1: 'nan' is not a time"),
        ([("-1", "1", "S")], "line 1: '-1' is not a time"),
        ([("0.0", "1", " ")], "line 1: the label"),
        ([], "empty"),
    ],
)
def test_bad_reference(tmp_path, lines, message):
    path = write(tmp_path / "r.txt", *[REFERENCE_LINE.format(*line) for line in lines])
    with pytest.raises(UserError) as caught:
        read_reference(path)
    assert message in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "lines, message",
    [
        ([("0.00", "1.50", "speech"), ("1.51", "2.00", "non-speech")], "line 2: gap from 1.5 to 1.51 s"),
        ([("0.00", "1.50", "speech"), ("1.49", "2.00", "non-speech")], "line 2: overlap"),
        ([("0.10", "1.50", "speech")], "line 1: gap from 0.0 to 0.1 s"),
        ([("0.00", "1.50", "Speech")], "line 1: column 8 is 'Speech'"),
        ([("0.00", "inf", "speech")], "line 1: 'inf' is not a time"),
    ],
)
def test_bad_hypothesis(tmp_path, lines, message):
    path = write(tmp_path / "h.txt", *[HYPOTHESIS_LINE.format(*line) for line in lines])
    with pytest.raises(UserError) as caught:
        read_hypothesis(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_not_label_files(tmp_path):
    reference = write(tmp_path / "r.txt", REFERENCE_LINE.format("0.0", "1.5", "S"))
    with pytest.raises(UserError, match="not a time|column 8"):
        read_hypothesis(reference)
    with pytest.raises(UserError, match="line 1: 1 tab-separated columns"):
        read_reference(write(tmp_path / "spaces.txt", "FS01 0 0.0 6.25 NS manual\n"))
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)))
    with pytest.raises(UserError, match="not a text file"):
        read_reference(tmp_path / "binary.txt")
    with pytest.raises(UserError, match="No such file"):
        read_hypothesis(tmp_path / "absent.txt")


SPEECH, DURATION = [(0.5, 1.25), (3.0, 4.0)], 4.5
EXPECTED = {
    "rttm": "SPEAKER a_b 1 0.500 0.750 <NA> <NA> speech <NA> <NA>\nSPEAKER a_b 1 3.000 1.000 <NA> <NA> speech <NA> <NA>\n",
    "segments": "a_b-000000500-000001250 a_b 0.500 1.250\na_b-000003000-000004000 a_b 3.000 4.000\n",
    "audacity": "0.500\t1.250\tspeech\n3.000\t4.000\tspeech\n",
    "json": '{"recording": "a b", "duration": 4.5, "speech": [[0.5, 1.25], [3.0, 4.0]]}\n',
    "csv": "recording,start,end\na b,0.500,1.250\na b,3.000,4.000\n",
}


@pytest.mark.parametrize("format", EXPECTED)
def test_other_formats(format):
    assert render(format, "a b", SPEECH, DURATION) == EXPECTED[format]


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_of_a_silent_and_an_empty_recording(format):
    for duration in (2.0, 0.0):
        text = render(format, "día 1", [], duration)
        assert '"speech"\n' not in text.replace('name = "speech"\n', "") and "\tspeech" not in text


def test_lhotse_reads_rttm_and_supervisions(tmp_path):
    from lhotse import SupervisionSet

    for name, format in (("a.rttm", "rttm"), ("a.jsonl", "lhotse")):
        (tmp_path / name).write_text(render(format, "reel", SPEECH, DURATION), encoding="utf-8")
    for segments in (SupervisionSet.from_rttm(tmp_path / "a.rttm"), SupervisionSet.from_jsonl(tmp_path / "a.jsonl")):
        assert [(s.recording_id, s.start, s.duration) for s in segments] == [("reel", 0.5, 0.75), ("reel", 3.0, 1.0)]


def test_channel():
    assert [line.split()[2] for line in render("rttm", "reel", SPEECH, DURATION, channel=1).splitlines()] == ["2", "2"]
    assert json.loads(render("lhotse", "reel", SPEECH, DURATION, channel=1).splitlines()[0])["channel"] == 1
    for format in EXPECTED.keys() - {"rttm"}:
        assert render(format, "a b", SPEECH, DURATION, channel=1) == EXPECTED[format]


def test_textgrid_is_one_contiguous_tier():
    lines = [line.strip() for line in render("textgrid", "reel", SPEECH, DURATION).splitlines()]
    assert lines[:2] == ['File type = "ooTextFile"', 'Object class = "TextGrid"'] and "intervals: size = 5" in lines
    times = [float(line.split(" = ")[1]) for line in lines if line.startswith(("xmin", "xmax"))][4:]
    assert times == [0, 0.5, 0.5, 1.25, 1.25, 3, 3, 4, 4, 4.5]
    assert [line for line in lines if line.startswith("text")] == ['text = ""', 'text = "speech"'] * 2 + ['text = ""']


def test_json_keeps_scores():
    scores = np.array([0.5, -1.25], dtype=np.float32)
    record = json.loads(render("json", "reel", SPEECH, DURATION, frame_shift=0.01, scores=scores))
    assert record["scores"] == [0.5, -1.25] and record["frame_shift"] == 0.01
    with pytest.raises(ValueError):
        render("rttm", "reel", SPEECH, DURATION, 0.01, [0.5])


def test_csv_quotes():
    assert render("csv", 'a "b", c', [(0, 1)], 1).splitlines()[1] == '"a ""b"", c",0.000,1.000'
