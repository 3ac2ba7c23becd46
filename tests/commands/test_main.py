"""The console script: its commands, their doors in utils/, and mistakes."""

import subprocess
import sys

import pytest
from tool_harness import ENVIRONMENT, UTILS, run_tool

import pyspeech
from pyspeech.commands import COMMANDS


def run_command(*arguments, **options):
    code = "import sys; from pyspeech.commands.main import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, **options)


def test_help_and_version_are_instant():
    done = run_command("--help")
    assert done.returncode == 0 and all(f"  {name} " in done.stdout for name in COMMANDS)
    assert run_command().stdout == done.stdout
    assert run_command("--version").stdout == f"{pyspeech.__version__}\n"
    code = "import sys; from pyspeech.commands.main import help_text; help_text(); print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=ENVIRONMENT) == "False\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_and_its_door_are_the_same(name):
    door = COMMANDS[name][1]
    command, tool = run_command(*name.split(), "--help"), run_tool(door, "--help")
    assert command.returncode == tool.returncode == 0, command.stderr
    assert f"usage: pyspeech {name} " in command.stdout and f"usage: {door}.py " in tool.stdout
    for one, other in COMMANDS.items():
        assert f"utils/{other[1]}.py" not in command.stdout, one
    options = [
        {line.split()[0] for line in text.splitlines() if line.startswith("  -")} for text in (command.stdout, tool.stdout)
    ]
    assert options[0] == options[1]
    assert len((UTILS / f"{door}.py").read_text().splitlines()) <= 16


def test_mistakes_are_one_line():
    for arguments, message in (
        (["detct"], "no command 'detct'; commands: detect, "),
        (["score", "were"], "Did you mean 'score wer'?"),
        (["score"], "no command 'score'"),
        (["detect", "/no/such.wav"], "/no/such.wav"),
    ):
        done = run_command(*arguments)
        assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1
