"""The AMI clips, from a made-up archive in place of the package."""

import io
import logging
import tarfile

import numpy as np
import pytest
import soundfile
from tiny_audio import read_cuts

from local import voices
from local.fearless import ami_clips
from pyspeech.fetch.download import file_sha256
from pyspeech.sad.formats import read_reference

log = logging.getLogger("test")
TURNS = {
    "trn00": [(0.5, 1.0, "MEE071"), (1.25, 1.5, "FEO072")],
    "tst00": [(0.0, 2.0, "FEO070")],
    "dev00": [(1.0, 1.5, "MIE001"), (2.0, 3.0, "MIE001")],
}


@pytest.fixture
def archive(monkeypatch, tmp_path):
    """tests/data of the source distribution: 3 s clips, one with an accent in its file name and not in its label."""
    monkeypatch.setenv("PYSPEECH_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache/downloads"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    with tarfile.open(folder / voices.AMI_CLIPS[1], "w:gz") as bundle:

        def put(name, content):
            entry = tarfile.TarInfo(f"pyannote_audio-4.0.7/tests/data/{name}")
            entry.size = len(content)
            bundle.addfile(entry, io.BytesIO(content))

        for name in ("tr\u00f100", "dev00", "tst00", "empty"):
            sound = io.BytesIO()
            soundfile.write(sound, 0.1 * rng.standard_normal(48002), 16000, format="WAV", subtype="PCM_16")
            put(f"{name}.wav", sound.getvalue())
        for split, name in (("train", "trn00"), ("development", "dev00"), ("test", "tst00")):
            put(
                f"debug.{split}.rttm",
                "".join(
                    f"SPEAKER {name} 1 {start:.3f} {length:.3f} <NA> <NA> {who} <NA> <NA>\n"
                    for start, length, who in TURNS[name]
                ).encode(),
            )
    monkeypatch.setattr(voices, "AMI_CLIPS", (*voices.AMI_CLIPS[:2], file_sha256(folder / voices.AMI_CLIPS[1])))


def test_prepare(archive, monkeypatch, tmp_path):
    monkeypatch.setattr(voices, "packages_available", lambda: True)
    assert ami_clips.prepare(tmp_path / "out", log) == {"eval_ami": 3}
    cuts = {cut.id: cut for cut in read_cuts(tmp_path / "out", "eval_ami")}
    assert sorted(cuts) == ["ami_dev00", "ami_trn00", "ami_tst00"]
    cut = cuts["ami_trn00"]
    assert cut.sampling_rate == 8000 and cut.load_audio().shape == (1, 24001)
    assert [(s.start, s.end) for s in cut.supervisions] == [(0.5, 2.75)]
    assert read_reference(tmp_path / "out/reference/eval_ami/ami_trn00.txt") == [
        (0.0, 0.5, "NS"),
        (0.5, 2.75, "S"),
        (2.75, 3.0, "NS"),
    ]
    assert [(s.start, round(s.end, 3)) for s in cuts["ami_dev00"].supervisions] == [(1.0, 3.0)]


def test_only_the_test_split_where_the_others_are_trained_on(archive, monkeypatch, tmp_path):
    monkeypatch.setattr(voices, "packages_available", lambda: False)
    assert ami_clips.prepare(tmp_path / "out", log) == {"eval_ami": 1}
    assert [cut.id for cut in read_cuts(tmp_path / "out", "eval_ami")] == ["ami_tst00"]


def test_turns_of_one_talker(archive):
    people = voices.single_talker_turns()
    assert {split: sorted(found) for split, found in people.items()} == {
        "train": ["FEO072", "MEE071"],
        "dev": ["MIE001"],
        "eval": ["FEO070"],
    }
    lengths = {
        who: [soundfile.info(str(path)).duration for path in paths]
        for found in people.values()
        for who, (_, paths) in found.items()
    }
    assert lengths["MEE071"] == [pytest.approx(0.75, abs=0.001)]
    assert lengths["FEO072"] == [pytest.approx(1.25, abs=0.001)]
    assert lengths["MIE001"] == [pytest.approx(1.5, abs=0.001), pytest.approx(1.0, abs=0.001)]
    assert people["train"]["MEE071"][0] == "m" and people["train"]["FEO072"][0] == "f"
