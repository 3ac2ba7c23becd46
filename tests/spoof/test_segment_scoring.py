"""Segment EER: units of recordings that are fake in part, and the formats of their labels."""

import os

import numpy as np
import pytest

from pyspeech.commands import score_segments as tool
from pyspeech.errors import UserError
from pyspeech.spoof.scoring import equal_error_rate
from pyspeech.spoof.segment_scoring import read_segment_labels, read_segment_scores, score_segments, units_of


def test_units_by_hand():
    """Of 0.5 s: one is fake where any of it is, and has the score in its middle."""
    labels = [(0.0, 1.1, 1.0), (1.1, 2.0, 0.0), (2.0, 3.2, 1.0)]
    scores = [(0.0, 1.0, 5.0), (1.0, 1.5, -1.0), (1.5, 2.0, -2.0), (2.0, 3.2, 4.0)]
    assert units_of(scores, labels, 0.5) == ([5, 5, 4, 4, 4], [-1, -2])
    assert units_of(scores, labels[:2], 0.5) == ([5, 5], [-1, -2])
    assert units_of([(0.0, 0.4, 1.0), (2.6, 3.0, 2.0)], [(0.0, 3.0, 1.0)], 0.5) == ([1, 1, 1, 2, 2, 2], [])  # the nearer one
    assert units_of([(0.1, 0.2, 7.0)], [(0.0, 0.32, 0.0)], 0.16) == ([], [7, 7])


def test_a_set(rng):
    """The EER over all units of noisy scores, in time that no unit straddles."""
    labels, scores, genuine, fake = {}, {}, [], []
    for number in range(40):
        kinds = rng.random(25) < 0.8
        values = rng.standard_normal(25) + np.where(kinds, 1, -1)
        edges = 0.2 * np.arange(26)
        labels[f"r{number}"] = [(edges[i], edges[i + 1], float(kind)) for i, kind in enumerate(kinds)]
        scores[f"r{number}"] = [(edges[i], edges[i + 1], value) for i, value in enumerate(values)]
        genuine += values[kinds].tolist()
        fake += values[~kinds].tolist()
    found = score_segments(scores, labels, 0.2)
    assert found["eer"] == pytest.approx(equal_error_rate(genuine, fake)[0]) and 0.1 < found["eer"] < 0.22
    assert (found["genuine"], found["fake"], found["recordings"]) == (len(genuine), len(fake), 40)
    low, high = found["interval"]
    assert low < found["eer"] < high
    with pytest.raises(UserError, match="3 genuine and 0 fake units"):
        score_segments({"a": [(0.0, 0.6, 1.0)]}, {"a": [(0.0, 0.6, 1.0)]}, 0.2)


def test_formats_of_labels(tmp_path):
    expected = {"a": [(0.0, 0.32, 1.0), (0.32, 0.64, 0.0)], "b c": [(0.0, 0.16, 0.0)]}
    (tmp_path / "lines.txt").write_text("a.wav 0 0.32 genuine\nb c.wav 0 0.16 spoof\na.wav 0.32 0.64 fake\n")
    assert read_segment_labels(tmp_path / "lines.txt") == expected
    (tmp_path / "add.txt").write_text("a.wav 0.00-0.32-T/0.32-0.64-F 0\n")
    assert read_segment_labels(tmp_path / "add.txt") == {"a": expected["a"]}
    kinds = {"a": np.array(["1", "1", "0", "0"]), "b c": np.array(["0"])}
    np.save(tmp_path / "dev_seglab_0.16.npy", kinds)
    units = read_segment_labels(tmp_path / "dev_seglab_0.16.npy")
    assert [kind for _, _, kind in units["a"]] == [1, 1, 0, 0] and units["a"][2][:2] == pytest.approx((0.32, 0.48))
    for text, message in (
        ("a 0 0.3 both\n", "line 1: 'a 0 0.3 both'; expected"),
        ("a 1 0 fake\n", "expected"),
        ("", "no labels"),
    ):
        (tmp_path / "x.txt").write_text(text)
        with pytest.raises(UserError, match=message):
            read_segment_labels(tmp_path / "x.txt")


class Evil:
    def __reduce__(self):
        return os.mkdir, ("made-by-a-label-file",)


def test_a_label_file_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "x_0.16.npy", {"a": Evil()})
    with pytest.raises(UserError, match="no labels of PartialSpoof .*mkdir"):
        read_segment_labels(tmp_path / "x_0.16.npy")
    np.save(tmp_path / "x.npy", {"a": np.array(["1"])})
    with pytest.raises(UserError, match="seconds of a unit"):
        read_segment_labels(tmp_path / "x.npy")
    assert not (tmp_path / "made-by-a-label-file").exists()


def test_the_tool(tmp_path, capsys):
    header = "recording,start,end,decision,p_genuine,p_fake,score\n"
    rows = "a,0,1,genuine,1,0,3\na,1,2,fake,0,1,-3\nb,0,1,genuine,1,0,-2.5\n"
    (tmp_path / "s.csv").write_text(header + rows)
    (tmp_path / "l.txt").write_text("a.wav 0 1 genuine\na.wav 1 2 fake\nb.wav 0 1 genuine\nc.wav 0 1 fake\n")
    arguments = ["--scores", str(tmp_path / "s.csv"), "--labels", str(tmp_path / "l.txt"), "--unit", "0.5"]
    with pytest.raises(UserError, match="no scores for 1 of 3 recordings: c; score them too"):
        tool.main(arguments)
    tool.main([*arguments, "--partial"])
    said = capsys.readouterr()
    assert said.out.startswith("2 recordings, 4 genuine and 2 fake units of 0.5 s: EER 0.00 %") and "warning: " in said.err
    assert read_segment_scores(tmp_path / "s.csv")["b"] == [(0.0, 1.0, -2.5)]
    (tmp_path / "s.csv").write_text("utterance score\n")
    with pytest.raises(UserError, match="no scores"):
        tool.main(arguments)
