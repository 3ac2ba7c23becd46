"""Detectors over the streams of a corpus: each stream read once for the systems that share what is worked out of it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from tiny_corpora import RATE, radio_stream

from pyspeech.audio import io
from pyspeech.engine.parts import Parts
from pyspeech.engine.process import CORES
from pyspeech.errors import UserError
from pyspeech.sad import statistical
from pyspeech.sad.config import StatisticalConfig, StftConfig
from pyspeech.sad.formats import read_hypothesis
from pyspeech.sad.segments import frames_to_segments
from steps.sad import detect

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
    """The names of the files read so far, by this process, as it is the only one."""
    monkeypatch.setenv(CORES, "1")
    names = []
    stream_audio = io.stream_audio

    def counted(path, *options):
        names.append(path.rpartition("/")[2])
        return stream_audio(path, *options)

    monkeypatch.setattr(io, "stream_audio", counted)
    return names


def test_statistical_pair(cuts, read, tmp_path):
    """The decisions of two runs of the detector, from one look at each stream."""
    plain = replace(CONFIG, voicing=False)
    options = ((CONFIG, 0.0), (replace(plain, decision="threshold"), 0.0), (plain, 9.5))
    folders = {tmp_path / name: each for name, each in zip("abc", options, strict=True)}
    detect.detect_statistical(cuts, CONFIG, folders)
    assert read == ["stream_3.wav", "stream_4.wav"]
    for folder, (config, threshold) in folders.items():
        for cut in cuts:
            samples, _ = soundfile.read(detect.cut_path(cut), dtype="float32")
            alone = statistical.detect(samples, RATE, config, threshold).decisions
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
        (
            lambda cuts, folders, parts: detect.detect_statistical(cuts, CONFIG, folders, parts),
            ((CONFIG, 0.0), (replace(CONFIG, decision="threshold"), 0.0)),
        ),
        (lambda cuts, folders, parts: detect.detect_baseline(cuts, np.ones(5) / 5**0.5, folders, parts), (0.3, 0.6)),
        (detect.detect_webrtc, (0, 3)),
    ],
)
def test_files_that_are_there_are_kept(cuts, read, tmp_path, run, options):
    """As a killed stage leaves them: a stream of which one file is missing is read again, the others are not."""
    folders = dict(zip((tmp_path / "a" / "dev", tmp_path / "b" / "dev"), options, strict=True))
    run(cuts, folders, Parts(tmp_path / "parts"))
    first = tmp_path / "a/dev/stream_3.txt"
    done = first.read_bytes()
    first.unlink()
    (tmp_path / "b/dev/stream_4.txt").write_text("kept")
    read.clear()
    run(cuts, folders, Parts(tmp_path / "parts"))
    assert read == ["stream_3.wav"] and first.read_bytes() == done
    run(cuts, folders, Parts(tmp_path / "parts"))
    assert read == ["stream_3.wav"] and (tmp_path / "b/dev/stream_4.txt").read_text() == "kept"


def test_majority_of_networks(tmp_path):
    """A frame is speech where two of three networks, each at its own threshold, say so; it stands for the middle of its
    window."""
    scores = {"one": [0.9, 0.9, 0.1, 0.6, 0.1], "two": [0.3, 0.1, 0.3, 0.3, 0.1], "three": [0.1, 0.9, 0.9, 0.1, 0.1]}
    for system, values in scores.items():
        (tmp_path / system / "dev").mkdir(parents=True)
        np.save(tmp_path / system / "dev" / "r.npy", np.array(values, np.float32))
    cut = SimpleNamespace(recording_id="r", duration=0.05)
    voters = [(tmp_path / "one", 0.5, "none"), (tmp_path / "two", 0.2, "none"), (tmp_path / "three", 0.5, "none")]
    stft = StftConfig()
    for chosen, expected in ((voters, [[0.0, 0.05]]), (voters[:1], [[0.0, 0.04]]), (voters[2:], [[0.03, 0.05]])):
        folder = tmp_path / str(len(chosen)) / str(expected)
        detect.detect_networks([cut], "dev", chosen, stft, folder)
        assert read_hypothesis(folder / "r.txt").tolist() == expected


def test_errors(cuts, read, tmp_path):
    with pytest.raises(UserError, match="decision=viterbi: expected hmm or threshold"):
        detect.detect_statistical(cuts, CONFIG, {tmp_path / "a": (replace(CONFIG, decision="viterbi"), 0.0)})
    assert read == []
