"""Lhotse manifests as local/ writes them, beside lhotse's own objects."""

import gzip
import json

from lhotse import AudioSource, CutSet, MonoCut, Recording, SupervisionSegment

from pyspeech.data.manifests import Utterance, write_manifest

ROWS = [
    (Utterance("ä b", "x", "one two", "hi-IN", None, "train"), "/data/ä b.wav", {"rate": 16000, "duration": 1.23456789}),
    (Utterance("c", "x", None, "zh", "S1", "dev", {"attack": None, "n": 1}), "/c.flac", {"rate": 44100, "duration": 1 / 3}),
    (Utterance("", "x", "", "", "", "dev", {}), "", {"rate": 8000, "duration": 0.0}),
]


def lhotse_cut(utterance, audio, properties):
    frames = round(properties["duration"] * properties["rate"])
    duration = frames / properties["rate"]
    source = AudioSource(type="file", channels=[0], source=audio)
    recording = Recording(utterance.id, [source], properties["rate"], frames, duration)
    said = {name: getattr(utterance, name) for name in ("text", "language", "speaker", "custom")}
    supervision = SupervisionSegment(utterance.id, utterance.id, 0.0, duration, 0, **said)
    return MonoCut(utterance.id, 0.0, duration, 0, recording=recording, supervisions=[supervision])


def test_rows_are_those_of_lhotse(tmp_path):
    path = tmp_path / "set.jsonl.gz"
    write_manifest(path, ROWS)
    expected = [lhotse_cut(*row) for row in ROWS]
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        assert stream.read() == "".join(json.dumps(cut.to_dict(), ensure_ascii=False) + "\n" for cut in expected)
    assert list(CutSet.from_file(path)) == expected


def test_no_rows_no_file(tmp_path):
    path = tmp_path / "set.jsonl.gz"
    write_manifest(path, ROWS)
    first = path.read_bytes()
    write_manifest(path, ROWS)
    assert path.read_bytes() == first
    write_manifest(path, [])
    assert not path.exists()
