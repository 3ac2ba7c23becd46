"""A recogniser's character errors in egs/zerospeech: by hand; made-up recognisers that are right, and wrong, in their ways."""

import shlex
import sys

import pytest

from pyspeech.errors import UserError
from steps.units import recognition
from steps.units.recognition import batches, character_errors, command_of, recognise


@pytest.fixture
def script(tmp_path):
    """A function from the body of a program, which has the files as `paths`, to the command that runs it."""

    def write(body):
        path = tmp_path / "a recogniser ž.py"
        path.write_text(f"import sys\nfrom pathlib import Path\npaths = sys.argv[1:]\n{body}\n", encoding="utf-8")
        return [sys.executable, "-X", "utf8", str(path)]

    return write


FILES = ["/x y/a.wav", "/x y/ž.b.wav", "/x y/c"]


def test_errors_by_hand():
    pairs = [("good day", "Good,  day!"), ("kitten", "sitting"), ("čau", "c\u030cau"), ("no", ""), ("ab", "a b")]
    assert character_errors(pairs) == {
        "utterances": 5,
        "errors": 0 + 3 + 0 + 2 + 1,
        "characters": 8 + 6 + 3 + 2 + 2,
        "rate": 6 / 21,
    }
    assert character_errors([]) == {"utterances": 0, "errors": 0, "characters": 0, "rate": None}


@pytest.mark.parametrize(
    "body, expected",
    [
        ("for path in paths: print(Path(path).name + '?')", ["a.wav?", "ž.b.wav?", "c?"]),
        ("for path in paths: print()", ["", "", ""]),
        ("for path in reversed(paths): print(path, 'said', Path(path).stem, sep='\\t')", ["said\ta", "said\tž.b", "said\tc"]),
        ("for path in sorted(paths): print(Path(path).name, 'x', sep='\\t')", ["x", "x", "x"]),
        (
            "for path in reversed(paths): print(Path(path).stem + ('' if path[-1] == 'c' else '\\tx'), end='\\r\\n')",
            ["x", "x", ""],
        ),
        ("print('one\\ttab'); print('two'); print('\\u2028 three', end='')", ["one\ttab", "two", "\u2028 three"]),
    ],
)
def test_lines_in_order_and_by_name(script, body, expected):
    assert recognise(script(body), FILES) == expected


@pytest.mark.parametrize(
    "body, message",
    [
        ("sys.stderr.write('loading\\n\\nno such  model\\n'); sys.exit(3)", "ended with status 3: loading / no such model$"),
        ("sys.exit(1)", "ended with status 1: nothing on standard error"),
        ("sys.stderr.write('y' * 5000); sys.exit(1)", "ended with status 1: y{400}$"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended with status -9"),
        ("print('a'); print('b'); sys.stderr.write('c.wav is bad')", "printed 2 lines for 3 files; .*c.wav is bad"),
        ("print('a')\nfor path in paths: print('x')", "printed 4 lines for 3 files"),
        ("print('a\\tx'); print('ž.b\\tx'); print('d\\tx')", "printed 'd\tx'; expected each of the 3 files once"),
        ("print('a\\tx'); print('a\\ty'); print('c\\tx')", "printed 'a\ty'; expected each of the 3 files once"),
        ("sys.stdout.buffer.write(b'\\xff\\n' * 3)", "not UTF-8"),
    ],
)
def test_what_goes_wrong_is_one_line(script, body, message):
    command = script(body)
    with pytest.raises(UserError, match=message) as error:
        recognise(command, FILES)
    assert str(error.value).startswith(f"recogniser={shlex.join(command)}: ") and "\n" not in str(error.value)


def test_commands():
    assert command_of("") == [] and command_of(f"{shlex.quote(sys.executable)} 'a b' c") == [sys.executable, "a b", "c"]
    for text, message in (("'a", "No closing quotation; expected a command line"), ("/nowhere/x -y", "no program /nowhere/x")):
        with pytest.raises(UserError, match=message):
            command_of(text)


def test_command_lines_stay_short(script, monkeypatch):
    paths = [f"/{'d' * 90}/{place}.wav" for place in range(2000)]
    made = batches(paths)
    assert sum(made, []) == paths and 4 <= len(made) <= 6 and max(len(" ".join(batch)) for batch in made) <= 50_001
    assert batches([]) == [] and batches(["x" * 60_000, "y"]) == [["x" * 60_000], ["y"]]
    monkeypatch.setattr(recognition, "LONGEST", 15)
    assert recognise(script("for path in paths: print(len(paths), path)"), FILES) == [
        "1 /x y/a.wav",
        "1 /x y/ž.b.wav",
        "1 /x y/c",
    ]
