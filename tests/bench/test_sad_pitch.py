"""utils/bench/sad_pitch.py on made-up voices: classes, what is missed, and voices that are moved."""

import runpy
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from recipe_harness import ROOT

from pyspeech.audio.pitch import median_pitch
from pyspeech.errors import UserError
from steps.benchmark.labelled import LabelledRecording, in_noise, labelled

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
    found = tool["changed"](buzz(140, 1), pitches)
    assert list(found) == ["moved to 90 Hz", "moved to 300 Hz"]
    assert [median_pitch(samples, RATE) for samples in found.values()] == pytest.approx(pitches, rel=0.03)
    assert tool["changed"](np.zeros(RATE, np.float32), pitches, True, [200]) == {}


def test_voices_are_whispered_and_chanted(tool):
    voice = np.concatenate([buzz(120, 0.5), buzz(150, 0.5)])
    whispered, chanted = tool["changed"](voice, whispered=True, notes=[250]).values()
    assert len(whispered) == len(chanted) == len(voice)
    assert np.isnan(median_pitch(whispered, RATE)) and np.std(whispered) > 0
    halves = [median_pitch(half, RATE) for half in np.split(chanted, 2)]
    assert halves == pytest.approx([250, 250], rel=0.03)


def test_labelled_recordings_of_a_folder(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(2 * RATE), RATE)
    (tmp_path / "a.txt").write_text("0.500\t1.250\tspeech\n")
    (found,) = labelled(tmp_path)
    assert found.seconds == 2.0 and found.speech.tolist() == [[0.5, 1.25]]


def test_noise_below_the_speech(tmp_path, rng):
    """10 dB below the labelled second of three, whose level the silence around it would lower; a piece of the noise."""
    samples = np.concatenate([np.zeros(RATE), 0.1 * rng.standard_normal(RATE), np.zeros(RATE)])
    noise = 0.3 * rng.standard_normal(5 * RATE)
    noises = tmp_path / "noises"
    noises.mkdir()
    soundfile.write(tmp_path / "a.wav", samples, RATE, "FLOAT")
    soundfile.write(noises / "n.wav", noise, RATE, "FLOAT")
    recording = LabelledRecording(str(tmp_path / "a.wav"), [(0, 1, "NS"), (1, 2, "S"), (2, 3, "NS")], 3.0)
    silent = LabelledRecording(str(tmp_path / "a.wav"), [(0, 3, "NS")], 3.0)
    heard, unchanged = in_noise([recording, silent], noises, 10.0, tmp_path)
    assert heard[1:] == recording[1:] and heard.path != recording.path
    added = soundfile.read(heard.path)[0] - samples
    level = 10 * np.log10(np.mean(samples[RATE : 2 * RATE] ** 2) / np.mean(added**2))
    assert level == pytest.approx(10, abs=0.1)
    start = int(np.argmax(np.correlate(noise, added, "valid")))
    assert added == pytest.approx(noise[start : start + len(added)] * np.std(added) / 0.3, abs=2e-3)
    assert soundfile.read(unchanged.path)[0] == pytest.approx(samples, abs=1e-7)
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="no audio files in this folder"):
        in_noise([recording], tmp_path / "none", 10.0, tmp_path)
