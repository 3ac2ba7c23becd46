"""The command-line tool that scores units against phones."""

import json

import pytest
from tool_harness import run_tool

from pyspeech.commands import score_units
from pyspeech.errors import UserError


def test_as_a_program_from_another_folder(tmp_path):
    """Unit 5 is always a, unit 2 half a and half b: purities 3 / 4, 1/2 + 1/4, and 0.311 of 0.811 bit."""
    (tmp_path / "units.txt").write_text("u 5 5 2 2\nv 5 5 2 2\n")
    (tmp_path / "phones").write_text("u 0 0.12 a\nu 0.12 0.16 b\nv 0 0.12 a\nv 0.12 0.16 b\n")
    command = ["score_units", "--units", "units.txt", "--alignment", "phones", "--frame-rate", "25"]
    run = run_tool(*command, "--table", "table.csv", "--json", "out.json", cwd=tmp_path)
    assert run.returncode == 0 and run.stderr == "", run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "phone purity 75.00 %, cluster purity 75.00 %, PNMI 0.3837 (0.311 of 0.811 bit)"
    assert lines[1] == "2 units, 2 phones, 8 frames" and lines[5].split() == ["a", "6", "5", "67,", "2", "33"]
    assert (tmp_path / "table.csv").read_text() == "unit,a,b\n2,2,2\n5,4,0\n"
    assert json.loads((tmp_path / "out.json").read_text())["phone_purity"] == 0.75


def test_wrong_names_are_one_line(tmp_path):
    (tmp_path / "units.txt").write_text("u 5 5 2 2\n")
    (tmp_path / "phones").write_text("w 0 0.12 a\n")
    arguments = ["--units", str(tmp_path / "units.txt"), "--alignment", str(tmp_path / "phones"), "--frame-rate", "25"]
    with pytest.raises(UserError, match="no unit is in a phone: 0 of 1 utterances"):
        score_units.main(arguments)
