"""Similarity of voices in egs/zerospeech: means by hand, with embeddings that are given."""

import logging
import math

import numpy as np

from pyspeech.data.manifests import Utterance, write_manifest
from steps.units import similarity
from steps.units.similarity import likeness, means


def at(degrees):
    return None if degrees is None else np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))])


def test_likeness_is_to_the_voice_and_the_speaker_or_the_nearest_other():
    voices = {"A": at(0), "B": at(90), "C": at(60), "S": at(180), "silent": None}
    speakers = ["A", "B", "C"]

    def rounded(*given):
        return [None if value is None else round(value, 9) for value in likeness(*given, speakers, voices)]

    assert rounded(at(60), "A", "B") == [0.5, round(math.cos(math.radians(30)), 9)]
    assert rounded(at(0), "A", "A") == [1, 0.5]  # C is nearer than B
    assert rounded(at(0), "A", "S") == [1, -1] and rounded(at(0), "A", "silent") == [1, None]
    assert rounded(at(0), "silent", "A") == [None, 1] and rounded(None, "A", "B") == [None, None]
    assert likeness(at(0), "A", "A", ["A"], voices) == (1, None)


def test_means_are_of_what_is_known():
    assert means([(0.5, None), (1.0, 0.25), (None, None)]) == {"target": 0.75, "other": 0.25}
    assert means([]) == {"target": None, "other": None}


def test_a_bounded_number_of_training_recordings(tmp_path, monkeypatch):
    def manifest(name, count, speakers):
        rows = [
            (Utterance(f"{speaker}_{name}{place}", "x.wav", None, "cs", speaker), "x.wav", {"rate": 16000, "duration": 1.0})
            for speaker in speakers
            for place in range(count)
        ]
        write_manifest(tmp_path / f"{name}.jsonl.gz", rows)

    manifest("voice", 50, "AB")
    manifest("test", 2, "AS")
    read = []
    monkeypatch.setattr("pyspeech.data.cuts.read_samples", lambda cut, rate: read.append(cut.id) or cut.id)
    angles = {"A": 0, "B": 90, "S": None}
    found = similarity.centroids(tmp_path, lambda name: at(angles[name[0]]), ["A", "B"], {"A", "S"})
    assert len(read) == 2 * similarity.MOST + 2 and not any(name.startswith("A_test") for name in read)
    np.testing.assert_allclose([found["A"], found["B"]], np.eye(2), atol=1e-12)
    assert found["S"] is None


def test_without_the_package_nothing_is_added(monkeypatch, caplog):
    log = logging.getLogger("similarity")
    monkeypatch.setattr("pyspeech.units.voices.load_embedder", lambda: None)
    assert similarity.load_embedder(log) is None and not caplog.records

    def broken():
        raise ImportError("cannot import name 'x'")

    monkeypatch.setattr("pyspeech.units.voices.load_embedder", broken)
    assert similarity.load_embedder(log) is None
    assert "does not load: no similarity of voices (ImportError: cannot import name 'x')" in caplog.text
