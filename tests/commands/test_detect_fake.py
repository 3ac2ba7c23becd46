"""utils/detect_fake.py as its user meets it: every kind of file in one run, the formats, and what is wrong."""

import csv
import io
import json
import logging
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch
from tiny_spoof import sound, write_corpus
from tool_harness import run_tool

from pyspeech.audio.io import read_audio
from pyspeech.commands import detect_fake
from pyspeech.errors import UserError
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.checkpoint import load_model, save_model
from pyspeech.spoof.config import CropConfig
from pyspeech.spoof.detector import Detector, score_samples
from pyspeech.spoof.formats import read_scores
from pyspeech.spoof.networks import LcnnBlstm
from steps.spoof.score import score_system


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An untrained detector whose threshold lies among the scores of `folder`."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("model")
    save_model(folder, Detector(LcnnBlstm().eval(), CropConfig(samples=8000, hop=4000), Calibration(2.0, 0.5), 0.0))
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
    soundfile.write(folder / "antiphase.wav", np.stack([sound("fake", 0.3, rng)] * 2, axis=1) * [1, -1], 16000)
    huge = sound("fake", 0.3, rng)
    soundfile.write(folder / "huge.wav", 9e17 / np.abs(huge).max() * huge, 16000, "FLOAT")  # the reader's limit is 1e18
    soundfile.write(folder / "none.wav", np.zeros(0), 16000)
    soundfile.write(folder / "one sample.wav", [0.5], 48000)
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.wav").write_text("This is a letter, not a recording.\n")
    return folder


def expected_scores(model, folder):
    """Calibrated."""
    detector = load_model(model)
    return {path.stem: 2 * score_samples(detector, *read_audio(path, 16000)) + 0.5 for path in folder.glob("good*")}


def test_as_a_program_over_a_folder(model, folder):
    run = run_tool("detect_fake", folder, "--model", model, "--format", "json")
    assert run.returncode == 1 and "Traceback" not in run.stderr
    errors = [line for line in run.stderr.splitlines() if not line.startswith("warning: ")]
    (warning,) = set(run.stderr.splitlines()) - set(errors)
    assert "antiphase.wav: its channels cancel each other when mixed; choose one of them (--channel)" in warning
    for line, message in zip(
        errors,
        (
            "antiphase.wav: its channels cancel (--channel takes one); there is no speech",
            "empty.wav: is empty (0 bytes)",
            "huge.wav: has no finite score; its samples go",
            "none.wav: holds no samples",
            "offset.wav: is silent; there is no speech to judge",
            "one sample.wav: is silent",
            "silence.wav: is silent",
            "text.wav: cannot be read as audio",
            "8 of 11 recordings could not be judged",
        ),
        strict=False,
    ):
        assert line.startswith("error: ") and message in line
    assert len(errors) == 9
    found, expected = {entry["recording"]: entry for entry in json.loads(run.stdout)}, expected_scores(model, folder)
    assert found.keys() == expected.keys() and len(found) == 3
    for name, entry in found.items():
        assert entry["score"] == pytest.approx(expected[name], abs=1e-4)
        assert entry["p_genuine"] == pytest.approx(1 / (1 + np.exp(-entry["score"])))
        assert entry["p_genuine"] + entry["p_fake"] == pytest.approx(1)
        assert entry["decision"] == ("genuine" if entry["score"] >= 0.5 else "fake") and entry["threshold"] == 0.5
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
        odds = 9 * np.exp(expected[row["recording"]])
        assert float(row["p_genuine"]) == pytest.approx(odds / (1 + odds), abs=1e-4)
    assert text_of("--format", "scores", "-o", str(tmp_path / "s.txt")) == ""
    assert read_scores(tmp_path / "s.txt") == pytest.approx(expected, abs=1e-4)


def test_interrupted_the_file_stays(model, folder, tmp_path, interrupt, capsys):
    calls = interrupt("pyspeech.spoof.detector.score_blocks")
    (tmp_path / "out").write_text("of before")
    with pytest.raises(KeyboardInterrupt):
        detect_fake.main([str(folder), "--model", str(model), "-o", str(tmp_path / "out")])
    assert len(calls) == 2 and (tmp_path / "out").read_text() == "of before"
    assert re.search(r"interrupted; [01] of 11 recordings are judged\n$", capsys.readouterr().err)


def test_what_is_wrong_is_one_line(model, folder, tmp_path):
    good = str(folder / "good día.wav")
    for arguments, message in (
        ([good, "--model", str(tmp_path)], "no model.pt in it; expected a folder that egs/"),
        ([good, "--model", str(tmp_path / "x")], "no such file or folder"),
        ([good, "--model", good], "is not a model.pt; expected a folder that egs/"),
        ([good, "--model", str(model), "--threshold", "nan"], "nan: expected a finite number"),
        ([good, "--model", str(model), "--threshold", "inf"], "inf: expected a finite"),
        ([str(tmp_path / "no.wav"), "--model", str(model)], "no such file or folder"),
    ):
        with pytest.raises(UserError, match=message):
            detect_fake.main(arguments)
    with pytest.raises(SystemExit):
        detect_fake.main([good, "--model", str(model), "--prior", "1"])


def test_the_model_may_be_its_file_and_is_looked_for(model, folder, tmp_path, capsys):
    good = str(folder / "good one.wav")
    detect_fake.main([good, "--model", str(model / "model.pt"), "--format", "scores"])
    detect_fake.main([good, "--model", str(model), "--format", "scores"])
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    for name in ("none/1", "none/2", "rnm/1", "training/rnm/1"):
        (tmp_path / "exp" / name).mkdir(parents=True)
        (tmp_path / "exp" / name / "model.pt").touch()
    places = ", ".join(str(tmp_path / "exp" / name) for name in ("none/1", "none/2", "rnm/1"))
    with pytest.raises(UserError, match=f"--model {tmp_path}: no model.pt in it; choose one of {places}$"):
        detect_fake.main([good, "--model", str(tmp_path)])
    for seed in range(3, 9):
        (tmp_path / "exp" / "none" / str(seed)).mkdir()
        (tmp_path / "exp" / "none" / str(seed) / "model.pt").touch()
    with pytest.raises(UserError, match=r"none/5 \(4 more\)$"):
        detect_fake.main([good, "--model", str(tmp_path / "exp")])


def test_scores_are_those_of_the_recipe(model, tmp_path):
    """Of the same model, whose calibration changes scores, and so Cllr."""
    cuts = write_corpus(tmp_path / "audio", 6)
    (tmp_path / "corpus").mkdir()
    cuts.to_file(tmp_path / "corpus" / "eval.jsonl.gz")
    shutil.copytree(model, tmp_path / "models" / "none" / "1")
    exp = SimpleNamespace(dir=tmp_path, log=logging.getLogger("test"), parts=None)
    score_system(exp, SimpleNamespace(repeated=[], seeds=[1]), "none")
    expected = read_scores(tmp_path / "scores" / "none" / "1" / "eval.txt")
    found = tmp_path / "found.txt"
    detect_fake.main([str(tmp_path / "audio"), "--model", str(model), "--format", "scores", "-o", str(found)])
    assert read_scores(found) == pytest.approx(expected, abs=1e-5) and len(expected) == 6


def test_a_detector_without_calibration_is_said(model, folder, tmp_path, caplog):
    sure, known = tmp_path / "none", str(folder / "good día.wav")
    save_model(sure, Detector(LcnnBlstm().eval(), CropConfig(samples=8000, hop=4000), Calibration()))
    for name, expected in ((sure, True), (model, False)):
        caplog.clear()
        detect_fake.main([known, "--model", str(name), "-o", str(tmp_path / "out")])
        assert ("not calibrated" in caplog.text) == expected
