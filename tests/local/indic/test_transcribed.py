"""Checks of transcribed utterances at their limits."""

import logging

from tiny_audio import read_cuts, write_audio

from local.indic.transcribed import write_corpus
from pyspeech.data.manifests import Segment, Utterance


def test_a_segment_of_just_the_shortest_length_with_as_many_characters_as_may_be(tmp_path):
    audio = str(write_audio(tmp_path / "a.wav", 6.0))
    spans = {"a": (5.9, 6.0), "b": (5.0, 5.1), "c": (0.0, 0.1)}
    utterances = [
        Utterance(f"{split}-{name}", audio, "abcd", "en-IN", split=split, segment=Segment("r", *span))
        for split in ("train", "test")
        for name, span in spans.items()
    ]
    longer = Utterance("d", audio, "abcde", "en-IN", segment=Segment("r", 2.0, 2.1))
    counts = write_corpus([*utterances, longer], tmp_path / "out", logging.getLogger("test"))
    assert counts == {"en-IN": {"train": 3, "test": 3}}
    assert [cut.duration for cut in read_cuts(tmp_path / "out", "train")] == [0.1] * 3
    assert "d: a transcript of 5 characters for 0.10 s" in (tmp_path / "out/problems.txt").read_text()
