"""utils/bench/sherpa.py: the same texts as ours where the features are sherpa-onnx's, and what it counts."""

import runpy

import pytest
from recipe_harness import ROOT
from tiny_asr import babble, save_random_model
from tiny_audio import write_audio

from pyspeech.data.manifests import Utterance, write_manifest
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig


@pytest.fixture(scope="module")
def bench():
    return runpy.run_path(str(ROOT / "utils/bench/sherpa.py"), run_name="tool")


def test_counts(bench):
    utterances = [("1", "hi-IN", "a b", None), ("2", "hi-IN", "c d", None)]
    one = utterances, (["a b", "c"], (0.2, 10.0)), (["a b", "c d"], (0.5, 10.0))
    two = [("3", "ta-IN", "a b", None)], (["x"], (0.4, 10.0)), (["x"], (0.5, 10.0))
    assert bench["cells"]([one]) == ["1 of 2", "25.0", "0.0", "0.0200", "0.0500"]
    assert bench["cells"]([one, two]) == ["2 of 3", "50.0", "33.3", "0.0300", "0.0500"]
    assert bench["evenly"](list(range(10)), 4) == [0, 2, 5, 7] and bench["evenly"]([1, 2], 4) == [1, 2]


def test_the_table(bench, tmp_path, capsys):
    pytest.importorskip("sherpa_onnx")
    features = FbankConfig(kind="nemo")
    model = save_random_model(tmp_path / "model", "multi_softmax", lid=True, fbank=features, features=features.dim)
    rows = []
    for number, language in enumerate(("hi-IN", "hi-IN", "ta-IN")):
        path = write_audio(tmp_path / f"{number}.wav", samples=babble(1.5, seed=number))
        rows.append((Utterance(str(number), str(path), "क ख", language), str(path), {"rate": 16000, "duration": 1.5}))
    write_manifest(tmp_path / "corpus/test.jsonl.gz", rows)
    bench["main"](["--corpus", str(tmp_path / "corpus"), "--model", str(model)])
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.strip().splitlines()]
    assert [row[:2] for row in table[2:]] == [["hi-IN", "2 of 2"], ["ta-IN", "1 of 1"], ["all", "3 of 3"]]
    assert any(row[2] != "100.0" for row in table[2:])  # some text, if a wrong one
    assert all(row[2] == row[3] and float(row[4]) > 0 < float(row[5]) for row in table[2:])
    write_manifest(tmp_path / "corpus/test.jsonl.gz", [])
    with pytest.raises(UserError, match="no test utterance in a language of the model"):
        bench["main"](["--corpus", str(tmp_path / "corpus"), "--model", str(model)])
