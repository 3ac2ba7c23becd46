"""utils/bench/fake_conditions.py: what the devices do to samples, and the table."""

import runpy

import numpy as np
import pytest
from recipe_harness import ROOT
from tiny_spoof import RATE, write_corpus

from pyspeech.data.cuts import read_samples
from pyspeech.errors import UserError
from pyspeech.spoof.checkpoint import load_model
from pyspeech.spoof.codecs import CODECS
from pyspeech.spoof.detector import score_samples
from pyspeech.spoof.formats import label_of
from pyspeech.spoof.scoring import equal_error_rate
from tests.commands.test_average_detectors import save


@pytest.fixture(scope="module")
def bench():
    return runpy.run_path(str(ROOT / "utils/bench/fake_conditions.py"), run_name="tool")


@pytest.fixture(scope="module")
def changes(bench):
    return bench["conditions"](RATE)


def tone(level):
    return level * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)


def decibels(samples):
    return 10 * np.log10(np.mean(np.square(samples)))


@pytest.mark.parametrize("below", [20, 30, 40])
def test_white_noise_lies_so_far_below(changes, below):
    samples = tone(0.3).astype("f4")
    noise = changes[f"white noise {below} dB below speech"](samples, 1) - samples
    assert decibels(samples) - decibels(noise) == pytest.approx(below, abs=0.2)
    assert (changes[f"white noise {below} dB below speech"](samples, 2) - samples != noise).any()
    low, high = (np.square(np.abs(part)).mean() for part in np.array_split(np.fft.rfft(noise), 2))
    assert low == pytest.approx(high, rel=0.1)


def test_level_control_halves_decibels(changes):
    samples = np.concatenate([tone(0.5), tone(0.05)])  # 20 dB apart
    levelled = changes["level control that halves decibels"](samples, 0)
    loud, quiet = (decibels(part[RATE // 4 : -RATE // 4]) for part in np.split(levelled, 2))
    assert loud - quiet == pytest.approx(10, abs=0.1)


def test_clipped_at_its_limit(changes):
    found = changes["clipped at 0.3 of the peak"](tone(0.5), 0)
    assert np.abs(found).max() == pytest.approx(0.15)
    assert found[np.abs(tone(0.5)) < 0.15] == pytest.approx(tone(0.5)[np.abs(tone(0.5)) < 0.15])


def test_silence_stays_silence(changes):
    for name, change in changes.items():
        found = change(np.zeros(RATE, "f4"), 0)
        assert len(found) == RATE and not np.any(found), name


def test_the_table(bench, tmp_path, capsys):
    cuts = write_corpus(tmp_path / "a é", 9)
    cuts.to_file(tmp_path / "dev.jsonl.gz")
    model = save(tmp_path / "model", 0)
    bench["main"](["--corpus", str(tmp_path), "--model", model])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.strip().splitlines()]
    assert rows[0] == ["condition", "EER", "genuine called fake", "fakes called genuine"]
    assert [row[0] for row in rows[2:10]] == ["as it is", *CODECS] and len(rows) == 15
    detector = load_model(model)
    scores, genuine = zip(
        *((score_samples(detector, read_samples(cut, RATE), RATE), label_of(cut).genuine) for cut in cuts), strict=True
    )
    people, fakes = np.array(scores)[np.array(genuine)], np.array(scores)[~np.array(genuine)]
    eer, interval = rows[2][1].split(" ", 1)
    assert eer == f"{100 * equal_error_rate(people, fakes)[0]:.1f}" and interval.startswith("[")
    shares = [np.mean(people < detector.threshold), np.mean(fakes >= detector.threshold)]
    assert rows[2][2:] == [f"{100 * share:.0f}" for share in shares]
    with pytest.raises(UserError, match="no eval.jsonl.gz in it; expected that of an experiment"):
        bench["main"](["--corpus", str(tmp_path), "--set", "eval"])
