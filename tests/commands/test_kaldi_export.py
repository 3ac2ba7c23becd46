"""utils/kaldi_export.py and utils/kaldi_import.py: what is exported keeps Kaldi's rules and comes back the same."""

import gzip
import json
from dataclasses import asdict

import kaldiio
import numpy as np
import pytest
import soundfile
from kaldi_validation import validate_data_dir
from lhotse import CutSet
from tiny_audio import noise, write_audio
from tool_harness import one_line_error, run_tool

from pyspeech.commands import kaldi_export, kaldi_import
from pyspeech.data.cuts import read_samples
from pyspeech.data.manifests import Segment, Utterance, write_manifest, write_split
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import fbank
from pyspeech.units.features_files import open_features, read_features

RATE = 11025


@pytest.fixture
def manifest(tmp_path):
    """Five utterances: of plain files, of a FLAC file with a space in its name, of two parts of a long one; odd ids."""
    seconds = 11023.5 / RATE  # 11023 samples: lhotse rounds their duration down
    names = ("a.wav", "b.wav", "c d.flac")
    paths = [write_audio(tmp_path / "wav" / name, seconds, RATE, seed=seed) for seed, name in enumerate(names)]
    long = write_audio(tmp_path / "wav/long.wav", samples=noise(3.0, RATE), rate=RATE)
    whole = [(paths[0], "hi-IN-0 1", None), (paths[1], "hi-IN-02", "S-1"), (paths[2], "हि/é", "S")]
    rows = [
        (Utterance(name, str(path), f"word {name}", "hi-IN", speaker, custom={"n": 1} if speaker else None, gender="m"), path)
        for path, name, speaker in whole
    ]
    for number, (start, end) in enumerate([(0.1, 1.3), (1.3, 3.0)]):
        segment = Segment("long tape", start, end)
        rows.append((Utterance(f"part {number}", str(long), "x y", "ta-IN", "S", gender="m", segment=segment), long))
    info = [(one, str(path), {"rate": RATE, "duration": soundfile.info(str(path)).duration}) for one, path in rows]
    write_manifest(tmp_path / "train.jsonl.gz", info)
    return tmp_path / "train.jsonl.gz"


def cuts_of(path):
    return {cut.id: cut for cut in CutSet.from_file(path)}


def test_a_manifest_comes_back_the_same(manifest, tmp_path, capsys):
    kaldi_export.main([str(manifest), str(tmp_path / "data")])
    assert validate_data_dir(tmp_path / "data") is None
    assert "5 utterances of 4 recordings" in capsys.readouterr().out
    assert kaldi_import.main([str(tmp_path / "data"), str(tmp_path / "back.jsonl.gz")]) == 0
    before, after = cuts_of(manifest), cuts_of(tmp_path / "back.jsonl.gz")
    assert before.keys() == after.keys()
    for name, cut in before.items():
        back = after[name].to_dict()
        source = back["recording"]["sources"][0].pop("source")
        expected = cut.to_dict()
        assert (source == expected["recording"]["sources"][0].pop("source")) == (name != "हि/é")
        assert back == expected
        np.testing.assert_array_equal(read_samples(after[name], RATE), read_samples(cut, RATE))


def test_whole_files_come_back_without_segments(manifest, tmp_path):
    with gzip.open(manifest, "rt") as stream:
        lines = [line for line in stream if "part" not in line]
    with gzip.open(tmp_path / "whole.jsonl.gz", "wt") as stream:
        stream.writelines(lines)
    kaldi_export.main([str(tmp_path / "whole.jsonl.gz"), str(tmp_path / "data")])
    assert not (tmp_path / "data/segments").exists() and (tmp_path / "data/utt2name").exists()
    kaldi_import.main([str(tmp_path / "data"), str(tmp_path / "back.jsonl.gz")])
    before, after = cuts_of(tmp_path / "whole.jsonl.gz"), cuts_of(tmp_path / "back.jsonl.gz")
    assert {key: cut.duration for key, cut in before.items()} == {key: cut.duration for key, cut in after.items()}


def test_exported_twice_gives_the_same_tables(manifest, tmp_path):
    for name in ("a", "b"):
        kaldi_export.main([str(manifest), str(tmp_path / name)])
        assert kaldi_import.main([str(tmp_path / name), str(manifest)]) == 0
    for path in (tmp_path / "a").glob("*2*"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.parametrize("compress, atol", [(False, 1e-4), (True, 0.3)])
def test_features_are_those_of_the_recipe(manifest, tmp_path, compress, atol):
    config = FbankConfig(num_bins=40)
    (tmp_path / "options.json").write_text(json.dumps(asdict(config)))
    options = ["--features", str(tmp_path / "options.json"), *(["--compress"] if compress else [])]
    kaldi_export.main([*options, str(manifest), str(tmp_path / "data")])
    assert validate_data_dir(tmp_path / "data") is None
    kaldi_import.main([str(tmp_path / "data"), "--features", str(tmp_path / "npy")])
    table, independent = open_features(tmp_path / "data/feats.scp"), kaldiio.load_scp(str(tmp_path / "data/feats.scp"))
    names = {line.split()[0]: json.loads(line.split(maxsplit=1)[1]) for line in (tmp_path / "data/utt2name").open()}
    assert len(independent) == 5
    for key in independent:
        cut = cuts_of(manifest)[names.get(key, key)]
        expected = fbank(read_samples(cut, config.sampling_rate), config).numpy()
        for found in (table(key).values, independent[key], read_features(tmp_path / "npy" / f"{cut.id}.npy").values):
            np.testing.assert_allclose(found, expected, atol=atol)


def test_streams_with_segments_and_one_without(tmp_path, caplog):
    from lhotse import Recording

    streams = [Recording.from_file(write_audio(tmp_path / f"{name}.wav", 2.0, 8000)) for name in "ab"]
    speech = [np.array([[0.25, 0.5], [1.0, 2.0]]), np.zeros((0, 2))]
    write_split(tmp_path, "dev", [(stream, found, None) for stream, found in zip(streams, speech, strict=True)])
    kaldi_export.main([str(tmp_path / "dev.jsonl.gz"), str(tmp_path / "data")])
    assert validate_data_dir(tmp_path / "data") is None and not (tmp_path / "data/text").exists()
    assert (tmp_path / "data/segments").read_text() == "a-00000 a 0.25 0.5\na-00001 a 1.0 2.0\n"
    assert "1 cuts without a supervision are left out" in caplog.text


def test_mistakes_are_one_line(manifest, tmp_path):
    with one_line_error("none.jsonl.gz: no such file"):
        kaldi_export.main([str(tmp_path / "none.jsonl.gz"), str(tmp_path / "data")])
    with one_line_error("--compress: is of the features"):
        kaldi_export.main(["--compress", str(manifest), str(tmp_path / "data")])
    with one_line_error("options.json: no options of log-mel features .No such file"):
        kaldi_export.main(["--features", str(tmp_path / "options.json"), str(manifest), str(tmp_path / "data")])
    kaldi_export.main([str(manifest), str(tmp_path / "data")])
    with one_line_error("data: is a data directory already"):
        kaldi_export.main([str(manifest), str(tmp_path / "data")])
    with one_line_error("--features: .*data has no feats.scp"):
        kaldi_import.main([str(tmp_path / "data"), "--features", str(tmp_path / "npy")])
    with one_line_error("x.txt: expected the name of a manifest"):
        kaldi_import.main([str(tmp_path / "data"), str(tmp_path / "x.txt")])


def test_a_directory_is_checked_as_its_user_does(manifest, tmp_path):
    kaldi_export.main([str(manifest), str(tmp_path / "data")])
    assert run_tool("kaldi_import", tmp_path / "data").stdout == f"{tmp_path}/data: nothing wrong\n"
    text = (tmp_path / "data/text").read_text().splitlines()
    (tmp_path / "data/text").write_text("\n".join(text[::-1]) + "\n")
    done = run_tool("kaldi_import", tmp_path / "data", tmp_path / "back.jsonl.gz")
    assert done.returncode == 1 and done.stdout.startswith(f"{tmp_path}/data/text, line 2: ")
    assert done.stdout.endswith(": 4 faults\n") and not (tmp_path / "back.jsonl.gz").exists()
