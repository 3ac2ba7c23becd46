"""utils/bench/speech_conditions.py: what the conditions are, and the table."""

import runpy

import numpy as np
import pytest
from recipe_harness import ROOT
from tiny_asr import babble, save_random_model
from tiny_audio import write_audio

from pyspeech.asr.api import Recognizer
from pyspeech.data.cuts import read_samples
from pyspeech.data.manifests import Utterance, load_cuts, write_manifest
from pyspeech.errors import UserError
from pyspeech.text.wer import align, count_errors

RATE = 16000


@pytest.fixture(scope="module")
def bench():
    return runpy.run_path(str(ROOT / "utils/bench/speech_conditions.py"), run_name="tool")


def decibels(samples):
    return 10 * np.log10(np.mean(np.square(samples, dtype=np.float64)))


def test_conditions(bench):
    np.random.seed(1)
    changes, samples = bench["conditions"](RATE), np.concatenate([0.001 * babble(1), babble(1)])
    seconds = {"0.5 s": 0.5, "1 s": 1, "2 s": 2}
    for name, change in changes.items():
        heard = change(samples)
        extra = round(seconds.get(name[: name.index(" s") + 2] if " s of" in name else "", 0) * RATE)
        assert heard.dtype == np.float32 and len(heard) == len(samples) + extra, name
        if "below" in name:
            assert decibels(samples) - decibels(heard - samples) == pytest.approx(float(name.split()[2]), abs=0.1)
        elif "softer" in name:
            assert decibels(samples) - decibels(heard) == pytest.approx(float(name.split()[0]), abs=0.01)
        else:
            np.testing.assert_array_equal(heard[:-extra] if "behind" in name else heard[extra:], samples)
        if "-50 dB" in name:
            assert decibels(heard[:extra]) == pytest.approx(-50, abs=0.1)
        if "zeros" in name:
            assert not heard[:extra].any()


def test_the_table(bench, tmp_path, capsys):
    model = save_random_model(tmp_path / "model", "multi_softmax", lid=True)
    rows, said = [], [("hi-IN", "क ख"), ("hi-IN", "ख क"), ("en-IN", "b c")]
    for number, (language, text) in enumerate(said):
        path = write_audio(tmp_path / f"{number}.wav", samples=babble(1, seed=number))
        rows.append((Utterance(f"u{number}", str(path), text, language), str(path), {"rate": RATE, "duration": 1.0}))
    write_manifest(tmp_path / "corpus/test.jsonl.gz", rows)
    bench["main"](["--corpus", str(tmp_path / "corpus"), "--model", str(model), "--no-vad"])
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.strip().splitlines()]
    names = [row[0] for row in table[2:]]
    assert names == [*bench["conditions"](RATE), "joined in threes", "joined in threes, streamed"]
    results = Recognizer.load(model).recognize([read_samples(cut, RATE) for cut in load_cuts(tmp_path / "corpus", "test")])
    heard = list(zip(said, results, strict=True))
    errors = sum(count_errors(align(text.split(), result.text.split()))["errors"] for (_, text), result in heard)
    assert table[2][1].startswith(f"{100 * errors / 6:.1f} ")
    assert table[2][2] == f"{sum(result.language == language for (language, _), result in heard)} of 3" and table[-1][2] == "–"
    with pytest.raises(UserError, match="no dev utterance in a language of the model"):
        bench["main"](["--corpus", str(tmp_path / "corpus"), "--model", str(model), "--set", "dev"])
