"""The page "Add a corpus, add a recipe" (egs/README.md), followed to the letter in a copy of the repository."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import fork_server
import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE, _ = (REPOSITORY / "egs/README.md").read_text(encoding="utf-8").split("\n## 7. Add a network")  # test_add_a_network.py
BLOCK = re.compile(r"^`(\S+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Runs a script, killed as it is about to put the second checkpoint in its place.
KILLED = """
import os, runpy, signal, sys
replace, saved = os.replace, []
def replace_or_die(source, target):
    saved.extend([target] if str(target).endswith("checkpoint.pt") else [])
    if len(saved) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = replace_or_die
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Checkout:
    """A copy of the repository with the files of the page; call it with arguments of egs/keys/run.py."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("pyspeech", "local", "steps"):
            shutil.copytree(REPOSITORY / name, folder / name)
        for name, text in BLOCK.findall(PAGE):
            path = folder / name
            assert not path.exists(), f"{name} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.env = {**os.environ, "PYTHONPATH": "", "PYSPEECH_ENV": "system"}

    def start(self, *arguments):
        return fork_server.run("egs/keys/run.py", *arguments, cwd=self.folder, env=self.env)

    def __call__(self, *arguments):
        done = self.start(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ran(self, *arguments):
        """Names of the stages that a command has run."""
        return re.findall(r"stage \d (\w+): runs \(", self(*arguments))

    def plan(self, *arguments):
        """{stage: whether it would run}"""
        lines = self("--dry-run", *arguments).splitlines()
        return {line.split()[2]: "would run" in line for line in lines}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return Checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Three labels, eight WAV files of a tone each, in white noise."""
    import soundfile

    rng, folder = np.random.default_rng(3), tmp_path_factory.mktemp("corpus")
    for label, tone in (("low", 500), ("mid", 900), ("high", 1500)):
        (folder / label).mkdir()
        for number in range(8):
            sound = np.sin(2 * np.pi * tone * np.arange(2000) / 8000) + rng.standard_normal(2000)
            soundfile.write(folder / label / f"{number}.wav", 0.1 * sound, 8000)
    return folder


def test_the_page_names_the_files_of_a_whole_recipe():
    assert [name for name, _ in BLOCK.findall(PAGE)] == [
        "local/keys.py",
        "steps/keys/__init__.py",
        "steps/keys/train.py",
        "steps/keys/score.py",
        "egs/keys/run.py",
        "egs/keys/conf/mini.yaml",
        "egs/keys/conf/quick.yaml",
    ]


@pytest.mark.slow
def test_its_commands_do_what_it_says(checkout):
    section = PAGE.split("## 4. Run it")[1].split("```\n")[1]
    commands = [shlex.split(line)[1:] for line in section.splitlines() if line.startswith("egs/keys/run.py")]
    assert len(commands) == 6
    outputs = [checkout(*arguments) for arguments in commands]
    assert [line.split()[1] for line in outputs[0].splitlines()] == ["prepare", "train", "score", "results"]
    assert "classifier.lr" in outputs[1] and "its step size" in outputs[1]
    assert "error %" in outputs[2] and "Made by `egs/keys/run.py --profile quick`." in outputs[2]
    assert outputs[3].count("up to date") == 4
    assert [line.split()[2] for line in outputs[4].splitlines() if "would run" in line] == ["results"]
    assert "stage 0 prepare: up to date" in outputs[5] and "classifier.lr 1.0 -> 0.5" in outputs[5]
    results = json.loads((checkout.folder / "egs/keys/exp/quick/results.json").read_text())
    assert results["profile"] == "quick" and results["error"] < 0.5


@pytest.mark.slow
def test_run_changed_killed_and_resumed(checkout, corpus, tmp_path):
    options = ("--profile", "quick", f"corpus={corpus}")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert checkout.ran(*options, "--exp", str(whole)) == ["prepare", "train", "score", "results"]
    results = (whole / "results.json").read_bytes()
    assert json.loads(results)["error"] < 0.2
    assert not any(checkout.plan(*options, "--exp", str(whole)).values())

    command = [sys.executable, "-c", KILLED, "egs/keys/run.py", *options, "--exp", str(killed)]
    died = subprocess.run(command, cwd=checkout.folder, env=checkout.env, text=True, capture_output=True, timeout=120)
    assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr
    assert (killed / "training/checkpoint.pt").exists() and not (killed / "models/linear/model.pt").exists()
    resumed = checkout(*options, "--exp", str(killed))
    assert "stage 0 prepare: up to date" in resumed and "goes on after step 50" in resumed
    assert (killed / "results.json").read_bytes() == results

    changed = checkout.ran(*options, "--exp", str(whole), "classifier.steps=500", "listed=0")
    assert changed == ["train", "score", "results"]
    assert checkout.plan(*options, "--exp", str(whole), "classifier.steps=500", "classifier.save_every=7") == {
        "prepare": False, "train": False, "score": False, "results": True
    }  # fmt: skip


@pytest.mark.slow
def test_a_further_option_and_a_further_stage(corpus, tmp_path):
    checkout, options = Checkout(tmp_path / "checkout"), ("--profile", "quick", f"corpus={corpus}")
    checkout(*options)
    option, check, body, stage = re.findall(r"^```python\n(.*?)^```$", PAGE.split("\n## 5. ")[1], re.MULTILINE | re.DOTALL)

    run = checkout.folder / "egs/keys/run.py"
    text = run.read_text(encoding="utf-8")
    for line, further in (("    listed: int", option), ('        require("listed"', check)):
        place = text.index("\n", text.index(line)) + 1
        text = text[:place] + further + text[place:]
    place = text.index('@recipe.stage(config=["listed"]')
    text = text[:place] + stage + text[place:]
    run.write_text(text, encoding="utf-8")
    with open(checkout.folder / "steps/keys/score.py", "a", encoding="utf-8") as module:
        module.write(body)

    assert [line.split()[:2] for line in checkout("--list").splitlines()][3:] == [["3", "per_key"], ["4", "results"]]
    assert checkout.ran(*options) == ["per_key"]
    rates = json.loads((checkout.folder / f"egs/keys/exp/{corpus.name}-quick/per_key.json").read_text())
    assert sorted(rates) == ["high", "low", "mid"] and all(0 <= rate <= 1 for rate in rates.values())
    assert checkout.ran(*options, "digits=3") == ["per_key"]
    assert checkout.ran(*options, "digits=3", "--force", "--stage", "per_key", "--stop-stage", "per_key") == ["per_key"]
    run.write_text(text.replace('outputs=["per_key.json"]', 'outputs=["per_key.json"], version=2'), encoding="utf-8")
    assert checkout.ran(*options, "digits=3") == ["per_key"]
    assert checkout.start("digits=7").stderr == "digits=7: expected 0 to 6\n"
    (checkout.folder / "egs/keys/conf/mini.yaml").unlink()
    missing = checkout.start("--help").stderr
    assert missing.startswith("no profile 'mini', which runs without --profile: expected ") and missing.count("\n") == 1


def test_no_file_is_left_out_in_silence(checkout, corpus, tmp_path):
    from lhotse import CutSet

    odd, options = shutil.copytree(corpus, tmp_path / "odd"), ("--exp", str(tmp_path / "exp"), "--stop-stage", "prepare")
    (odd / "low/0.wav").rename(odd / "low/0.WAV")
    shutil.copy(odd / "low/1.wav", odd / "low/1.WAV")
    checkout(f"corpus={odd}", *options)
    ids = [cut.id for split in ("train", "test") for cut in CutSet.from_file(tmp_path / f"exp/corpus/{split}.jsonl.gz")]
    assert len(set(ids)) == len(ids) == 25
    (odd / "one").mkdir()
    done = checkout.start(f"corpus={odd}", *options, "--force")
    assert done.returncode == 1 and f"{odd}/one: 0 WAV files; expected 4 or more of each label" in done.stderr


def test_bad_options_and_files_are_one_line(checkout, corpus, tmp_path):
    for option in ("classifier.lr=0", "classifier.steps=-1", "features.num_bins=0", "listed=-1", "corpus=/nosuch"):
        done = checkout.start("--dry-run", option)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        assert option.partition("=")[0].rpartition(".")[2] in done.stderr
    bad = shutil.copytree(corpus, tmp_path / "bad")
    (bad / "low/3.wav").write_bytes(b"")
    done = checkout.start(f"corpus={bad}", "--exp", str(tmp_path / "exp"), "--stop-stage", "prepare")
    assert done.returncode == 1 and f"{bad}/low/3.wav: the audio file is empty" in done.stderr
    assert "Traceback" not in done.stderr
