"""The detector that comes along: its file, its operating points, and what it makes of awkward audio; no torch, no network."""

import subprocess
import sys

import numpy as np
import pytest
import soundfile
from recipe_harness import ROOT
from tiny_voice import voice

from pyspeech.errors import UserError
from pyspeech.sad.detector import BUNDLED, load_detector, load_scorer
from pyspeech.sad.segments import total
from pyspeech.sad.streaming import load_stream

RATE = 8000


@pytest.fixture(scope="module")
def detectors():
    return {(system, point): load_detector(system, point=point) for system in BUNDLED for point in ("turns", "words")}


@pytest.mark.parametrize("path", BUNDLED.values(), ids=BUNDLED)
def test_the_file(path):
    scorer, points = load_scorer(path)
    assert path.stat().st_size <= 1_000_000
    assert list(points) == ["turns", "words"]  # the first is the default
    assert points["turns"].min_silence == 0.5
    assert scorer.stft_config.sampling_rate == RATE
    card = (path.parent / "README.md").read_text(encoding="utf-8")
    for point in points.values():
        assert f"{point.threshold:g}" in card


@pytest.mark.parametrize(
    "samples, rate",
    [
        (np.ones(1), 8000),
        (np.zeros(80000), 8000),
        (np.full(80000, 0.5), 8000),
        (0.3 * np.sin(0.3 * np.arange(80000)), 8000),
        (1e-3 * np.random.default_rng(0).standard_normal((480000, 2)), 48000),
        (0.3 * np.random.default_rng(0).standard_normal(441000), 44100),
    ],
    ids=["one sample", "silence", "constant", "tone", "faint noise, stereo, 48 kHz", "noise, 44.1 kHz"],
)
def test_what_is_no_speech(detectors, samples, rate, tmp_path):
    path = tmp_path / "ein Gerät ñ 1.wav"
    soundfile.write(path, samples, rate, subtype="FLOAT")
    for detect in detectors.values():
        assert len(detect(path).segments) == 0


@pytest.mark.parametrize("pitch", [80, 120, 350, 500])
def test_voices_of_all_pitches_are_found(detectors, pitch):
    silence = np.zeros(RATE, np.float32)
    for seed in range(5):
        samples = np.concatenate([silence, voice(6, RATE, seed, pitch), silence])
        assert total(detectors["shipped", "turns"].detect_blocks([samples]).segments) > 0.85 * 6


def test_single_words_are_found(detectors):
    words = [voice(0.4, RATE, seed, pitch) for seed in range(10) for pitch in (80, 120, 200, 300)]
    found = [len(detectors["shipped", "turns"].detect_blocks([samples]).segments) for samples in words]
    assert np.count_nonzero(found) >= 34


@pytest.mark.parametrize("seconds", [0.4, 1.0, 1.97, 1.99, 2.0, 2.5])
def test_a_stream_of_a_word_is_decided_as_the_file(detectors, seconds):
    found = 0
    for seed in range(4):
        samples = voice(seconds, RATE, seed)
        stream = load_stream("shipped")
        parts = [stream.add(samples[start : start + 800]) for start in range(0, len(samples), 800)]
        segments = np.concatenate([*parts, stream.finish()])
        np.testing.assert_array_equal(segments, detectors["shipped", "turns"].detect_blocks([samples]).segments)
        found += len(segments)
    assert found


def test_no_samples_are_one_line(detectors, tmp_path):
    soundfile.write(tmp_path / "no samples.wav", np.zeros(0), RATE)
    with pytest.raises(UserError, match="no samples.wav: holds no samples"):
        detectors["shipped", "turns"](tmp_path / "no samples.wav")


def test_the_causal_one_decides_soon_and_as_offline(detectors):
    rng = np.random.default_rng(0)
    samples = (0.1 * rng.standard_normal(20 * RATE) * np.repeat(rng.random(80), RATE // 4)).astype(np.float32)
    stream = load_stream("causal")
    assert stream.latency <= 0.3
    scores = []
    for start in range(0, len(samples), 480):
        stream.add(samples[start : start + 480])
        scores.append(stream.scores)
        decided = sum(map(len, scores)) * stream.frame_shift
        assert (start + 480) / RATE - decided <= 0.36  # and the 0.06 s that came in at once
    stream.finish()
    offline = detectors["causal", "turns"].detect_blocks([samples]).scores
    np.testing.assert_allclose(np.concatenate([*scores, stream.scores]), offline, atol=1e-5)


def test_torch_is_not_imported(tmp_path):
    soundfile.write(tmp_path / "noise.wav", 0.1 * np.random.default_rng(0).standard_normal(RATE), RATE)
    code = f"import sys; from pyspeech.sad.detector import load_detector; load_detector()({str(tmp_path / 'noise.wav')!r})"
    code += "; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
