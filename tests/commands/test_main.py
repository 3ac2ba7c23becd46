"""The console script: its commands, their doors in utils/, and mistakes."""

import subprocess
import sys

import numpy as np
import pytest
import soundfile
from tiny_voice import voice
from tool_harness import ENVIRONMENT, UTILS, one_line_error, run_tool

import pyspeech
from pyspeech.commands import COMMANDS, detect


def run_command(*arguments, **options):
    code = "import sys; from pyspeech.commands.main import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, **{"capture_output": True, "text": True, "env": ENVIRONMENT, **options})


def test_help_and_version_are_instant():
    done = run_command("--help")
    assert done.returncode == 0 and all(f"  {name} " in done.stdout for name in COMMANDS)
    assert run_command().stdout == done.stdout
    assert run_command("--version").stdout == f"{pyspeech.__version__}\n"
    code = "import sys; from pyspeech.commands.main import help_text; help_text(); print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=ENVIRONMENT) == "False\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_and_its_door_have_the_same_help(name):
    module, door, _ = COMMANDS[name]
    wide = {**ENVIRONMENT, "COLUMNS": "1000"}  # lines break alike, however long the name is
    command, tool = run_command(*name.split(), "--help", env=wide), run_tool(door, "--help", env=wide)
    assert command.returncode == tool.returncode == 0, command.stderr
    assert f"usage: pyspeech {name} " in command.stdout and f"usage: {door}.py " in tool.stdout
    expected = tool.stdout.replace(f"usage: {door}.py ", f"usage: pyspeech {name} ")
    for other, (_, script, _) in COMMANDS.items():
        expected = expected.replace(f"utils/{script}.py", f"pyspeech {other}")
    assert command.stdout == expected
    lines = (UTILS / f"{door}.py").read_text().splitlines()
    assert len(lines) <= 8 and lines[-1].strip() == f'run_command("{module}")'


def test_every_script_of_utils_is_a_door():
    assert sorted(path.stem for path in UTILS.glob("*.py")) == sorted(door for _, door, _ in COMMANDS.values())
    doors = {path.read_text().split('"""', 2)[2].rpartition("run_command")[0] for path in UTILS.glob("*.py")}
    assert len(doors) == 1


def test_recipes_and_benchmarks_have_one_door():
    scripts = [*UTILS.glob("bench/*.py"), *UTILS.parent.glob("egs/*/run.py")]
    first = {path.read_text().split('"""', 2)[2].replace("ROOT, ", "").partition("()")[0] for path in scripts}
    assert len(scripts) > 10 and len(first) == 1


@pytest.mark.parametrize("script", ["utils/detect_speech.py", "utils/bench/abx.py", "egs/fearless/run.py"])
def test_doors_open_through_links(tmp_path, script):
    link = tmp_path / "a lïnk.py"
    link.symlink_to(UTILS.parent / script)
    done = subprocess.run([sys.executable, link, "--help"], capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path)
    assert done.returncode == 0 and "usage: " in done.stdout, done.stderr


def test_a_script_ends_without_a_look_through_all_objects():
    """It prints before Python takes its modules apart, last of all: what is registered first is called last."""
    code = """if True:
        import atexit, gc
        atexit.register(lambda: print(gc.get_freeze_count() > 1000))
        from pyspeech.launch import ensure_environment
        ensure_environment()
        print(gc.get_freeze_count())
    """
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=ENVIRONMENT) == "0\nTrue\n"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("audio") / "noise and á voice.wav"
    noise = 0.01 * np.random.default_rng(0).standard_normal(32000)
    soundfile.write(path, noise + voice(2), 16000)
    return path


@pytest.mark.parametrize("arguments", ["detect --format segments --threshold 0", "detect-fake --format csv"])
def test_a_command_and_its_door_print_the_same(recording, arguments):
    name, *options = arguments.split()
    command, tool = run_command(name, recording, *options), run_tool(COMMANDS[name][1], recording, *options)
    assert command.returncode == tool.returncode == 0, command.stderr
    assert command.stdout == tool.stdout and command.stdout.strip()


@pytest.mark.parametrize("arguments", ["detect", "detect --system statistical", "detect-fake"])
def test_detectors_run_without_the_packages_of_the_extras(recording, arguments):
    code = """if True:
        import sys
        sys.modules.update(dict.fromkeys(["torch", "torchaudio", "lhotse", "omegaconf", "tqdm", "yaml", "kaldiio"]))
        from pyspeech.commands.main import main
        main()
    """
    name, *options = arguments.split()
    command = [sys.executable, "-c", code, name, str(recording), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run_command(name, recording, *options).stdout


def test_mistakes_are_one_line():
    for arguments, message in (
        (["detct", "call.wav"], "no command 'detct'; commands: detect, "),
        (["detct", "call.wav"], "Did you mean 'detect'?"),
        (["score", "were"], "Did you mean 'score wer'?"),
        (["score"], "no command 'score'; commands: score sad, score wer, "),
        (["detect", "/no/such.wav"], "/no/such.wav"),
    ):
        done = run_command(*arguments)
        assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_help_of_a_group_of_commands():
    done = run_command("score", "--help")
    assert done.returncode == 0 and "  score wer " in done.stdout and "  detect " not in done.stdout


def test_an_installed_package_asks_for_the_model(recording, monkeypatch, tmp_path):
    monkeypatch.setattr(detect, "EXPERIMENTS", tmp_path / "egs" / "fearless" / "exp")
    with one_line_error("--system rnn: expected a trained network; give its folder with --model DIR"):
        detect.main([str(recording), "--system", "rnn"])
