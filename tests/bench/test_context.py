"""utils/bench/context.py: what it counts, what it chooses, and the table."""

import runpy

import pytest
from recipe_harness import ROOT
from tiny_asr import babble, save_random_model
from tiny_audio import write_audio

from pyspeech.asr.api import Recognizer
from pyspeech.data.manifests import Utterance, write_manifest
from pyspeech.errors import UserError


@pytest.fixture(scope="module")
def bench():
    return runpy.run_path(str(ROOT / "utils/bench/context.py"), run_name="tool")


def test_hotwords_found_and_false(bench):
    scored = [("a", "hi-IN", None, "one two three", "one two two two", None), ("b", "hi-IN", None, "two four", "four", None)]
    wer, found, false = bench["figures"](scored, ["two", "four"])
    assert wer.startswith("60.0 [") and found == "2 of 3" and false == 2


def test_rare_words(bench):
    train = {"hi-IN": ["a a b", "a c c"], "ta-IN": ["x"]}
    utterances = [("1", "hi-IN", "a b c d", None), ("2", "ta-IN", "x y", None)]
    assert bench["rare_words"](train, utterances, 2) == ["d", "b", "y", "x"]


def test_the_table(bench, tmp_path, capsys):
    model = save_random_model(tmp_path / "model", "multi_softmax", lid=True)
    for name in ("train", "dev", "test"):
        rows = []
        for number in range(2):
            path = write_audio(tmp_path / f"{name}{number}.wav", samples=babble(0.6, seed=number))
            text = ("क ख", "गघ")[number]
            rows.append((Utterance(f"{name}{number}", str(path), text, "hi-IN"), str(path), {"rate": 16000, "duration": 0.6}))
        write_manifest(tmp_path / f"corpus/{name}.jsonl.gz", rows)
    arguments = ["--corpus", str(tmp_path / "corpus"), "--model", str(model), "--repeats", "1"]
    bench["main"](arguments)
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.strip().splitlines()]
    assert [row[0] for row in table[2:]] == list(bench["ROWS"])
    assert table[2][1] in ("", "–") and table[2][5] == "1.00" and all(row[3].endswith(" of 3") for row in table[2:])
    for row in table[3:]:
        weights = dict(part.split(" ") for part in row[1].split(", "))
        assert all(float(value) in bench["GRID"][name] for name, value in weights.items())
    bonus = float(dict(part.split(" ") for part in table[3][1].split(", "))["symbol_bonus"])
    results = Recognizer.load(model, symbol_bonus=bonus, device="cpu").recognize([babble(0.6, seed=seed) for seed in range(2)])
    errors = bench["errors_of"](
        [
            (str(n), "hi-IN", None, text, result.text, None)
            for n, (text, result) in enumerate(zip(("क ख", "गघ"), results, strict=True))
        ]
    )
    assert float(table[3][2].split()[0]) == pytest.approx(100 * errors / 3, abs=0.1)
    (tmp_path / "corpus/dev.jsonl.gz").unlink()
    with pytest.raises(UserError, match="no dev utterance in a language of the model"):
        bench["main"](arguments)
