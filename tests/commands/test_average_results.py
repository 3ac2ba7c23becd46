"""The tool that averages the results of several runs."""

import json

import numpy as np
import pytest
from tool_harness import one_line_error, run_tool

from pyspeech.commands.average_results import main


@pytest.fixture
def runs(tmp_path):
    """results.json of three trainings, the last without a system of the others."""
    folder, paths = tmp_path / "with blanks", []
    for number, (first, second) in enumerate([(0.031, 0.05), (0.043, 0.07), (0.029, 0.055)]):
        scores = {"rnn": {"eval": {"0.5": {"dcf": first}}}, "cnn": {"eval": {"0.5": {"dcf": second}}}}
        (folder / str(number)).mkdir(parents=True)
        paths.append(folder / str(number) / "results.json")
        paths[-1].write_text(json.dumps({"scores": scores, "corpus": {"name": "mini", "minutes": [80, 40.5], "real": False}}))
    paths[-1].write_text(paths[-1].read_text().replace('"cnn"', '"bilstm"'))
    return paths


def test_mean_and_deviation(runs):
    done = run_tool("average_results", *runs, "--only", "scores/*/dcf", "--json", runs[0].parent / "out.json")
    assert done.returncode == 0, done.stderr
    values = [0.031, 0.043, 0.029]
    expected = {"mean": np.mean(values), "deviation": np.std(values, ddof=1), "least": 0.029, "most": 0.043}
    assert json.loads((runs[0].parent / "out.json").read_text()) == {"scores/rnn/eval/0.5/dcf": pytest.approx(expected)}
    assert done.stdout.splitlines()[2].split() == ["scores/rnn/eval/0.5/dcf", "0.034333", "0.0075719", "0.029", "0.043"]
    assert "2 figures that not all of the 3 runs have" in done.stderr


def test_all_that_is_a_number(runs, capsys):
    main(list(map(str, runs[:2])))
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert names == ["scores/rnn/eval/0.5/dcf", "scores/cnn/eval/0.5/dcf", "corpus/minutes/0", "corpus/minutes/1"]


def test_what_is_refused(runs, tmp_path):
    (tmp_path / "text").write_text("Made by hand")
    for arguments, message in [
        (runs[:1], "one file; expected results.json of two runs or more"),
        ([runs[0], tmp_path / "nothing"], "nothing: No such file"),
        ([runs[0], tmp_path / "text"], "text: no JSON"),
        ([*runs, "--only", "wer/*"], r"no figure common to all matches wer/\*"),
    ]:
        with one_line_error(message):
            main(list(map(str, arguments)))
