"""The command-line tool that scores features by ABX."""

import json

import numpy as np
import pytest
from tool_harness import run_tool

from pyspeech.commands import score_abx
from pyspeech.errors import UserError


def write_corpus(folder):
    """Two speakers, a file each of 8 frames at 25 Hz: phones a and b in turn, twice; b is at a right angle to a."""
    lines = ["#file onset offset #phone prev-phone next-phone speaker"]
    for speaker in ("s1", "s2"):
        lines += [
            f"{speaker} {0.08 * place:.2f} {0.08 * place + 0.08:.2f} {'ab'[place % 2]} p t {speaker}" for place in range(4)
        ]
        np.savetxt(folder / f"{speaker}.txt", np.repeat(np.eye(2)[[0, 1, 0, 1]], 2, axis=0))
    (folder / "x.item").write_text("\n".join(lines) + "\n")
    return folder / "x.item"


def test_as_a_program_from_another_folder(tmp_path):
    items = write_corpus(tmp_path)
    command = ["score_abx", "--items", items.name, "--frame-rate", "25", "--features"]
    run = run_tool(*command, ".", "--json", "out.json", cwd=tmp_path)
    assert run.returncode == 0 and run.stderr == "", run.stderr
    assert run.stdout.splitlines() == [
        "within: 0.00 % error, cosine, zerospeech2020 averages, 4 cells, 8 items",
        "across: 0.00 % error, cosine, zerospeech2020 averages, 4 cells, 8 items",
    ]
    assert json.loads((tmp_path / "out.json").read_text())["across"] == {"error": 0, "cells": 4}
    broken = run_tool(*command, "nowhere", cwd=tmp_path)
    assert (
        broken.returncode == 1
        and broken.stderr.startswith("error: nowhere: no such folder or file")
        and (broken.stderr.count("\n") == 1)
    )


def test_what_is_wrong_is_one_line(tmp_path):
    arguments = ["--items", str(write_corpus(tmp_path)), "--features", str(tmp_path)]
    for options, message in (
        ([], "s1.txt: no times of its frames; give the frame rate"),
        (["--frame-rate", "0"], "expected finite numbers above 0"),
        (["--frame-rate", "inf"], "expected finite numbers above 0"),
        (["--frame-rate", "25", "--jobs", "0"], "expected finite numbers above 0"),
    ):
        with pytest.raises(UserError, match=message):
            score_abx.main([*arguments, *options])
    (tmp_path / "x.item").write_bytes("#file\ns1 0 0.1 é p t s1\n".encode("latin-1"))
    with pytest.raises(UserError, match="x.item: not UTF-8 text"):
        score_abx.main([*arguments, "--frame-rate", "25"])


def test_items_without_triplets_of_a_mode(tmp_path, capsys, caplog):
    lines = write_corpus(tmp_path).read_text().splitlines()
    (tmp_path / "x.item").write_text("\n".join(line for line in lines if "s2" not in line) + "\n")
    arguments = ["--items", str(tmp_path / "x.item"), "--features", str(tmp_path), "--frame-rate", "25"]
    score_abx.main([*arguments, "--json", str(tmp_path / "out.json")])
    assert capsys.readouterr().out == "within: 0.00 % error, cosine, zerospeech2020 averages, 2 cells, 4 items\n"
    assert "no ABX across: 4 items without a single across-speaker triplet" in caplog.text
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["across"] == {"error": None, "cells": 0} and found["within"]["error"] == 0
    with pytest.raises(UserError, match="x.item: nothing to compare across speakers"):
        score_abx.main([*arguments, "--mode", "across"])


def test_any_context_and_codes_of_all_files_in_one(tmp_path, capsys):
    """Each phone stands in a context of its own: nothing to compare but in any context."""
    lines = write_corpus(tmp_path).read_text().splitlines()
    changed = [line.replace(" p t ", f" p{number} t ") for number, line in enumerate(lines)]
    (tmp_path / "x.item").write_text("\n".join(changed) + "\n")
    (tmp_path / "units.txt").write_text("s1 5 5 2 2 5 5 2 2\ns2 5 5 2 2 5 5 2 2\n")
    arguments = ["--items", str(tmp_path / "x.item"), "--features", str(tmp_path / "units.txt"), "--frame-rate", "25"]
    with pytest.raises(UserError, match="nothing to compare"):
        score_abx.main(arguments)
    score_abx.main([*arguments, "--context", "any", "--json", str(tmp_path / "out.json")])
    assert "across: 0.00 % error" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text())["context"] == "any"
