"""Stretches of speech of files and streams: the same samples however they come in, at the places where they were put."""

import numpy as np
import pytest
from scipy.signal import lfilter
from tiny_asr import babble, save_random_model

from pyspeech.asr.api import Recognizer
from pyspeech.asr.recognizer import recognize
from pyspeech.asr.streaming import StreamingRecognizer
from pyspeech.speech import EDGE, PAD, SpeechParts, SpokenStream, faint_start, speech_parts

RATE = 8000
SHIFT = RATE // 100


class Loud:
    """A Decider: frames of 10 ms with any sample of more than 0.01 are speech; scores are their levels."""

    sampling_rate, frame_shift, frame_offset, latency = RATE, 0.01, 0.0, 0.01

    def __init__(self):
        self.rest = np.zeros(0, np.float32)

    def add(self, samples):
        joined = np.concatenate([self.rest, samples])
        count = len(joined) // SHIFT
        self.rest = joined[count * SHIFT :]
        levels = np.abs(joined[: count * SHIFT]).reshape(count, SHIFT).max(axis=1, initial=0)
        return levels > 0.01, levels.astype(np.float32)

    def finish(self):
        return np.zeros(0, bool), np.zeros(0, np.float32)


@pytest.fixture
def loud(monkeypatch):
    monkeypatch.setattr("pyspeech.sad.streaming.NetworkDecider", lambda scorer, point: Loud())


def recording(*lengths, hum=0.004):
    """A faint hum and babble without pauses in turn, of so many seconds each, beginning with the hum."""
    rng, parts = np.random.default_rng(0), []
    for number, seconds in enumerate(lengths):
        count = round(seconds * RATE)
        parts.append(
            0.5 * babble(seconds, RATE, seed=number) + rng.uniform(0.02, 0.1, count)
            if number % 2
            else hum * (-1.0) ** np.arange(count)
        )
    return np.concatenate(parts).astype(np.float32)


@pytest.mark.parametrize("size", [101, 1600, 10**6])
def test_parts_are_where_the_speech_is(loud, size):
    samples = recording(1.0, 2.0, 1.5, 1.0, 2.0)
    blocks = [samples[start : start + size] for start in range(0, len(samples), size)]
    found = list(speech_parts(blocks, RATE, 1.0))
    parts = [part for some, _ in found for part in some]
    assert found[-1][1] == 7.5 and len(parts) == 2
    for part, (start, end) in zip(parts, [(1.0, 3.0), (4.5, 5.5)], strict=True):
        assert part.start == pytest.approx(start - PAD, abs=0.03)
        assert len(part.samples) / RATE == pytest.approx(end - start + 2 * PAD, abs=0.05)
        first = round(part.start * RATE)
        np.testing.assert_array_equal(part.samples, samples[first : first + len(part.samples)])


def test_short_edges_and_pauses_stay(loud):
    """So that an utterance of a corpus is recognised as the recipe does."""
    samples = recording(EDGE - 0.05, 1.0, 0.6, 1.0, EDGE - 0.05)
    parts = [part for some, _ in speech_parts([samples], RATE, 1.0) for part in some]
    assert len(parts) == 1 and parts[0].start == 0.0
    np.testing.assert_array_equal(parts[0].samples, samples)


@pytest.mark.parametrize("hum", [0.0, 0.0003])
def test_near_silence_before_speech_is_left_out(loud, hum):
    """Behind more than a short edge of it; a stream has heard less when speech begins, but digital silence it knows."""
    samples = recording(1.0, 2.0, 1.5, 1.0, 2.0, hum=hum)
    parts = [part for some, _ in speech_parts([samples], RATE, 1.0) for part in some]
    for part, (start, end) in zip(parts, [(1.0, 3.0), (4.5, 5.5)], strict=True):
        assert part.start == pytest.approx(start, abs=0.002) and abs(part.samples[0]) > hum
        assert len(part.samples) / RATE == pytest.approx(end - start + PAD, abs=0.02)
    for size in (101, 10**6) if hum == 0 else ():
        for (start, heard), part in zip(listen(samples, size)[0], parts, strict=True):
            assert start == pytest.approx(part.start, abs=1e-9)
            np.testing.assert_array_equal(heard, part.samples)


@pytest.mark.parametrize("click, expected", [(None, 0.1), (2.0, 0.1), (0.5, EDGE)])
def test_a_click_takes_no_speech(click, expected):
    """What is near silence is told by the first second, and no more than a short edge is taken for it."""
    voice = 0.001 * babble(3.0, RATE)
    samples = np.concatenate([np.zeros(50), np.full(RATE // 10, 1e-7), voice]).astype(np.float32)
    if click is not None:
        samples[round(click * RATE)] = 1.0
    assert faint_start(samples, RATE) / RATE == pytest.approx(50 / RATE + expected, abs=0.01)
    assert faint_start(np.zeros(100), RATE) == faint_start(np.zeros(0), RATE) == 0


def test_long_speech_is_cut_and_little_is_held(loud):
    parts = SpeechParts(RATE, 1.0, 3.0)
    samples, held, found = recording(0.0, 30.0, 2.0), [], []
    for start in range(0, len(samples), 4000):
        found += parts.add(samples[start : start + 4000])
        held.append(len(parts._held) / RATE)
    found += parts.finish()
    assert len(found) >= 10 and max(len(part.samples) for part in found) <= 3.1 * RATE
    assert max(held) < 6 and [part.start for part in found] == sorted(part.start for part in found)


def test_without_speech_there_is_no_part():
    """With the bundled detector."""
    noise = np.random.default_rng(0).normal(0, 0.01, 5 * RATE).astype(np.float32)
    assert [part for some, _ in speech_parts([noise], RATE, 1.2) for part in some] == []


def test_a_recognizer_takes_the_parts(loud, tmp_path):
    """Each as an utterance by itself, with times in the recording; short and long recordings alike."""
    recognizer = Recognizer.load(save_random_model(tmp_path / "lid", "multi_softmax", lid=True), min_silence=0.5)
    rate = recognizer.sampling_rate
    resampled = np.repeat(recording(1.0, 2.0, 1.0, 1.5, 1.0), rate // RATE)
    transcript = recognizer.transcribe(resampled, rate)
    assert transcript.duration == 6.5 and len(transcript.segments) == 2
    for segment, start in zip(transcript.segments, (1.0, 4.0), strict=True):
        assert segment.start == pytest.approx(start - PAD, abs=0.03)
        (alone,) = recognize(recognizer.bundle, [resampled[round(segment.start * rate) :][: round(segment.seconds * rate)]])
        assert segment.text.split()[0] == alone.text.split()[0]
        assert all(segment.start <= word.start < word.end for word in segment.words)
    long = [segment for some, _ in recognizer.long_segments(np.array_split(resampled, 7)) for segment in some]
    assert [(one.text, one.start) for one in long] == [(one.text, one.start) for one in transcript.segments]
    quiet = 0.01 * resampled
    assert recognizer.transcribe(quiet, rate).text == recognize(recognizer.bundle, [quiet])[0].text
    whole = Recognizer(recognizer.bundle, vad=False).transcribe(resampled, rate)
    assert len(whole.segments) == 1 and whole.segments[0].start == 0.0


def listen(samples, size, rate=RATE, pause=1.0):
    """([(start, samples) of each stretch], seconds that each `Heard` came after its last sample) of a stream."""
    stream, heard, delays = SpokenStream(rate, pause), [], []
    for start in range(0, len(samples), size):
        for one in stream.add(samples[start : start + size]):
            heard.append(one)
            given = sum(len(other.samples) for other in heard if other.start == one.start)
            delays.append(stream.seconds - one.start - given / rate)
    last = stream.finish()
    heard += [] if last is None else [last]
    stretches, pieces = [], []
    for one in heard:
        pieces.append(one.samples)
        if one.over:
            stretches.append((one.start, np.concatenate(pieces)))
            pieces = []
    assert pieces == [] and stream.seconds == len(samples) / rate
    return stretches, delays


@pytest.mark.parametrize("size", [7, 101, 1600, 10**6])
def test_a_stream_gives_out_the_parts_of_the_recording(loud, size):
    samples = recording(1.0, 2.0, 0.5, 0.7, 1.5, 1.0, 2.0)
    expected = [part for some, _ in speech_parts([samples], RATE, 1.0) for part in some]
    found, delays = listen(samples, size)
    assert len(found) == len(expected) == 2
    for (start, heard), part in zip(found, expected, strict=True):
        assert start == pytest.approx(part.start)
        np.testing.assert_array_equal(heard, part.samples)
    if size < 200:  # while somebody speaks; a pause comes once it is over
        assert np.median(delays) < 0.05


@pytest.mark.parametrize("lengths", [(0.2, 1.0, 0.2), (0.0, 3.0), (1.0, 0.5, 0.3, 0.5), (2.0,), ()])
def test_ends_of_a_stream_are_those_of_a_recording(loud, lengths):
    samples = recording(*lengths) if lengths else np.zeros(0, np.float32)
    expected = [part for some, _ in speech_parts([samples], RATE, 1.0) for part in some]
    found, _ = listen(samples, 999)
    assert [start for start, _ in found] == [pytest.approx(part.start) for part in expected]
    for (_, heard), part in zip(found, expected, strict=True):
        np.testing.assert_array_equal(heard, part.samples)


def voice(seconds, rate):
    """A buzz of gliding pitch with three formants, in syllables, for 2 s out of every 4, float32."""
    times = np.arange(round(seconds * rate)) / rate
    sound = np.diff(np.floor(np.cumsum(130 + 30 * np.sin(2 * np.pi * 1.3 * times)) / rate), prepend=0)
    for formant, width in ((600, 80), (1200, 100), (2500, 150)):
        radius = np.exp(-np.pi * width / rate)
        sound = lfilter([1 - radius], [1, -2 * radius * np.cos(2 * np.pi * formant / rate), radius**2], sound)
    loudness = (np.sin(2 * np.pi * 4 * times) > -0.3) * (times % 4 < 2)
    noise = np.random.default_rng(1).standard_normal(len(times))
    return (0.5 * loudness * sound / np.abs(sound).max() + 0.001 * noise).astype(np.float32)


def test_the_bundled_detector_gives_the_same_for_any_blocks():
    """Also where the stream is resampled, bit for bit; and it holds little."""
    rate = 16000
    samples = voice(12, rate)
    found = [listen(samples, size, rate, 0.6)[0] for size in (333, 4800, 10**6)]
    for other in found[1:]:
        assert [start for start, _ in other] == [start for start, _ in found[0]]
        assert all(np.array_equal(one, same) for (_, one), (_, same) in zip(other, found[0], strict=True))
    assert [round(start) for start, _ in found[0]] == [0, 4, 8]
    stream, held = SpokenStream(rate, 0.6), []
    for _ in range(60 * rate // 4800):
        stream.add(np.zeros(4800, np.float32))
        held.append(len(stream._held) / rate)
    assert max(held) < 1


def spoken(result):
    return result.text, result.start, [(word.text, word.start, word.end) for word in result.words]


def test_a_stream_of_speech_is_recognised_in_utterances(loud, tmp_path):
    """Each as a recording by itself, with times in the stream, the same for any blocks; partial results in between."""
    recognizer = Recognizer.load(save_random_model(tmp_path / "lid", "multi_softmax", lid=True), min_silence=0.5)
    rate = recognizer.sampling_rate
    samples = np.repeat(recording(1.0, 2.0, 0.4, 2.0, 1.0, 1.5, 0.4, 1.5, 1.0, hum=0.0), rate // RATE)
    expected = recognizer.transcribe(samples, rate).segments
    for size in (1000, 4800, 10**6):
        results = [one for one, _ in recognizer.segments([samples[at : at + size] for at in range(0, len(samples), size)])]
        final = [one for one in results if one.final and one.text]
        assert [spoken(one) for one in final] == [spoken(one) for one in expected] and len(final) == 2
        partial = {one.text for one in results if not one.final and one.text}
        assert len(partial) > 4 or size > 4800
        assert all(one.text == "" and one.start >= final[-1].start for one in results[-1:])
    stream = recognizer.stream()
    assert stream.add(np.zeros(0, np.float32))[-1].text == stream.finish().text == ""
    assert isinstance(Recognizer(recognizer.bundle, vad=False).stream(), StreamingRecognizer)
