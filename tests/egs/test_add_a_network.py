"""The section "Add a network" of egs/README.md, followed to the letter in a copy of the repository: two files are touched."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_corpora import make_fearless

REPOSITORY = Path(__file__).resolve().parents[2]
SECTION = (REPOSITORY / "egs/README.md").read_text(encoding="utf-8").split("## 7. Add a network")[1]
SIZES = """simulated=never network.channels=[2,4,8] network.rnn_size=8 train.max_steps=6 train.valid_every=6 train.save_every=6
    data.batch_size=4 collars=[0.5]"""

pytestmark = pytest.mark.slow  # a recipe runs


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the repository with the network; run(script, *arguments) gives what a script prints."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("pyspeech", "local", "steps", "utils"):
        shutil.copytree(REPOSITORY / name, folder / name)
    shutil.copytree(REPOSITORY / "egs/fearless", folder / "egs/fearless", ignore=shutil.ignore_patterns("exp"))
    path, module, entry = re.search(r"`(\S+)`\n\n```python\n(.*?)```.*?```python\n(.*?)```", SECTION, re.DOTALL).groups()
    (folder / path).write_text(module, encoding="utf-8")
    with open(folder / "pyspeech/sad/registry.py", "a", encoding="utf-8") as stream:
        stream.write(entry)

    def run(script, *arguments):
        command = [sys.executable, folder / script, *map(str, arguments)]
        env = {**os.environ, "PYTHONPATH": "", "PYSPEECH_ENV": "system"}
        done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_the_network_is_in_the_list_the_table_the_vote_and_the_tool(checkout, tmp_path):
    assert " train_linear " in checkout("egs/fearless/run.py", "--list")
    corpus, exp = make_fearless(tmp_path / "FSC_P2"), tmp_path / "exp"
    options = ["--profile", "quick", "--exp", exp, f"corpus={corpus}", *SIZES.split()]
    printed = checkout("egs/fearless/run.py", *options, "systems=[linear,rnn]")
    assert "| Linear + HMM " in printed and "| RNN + HMM " in printed and "| CNN + HMM" not in printed
    assert "| Majority of the networks " in printed
    results = json.loads((exp / "results.json").read_text())
    assert {"linear", "rnn", "vote", "vote_tuned"} <= set(results["scores"]) and "cnn" not in results["scores"]
    votes = json.loads((exp / "sweeps/vote_tuned.json").read_text())["majority"]["0.5"]["threshold"]
    assert set(votes) == {"linear", "rnn"}
    assert "linear" in json.loads((exp / "speed.json").read_text())  # the RNN is not in the paper's Table 3
    wav = next(corpus.rglob("*.wav"))
    found = checkout("utils/detect_speech.py", wav, "--system", "linear", "--model", exp / "models/linear", "--format", "json")
    assert json.loads(found)["duration"] > 0


def test_a_network_alone_votes_for_itself(checkout, tmp_path):
    corpus, exp = make_fearless(tmp_path / "FSC_P2"), tmp_path / "exp"
    options = ["--profile", "quick", "--exp", exp, f"corpus={corpus}", *SIZES.split()]
    checkout("egs/fearless/run.py", *options, "systems=[linear]")
    scores = json.loads((exp / "results.json").read_text())["scores"]
    assert scores["vote"] == scores["linear"]
    assert scores["vote_tuned"]["dev"]["0.5"]["dcf"] <= scores["linear"]["dev"]["0.5"]["dcf"] + 1e-5
