"""The section "Add a network" of egs/README.md, followed to the letter in a copy of the repository: two files are touched."""

import json
import os
import re
import shutil
from pathlib import Path

import fork_server
import pytest
from tiny_corpora import make_fearless

REPOSITORY = Path(__file__).resolve().parents[2]
SECTION = (REPOSITORY / "egs/README.md").read_text(encoding="utf-8").split("## 7. Add a network")[1]
SIZES = """simulated=never network.channels=[2,4,8] network.rnn_size=8 train.max_steps=6 train.valid_every=6 train.save_every=6
    data.batch_size=4 data.crop_seconds=2 collars=[0.5] report=false"""

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
        env = {**os.environ, "PYTHONPATH": "", "PYSPEECH_ENV": "system"}
        done = fork_server.run(folder / script, *arguments, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def compared(checkout, tmp_path_factory):
    """(corpus, experiment, what is printed) of the network beside another."""
    folder = tmp_path_factory.mktemp("compared")
    corpus, exp = make_fearless(folder / "FSC_P2"), folder / "exp"
    return corpus, exp, checkout("egs/fearless/run.py", *options_of(corpus, exp), "systems=[linear,rnn]")


def options_of(corpus, exp):
    return ["--profile", "quick", "--exp", exp, f"corpus={corpus}", *SIZES.split()]


def test_the_network_is_in_the_list_the_table_the_vote_and_the_tool(checkout, compared):
    assert " train_linear " in checkout("egs/fearless/run.py", "--list")
    corpus, exp, printed = compared
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


def test_a_network_alone_has_no_majority(checkout, compared, tmp_path):
    exp = shutil.copytree(compared[1], tmp_path / "exp")
    printed = checkout("egs/fearless/run.py", *options_of(compared[0], exp), "systems=[linear]")
    assert "| Linear + HMM " in printed and "Majority" not in printed
    scores = json.loads((exp / "results.json").read_text())["scores"]
    assert "linear" in scores and not {"rnn", "vote", "vote_tuned"} & scores.keys()
