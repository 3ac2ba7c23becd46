"""Every tool of utils/ says what it takes at once: nothing heavy is loaded for it."""

import ast

import pytest
from tool_harness import UTILS, run_tool

from pyspeech.commands.arguments import tool_parser

TOOLS = sorted(str(path.relative_to(UTILS).with_suffix("")) for path in UTILS.rglob("*.py"))
HEAVY = ("kaldialign", "lhotse", "librosa", "matplotlib", "numpy", "scipy", "sklearn", "soundfile", "torch", "torchaudio")


@pytest.mark.parametrize("tool", TOOLS)
def test_help_is_instant(tool):
    done = run_tool(tool, "--help", python=["-X", "importtime"])
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0 and "pyspeech.launch" in imported and not imported & set(HEAVY)
    first_line = ast.get_docstring(ast.parse((UTILS / f"{tool}.py").read_text(encoding="utf-8"))).splitlines()[0]
    assert done.stdout.startswith("usage: ") and first_line in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "given, told", [("--treshold", ". Did you mean --threshold?"), ("--treshold=3", "?"), ("--zzz", "zzz")]
)
def test_a_misspelt_option_is_answered_with_the_one_that_was_meant(given, told, capsys):
    parser = tool_parser("Tool.")
    parser.add_argument("--threshold", type=float)
    with pytest.raises(SystemExit):
        parser.parse_args([given])
    assert capsys.readouterr().err.rstrip().endswith(told)
