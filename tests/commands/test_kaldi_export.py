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
from pyspeech.errors import UserError
from pyspeech.features.config import FbankConfig
from pyspeech.features.fbank import fbank
from pyspeech.kaldi.reading import KaldiUtterance
from pyspeech.kaldi.writing import write_data_dir
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
    with one_line_error("--compress: applies to the features"):
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


def changed(manifest, target, change):
    """A copy of a manifest whose first entry is what `change` makes of it: JSON, or text."""
    with gzip.open(manifest, "rt", encoding="utf-8") as stream:
        first, *others = stream.read().splitlines()
    entry = json.loads(first)
    made = change(entry)
    first = made if isinstance(made, str) else json.dumps(entry if made is None else made)
    with gzip.open(target, "wt", encoding="utf-8") as stream:
        stream.writelines(line + "\n" for line in (first, *others))
    return target


BAD_MANIFESTS = {
    "text": (lambda cut: "hello", "line 1: not JSON"),
    "cut off": (lambda cut: json.dumps(cut)[:60], "line 1: not JSON; is the file cut off"),
    "an array": (lambda cut: [1, 2], "line 1: it is .1, 2.; expected a cut"),
    "null": (lambda cut: "null", "line 1: it is null"),
    "a recording": (lambda cut: cut["recording"], "line 1: '.*' is no cut with a recording"),
    "a mixed cut": (
        lambda cut: {"id": "m", "type": "MixedCut", "tracks": []},
        "line 1: 'm' is a MixedCut; .* save others as audio",
    ),
    "padding": (lambda cut: {"id": "m", "type": "PaddingCut", "duration": 1.0}, "line 1: 'm' is a PaddingCut"),
    "no recording": (lambda cut: cut.update(recording=None), "is no cut with a recording"),
    "no source": (lambda cut: cut["recording"].update(sources=[]), "recording.sources is ..; expected where the audio is"),
    "a number as source": (lambda cut: cut["recording"]["sources"][0].update(source=4), "recording.sources is"),
    "no rate": (lambda cut: cut["recording"].update(sampling_rate=None), "sampling_rate is null; expected a number above 0"),
    "start": (lambda cut: cut.update(start="x"), 'start is "x"; expected seconds'),
    "duration": (lambda cut: cut.update(duration=-1.0), "duration is -1.0"),
    "channel": (lambda cut: cut.update(channel=3), "channel is 3; expected one of 0"),
    "id": (lambda cut: cut.update(id=5), "id is 5; expected a name"),
    "supervisions": (lambda cut: cut.update(supervisions=None), "supervisions is null; expected a list"),
    "no start of words": (lambda cut: cut["supervisions"][0].update(start=None), "supervision .*: start is null"),
    "NaN": (lambda cut: cut["supervisions"][0].update(duration=float("nan")), "supervision .*: duration is NaN"),
    "a number as text": (lambda cut: cut["supervisions"][0].update(text=5), "supervision .*: text is 5; expected text"),
    "a list of speakers": (lambda cut: cut["supervisions"][0].update(speaker=["S"]), 'speaker is ."S".; expected text'),
    "custom": (lambda cut: cut["supervisions"][0].update(custom="x"), 'custom is "x"; expected an object'),
    "a field": (lambda cut: cut.update(foo=1), "line 1: not a cut that lhotse reads .TypeError"),
    "a transform": (lambda cut: cut["recording"].update(transforms=[{"name": "Foo", "kwargs": {}}]), "that lhotse reads"),
    "length": (lambda cut: cut["recording"].update(duration=99.0, num_samples=99 * RATE), "has 1.00 s of audio, not 99.00 s"),
    "samples": (
        lambda cut: cut["recording"].update(num_samples="1"),
        'num_samples is "1"; expected a whole number, about 11023',
    ),
    "no samples": (
        lambda cut: cut["recording"].update(num_samples=0, duration=0.1) or cut.update(duration=0.1),
        "num_samples is 0; expected a whole number, about 1102",
    ),
    "too many samples": (lambda cut: cut["recording"].update(num_samples=10**400), "num_samples is 1000"),
    "fewer samples": (lambda cut: cut["recording"].update(num_samples=-5), "num_samples is -5"),
    "more samples": (lambda cut: cut["recording"].update(num_samples=22046), "num_samples is 22046"),
    "channels": (lambda cut: cut["recording"].update(channel_ids=3), "channel_ids is 3; expected a list of numbers"),
    "names of channels": (
        lambda cut: cut["recording"].update(channel_ids=["0"]),
        "channel_ids is .*; expected a list of numbers",
    ),
    "half a character": (lambda cut: cut["supervisions"][0].update(text="a \ud800 b"), "text is .*; expected text"),
    "character 0": (lambda cut: cut["supervisions"][0].update(text="a \0 b"), "text is .*; expected text"),
    "deep": (lambda cut: "[" * 100000, "line 1: not JSON"),
}


@pytest.mark.parametrize("kind", BAD_MANIFESTS)
def test_bad_manifests_are_one_line(manifest, tmp_path, kind):
    change, message = BAD_MANIFESTS[kind]
    bad = changed(manifest, tmp_path / "bad.jsonl.gz", change)
    with one_line_error(message):
        kaldi_export.main([str(bad), str(tmp_path / "data")])


def test_bad_files_are_one_line(manifest, tmp_path):
    whole = manifest.read_bytes()
    for name, content, message in (
        ("a.jsonl.gz", whole[: len(whole) // 2], "damaged or not text .EOFError"),
        ("b.jsonl.gz", b"plain", "damaged or not text .BadGzipFile"),
        ("c.jsonl", "x\xe9".encode("latin1"), "damaged or not text .UnicodeDecodeError"),
        ("d.jsonl", b"", "no utterance; expected cuts"),
        ("e.txt", b"", "expected a lhotse manifest of cuts"),
    ):
        (tmp_path / name).write_bytes(content)
        with one_line_error(f"{name}: .*{message}"):
            kaldi_export.main([str(tmp_path / name), str(tmp_path / "data")])


def test_other_forms_of_a_manifest(manifest, tmp_path):
    """A byte order mark and empty lines; a JSON array."""
    with gzip.open(manifest, "rt", encoding="utf-8") as stream:
        text = stream.read()
    (tmp_path / "a.jsonl").write_text(text.replace("\n", "\n\n"), encoding="utf-8-sig")
    (tmp_path / "b.json").write_text(json.dumps([json.loads(line) for line in text.splitlines()]))
    for name in ("a.jsonl", "b.json"):
        kaldi_export.main([str(tmp_path / name), str(tmp_path / "of" / name)])
    assert len((tmp_path / "of/a.jsonl/text").read_text().splitlines()) == 5
    assert (tmp_path / "of/a.jsonl/text").read_bytes() == (tmp_path / "of/b.json/text").read_bytes()


def test_what_came_with_an_empty_text_goes_out_again(manifest, tmp_path):
    silent = changed(manifest, tmp_path / "silent.jsonl.gz", lambda cut: cut["supervisions"][0].update(text=""))
    kaldi_export.main([str(silent), str(tmp_path / "data")])
    assert validate_data_dir(tmp_path / "data") is None
    assert kaldi_import.main([str(tmp_path / "data"), str(tmp_path / "back.jsonl.gz")]) == 0
    texts = {name: cut.supervisions[0].text for name, cut in cuts_of(tmp_path / "back.jsonl.gz").items()}
    assert texts == {name: cut.supervisions[0].text for name, cut in cuts_of(silent).items()} and "" in texts.values()
    kaldi_export.main([str(tmp_path / "back.jsonl.gz"), str(tmp_path / "again")])
    assert (tmp_path / "again/text").read_bytes() == (tmp_path / "data/text").read_bytes()
    none = changed(manifest, tmp_path / "none.jsonl.gz", lambda cut: cut["supervisions"][0].update(text=None))
    with one_line_error("no text, though others have one"):
        kaldi_export.main([str(none), str(tmp_path / "other")])


def data_dir(folder, durations, **places):
    """A data directory of utterances of a file each, of 5 s by utt2dur if nothing else is said."""
    rows = [KaldiUtterance(name, name, str(place), text="one") for name, place in places.items()]
    write_data_dir(folder, rows, {name: durations.get(name, 5.0) for name in places})
    return folder


def test_problems_of_each_set_are_kept_and_name_the_option_of_the_tool(tmp_path):
    audio = write_audio(tmp_path / "a.wav", 5.0, 8000)
    bad = {f"b{number}": "false |" for number in range(3)}
    for name in ("train", "test"):
        folder = data_dir(tmp_path / name, {}, a=audio, **bad)
        with pytest.raises(UserError, match="mend them, or --skip-bad leaves them out"):
            kaldi_import.main([str(folder), str(tmp_path / f"{name}.jsonl.gz")])
        kaldi_import.main(["--skip-bad", str(folder), str(tmp_path / f"{name}.jsonl.gz")])
    kaldi_import.main([str(data_dir(tmp_path / "dev", {}, a=audio)), str(tmp_path / "dev.jsonl.gz")])
    assert sorted(path.name for path in tmp_path.glob("*problems.txt")) == ["test_problems.txt", "train_problems.txt"]
    listed = (tmp_path / "train_problems.txt").read_text().splitlines()
    assert len(listed) == 3 and "false |: the command failed with exit status 1" in listed[0]


def test_a_length_that_is_not_that_of_the_audio_is_a_problem(tmp_path):
    audio = write_audio(tmp_path / "a.wav", 5.0, 8000)
    folder = data_dir(tmp_path / "data", {"b": 99.0, "c": 5.4}, a=audio, b=audio, c=audio)
    kaldi_import.main(["--skip-bad", str(folder), str(tmp_path / "x.jsonl.gz")])
    assert "5.00 s of audio; its corpus says 99 s" in (tmp_path / "x_problems.txt").read_text()
    assert list(cuts_of(tmp_path / "x.jsonl.gz")) == ["a", "c"]


@pytest.mark.parametrize("segmented", [False, True])
def test_a_length_that_reco2dur_states(tmp_path, segmented):
    """Of a file, of one of two channels, of a command; beside utt2dur and without it."""
    audio = write_audio(tmp_path / "a.wav", 5.0, 8000)
    stereo = write_audio(tmp_path / "s.wav", samples=noise(5.0, 8000, 2), rate=8000)
    places = {"a": audio, "b": audio, "c": stereo, "d": f"cat {audio} |", "e": f"cat {audio} |"}
    span = (0.5, 1.5) if segmented else (None, None)
    rows = [KaldiUtterance(f"u{name}" if segmented else name, name, str(place), "one", *span) for name, place in places.items()]
    write_data_dir(tmp_path / "data", rows, dict.fromkeys(places, 5.0))
    (tmp_path / "data/reco2dur").write_text("a 5.4\nb 99\nc 99\nd 99\ne 5\n")
    for _ in range(2):
        kaldi_import.main(["--skip-bad", str(tmp_path / "data"), str(tmp_path / "x.jsonl.gz")])
        found = (tmp_path / "x_problems.txt").read_text().splitlines()
        assert len(found) == 3 and all(line.endswith("says 99 s") for line in found)
        assert list(cuts_of(tmp_path / "x.jsonl.gz")) == (["ua", "ue"] if segmented else ["a", "e"])
        (tmp_path / "data/utt2dur").unlink(missing_ok=True)


@pytest.mark.parametrize("segmented", [False, True])
def test_audio_that_was_replaced_is_imported_anew(tmp_path, segmented):
    """The output of a command, and the mono copy of a stereo file."""
    span = (0.5, 1.5) if segmented else (None, None)
    stereo = tmp_path / "stereo.wav"
    places = {"a": f"cat {tmp_path}/a.wav |", "b": str(stereo)}
    rows = [KaldiUtterance(name, f"tape-{name}" if segmented else name, place, None, *span) for name, place in places.items()]
    write_data_dir(tmp_path / "data", rows, {one.recording: 2.0 for one in rows})
    for name in ("utt2dur", "reco2dur"):
        (tmp_path / "data" / name).unlink()
    for seed, seconds in enumerate((2.0, 3.0)):
        write_audio(tmp_path / "a.wav", seconds, 8000, seed=seed)
        write_audio(stereo, samples=noise(seconds, 8000, 2, seed), rate=8000)
        assert kaldi_import.main([str(tmp_path / "data"), str(tmp_path / "x.jsonl.gz")]) == 0
        cuts = cuts_of(tmp_path / "x.jsonl.gz")
        for name, path in (("a", tmp_path / "a.wav"), ("b", stereo)):
            expected = soundfile.read(path, dtype="float32", always_2d=True)[0].mean(axis=1)
            assert cuts[name].recording.duration == seconds
            np.testing.assert_allclose(
                read_samples(cuts[name], 8000), expected[4000:12000] if segmented else expected, atol=2e-5
            )


def test_a_segment_of_just_the_shortest_length_is_imported(tmp_path):
    audio = write_audio(tmp_path / "a.wav", 6.0, 8000)
    spans = [(5.9, 6.0), (5.0, 5.1), (0.0, 0.1), (1.0, 1.0999)]
    rows = [KaldiUtterance(f"u{n}", "rec1", str(audio), None, *span) for n, span in enumerate(spans)]
    write_data_dir(tmp_path / "data", rows, {"rec1": 6.0})
    kaldi_import.main(["--skip-bad", str(tmp_path / "data"), str(tmp_path / "x.jsonl.gz")])
    assert {name: cut.duration for name, cut in cuts_of(tmp_path / "x.jsonl.gz").items()} == dict.fromkeys(
        ("u0", "u1", "u2"), 0.1
    )
    assert "u3: a segment of 0.100 s of audio" in (tmp_path / "x_problems.txt").read_text()


def test_audio_that_moved_with_its_manifest_is_exported(tmp_path):
    """A file, and the copy of a stereo one."""
    folder = tmp_path / "exp/corpus"
    rows = []
    for name, channels in (("a", 1), ("b", 2)):
        path = write_audio(folder / f"mixed/hi/{name}.wav", samples=noise(0.5, RATE, channels), rate=RATE)
        rows.append((Utterance(name, str(path), "one", "hi-IN"), str(path), {"rate": RATE, "duration": 5512 / RATE}))
    write_manifest(folder / "dev.jsonl.gz", rows)
    (tmp_path / "exp").rename(tmp_path / "exp moved")
    kaldi_export.main([str(tmp_path / "exp moved/corpus/dev.jsonl.gz"), str(tmp_path / "data")])
    places = dict(line.split(maxsplit=1) for line in (tmp_path / "data/wav.scp").read_text().splitlines())
    assert places["a"] == f"{tmp_path}/exp moved/corpus/mixed/hi/a.wav"
    assert places["b"].startswith(f"{tmp_path}/data/wav/b.") and soundfile.info(places["b"]).frames == 5512


def test_a_copy_of_an_earlier_export_is_made_anew(manifest, tmp_path):
    for seed in (5, 6):
        source = write_audio(tmp_path / "wav/c d.flac", 11023.5 / RATE, RATE, seed=seed)
        kaldi_export.main([str(manifest), str(tmp_path / "data")])
        (tmp_path / "data/utt2spk").unlink()
        (copy,) = (tmp_path / "data/wav").iterdir()
        np.testing.assert_array_equal(soundfile.read(copy)[0], soundfile.read(source)[0])


def spanning(start, duration):
    """A change of a manifest's first entry: its supervision, in a cut that begins at 0.5 s of 1.0 s."""

    def change(cut):
        cut.update(start=0.5, duration=0.4, id="c1")
        cut["supervisions"][0].update(start=start, duration=duration, custom=None)

    return change


@pytest.mark.parametrize(
    "start, duration, expected", [(-0.75, 0.5, (0.0, 0.25)), (-0.75, 1.0, (0.0, 0.75)), (0.25, 0.125, (0.75, 0.875))]
)
def test_a_supervision_that_begins_before_its_recording(manifest, tmp_path, start, duration, expected):
    """It ends where it ends."""
    odd = changed(manifest, tmp_path / "odd.jsonl.gz", spanning(start, duration))
    kaldi_export.main([str(odd), str(tmp_path / "data")])
    (line,) = (line for line in (tmp_path / "data/segments").read_text().splitlines() if line.split()[0].endswith("c1"))
    assert tuple(map(float, line.split()[2:])) == expected


@pytest.mark.parametrize("start, found", [(-2.0, "-1.5 s to -0.5 s"), (-1.5, "-1 s to 0 s"), (0.75, "1.25 s to 2.25 s")])
def test_a_supervision_that_is_no_part_of_its_recording(manifest, tmp_path, start, found):
    odd = changed(manifest, tmp_path / "odd.jsonl.gz", spanning(start, 1.0))
    with one_line_error(f"odd.jsonl.gz, line 1: supervision .* is from {found} of recording .*, which has 0.99.* s; expected"):
        kaldi_export.main([str(odd), str(tmp_path / "data")])


@pytest.mark.parametrize("resampled", [False, True])
def test_a_file_is_no_command_whatever_its_name(manifest, tmp_path, monkeypatch, resampled):
    """One of such a name is read, and where none is there, that is said."""
    monkeypatch.chdir(tmp_path)

    def change(cut):
        cut["recording"]["sources"][0]["source"] = "touch run |"
        rates = {"source_sampling_rate": RATE, "target_sampling_rate": RATE}
        cut["recording"].update({"transforms": [{"name": "Resample", "kwargs": rates}]} if resampled else {})

    made = changed(manifest, tmp_path / "odd.jsonl.gz", change)
    with one_line_error("cannot read its audio .touch run |touch run .: cannot be read as audio"):
        kaldi_export.main([str(made), str(tmp_path / "data")])
    source = write_audio(tmp_path / "touch run |", 11023.5 / RATE, RATE, format="WAV")
    kaldi_export.main([str(made), str(tmp_path / "data")])
    assert not (tmp_path / "run").exists()
    (copy,) = (path for path in (tmp_path / "data/wav").iterdir() if "hi-IN" in path.name)
    np.testing.assert_array_equal(soundfile.read(copy)[0], soundfile.read(source)[0])
