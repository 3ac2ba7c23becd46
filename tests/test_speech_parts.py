"""Stretches of speech: the same samples however the audio comes in, at the places where they were put."""

import numpy as np
import pytest
from tiny_asr import babble, save_random_model

from pyspeech.asr.api import Recognizer
from pyspeech.asr.recognizer import recognize
from pyspeech.speech import EDGE, PAD, SpeechParts, speech_parts

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


def recording(*lengths):
    """Silence and babble without pauses in turn, of so many seconds each, beginning with silence."""
    rng, parts = np.random.default_rng(0), []
    for number, seconds in enumerate(lengths):
        count = round(seconds * RATE)
        parts.append(
            0.5 * babble(seconds, RATE, seed=number) + rng.uniform(0.02, 0.1, count) if number % 2 else np.zeros(count)
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
