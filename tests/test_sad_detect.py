"""Detectors over the streams of a corpus: each stream read once for the systems that share what is worked out of it."""

import logging
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from tiny_corpora import RATE, radio_stream

from pyspeech.errors import UserError
from pyspeech.sad import statistical
from pyspeech.sad.config import StatisticalConfig
from pyspeech.sad.formats import read_hypothesis
from pyspeech.sad.segments import frames_to_segments
from steps.sad import detect, score

SECONDS = 30.0
CONFIG = StatisticalConfig()


@pytest.fixture
def cuts(tmp_path):
    """What the detectors look at of two cuts of a CutSet."""

    def stream(seed):
        path = tmp_path / f"stream_{seed}.wav"
        soundfile.write(path, radio_stream(SECONDS, np.random.default_rng(seed))[0], RATE)
        return SimpleNamespace(
            recording_id=path.stem, duration=SECONDS, recording=SimpleNamespace(sources=[SimpleNamespace(source=str(path))])
        )

    return [stream(seed) for seed in (3, 4)]


@pytest.fixture
def read(monkeypatch):
    """The names of the files read so far."""
    names = []
    stream_audio = detect.stream_audio

    def counted(path, *options):
        names.append(path.rpartition("/")[2])
        return stream_audio(path, *options)

    monkeypatch.setattr(detect, "stream_audio", counted)
    return names


def test_statistical_pair(cuts, read, tmp_path):
    """The decisions of two runs of the detector, from one look at each stream."""
    folders = {tmp_path / "a": "hmm", tmp_path / "b": "threshold"}
    detect.detect_statistical(cuts, CONFIG, folders)
    assert read == ["stream_3.wav", "stream_4.wav"]
    for folder, decision in folders.items():
        for cut in cuts:
            samples, _ = soundfile.read(detect.cut_path(cut), dtype="float32")
            alone = statistical.detect(samples, RATE, replace(CONFIG, decision=decision)).decisions
            expected = frames_to_segments(alone, CONFIG.frame_shift, SECONDS)
            assert len(expected) and read_hypothesis(folder / f"{cut.recording_id}.txt").tolist() == expected.tolist()


def test_webrtc_modes(cuts, read, tmp_path):
    import webrtcvad

    detect.detect_webrtc(cuts, {tmp_path / str(mode): mode for mode in range(4)})
    assert read == ["stream_3.wav", "stream_4.wav"]
    called = []
    for mode in range(4):
        for cut in cuts:
            samples, _ = soundfile.read(detect.cut_path(cut), dtype="int16")
            detector = webrtcvad.Vad(mode)
            alone = [detector.is_speech(frame.tobytes(), RATE) for frame in samples.reshape(-1, 80)]
            expected = frames_to_segments(np.array(alone), 0.01, SECONDS)
            assert read_hypothesis(tmp_path / str(mode) / f"{cut.recording_id}.txt").tolist() == expected.tolist()
            called.append(sum(alone))
    assert called[0] > called[-1] > 0


@pytest.mark.parametrize(
    "run, options",
    [
        (lambda cuts, folders: detect.detect_statistical(cuts, CONFIG, folders), ("hmm", "threshold")),
        (detect.detect_webrtc, (0, 3)),
    ],
)
def test_files_that_are_there_are_kept(cuts, read, tmp_path, run, options):
    """As a killed stage leaves them: the first stream done by one system, the other by both."""
    folders = dict(zip((tmp_path / "a", tmp_path / "b"), options))
    run(cuts, folders)
    first, other = (tmp_path / name / "stream_3.txt" for name in "ab")
    done = first.read_bytes()
    first.unlink()
    other.write_text("kept")
    read.clear()
    run(cuts, folders)
    assert read == ["stream_3.wav"] and first.read_bytes() == done and other.read_text() == "kept"
    run(cuts, folders)
    assert read == ["stream_3.wav"]


def test_stage_reads_each_stream_twice(cuts, read, tmp_path, monkeypatch):
    monkeypatch.setattr(score, "scored_sets", lambda corpus: ["dev"])
    monkeypatch.setattr(score, "load_cuts", lambda corpus, name: cuts)
    monkeypatch.setattr(score, "score_systems", lambda *arguments: None)
    monkeypatch.setattr(score, "draw_statistical", lambda *arguments: None)
    monkeypatch.setattr(score, "table_2", lambda *arguments: "")
    monkeypatch.setattr(score, "with_best_webrtc", lambda *arguments: None)
    exp = SimpleNamespace(dir=tmp_path / "exp", log=logging.getLogger(__name__))
    score.detect_without_training(exp, CONFIG)
    assert sorted(read) == ["stream_3.wav"] * 2 + ["stream_4.wav"] * 2
    systems = ["statistical", "threshold", "webrtc0", "webrtc1", "webrtc2", "webrtc3"]
    assert sorted(path.name for path in (exp.dir / "hypotheses").iterdir()) == systems
    assert all(len(list((exp.dir / "hypotheses" / system / "dev").iterdir())) == 2 for system in systems)


def test_errors(cuts, read, tmp_path):
    with pytest.raises(UserError, match="decision=viterbi: expected hmm or threshold"):
        detect.detect_statistical(cuts, CONFIG, {tmp_path / "a": "viterbi"})
    assert read == []
