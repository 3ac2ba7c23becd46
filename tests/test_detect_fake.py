"""utils/detect_fake.py as its user meets it: every kind of file in one run, the formats, and what is wrong."""
import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from pyspeech.audio.io import read_audio
from pyspeech.errors import UserError
from pyspeech.spoofing.calibration import Calibration
from pyspeech.spoofing.config import CropConfig
from pyspeech.spoofing.detector import Detector, load_detector, save_detector, score_samples
from pyspeech.spoofing.networks import LcnnBlstm
from tiny_spoofing import sound
from utils import detect_fake

TOOL = Path(__file__).resolve().parents[1] / "utils" / "detect_fake.py"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An untrained detector whose threshold lies among the scores of `folder`."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("model")
    save_detector(folder, Detector(LcnnBlstm().eval(), CropConfig(samples=8000, hop=4000), Calibration(2.0, 0.5), 0.0))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with every awkward file; those that can be judged are named good."""
    folder, rng = tmp_path_factory.mktemp("audio ñ 1"), np.random.default_rng(1)
    soundfile.write(folder / "good día.wav", sound("genuine", 0.4, rng), 16000)
    stereo = np.stack([sound("fake", 1.2, rng, 44100), np.zeros(52920)], axis=1)
    soundfile.write(folder / "good stereo.flac", stereo, 44100)
    soundfile.write(folder / "good one.wav", [0.5, -0.5], 16000)
    soundfile.write(folder / "silence.wav", np.zeros(9000), 16000)
    soundfile.write(folder / "offset.wav", np.full(9000, 0.25), 16000)
    soundfile.write(folder / "none.wav", np.zeros(0), 16000)
    soundfile.write(folder / "one sample.wav", [0.5], 48000)
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.wav").write_text("This is a letter, not a recording.\n")
    return folder


def expected_scores(model, folder):
    detector = load_detector(model)
    return {path.stem: score_samples(detector, *read_audio(path, 16000)) for path in folder.glob("good*")}


def test_as_a_program_over_a_folder(model, folder):
    environment = {**os.environ, "PYSPEECH_ENV": "system", "PYTHONUTF8": "1"}
    run = subprocess.run([sys.executable, str(TOOL), str(folder), "--model", str(model), "--format", "json"],
                         text=True, capture_output=True, cwd="/", env=environment)
    assert run.returncode == 1 and "Traceback" not in run.stderr
    errors = run.stderr.splitlines()
    for line, message in zip(errors, ("empty.wav: is empty (0 bytes)", "none.wav: holds no samples",
                                      "offset.wav: is silent; there is no speech to judge",
                                      "one sample.wav: is silent", "silence.wav: is silent",
                                      "text.wav: cannot be read as audio", "6 of 9 recordings could not be judged")):
        assert line.startswith("error: ") and message in line
    assert len(errors) == 7
    found, expected = {entry["recording"]: entry for entry in json.loads(run.stdout)}, expected_scores(model, folder)
    assert found.keys() == expected.keys() and len(found) == 3
    for name, entry in found.items():
        assert entry["score"] == pytest.approx(expected[name], abs=1e-4)
        assert entry["p_genuine"] == pytest.approx(1 / (1 + np.exp(-2 * entry["score"] - 0.5)))
        assert entry["p_genuine"] + entry["p_fake"] == pytest.approx(1)
        assert entry["decision"] == ("genuine" if entry["score"] >= 0 else "fake")
        assert entry["score"] == pytest.approx(np.mean([score for _, score in entry["windows"]]))
    assert found["good stereo"]["seconds"] == pytest.approx(1.2)
    assert [start for start, _ in found["good stereo"]["windows"]] == [0, 0.25, 0.5, pytest.approx(0.7)]


def test_formats(model, folder, tmp_path, capsys):
    expected, good = expected_scores(model, folder), sorted(map(str, folder.glob("good*")))

    def text_of(*arguments):
        assert detect_fake.main([*good, "--model", str(model), *arguments]) == 0
        return capsys.readouterr().out

    lowest, middle, _ = sorted(expected.values())
    lines = text_of("--threshold", repr((lowest + middle) / 2)).splitlines()
    found = {line.split(":")[0]: float(re.search(r"score ([^ ]*) \(genuine from", line).group(1)) for line in lines}
    assert found == pytest.approx(expected, abs=6e-4)
    decided = [": genuine, P(genuine) " in line for line in lines]
    assert decided == [expected[name] > lowest for name in found]
    rows = list(csv.DictReader(io.StringIO(text_of("--format", "csv", "--prior", "0.9"))))
    for row in rows:
        odds = 9 * np.exp(2 * expected[row["recording"]] + 0.5)
        assert float(row["p_genuine"]) == pytest.approx(odds / (1 + odds), abs=1e-4)
    assert text_of("--format", "scores", "-o", str(tmp_path / "s.txt")) == ""
    from pyspeech.spoofing.formats import read_scores
    assert read_scores(tmp_path / "s.txt") == pytest.approx(expected, abs=1e-4)


def test_what_is_wrong_is_one_line(model, folder, tmp_path):
    good = str(folder / "good día.wav")
    for arguments, message in (([good, "--model", str(tmp_path)], "no model.pt in it; expected a folder that egs/"),
                               ([good, "--model", str(tmp_path / "x")], "no such folder"),
                               ([good, "--model", str(model), "--threshold", "nan"], "expected a number"),
                               ([str(tmp_path / "no.wav"), "--model", str(model)], "no such file or folder")):
        with pytest.raises(UserError, match=message):
            detect_fake.main(arguments)
    with pytest.raises(SystemExit):
        detect_fake.main([good, "--model", str(model), "--prior", "1"])


def test_help_needs_no_heavy_imports():
    code = ("import sys; from utils import detect_fake\ntry: detect_fake.main(['--help'])\nexcept SystemExit: pass\n"
            "assert not {'torch', 'lhotse', 'numpy', 'soundfile'} & set(sys.modules)")
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, cwd=TOOL.parents[1])
    assert run.returncode == 0 and "--prior" in run.stdout, run.stderr
