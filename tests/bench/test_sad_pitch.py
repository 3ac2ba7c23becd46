"""utils/bench/sad_pitch.py on made-up voices: classes, what is missed, and voices that are moved."""

import runpy
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from recipe_harness import ROOT

from pyspeech.audio.pitch import median_pitch
from steps.benchmark.labelled import LabelledRecording, labelled

RATE = 16000


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(ROOT / "utils/bench/sad_pitch.py"), run_name="tool")


def buzz(pitch, seconds):
    """Pulses through a resonance, float32."""
    from scipy.signal import lfilter

    pulses = np.diff(np.floor(pitch * np.arange(round(seconds * RATE)) / RATE), prepend=-1)
    angle = 2 * np.pi * 700 / RATE
    return (0.1 * lfilter([1.0], [1.0, -1.9 * np.cos(angle), 0.9025], pulses)).astype(np.float32)


def test_what_is_missed_by_class(tool):
    """Of 80 Hz the detector finds a half, of 200 Hz all."""
    silence = np.zeros(RATE, np.float32)
    samples = np.concatenate([silence, buzz(80, 2), silence, buzz(200, 1), silence])
    reference = [(0, 1, "NS"), (1, 3, "S"), (3, 4, "NS"), (4, 4.5, "S"), (4.5, 4.6, "NS"), (4.6, 5, "S"), (5, 6, "NS")]
    recording = LabelledRecording("x.wav", reference, 6.0)
    detector = SimpleNamespace(detect=lambda audio: SimpleNamespace(segments=np.array([[0.5, 2.0], [3.9, 6.0]])))
    table, counts = tool["measure"](detector, [(recording, samples, None)])
    assert counts == (1, 0)
    assert table == {"60-90 Hz": pytest.approx([2.0, 1.0, 1, 0]), "125-350 Hz": pytest.approx([0.9, 0.0, 1, 0])}
    nothing = SimpleNamespace(detect=lambda audio: SimpleNamespace(segments=np.zeros((0, 2))))
    table, counts = tool["measure"](nothing, [(recording, samples, "all")])
    assert counts == (1, 1) and table == {"all": pytest.approx([2.9, 2.9, 1, 1])}
    assert tool["rows"](table) == [["all", "0.0", 1, "100.00", 1]]


def test_voices_are_moved(tool):
    pitches = [90, 300]
    found = tool["moved"](buzz(140, 1), pitches)
    assert [median_pitch(samples, RATE) for samples in found] == pytest.approx(pitches, rel=0.03)
    assert tool["moved"](np.zeros(RATE, np.float32), pitches) == []


def test_labelled_recordings_of_a_folder(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(2 * RATE), RATE)
    (tmp_path / "a.txt").write_text("0.500\t1.250\tspeech\n")
    (found,) = labelled(tmp_path)
    assert found.seconds == 2.0 and found.speech.tolist() == [[0.5, 1.25]]
