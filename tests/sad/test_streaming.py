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
from pyspeech.sad.online_segments import OnlineCuts, OnlineSegments
from pyspeech.sad.onnx_export import export_onnx
from pyspeech.sad.segments import frames_to_segments, split, tidy
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


@pytest.mark.parametrize("point", [(0, 0, 0), (0.2, 0.4, 0.15), (0, 5, 9), (0.1, 0.2, (0.3, 0.05))])
@pytest.mark.parametrize("longest", [0.1, 0.5, 3.0])
def test_online_cuts_are_the_offline_ones(rng, point, longest):
    for count in (0, 1, 30, 2000):
        decisions = np.repeat(rng.random(count // 2 + 1) > 0.4, rng.integers(1, 60, count // 2 + 1))[:count]
        scores, duration = rng.random(count).astype(np.float32), count * 0.01 - 0.004 * (count > 0)
        online, cuts, given, begun = OnlineSegments(0.01, 0.02, *point), OnlineCuts(longest, 0.01, 0.02), [], []
        before = point[2][0] if isinstance(point[2], tuple) else point[2]
        start = heard = 0
        while start < count:  # the scores are some frames ahead of the decisions
            size = int(rng.integers(0, 41))
            cuts.hear(scores[heard : start + size + 5])
            heard = start + size + 5
            over, going_on = cuts.cut(online.add(decisions[start : start + size]), online.going_on)
            cuts.forget(online.first_frame * 0.01 - before)
            given.append(over)
            begun += [] if going_on is None else [going_on[0]]
            start += size
        given.append(cuts.cut(online.finish(duration))[0])
        whole = tidy(frames_to_segments(decisions, 0.01, duration, 0.02), duration, *point)
        expected = split(whole, longest, scores, 0.01, 0.02)
        np.testing.assert_array_equal(np.concatenate(given), expected)
        assert set(begun) <= set(expected[:, 0].tolist())  # what was said to have begun did


@pytest.fixture(scope="module", params=["rnn", "seg_rnn", "causal_rnn"])  # the CNN alone is the simplest
def network(request, tmp_path_factory):
    """(system, ONNX file, samples of a recording)"""
    model = make_model(request.param, segment_length=6, segment_shift=2)
    samples = radio(30.01)
    path = tmp_path_factory.mktemp("network") / "model.onnx"
    threshold = float(np.quantile(score_samples(model, samples), 0.55))
    export_onnx(
        model,
        path,
        {
            "a": OperatingPoint(threshold, "hmm", peak=0.1, min_silence=0.1, min_speech=0.05),
            "b": OperatingPoint(threshold, "median"),
        },
    )
    return request.param, path, samples


@pytest.mark.parametrize("seconds", [0.5, 1.9, 1.99, 2.0, 2.4])
def test_brief_recordings_are_decided_as_offline(network, seconds):
    """With a lower peak of their own, for which a stream waits; `latency` says how long."""
    system, path, samples = network
    samples, found = samples[: int(seconds * RATE)], []
    scores = load_detector(system, path).detect_blocks([samples]).scores
    how = {"threshold": float(np.median(scores)), "peak": 1.0, "brief_peak": float(np.quantile(scores, 0.9))}
    stream = load_stream(system, path, **how)
    assert stream.latency >= 2
    for start in range(0, len(samples), 400):
        found.append(stream.add(samples[start : start + 400]))
        assert stream.seconds >= 2 or not stream.events
    found = np.concatenate([*found, stream.finish()])
    np.testing.assert_array_equal(found, load_detector(system, path, **how).detect_blocks([samples]).segments)
    if seconds > 1:  # in less, the HMM hears nothing but noise of some networks
        assert (len(found) > 0) == (seconds < 2)


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
        decided += len(decider.add(samples[start : start + 80])[0])
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
    found = [*(causal.add(samples[start : start + 999]) for start in range(0, len(samples), 999)), causal.finish()]
    decided, scores = map(np.concatenate, zip(*found, strict=True))
    assert len(decided) == len(scores) == 2500
    # Frames 1800 to 2000 were decided when frame 2100 was there.
    np.testing.assert_array_equal(decided[1800:2000], detect(samples[11 * RATE : 21 * RATE], RATE).decisions[700:900])
    truth = np.arange(2500) % 500 >= 300
    assert (decided[500:] == truth[500:]).mean() > 0.9
    causal = CausalStatistical(config)
    assert len(causal.add(samples[:0])[0]) == len(causal.finish()[0]) == 0


def raw(samples):
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def test_the_tool_prints_segments_while_samples_come_in(network, tmp_path):
    """The first segments are there before the input ends; all of them are those of the file with these samples."""
    _, path, samples = network
    soundfile.write(tmp_path / "stdin.wav", np.frombuffer(raw(samples), "<i2"), RATE, subtype="PCM_16")
    options = ["--model", path, "--point", "b", "--min-silence", "0.1", "--max-speech", "1.5"]
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
        ([path, tmp_path / "y.wav"], "--stream: 2 recordings; expected one"),
        ([tmp_path], "--stream: 2 recordings; expected one"),
    ):
        done = run_tool("detect_speech", "--stream", *arguments)
        assert done.returncode == 1 and expected in done.stderr and done.stderr.count("\n") == 1
    with pytest.raises(UserError, match="threshold nan"):
        load_stream("statistical", threshold=float("nan"))


def stream_in_blocks(stream, samples, block):
    """(segments, [events of each call], scores) of a recording."""
    over, events, scores = [], [], []
    for start in range(0, len(samples), block):
        over.append(stream.add(samples[start : start + block]))
        events.append(stream.events)
        scores.append(stream.scores)
    over.append(stream.finish())
    return np.concatenate(over), [*events, stream.events], np.concatenate([*scores, stream.scores])


def test_events_and_scores_are_those_of_the_recording(network):
    system, path, samples = network
    whole = load_detector(system, path, point="b", min_silence=0.1, pad=0.03)
    expected = whole.detect_blocks([samples])
    stream = load_stream(system, path, point="b", min_silence=0.1, pad=0.03)
    segments, events, scores = stream_in_blocks(stream, samples, 400)
    np.testing.assert_allclose(scores, expected.scores, atol=1e-5)
    np.testing.assert_allclose(segments, expected.segments, atol=1e-9)
    told = [event for call in events for event in call]
    assert [event.kind for event in told] == ["start", "end"] * len(segments)
    np.testing.assert_allclose([event.time for event in told], segments.ravel(), atol=1e-9)
    for number, call in enumerate(events[:-1]):  # within the latency, the median filter's 12 frames, and the pause or the pad
        for event in call:
            more = 0.03 if event.kind == "start" else 0.1
            assert (number + 1) * 400 / RATE - event.time <= stream.latency + 0.12 + 0.05 + more
    if system == "causal_rnn":  # which says that somebody speaks before it knows until when
        assert any(len(call) == 1 and call[0].kind == "start" for call in events)


def test_longest_segments_of_a_stream_are_those_of_the_recording(network):
    system, path, samples = network
    limits = {"point": "a", "min_silence": 1.0, "max_speech": 2.5}
    expected = load_detector(system, path, **limits).detect_blocks([samples]).segments
    segments, events, _ = stream_in_blocks(load_stream(system, path, **limits), samples, 500)
    np.testing.assert_allclose(segments, expected, atol=1e-9)
    assert len(expected) > 5 and (expected[:, 1] - expected[:, 0]).max() <= 2.5 + 1e-9
    assert sum(event.kind == "end" for call in events for event in call) == len(expected)


def test_a_stream_begins_anew_only_after_a_reset(network):
    system, path, samples = network
    stream = load_stream(system, path, point="a")
    first = stream_in_blocks(stream, samples, 4000)
    with pytest.raises(UserError, match=r"finished; call reset\(\)"):
        stream.add(samples[:100])
    with pytest.raises(UserError, match=r"finished; call reset\(\)"):
        stream.finish()
    stream.reset()
    assert stream.seconds == 0 and not stream.speaking
    again = stream_in_blocks(stream, samples, 4000)
    np.testing.assert_array_equal(again[0], first[0])
    assert again[1] == first[1]
