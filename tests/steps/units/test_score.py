"""Scores of units: their agreement with phones where the corpus has an alignment."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from pyspeech.data.manifests import Utterance, write_manifest
from steps.units.score import one_line, score_units

RATE = 10.0  # units a second


@pytest.fixture
def exp(tmp_path):
    """Two test utterances of a second, and the phones of one of them and of another utterance."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    rows = []
    for name in ("A_1", "A_2"):
        soundfile.write(tmp_path / f"{name}.wav", np.zeros(16000), 16000)
        audio = {"rate": 16000, "duration": 1.0}
        rows.append((Utterance(name, "", "", "en", "A", "test"), str(tmp_path / f"{name}.wav"), audio))
    write_manifest(corpus / "test.jsonl.gz", rows)
    (corpus / "bitrate_filelist").write_text("A_1\nA_2\n")
    (corpus / "alignment.ctm").write_text("A_1 1 0.0 0.4 sil\nA_1 1 0.4 0.4 a\nB_9 1 0.0 1.0 o\n")
    return SimpleNamespace(dir=tmp_path, log=logging.getLogger("test"))


def test_units_and_phones(exp):
    """Of A_1 the units 0 0 0 1 are silence, 1 1 1 2 the vowel, and the last two in no phone."""
    table = np.array([[1.0, 0.5], [2.0, 0.0], [0.1, 0.2]])
    vectors = {"A_1": table[[0, 0, 0, 1, 1, 1, 1, 2, 2, 0]], "A_2": table[[0] * 10]}
    entry = score_units(exp, vectors, exp.dir / "units", RATE, codes=3)
    found = entry["phones"]
    assert found["phone_purity"] == pytest.approx((3 + 3 + 1) / 8)
    assert found["cluster_purity"] == pytest.approx((3 + 3) / 8)
    joint = np.array([[3, 0], [1, 3], [0, 1]]) / 8
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    information = sum(p * np.log2(p / q) for p, q in zip(joint.ravel(), independent.ravel(), strict=True) if p)
    assert found["pnmi"] == pytest.approx(information / 1.0)  # of two phones as long
    assert one_line({**entry, "codes": 3}).endswith("phone purity 87.5 %, PNMI 0.594")


def test_without_an_alignment_or_codes(exp):
    vectors = {"A_1": np.ones((10, 2)), "A_2": np.ones((10, 2))}
    assert "phones" not in score_units(exp, vectors, exp.dir / "units", RATE)
    (exp.dir / "corpus" / "alignment.ctm").unlink()
    assert "phones" not in score_units(exp, vectors, exp.dir / "units", RATE, codes=3)
