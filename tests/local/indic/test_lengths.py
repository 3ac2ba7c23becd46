"""Utterances of train and dev that are too long: left out, or cut at pauses where their words have times."""

import itertools
import logging
from dataclasses import replace

import numpy as np
import pytest
from lhotse import CutSet, MonoCut, Recording, SupervisionSegment
from lhotse.supervision import AlignmentItem
from tiny_audio import read_cuts, write_audio
from tiny_corpora import voiced

from local.indic import lengths, manifests
from local.indic.lengths import LengthLimit, choose_cuts, cut_at_pauses, cut_places, with_text
from pyspeech.data.cuts import read_samples
from pyspeech.data.manifests import Segment, Utterance

log = logging.getLogger("test")
WORDS = "one two three four five six".split()
SPOKEN = [(1.5 * number + 0.5, 1.5 * number + 1.3) for number in range(6)]  # with pauses of 0.7 s, in 9.3 s
SECONDS = 9.3


def write_speech(path):
    """Six words in a row, as SPOKEN says."""
    random = np.random.default_rng(0)
    samples = 0.0005 * random.standard_normal(int(SECONDS * 16000))
    for start, end in SPOKEN:
        first = int(16000 * start)
        word = 0.4 * voiced(end - start, random, 16000)
        samples[first : first + len(word)] += word
    return write_audio(path, samples=samples)


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    return write_speech(tmp_path_factory.mktemp("speech") / "long.wav")


def long_utterance(path, shift=0.0, **options):
    words = tuple((word, start + shift, end + shift) for word, (start, end) in zip(WORDS, SPOKEN, strict=True))
    return Utterance("x", str(path), " ".join(WORDS), "en-IN", words=words, **options)


@pytest.mark.parametrize("longest, texts", [(4.0, 3), (5.0, 2), (9.4, 1), (1.7, 6)])
def test_cuts_lie_in_the_pauses_between_words(speech, longest, texts):
    pieces = cut_at_pauses(long_utterance(speech), SECONDS, longest)
    assert [start for start, _, _ in pieces[1:]] == [end for _, end, _ in pieces[:-1]]
    assert (pieces[0][0], pieces[-1][1], len(pieces)) == (0.0, SECONDS, texts)
    assert all(end - start <= longest for start, end, _ in pieces)
    for start, end, text in pieces:  # each word with the piece that it is spoken in
        assert text.split() == [word for word, (first, last) in zip(WORDS, SPOKEN, strict=True) if start < first and last < end]
    assert " ".join(text for _, _, text in pieces) == " ".join(WORDS)


def test_a_part_of_a_recording_is_cut_in_the_times_of_the_recording(speech):
    part = replace(long_utterance(speech), segment=Segment("r", 1.7, 6.0))
    part = replace(part, text="two three four", words=part.words[1:4])
    [(start, cut, first), (same, end, second)] = cut_at_pauses(part, 4.3, 3.0)
    assert (start, end, same) == (1.7, 6.0, cut) and f"{first} {second}" == "two three four"
    assert any(before[1] < cut < after[0] for before, after in zip(SPOKEN, SPOKEN[1:], strict=False))


def test_what_cannot_be_cut(speech):
    one = long_utterance(speech)
    assert cut_at_pauses(one, SECONDS, 1.2) == []  # no pause in time
    assert cut_at_pauses(replace(one, text="one two"), SECONDS, 4.0) == []  # other words
    assert cut_at_pauses(replace(one, words=one.words[::-1]), SECONDS, 4.0) == []
    assert cut_at_pauses(long_utterance(speech, shift=0.75), SECONDS, 4.0) == []  # its words lie where nobody speaks


def test_an_utterance_of_just_the_longest_length_stays(tmp_path):
    """Whatever rounding adds: 20.1 - 5.1 is more than 15."""
    ends = (20.1, 20.1001)
    rows = [(Utterance(str(end), "", "one", "en-IN", segment=Segment("r", 5.1, end)), {"duration": 30.0}) for end in ends]
    assert lengths.limit_lengths(rows, LengthLimit(15.0), "x", tmp_path, log) == rows[:1]


def test_words_are_spelt_as_in_the_text():
    one = Utterance("x", "", "Yes, sir .", "en-IN", words=(("YES", 0.0, 0.5), ("SIR", 0.6, 1.0)))
    assert with_text(one) == [("yes", 0.0, 0.5), ("sir", 0.6, 1.0)]
    assert with_text(replace(one, text="Yes, sir.")) == [("Yes,", 0.0, 0.5), ("sir.", 0.6, 1.0)]


def test_places_and_cuts():
    words = [("a", 0.0, 1.0), ("b", 2.0, 3.0), ("c", 3.1, 4.0)]
    assert cut_places(words, [(1.2, 1.6), (2.4, 2.6), (3.0, 3.1), (4.2, 5.0)]) == [
        (pytest.approx(1.4), 1, pytest.approx(0.4)),
        (pytest.approx(3.05), 2, pytest.approx(0.1)),
    ]
    places = [(1.0, 1, 0.9), (3.0, 2, 0.2), (3.5, 3, 0.6), (3.9, 4, 0.3), (6.0, 5, 0.2)]
    assert choose_cuts(places, 0.0, 9.0, 4.0) == [(3.5, 3), (6.0, 5)]
    assert choose_cuts(places, 0.0, 7.0, 4.0) == [(3.5, 3)]
    assert choose_cuts(places, 0.0, 10.5, 4.0) is None


def test_as_few_cuts_as_there_can_be_at_the_longest_pauses():
    """All selections of random places, one by one."""
    random = np.random.default_rng(1)
    for _ in range(100):
        times = np.sort(random.uniform(0, 10, 7)).tolist()
        places = [(time, number, float(random.uniform(0.1, 1))) for number, time in enumerate(times, 1)]
        options = []
        for count in range(8):
            for chosen in itertools.combinations(places, count):
                borders = [0.0, *(time for time, _, _ in chosen), 10.0]
                if max(np.diff(borders)) <= 4:
                    options.append((count, -sum(pause for _, _, pause in chosen), [place[:2] for place in chosen]))
        assert choose_cuts(places, 0.0, 10.0, 4.0) == (min(options)[2] if options else None)


def cut_of(path, name, words, alignment=True):
    recording = Recording.from_file(path, recording_id=name)
    items = [AlignmentItem(word, start, round(end - start, 3)) for word, (start, end) in zip(words, SPOKEN, strict=False)]
    one = SupervisionSegment(name, name, 0.0, recording.duration, text=" ".join(words), language="en")
    one.alignment = {"word": items} if alignment else None
    return MonoCut(name, 0.0, recording.duration, 0, supervisions=[one], recording=recording)


def prepared(tmp_path, limit):
    """What is left of a corpus with an utterance that can be cut, one that cannot, and a long one in test."""
    for part in ("train", "dev", "test"):
        path = write_speech(tmp_path / f"data/{part}.wav")
        short = write_audio(tmp_path / f"data/{part}-short.wav")
        cuts = [
            cut_of(path, f"{part}-a", WORDS),
            cut_of(path, f"{part}-b", WORDS, alignment=False),
            cut_of(short, f"{part}-c", ["one"]),
        ]
        CutSet.from_cuts(cuts).to_file(tmp_path / f"data/cuts_{part}.jsonl.gz")
    return manifests.prepare(tmp_path / "data", tmp_path / "out", log, limit=limit)


def test_longer_ones_are_left_out_by_name_in_one_warning(tmp_path, caplog):
    assert prepared(tmp_path, LengthLimit(5.0)) == {"en-IN": {"train": 1, "dev": 1, "test": 3}}
    [warning] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "left out 4 of 6 utterances longer than 5 s (longest)" in warning and "train-b: 9.30 s" in warning
    assert len((tmp_path / "out" / lengths.LISTING).read_text().splitlines()) == 4
    assert prepared(tmp_path, LengthLimit()) == {"en-IN": {"train": 3, "dev": 3, "test": 3}}
    assert not (tmp_path / "out" / lengths.LISTING).exists()


def test_longer_ones_are_cut(tmp_path, caplog):
    assert prepared(tmp_path, LengthLimit(5.0, cut=True)) == {"en-IN": {"train": 3, "dev": 3, "test": 3}}
    assert "left out 2 of 6 utterances longer than 5 s (longest) that cannot be cut: no word times" in caplog.text
    first, second, _ = read_cuts(tmp_path / "out", "train")
    assert (first.id, second.id, second.recording_id) == ("train-a-1", "train-a-2", "train-a")
    assert f"{first.supervisions[0].text} {second.supervisions[0].text}" == " ".join(WORDS)
    assert first.end == pytest.approx(second.start) and second.end == pytest.approx(SECONDS)
    whole = read_samples(cut_of(tmp_path / "data/train.wav", "x", WORDS), 16000)
    np.testing.assert_array_equal(np.concatenate([read_samples(cut, 16000) for cut in (first, second)]), whole)
