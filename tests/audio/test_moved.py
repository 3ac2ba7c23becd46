"""Audio that moved with its manifest is found, by name or below the manifest, and no other."""

import shutil

import numpy as np
from lhotse import CutSet
from tiny_audio import noise, write_audio
from tool_harness import one_line_error

from pyspeech.audio.io import read_audio
from pyspeech.audio.moved import found_again
from pyspeech.audio.recordings import find_recordings
from pyspeech.data.audio_files import readable_copies
from pyspeech.data.cuts import read_samples
from pyspeech.data.manifests import Utterance, load_cuts, write_manifest
from pyspeech.data.utterances import Utterances
from steps.asr.corpus import load_cuts as load_asr_cuts


def test_names_that_are_tried(tmp_path):
    audio = write_audio(tmp_path / "new/corpus/mixed/hi/a.wav", 0.1)
    write_audio(tmp_path / "new/corpus/b.wav", 0.1)
    folder = tmp_path / "new/corpus"
    for name, expected in (
        (str(audio), audio),
        ("/old/exp/mini/corpus/mixed/hi/a.wav", audio),
        ("mixed/hi/a.wav", audio),
        ("b.wav", folder / "b.wav"),
        ("/old/b.wav", "/old/b.wav"),  # it might be any b.wav
        ("/old/mixed/ta/a.wav", "/old/mixed/ta/a.wav"),
    ):
        assert found_again(name, folder) == str(expected)


def test_a_moved_corpus_is_read(tmp_path):
    """Its own copies are; what lies elsewhere is where it was, or named with the remedy."""
    import logging

    there = write_audio(tmp_path / "there/b.wav", 0.5)
    stereo = write_audio(tmp_path / "there/a.wav", samples=noise(0.5, channels=2))
    corpus = tmp_path / "exp/corpus"
    rows = []
    for name, path, channels in (("a", stereo, 2), ("b", there, 1)):
        info = {"rate": 16000, "channels": channels, "duration": 0.5, "format": "WAV"}
        rows.append((Utterance(name, str(path), "one", "hi-IN"), info))
    write_manifest(corpus / "test.jsonl.gz", readable_copies(rows, corpus / "mixed", logging.getLogger("test")))
    expected = [read_samples(cut, 16000) for cut in CutSet.from_file(corpus / "test.jsonl.gz")]
    shutil.move(tmp_path / "exp", tmp_path / "other place")
    moved = tmp_path / "other place/corpus"
    rows = Utterances.read(moved / "test.jsonl.gz", speeds=[1.1])
    assert len(read_samples(rows[2], 16000)) == 7273
    for cuts in (rows, load_cuts(moved, "test"), load_asr_cuts(moved, "test")):
        for number in range(2):
            np.testing.assert_array_equal(read_samples(cuts[number], 16000), expected[number])
    for recording, samples in zip(find_recordings([moved / "test.jsonl.gz"]), expected, strict=True):
        np.testing.assert_array_equal(read_audio(recording.path, 16000)[0], samples)
    there.unlink()
    with one_line_error("b: no such audio file: .*/there/b.wav; where the corpus was moved, prepare it again"):
        read_samples(rows[1], 16000)
