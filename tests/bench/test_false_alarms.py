"""utils/bench/false_alarms.py and sad_peers.py: what they count and draw, on made-up recordings."""

import runpy

import numpy as np
import pytest
import soundfile
from recipe_harness import ROOT

from local.detector import scenes as speech_scenes
from local.synthesis.unspoken import KINDS
from pyspeech.sad.config import OperatingPoint


@pytest.fixture(scope="module")
def false_alarms():
    return runpy.run_path(str(ROOT / "utils/bench/false_alarms.py"), run_name="tool")


def test_shares_called_speech(false_alarms):
    audio = [np.zeros(8), np.ones(8)]
    detectors = {
        "one": lambda samples: np.array([(0.0, 6.0), (50.0, 56.0)] if samples[0] else []).reshape(-1, 2),
        "none": lambda samples: np.zeros((0, 2)),
    }
    found = false_alarms["share_called"](audio, detectors)
    assert found == {"one": pytest.approx((0.05, 0.1)), "none": (0.0, 0.0)}


def test_recordings_without_speech_are_the_same_each_time(false_alarms, monkeypatch):
    monkeypatch.setattr(speech_scenes, "default_sounds", lambda split: {"noise": [], "music": [], "signals": []})
    made = [list(false_alarms["recordings"](4 / 60, 1, "dev", KINDS)) for _ in range(2)]
    assert [len(samples) for samples in made[0]] == [960000, 960000]
    assert all((first == second).all() for first, second in zip(*made, strict=True))
    assert (made[0][0] != made[0][1]).any()


@pytest.mark.parametrize("sets", [1, 3])
def test_bars(sets, tmp_path):
    draw = runpy.run_path(str(ROOT / "utils/bench/sad_peers.py"), run_name="tool")["draw"]
    figures = {f"set {number}": {"ours": 0.05, "peer": 0.1} for number in range(sets)}
    figures["set 0"]["only here"] = 0.2
    draw(figures, tmp_path / "peers.png")
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")


def test_threshold_of_the_other_sets():
    """The best of the others' sum, not of this set; decisions have no threshold, and a single set no others."""
    tool = runpy.run_path(str(ROOT / "utils/bench/sad_peers.py"), run_name="tool")
    one = ((0.2, 0.1, 0.5), [0.5, 0.2, 0.1], 0.001)
    others = [((0.3, 0.3, 0.3), [0.4, 0.3, 0.4], 0.001), ((0.3, 0.3, 0.3), [0.1, 0.1, 0.3], 0.001)]
    assert tool["cells"]("x", one, others) == ["x", "20.00", "10.00", "50.00", "20.00", "10.00", "0.00100"]
    assert tool["cells"]("x", one, others[1:])[4] == "50.00"
    assert tool["cells"]("x", one, [*others[1:], ((0.3, 0.3, 0.3), [], 0.001)])[4] == "50.00"  # decisions alone there
    assert tool["cells"]("x", one, [])[4] is None
    assert tool["cells"]("x", ((0.2, 0.1, 0.5), [], 0.001), others)[4:6] == ["20.00", "20.00"]


def test_tables_of_peers(tmp_path, capsys, rng):
    """Of two folders in noise: a detector whose score is the loudness, and one that cannot be loaded."""
    tool = runpy.run_path(str(ROOT / "utils/bench/sad_peers.py"), run_name="tool")
    heard = []

    def by_level():
        def run(path):
            samples, rate = soundfile.read(path)
            heard.append(float(np.std(samples[: rate // 2])))
            return np.abs(samples[: len(samples) // 80 * 80].reshape(-1, 80)).max(axis=1).clip(0, 1), 80 / rate, 0.0

        return run, OperatingPoint(0.5)

    def broken():
        raise ImportError("no library")

    tool["compare"].__globals__["systems"] = lambda point: {"level": by_level, "broken": broken}
    for folder in ("one", "two", "noise"):
        (tmp_path / folder).mkdir()
    soundfile.write(tmp_path / "noise/n.wav", rng.standard_normal(32000).clip(-3, 3) / 4, 8000)
    for folder, loud in (("one", 0.4), ("two", 0.8)):
        samples = np.concatenate([np.zeros(8000), np.full(8000, loud)])
        soundfile.write(tmp_path / folder / "a.wav", samples, 8000)
        (tmp_path / folder / "a.txt").write_text("1.0\t2.0\tspeech\n")
    folders = [str(tmp_path / "one"), "--turns", str(tmp_path / "two")]
    tool["main"]([*folders, "-o", str(tmp_path / "peers")])
    shown = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown.splitlines() if line.startswith("| level")]
    assert [row[1:6] for row in rows] == [["75.00", "100.00", "0.00", "0.00", "0.00"], ["0.00", "0.00", "0.00", "0.00", "0.00"]]
    assert "broken: left out, it cannot be loaded: no library" in shown and (tmp_path / "peers.png").exists()
    assert max(heard) == 0
    tool["main"]([*folders, "--noise", str(tmp_path / "noise"), "--snr", "20"])
    assert "two: 1 recordings, 0.0 minutes, labels of turns, with noise 20 dB below" in capsys.readouterr().out
    assert heard[-3:-1] == pytest.approx([0.04, 0.08], rel=0.1)
