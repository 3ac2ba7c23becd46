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
from tiny_voice import voice
from tool_harness import run_tool

from pyspeech.audio.io import read_audio
from pyspeech.commands import detect_fake
from pyspeech.errors import UserError
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.checkpoint import load_model, save_model
from pyspeech.spoof.config import CropConfig
from pyspeech.spoof.detector import Detector, score_samples
from pyspeech.spoof.networks import LcnnBlstm
from pyspeech.spoof.score_files import read_scores
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
    run = run_tool("detect_fake", folder, "--model", model, "--force", "--format", "json")
    assert run.returncode == 1 and "Traceback" not in run.stderr
    errors = [line for line in run.stderr.splitlines() if not line.startswith("warning: ")]
    assert [line for line in run.stderr.splitlines() if line not in errors] == [
        f"warning: {folder}/antiphase.wav: its channels cancel each other when mixed; choose one of them (--channel)",
        "warning: 3 recordings with under 2 s of sound: scores of short ones are less certain",
    ]
    for line, message in zip(
        errors,
        (
            "antiphase.wav: is silent; there is no speech to judge",
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
        assert entry["p_genuine"] == pytest.approx(1 / (1 + np.exp(0.5 - entry["score"])))  # 0.5 at the threshold
        assert entry["p_genuine"] + entry["p_fake"] == pytest.approx(1)
        assert entry["decision"] == ("genuine" if entry["score"] >= 0.5 else "fake") and entry["threshold"] == 0.5
        assert entry["score"] == pytest.approx(np.mean([score for _, _, score in entry["windows"]]))
        assert entry["path"] in {str(path) for path in folder.glob("good*")} and name in entry["path"]
    assert found["good stereo"]["seconds"] == pytest.approx(1.2)
    assert [start for start, _, _ in found["good stereo"]["windows"]] == [0, 0.25, 0.5, pytest.approx(0.7)]


def test_formats(model, folder, tmp_path, capsys):
    expected, good = expected_scores(model, folder), sorted(map(str, folder.glob("good*")))

    def text_of(*arguments):
        assert detect_fake.main([*good, "--model", str(model), "--force", *arguments]) == 0
        return capsys.readouterr().out

    lowest, middle, _ = sorted(expected.values())
    lines = text_of("--threshold", repr((lowest + middle) / 2)).splitlines()
    found = {line.split(":")[0]: float(re.search(r"score ([^ ]*) \(genuine from", line).group(1)) for line in lines}
    assert found == pytest.approx(expected, abs=6e-4)
    decided = [": genuine, P(genuine) " in line for line in lines]
    assert decided == [expected[name] > lowest for name in found]
    rows = list(csv.DictReader(io.StringIO(text_of("--format", "csv", "--prior", "0.9"))))
    assert sorted(row["path"] for row in rows) == good
    for row in rows:
        odds = 9 * np.exp(expected[row["recording"]])
        assert float(row["p_genuine"]) == pytest.approx(odds / (1 + odds), abs=1e-4)
    assert text_of("--format", "scores", "-o", str(tmp_path / "s.txt")) == ""
    assert read_scores(tmp_path / "s.txt") == pytest.approx(expected, abs=1e-4)
    assert text_of("-o", str(tmp_path / "s.csv")) == ""
    assert sorted(row["path"] for row in csv.DictReader(open(tmp_path / "s.csv"))) == good
    with pytest.raises(UserError, match="its ending names no format"):
        text_of("-o", f"{tmp_path}/folder/")


def test_interrupted_the_file_stays(model, folder, tmp_path, interrupt, capsys):
    calls = interrupt("pyspeech.spoof.detector.score_blocks")
    (tmp_path / "out.txt").write_text("of before")
    with pytest.raises(KeyboardInterrupt):
        detect_fake.main([str(folder), "--model", str(model), "-o", str(tmp_path / "out.txt")])
    assert len(calls) == 2 and (tmp_path / "out.txt").read_text() == "of before"
    assert re.search(r"interrupted; [01] of 11 recordings are judged\n$", capsys.readouterr().err)


def test_what_is_wrong_is_one_line(model, folder, tmp_path):
    good = str(folder / "good día.wav")
    for arguments, message in (
        ([good, "--model", str(tmp_path)], "no model.pt or model.onnx in it; expected a folder that the recipe add2022"),
        ([good, "--model", str(tmp_path / "x")], "no such file or folder"),
        ([good, "--model", good], "is not a model.pt or model.onnx; expected a folder that the recipe add2022"),
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
    detect_fake.main([good, "--force", "--model", str(model / "model.pt"), "--format", "scores"])
    detect_fake.main([good, "--force", "--model", str(model), "--format", "scores"])
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    for name in ("none/1", "none/2", "rnm/1", "training/rnm/1"):
        (tmp_path / "exp" / name).mkdir(parents=True)
        (tmp_path / "exp" / name / "model.pt").touch()
    places = ", ".join(str(tmp_path / "exp" / name) for name in ("none/1", "none/2", "rnm/1"))
    with pytest.raises(UserError, match=f"--model {tmp_path}: no model.pt or model.onnx in it; choose one of {places}$"):
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
    score_system(exp, SimpleNamespace(repeated=[], seeds=[1], test={}, corpus="mini"), "none")
    expected = read_scores(tmp_path / "scores" / "none" / "1" / "eval.txt")
    found = tmp_path / "found.txt"
    detect_fake.main([str(tmp_path / "audio"), "--model", str(model), "--force", "--format", "scores", "-o", str(found)])
    assert read_scores(found) == pytest.approx(expected, abs=1e-5) and len(expected) == 6


def test_a_detector_without_calibration_is_said(model, folder, tmp_path, caplog):
    sure, known = tmp_path / "none", str(folder / "good día.wav")
    save_model(sure, Detector(LcnnBlstm().eval(), CropConfig(samples=8000, hop=4000), Calibration()))
    for name, expected in ((sure, True), (model, False)):
        caplog.clear()
        detect_fake.main([known, "--force", "--model", str(name), "-o", str(tmp_path / "out.txt")])
        assert ("not calibrated" in caplog.text) == expected


@pytest.fixture(scope="module")
def voices(tmp_path_factory):
    """Recordings that the detectors differ on: too short, short, without speech, telephone, long."""
    folder, rng = tmp_path_factory.mktemp("voices"), np.random.default_rng(2)
    for name, samples, rate in (
        ("brief", np.concatenate([np.zeros(32000), voice(0.4), np.zeros(32000)]), 16000),
        ("long", voice(9), 16000),
        ("noise", 0.05 * rng.standard_normal(48000), 16000),
        ("short", voice(1), 16000),
        ("telephone", voice(3, 8000), 8000),
    ):
        soundfile.write(folder / f"{name}.wav", samples, rate)
    return folder


def judged(capsys, *arguments):
    """{name: entry} of the JSON."""
    detect_fake.main([*map(str, arguments), "--format", "json"])
    return {entry["recording"]: entry for entry in json.loads(capsys.readouterr().out)}


def test_what_cannot_be_judged_is_refused_and_what_is_uncertain_is_said(voices, model, capsys, caplog):
    forced = judged(capsys, voices, "--model", model, "--force")
    caplog.clear()
    found = judged(capsys, voices, "--model", model)
    assert found.keys() == {"long", "short", "telephone"} and forced.keys() == {*found, "brief", "noise"}
    assert f"{voices}/brief.wav: 0.40 s of sound; expected at least 0.5 s" in caplog.text
    assert f"{voices}/noise.wav: no speech found" in caplog.text
    assert {name: entry["notes"] for name, entry in found.items()} == {
        "long": [],
        "short": ["short"],
        "telephone": ["nothing above 4 kHz"],
    }
    assert "1 recording with under 2 s of sound" in caplog.text and "1 recording with nothing above 4 kHz" in caplog.text
    assert found["long"]["score"] == forced["long"]["score"]
    whole, drawn = (entry["short"]["score"] - 0.5 for entry in (forced, found))
    assert drawn == pytest.approx(whole * 0.5**0.5)  # half as long as what is certain
    assert found["short"]["decision"] == forced["short"]["decision"]


@pytest.mark.parametrize("arguments", [(), ("--prior", 0.99), ("--prior", 0.01), ("--threshold", -7), ("--threshold", 7)])
def test_decision_and_probability_agree(voices, model, capsys, arguments):
    entry = judged(capsys, voices / "long.wav", "--model", model, *arguments)["long"]
    assert (entry["decision"] == "genuine") == (entry["p_genuine"] >= 0.5)
    assert entry["threshold"] == pytest.approx(-np.log(entry["prior"] / (1 - entry["prior"])))
    odds = np.exp(entry["score"]) * entry["prior"] / (1 - entry["prior"])
    assert entry["p_genuine"] == pytest.approx(odds / (1 + odds))
    if "--prior" in arguments:
        assert entry["prior"] == pytest.approx(arguments[1])
    with pytest.raises(SystemExit):
        detect_fake.main([str(voices / "long.wav"), "--prior", "0.9", "--threshold", "1"])


def test_parts_of_a_recording(voices, model, tmp_path, capsys):
    path, options = str(voices / "long.wav"), ["--model", str(model), "--segments"]
    whole = judged(capsys, path, "--model", model)["long"]
    entry = judged(capsys, path, *options, "--plot", tmp_path / "plots")["long"]
    assert (tmp_path / "plots" / "long.png").stat().st_size > 1000 and "segments" not in whole
    assert {round(end - start, 6) for start, end, _ in entry["windows"]} == {2.0}
    parts = entry["segments"]
    assert parts[0]["start"] == 0 and parts[-1]["end"] == 9
    assert all(one["end"] == next_one["start"] for one, next_one in zip(parts, parts[1:], strict=False))
    for part in parts:  # the mean of the windows over it
        middle = (part["start"] + part["end"]) / 2
        over = [score for start, end, score in entry["windows"] if start < middle < end]
        assert part["score"] == pytest.approx(np.mean(over))
        assert (
            part["decision"]
            == ("genuine" if part["score"] >= 0.5 else "fake")
            == ("genuine" if part["p_genuine"] >= 0.5 else "fake")
        )
    detect_fake.main([path, *options, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [float(row["score"]) for row in rows] == pytest.approx([part["score"] for part in parts], abs=1e-6)
    assert {row["path"] for row in rows} == {path}
    middle = float(np.median([part["score"] for part in parts]))
    detect_fake.main([path, *options, "--threshold", repr(middle)])
    first, *lines = capsys.readouterr().out.splitlines()
    decisions = [line.split(": ")[1].split(",")[0] for line in lines]
    assert first.startswith("long: ") and lines[0].startswith("  0.0 to ") and {"genuine", "fake"} == set(decisions)
    assert all(one != other for one, other in zip(decisions, decisions[1:], strict=False))
    short = judged(capsys, path, *options, "--window", 0.5)["long"]
    assert {round(end - start, 6) for start, end, _ in short["windows"]} == {0.5}
    for wrong, message in (
        (["--window", "0.4"], "window 0.4: expected 0.50 s or more"),
        (["--format", "scores"], "--segments: "),
    ):
        with pytest.raises(UserError, match=message):
            detect_fake.main([path, *options, *wrong])


def test_calibration_on_recordings_of_ones_own(model, tmp_path, capsys, caplog):
    """Kept beside the model, or a copy, and used: with other slope, offset and threshold, by the same network."""
    rng, labels = np.random.default_rng(5), []
    (tmp_path / "own").mkdir()
    for index in range(12):
        kind = ("genuine", "fake")[index % 2]
        soundfile.write(tmp_path / "own" / f"r{index}.wav", sound(kind, 0.8, rng), 16000)
        labels.append(f"r{index}.wav {kind}\n")
    (tmp_path / "labels.txt").write_text("".join(labels))
    shutil.copytree(model, tmp_path / "model")
    options = [tmp_path / "own", "--force", "--model", tmp_path / "model"]
    before = judged(capsys, *options)
    assert detect_fake.main([*map(str, options), "--calibrate", str(tmp_path / "labels.txt")]) == 0
    assert "6 genuine and 6 fake recordings: EER" in capsys.readouterr().out
    after = judged(capsys, *options)
    raw, fitted = ([entry[name]["score"] for name in sorted(entry)] for entry in (before, after))
    slope, offset = np.polyfit(raw, fitted, 1)
    assert np.allclose(fitted, slope * np.array(raw) + offset, atol=1e-5) and abs(slope - 1) > 1e-3
    targets = np.array([int(name[1:]) % 2 == 0 for name in sorted(after)])
    assert after["r0"]["threshold"] != before["r0"]["threshold"]

    def cost(scale, shift):
        ratios = scale * np.array(raw) + shift
        wanted = np.where(targets, 7 / 8, 1 / 8)  # of Platt
        return np.mean(np.logaddexp(0, ratios) - wanted * ratios)

    best = cost(slope, offset)
    assert all(best <= cost(slope + a, offset + b) + 1e-9 for a in (-0.05, 0, 0.05) for b in (-0.05, 0, 0.05))
    again = [*map(str, options), "--calibrate", str(tmp_path / "labels.txt"), "-o", str(tmp_path / "copy")]
    assert detect_fake.main(again) == 0 and (tmp_path / "copy" / "model.pt").is_file()
    capsys.readouterr()
    assert judged(capsys, tmp_path / "own", "--force", "--model", tmp_path / "copy") == after
    torch.manual_seed(1)
    save_model(tmp_path / "model", Detector(LcnnBlstm().eval(), CropConfig(samples=8000, hop=4000), Calibration(), 0.0))
    with pytest.raises(UserError, match="calibration.json: belongs to another model than model.pt; calibrate again"):
        judged(capsys, *options)
    assert detect_fake.main([*map(str, options), "--calibrate", str(tmp_path / "labels.txt")]) == 0
    assert "without a" not in caplog.text
    (tmp_path / "few.txt").write_text("".join(labels[:8]) + "gone.wav fake\n")
    with pytest.raises(
        UserError, match="4 genuine and 4 fake recordings have a score and a label; expected at least 5 of each"
    ):
        detect_fake.main([*map(str, options), "--calibrate", str(tmp_path / "few.txt")])
    assert "few.txt: labels without a recording: gone" in caplog.text
    assert "few.txt: recordings without a label: r10, r11, r8, r9" in caplog.text
    with pytest.raises(UserError, match="--calibrate: the bundled detector stays as it is; name a folder"):
        detect_fake.main([str(tmp_path / "own"), "--calibrate", str(tmp_path / "labels.txt")])
    (tmp_path / "model" / "calibration.json").write_text("{}")
    with pytest.raises(UserError, match="calibration.json: no calibration"):
        judged(capsys, *options)


def test_a_calibrated_copy_of_the_bundled_detector(tmp_path, capsys):
    (tmp_path / "own").mkdir()
    for index in range(10):
        soundfile.write(tmp_path / "own" / f"r{index}.wav", voice(0.6, seed=index), 16000)
    labels = "".join(f"r{index} {('genuine', 'fake')[index % 2]}\n" for index in range(10))
    (tmp_path / "labels.txt").write_text(labels)
    arguments = [str(tmp_path / "own"), "--calibrate", str(tmp_path / "labels.txt"), "-o", str(tmp_path / "mine")]
    assert detect_fake.main(arguments) == 0
    capsys.readouterr()
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["calibration.json", "model.onnx"]
    mine, bundled = (judged(capsys, tmp_path / "own", *model) for model in (("--model", tmp_path / "mine"), ()))
    assert mine.keys() == bundled.keys() and mine["r0"]["score"] != bundled["r0"]["score"]


@pytest.mark.parametrize("tool", ["detect_fake", "detect_speech"])
def test_what_is_no_audio_is_one_line(tool, tmp_path):
    """Also of the libraries, which complain at the end of a program of what an error has kept."""
    (tmp_path / "text.wav").write_text("no audio")
    soundfile.write(tmp_path / "whole.flac", np.random.default_rng(0).uniform(-0.5, 0.5, 48000), 16000)
    (tmp_path / "cut.flac").write_bytes((tmp_path / "whole.flac").read_bytes()[:3000])
    for name in ("text.wav", "cut.flac"):
        done = run_tool(tool, tmp_path / name)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
        assert done.returncode == 1 and len(lines) == 1 and lines[0].startswith(f"error: {tmp_path / name}: "), done.stderr
