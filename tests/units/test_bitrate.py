"""Bitrate: the worked example, a plain slow version, edges, and the tool with its files."""

import gzip
import json
import math

import numpy as np
import pytest
import soundfile
from tool_harness import one_line_error, run_tool

from pyspeech.commands import score_bitrate
from pyspeech.errors import UserError
from pyspeech.units.bitrate import listed_name, measure, read_filelist

EXAMPLE = [("u1", "AABC", 0.5), ("u2", "ABBACC", 0.75)]
EXPECTED = 12.567604755637348


def one_hot(text, symbols="ABC"):
    return np.eye(len(symbols))[[symbols.index(letter) for letter in text]]


def plain_bitrate(sequences):
    """As Dunbar et al. 2019 put it, with tuples for vectors."""
    counts = {}
    for rows, _ in sequences:
        for row in rows:
            key = tuple(float(value) for value in row)
            counts[key] = counts.get(key, 0) + 1
    lines = sum(counts.values())
    entropy = -sum(count / lines * math.log(count / lines, 2) for count in counts.values())
    return lines * entropy / sum(seconds for _, seconds in sequences)


def write_example(folder):
    folder.mkdir()
    for name, text, _ in EXAMPLE:
        np.savetxt(folder / f"{name}.txt", one_hot(text), fmt="%d")
    return folder


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def score(capsys, *arguments):
    score_bitrate.main([str(argument) for argument in arguments])
    return capsys.readouterr().out


def fails(message, *arguments):
    with one_line_error(message):
        score_bitrate.main([str(argument) for argument in arguments])


def test_worked_example_exactly():
    sequences = [(one_hot(text), seconds) for _, text, seconds in EXAMPLE]
    assert measure(sequences)["bitrate"] == EXPECTED
    assert measure(sequences[::-1])["bitrate"] == EXPECTED
    numbers = [(["ABC".index(letter) for letter in text], seconds) for _, text, seconds in EXAMPLE]
    assert measure(numbers)["bitrate"] == EXPECTED
    result = measure(sequences)
    assert (result["lines"], result["seconds"], result["symbols"]) == (10, 1.25, 3)
    assert result["entropy"] == pytest.approx(1.5709505944546684) and result["ceiling"] == 8 * math.log2(3)


def test_against_a_plain_version(rng):
    codebook = rng.standard_normal((64, 5)).astype(np.float32)
    sequences = [(codebook[rng.zipf(1.3, rng.integers(1, 200)) % 64], rng.uniform(0.1, 8.0)) for _ in range(30)]
    assert measure(sequences)["bitrate"] == pytest.approx(plain_bitrate(sequences), rel=1e-12)


@pytest.mark.parametrize("codes, ceiling", [(64, 150), (128, 175), (256, 200), (512, 225)])
def test_ceilings_of_the_paper(codes, ceiling):
    """All codes equally often at 25 Hz: rate * log2(K)."""
    result = measure([(np.arange(codes), codes / 25)])
    assert result["bitrate"] == pytest.approx(ceiling) and result["ceiling"] == pytest.approx(ceiling)


def test_edges():
    assert measure([([7], 0.095)])["bitrate"] == 0 == measure([([7], 0.095)])["ceiling"]
    assert measure([([], 1.0), ([3, 3], 1.0)])["lines"] == 2
    assert str(measure([([], 1.0)])["bitrate"]) == "0.0"
    assert measure([([[0.0, 1.0], [-0.0, 1.0]], 1.0)])["symbols"] == 1
    assert measure([(np.float32([[0.1, 2]]), 1.0), (np.float32([[0.1, 2]]), 1.0)])["symbols"] == 1
    for sequences, message in [
        ([], "no utterances"),
        ([([1], 0)], "a duration of 0 s"),
        ([([1], math.nan)], "nan s"),
        ([([[1, math.inf]], 1)], "not finite"),
        ([([[[1]]], 1)], "of shape"),
        ([([[1, 2]], 1), ([[1]], 1)], "utterance 2: 1 numbers a row; expected 2"),
    ]:
        with pytest.raises(UserError, match=message):
            measure(sequences)


def test_lists_of_all_sorts(tmp_path):
    path = tmp_path / "list"
    path.write_bytes("\ufeffS002_1.txt 4.5\r\n\nenglish/test/S002_2.wav\nS_é.3 0.095\nS 4.txt\n".encode())
    assert read_filelist(path) == [("S002_1", 4.5), ("S002_2", None), ("S_é.3", 0.095), ("S 4", None)]
    assert listed_name("a\\b.TXT") == "b" and listed_name("x.y") == "x.y" and listed_name(".txt") == ".txt"
    for text, message in [("a\na.txt 1\n", "line 2: a is there twice"), ("\n", "lists no files")]:
        with pytest.raises(UserError, match=message):
            read_filelist(write(path, text))
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(UserError, match="not UTF-8"):
        read_filelist(path)
    with pytest.raises(UserError, match="none: cannot be read: No such file"):
        read_filelist(tmp_path / "none")


def test_tool_with_durations_of_the_list(tmp_path, capsys):
    folder = write_example(tmp_path / "features")
    listing = write(tmp_path / "list", "u1.txt 0.5\nu2.txt 0.75\n")
    output = score(capsys, "--features", folder, "--filelist", listing, "--json", tmp_path / "out.json")
    assert "12.57 bit/s" in output and "10 in 2 files" in output and "1.250 s (8.00" in output and "1.5710 bit" in output
    assert "distinct vectors       3" in output and "12.68 bit/s" in output
    assert json.loads((tmp_path / "out.json").read_text())["bitrate"] == EXPECTED


def test_tool_with_audio_and_with_durations(tmp_path, capsys):
    folder, listing = write_example(tmp_path / "features"), write(tmp_path / "list", "u1\nu2\n")
    for name, _, seconds in EXAMPLE:
        soundfile.write(str(tmp_path / f"{name}.wav"), np.zeros(int(16000 * seconds)), 16000)
    first = score(capsys, "--features", folder, "--filelist", listing, "--audio", tmp_path)
    assert "12.57 bit/s" in first
    durations = write(tmp_path / "durations", "u2 0.75\nu3 1\nu1 0.5\n")
    assert score(capsys, "--features", folder, "--filelist", listing, "--durations", durations) == first
    cuts = [
        {
            "id": name,
            "start": 0,
            "duration": seconds,
            "channel": 0,
            "type": "MonoCut",
            "recording": {"id": name, "sources": [{"type": "file", "channels": [0], "source": f"{name}.wav"}]},
        }
        for name, _, seconds in EXAMPLE
    ]
    with gzip.open(tmp_path / "test.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(cut) + "\n" for cut in cuts)
    assert score(capsys, "--features", folder, "--filelist", listing, "--durations", tmp_path / "test.jsonl.gz") == first


def test_tool_says_what_is_wrong(tmp_path):
    folder, listing = write_example(tmp_path / "features"), write(tmp_path / "list", "u1\nu2\nu3\n")
    fails(
        "list: no duration for u1; expected one for each utterance .* or --audio", "--features", folder, "--filelist", listing
    )
    durations = write(tmp_path / "durations", "u1 1\nu2 1\nu3 1\n")
    fails("features: no features of u3; expected", "--features", folder, "--filelist", listing, "--durations", durations)
    fails("no such file; expected a lhotse manifest", "--features", folder, "--filelist", listing, "--durations", "x.jsonl")
    (tmp_path / "u1.wav").write_bytes(b"")
    fails("u1.wav: cannot be read as audio", "--features", folder, "--filelist", listing, "--audio", tmp_path)
    run = run_tool("score_bitrate", "--features", "nowhere", "--filelist", "list", cwd=tmp_path)
    assert run.returncode == 1 and run.stderr.count("\n") == 1 and run.stderr.startswith("error: list: no duration for u1")
