"""Online smoothing, segments and detectors against their offline forms, however the audio is cut; and the tool's --stream."""

import subprocess

import numpy as np
import pytest
import soundfile
from tool_harness import ENVIRONMENT, run_tool, tool_command

from pyspeech.errors import UserError
from pyspeech.sad.config import SMOOTHINGS, OperatingPoint, StatisticalConfig
from pyspeech.sad.decoding import score_samples
from pyspeech.sad.detector import load_detector
from pyspeech.sad.hmm import OnlineViterbi, viterbi
from pyspeech.sad.onnx_export import export_onnx
from pyspeech.sad.segments import OnlineSegments, frames_to_segments, tidy
from pyspeech.sad.smoothing import OnlineDecisions, decide
from pyspeech.sad.statistical import detect
from pyspeech.sad.streaming import CausalStatistical, load_stream
from tests.sad.test_networks import make_model, radio

RATE = 8000


def pieces(values, rng):
    """Consecutive pieces of 0 to 40 of them."""
    start = 0
    while start < len(values):
        size = int(rng.integers(0, 41))
        yield values[start : start + size]
        start += size


def made_up_scores(rng, count):
    return np.clip(np.repeat(rng.random(count // 20 + 1), 20)[:count] + 0.2 * rng.standard_normal(count), 1e-3, 1 - 1e-3)


@pytest.mark.parametrize("peak", [0.0, 0.9])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("count", [0, 1, 5, 13, 26, 1000])
def test_online_decisions_are_the_offline_ones(rng, smoothing, count, peak):
    scores = made_up_scores(rng, count)
    online = OnlineDecisions(0.5, smoothing, peak)
    decided = np.concatenate([np.zeros(0, bool), *map(online.add, pieces(scores, rng)), online.finish()])
    np.testing.assert_array_equal(decided, decide(scores, 0.5, smoothing, peak))
    assert count < 1000 or 0 < decided.mean() < 1


def test_speech_is_given_out_once_its_peak_is_reached():
    online = OnlineDecisions(0.5, peak=0.9)
    assert online.add([0.1, 0.6, 0.7]).tolist() == [False]  # it may still become speech
    assert online.add([0.6]).tolist() == []
    assert online.add([0.95, 0.6]).tolist() == [True] * 5
    assert online.add([0.6, 0.2, 0.8]).tolist() == [True, False]
    assert online.add([0.3]).tolist() == [False, False]
    assert online.add([0.8]).tolist() == [] and online.finish().tolist() == [False]


def test_the_hmm_decides_while_it_goes_on(rng):
    """All but some frames at a time, with ratios like those of a network; never the same frame twice."""
    ratios = 3 * np.repeat(rng.choice([-1.0, 1.0], 100), 40) + rng.standard_normal(4000)
    online, decided, waiting = OnlineViterbi(), [], []
    for start in range(0, len(ratios), 50):
        decided.append(online.add(ratios[start : start + 50]))
        waiting.append(online.pending)
    decided.append(online.finish())
    np.testing.assert_array_equal(np.concatenate(decided), viterbi(ratios))
    assert max(waiting) < 100 and online.pending == 0


@pytest.mark.parametrize(
    "point",
    [(0, 0, 0), (0.3, 0, 0), (0, 0.5, 0), (0.2, 0.4, 0), (0.2, 0.4, 0.15), (0, 0, 0.1), (0, 5, 9), (0.1, 0.2, (0.3, 0.05))],
)
def test_online_segments_are_the_offline_ones(rng, point):
    for count in (0, 1, 3, 2000):
        decisions = np.repeat(rng.random(count // 2 + 1) > 0.5, rng.integers(1, 30, count // 2 + 1))[:count]
        duration = count * 0.01 + 0.003
        online, given = OnlineSegments(0.01, 0.02, *point), []
        for part in pieces(decisions, rng):
            given.append(online.add(part))
        early = sum(map(len, given))
        given.append(online.finish(duration))
        expected = tidy(frames_to_segments(decisions, 0.01, duration, 0.02), duration, *point)
        np.testing.assert_array_equal(np.concatenate(given), expected)
    assert early >= len(expected) - 2  # they did not wait for the end


@pytest.fixture(scope="module", params=["rnn", "seg_rnn", "causal_rnn"])  # the CNN alone is the simplest
def network(request, tmp_path_factory):
    """(system, ONNX file, samples of a recording)"""
    model = make_model(request.param, segment_length=6, segment_shift=2)
    samples = radio(30.01)
    path = tmp_path_factory.mktemp("network") / "model.onnx"
    threshold = float(np.quantile(score_samples(model, samples), 0.55))
    export_onnx(model, path, {"a": OperatingPoint(threshold, "hmm", 0.1, 0.1, 0.05), "b": OperatingPoint(threshold, "median")})
    return request.param, path, samples


@pytest.mark.parametrize("point", ["a", "b"])
def test_a_network_finds_what_it_finds_offline(network, tmp_path, point):
    system, path, samples = network
    soundfile.write(tmp_path / "x.wav", samples, RATE, subtype="FLOAT")
    expected = load_detector(system, path, point=point, min_speech=0.2)(tmp_path / "x.wav").segments
    for block in (777, 10**6):
        stream = load_stream(system, path, point=point, min_speech=0.2)
        found = [stream.add(samples[start : start + block]) for start in range(0, len(samples), block)]
        found.append(stream.finish())
        np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-9)
    assert len(expected) > 3 and stream.seconds == len(samples) / RATE


def test_decisions_come_within_the_latency(network):
    system, path, samples = network
    stream = load_stream(system, path, point="b")
    decider = stream._decider
    decided = 0
    for start in range(0, len(samples), 80):
        decided += len(decider.add(samples[start : start + 80]))
        late = (start + 80) / RATE - (decided * decider.frame_shift + decider.frame_offset)
        assert late <= stream.latency + 0.01 + 12 * decider.frame_shift  # of the median filter
    assert decided > 0


def bursts(seconds, seed=0):
    """Noise, and a buzz in it whose pitch glides, for 2 s out of every 5."""
    rng = np.random.default_rng(seed)
    times = np.arange(round(seconds * RATE)) / RATE
    buzz = (np.diff(np.floor(120 * times + 0.7 * np.sin(6 * np.pi * times)), prepend=0) != 0) * (times % 5 > 3)
    return (0.01 * rng.standard_normal(len(times)) + 0.5 * buzz).astype(np.float32)


def test_the_causal_statistical_system_is_the_offline_one_on_the_last_seconds():
    config, samples = StatisticalConfig(), bursts(25)
    causal = CausalStatistical(config, window=10.0, look_ahead=1.0)
    decided = np.concatenate(
        [*(causal.add(samples[start : start + 999]) for start in range(0, len(samples), 999)), causal.finish()]
    )
    assert len(decided) == 2500
    # Frames 1800 to 2000 were decided when frame 2100 was there.
    np.testing.assert_array_equal(decided[1800:2000], detect(samples[11 * RATE : 21 * RATE], RATE).decisions[700:900])
    truth = np.arange(2500) % 500 >= 300
    assert (decided[500:] == truth[500:]).mean() > 0.9
    causal = CausalStatistical(config)
    assert len(causal.add(samples[:0])) == len(causal.finish()) == 0


def raw(samples):
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def test_the_tool_prints_segments_while_samples_come_in(network, tmp_path):
    """The first segments are there before the input ends; all of them are those of the file with these samples."""
    _, path, samples = network
    soundfile.write(tmp_path / "stdin.wav", np.frombuffer(raw(samples), "<i2"), RATE, subtype="PCM_16")
    options = ["--model", path, "--point", "b", "--min-silence", "0.1"]
    expected = run_tool("detect_speech", tmp_path / "stdin.wav", *options).stdout
    command = tool_command("detect_speech", "--stream", "-", "--raw", "--rate", RATE, *options)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=ENVIRONMENT, bufsize=0, **pipes) as process:
        process.stdin.write(raw(samples)[: 20 * 2 * RATE])
        process.stdin.flush()
        first = process.stdout.readline()
        rest, messages = process.communicate(raw(samples)[20 * 2 * RATE :])
    assert (first + rest).decode() == expected and expected.count("\n") > 3
    assert b"segments are printed up to " in messages and b"1 recording: 30.01 s of audio" in messages


def test_what_cannot_be_streamed_is_said(tmp_path):
    path = tmp_path / "x.wav"
    soundfile.write(path, bursts(1), RATE)
    soundfile.write(tmp_path / "y.wav", bursts(1), RATE)
    for arguments, expected in (
        (["--format", "json", path], "--stream: --format json needs the whole recording; expected rttm"),
        (["-o", tmp_path, path], "--stream: segments go to the screen alone"),
        ([path, "--plot", tmp_path], "--stream: segments go to the screen alone"),
        ([path, "--cut", tmp_path], "--stream: segments go to the screen alone"),
        ([path, "--max-speech", "5"], "max_speech 5: a stream has no limit of its segments"),
        ([path, tmp_path / "y.wav"], "--stream: 2 recordings; expected one"),
        ([tmp_path], "--stream: 2 recordings; expected one"),
    ):
        done = run_tool("detect_speech", "--stream", *arguments)
        assert done.returncode == 1 and expected in done.stderr and done.stderr.count("\n") == 1
    with pytest.raises(UserError, match="threshold nan"):
        load_stream("statistical", threshold=float("nan"))
