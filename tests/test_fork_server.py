"""A forked command is what a program of its own is: arguments, folder, environment, streams, and how it ends."""

import os
import signal
import subprocess
import sys

import fork_server
import pytest

SCRIPT = """
import os, signal, sys, time
print(sys.argv, os.getcwd(), os.environ.get("FORKED"), sys.path[:2], __name__, sys.stdin.read(), flush=True)
print("é", file=sys.stderr)
if sys.argv[1] == "exit":
    sys.exit(3)
elif sys.argv[1] == "message":
    sys.exit("it went wrong")
elif sys.argv[1] == "raise":
    1 / 0
elif sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
elif sys.argv[1] == "sleep":
    time.sleep(100)
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "a script.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path / "a script.py"


@pytest.mark.parametrize("end", ["well", "exit", "message", "raise", "kill"])
def test_it_is_as_a_program_of_its_own(script, tmp_path, end):
    (tmp_path / "input").write_text("from a file")
    env = {**os.environ, "FORKED": "ä", "PYTHONPATH": str(tmp_path / "modules")}
    with open(tmp_path / "input") as ours, open(tmp_path / "input") as theirs:
        found = fork_server.run(script, end, cwd=tmp_path, env=env, stdin=ours)
        command = [sys.executable, str(script), end]
        expected = subprocess.run(command, cwd=tmp_path, env=env, stdin=theirs, text=True, capture_output=True)
    assert (found.returncode, found.stdout) == (expected.returncode, expected.stdout)
    assert found.stderr.splitlines()[0] == "é" and found.stderr.splitlines()[-1] == expected.stderr.splitlines()[-1]


def test_one_that_is_killed_or_takes_too_long(script):
    with fork_server.start(script, "sleep") as command:
        assert str(script) in command.stdout.readline()
        os.killpg(command.pid, signal.SIGTERM)
        assert command.wait(20) == -signal.SIGTERM
    with fork_server.start(script, "sleep") as command:
        assert command.stdout.readline()
    assert command.returncode == -signal.SIGKILL
    with pytest.raises(subprocess.TimeoutExpired):
        fork_server.run(script, "sleep", timeout=0.1)
    assert fork_server.run(script, "well").returncode == 0
