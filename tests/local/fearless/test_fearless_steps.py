"""The Fearless Steps layouts: what is found, what is checked, what is mended, what stops."""

import logging

import numpy as np
import pytest
import soundfile
from tiny_audio import noise, read_cuts, write_audio

from local.fearless import fearless_steps as fearless
from pyspeech.errors import UserError
from pyspeech.sad.formats import read_reference

LOG = logging.getLogger(__name__)
LABELS = [(0.0, 0.5, "NS"), (0.5, 1.25, "S"), (1.25, 2.0, "NS")]


def stream(seconds=2.0, channels=1):
    return noise(seconds, 8000, channels)


def write_stream(path, samples=None, **options):
    return write_audio(path, **{"samples": stream() if samples is None else samples, "rate": 8000, **options})


def write_labels(path, rows=LABELS):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{path.stem}\t0\t{a}\t{b}\t{label}\tmanual" + "\tX" * 6 + "\n" for a, b, label in rows)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def make(root, name="FS02_dev_001", split="Dev", rows=LABELS, samples=None, suffix=".wav", **options):
    audio = write_stream(root / "Audio/Streams" / split / (name + suffix), samples, **options)
    labels = write_labels(root / "Transcripts/SAD" / split / (name + ".txt"), rows) if rows else None
    return audio, labels


def cuts(out, split="dev"):
    return {cut.id: cut for cut in read_cuts(out, split)}


@pytest.mark.parametrize(
    "audio, labels, names",
    [
        ("Data/Audio/Tracks", "Data/Transcripts/SAD", "FS_P01_{}_001"),
        ("FS02_Challenge_Data/Audio/Streams", "FS02_Challenge_Data/Transcripts/SAD", "FS02_{}_001"),
        ("FSC_P4_Streams/Audio/Streams", "FSC_P4_Streams/Transcripts/SAD", "fsc_p4_{}_001"),
        ("audio/streams", "transcripts/sad", "FS02_{}_001"),
    ],
)
def test_layouts(tmp_path, audio, labels, names):
    for split in ("Train", "Dev", "Eval"):
        name = names.format(split.lower())
        write_stream(tmp_path / "release" / audio / split / f"{name}.wav")
        if split != "Eval":
            write_labels(tmp_path / "release" / labels / split / f"{name}.txt")
    write_stream(tmp_path / "release" / audio / "../Segments/ASR_track2/Dev/FS02_ASR_track2_dev_0001.wav")
    (tmp_path / "release/README.txt").write_text("read me")
    out = tmp_path / "out"
    assert fearless.prepare(tmp_path / "release", out, LOG) == {"train": 1, "dev": 1, "eval": 1}
    cut = cuts(out)[names.format("dev")]
    assert [(s.start, s.end) for s in cut.supervisions] == [(0.5, 1.25)]
    assert cut.load_audio().shape == (1, 16000) and cut.custom["labelled"]
    assert read_reference(out / "reference/dev" / f"{cut.id}.txt") == LABELS
    evaluation = cuts(out, "eval")[names.format("eval")]
    assert not evaluation.supervisions and not evaluation.custom["labelled"]
    assert not (out / "reference/eval").exists()


def test_missing_folder(tmp_path):
    with pytest.raises(UserError, match="corpus=/nowhere: no such folder") as error:
        fearless.prepare("/nowhere", tmp_path, LOG)
    assert "\n" not in str(error.value)


def test_folder_without_splits(tmp_path):
    write_stream(tmp_path / "release/a.wav")
    with pytest.raises(UserError, match="Audio/Streams/Dev") as error:
        fearless.prepare(tmp_path / "release", tmp_path / "out", LOG)
    assert "\n" not in str(error.value)


def test_labels_that_run_past_the_audio_are_trimmed(tmp_path, caplog):
    rows = [(0.0, 0.5, "NS"), (0.5, 1.5, "S"), (1.5, 1.75, "NS"), (1.75, 2.5, "S"), (2.5, 2.9, "NS")]
    _, labels = make(tmp_path / "c", rows=rows)
    assert fearless.prepare(tmp_path / "c", tmp_path / "out", LOG) == {"dev": 1}
    assert f"{labels}: labels run to 2.90 s, the audio ends at 2.00 s" in caplog.text
    (cut,) = cuts(tmp_path / "out").values()
    assert [(s.start, s.end) for s in cut.supervisions] == [(0.5, 1.5), (1.75, 2.0)]
    assert read_reference(tmp_path / "out/reference/dev/FS02_dev_001.txt")[-1] == (1.75, 2.0, "S")


def test_labels_that_end_early(tmp_path, caplog):
    make(tmp_path / "c", samples=stream(6.0))
    fearless.prepare(tmp_path / "c", tmp_path / "out", LOG)
    assert "labels end at 2.00 s, the audio at 6.00 s" in caplog.text
    assert cuts(tmp_path / "out")["FS02_dev_001"].duration == 2.0


def test_label_names(tmp_path, caplog):
    rows = [(0.0, 0.2, "NT"), (0.2, 0.4, "RI"), (0.4, 0.6, "S"), (0.6, 0.8, "RX"), (0.8, 1.0, "RS"), (1.0, 2.0, "Uncertain")]
    make(tmp_path / "c", rows=rows)
    fearless.prepare(tmp_path / "c", tmp_path / "out", LOG)
    assert [(s.start, round(s.end, 6)) for s in cuts(tmp_path / "out")["FS02_dev_001"].supervisions] == [(0.2, 0.6)]
    assert read_reference(tmp_path / "out/reference/dev/FS02_dev_001.txt") == rows
    assert "not scored" in caplog.text


def truncate(path, keep=0.5):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])


def break_things(root):
    """One good stream and one of each bad kind; returns {file name: word in its message}."""
    make(root, "FS02_dev_001")
    expected = {}
    audio, _ = make(root, "FS02_dev_002")
    audio.unlink()
    expected["FS02_dev_002.txt"] = "without audio"
    make(root, "FS02_dev_003", rows=None)
    expected["FS02_dev_003.wav"] = "without a label file"
    truncate(make(root, "FS02_dev_004")[0])
    expected["FS02_dev_004.wav"] = "truncated"
    truncate(make(root, "FS02_dev_005", samples=stream(20.0), suffix=".flac")[0])
    expected["FS02_dev_005.flac"] = "truncated"
    make(root, "FS02_dev_006", samples=np.zeros(16000))
    expected["FS02_dev_006.wav"] = "silent"
    make(root, "FS02_dev_007")[0].write_bytes(b"")
    expected["FS02_dev_007.wav"] = "cannot be read"
    make(root, "FS02_dev_008")[0].write_text("this is no audio")
    expected["FS02_dev_008.wav"] = "cannot be read"
    make(root, "FS02_dev_009", samples=np.zeros(0))
    expected["FS02_dev_009.wav"] = "no samples"
    make(root, "FS02_dev_010", rows=[(0.0, 0.5, "NS"), (0.75, 2.0, "S")])
    expected["FS02_dev_010.txt"] = "gap"
    make(root, "FS02_dev_011", rows=[(0.0, 0.5, "NS"), (0.25, 2.0, "S")])
    expected["FS02_dev_011.txt"] = "overlap"
    make(root, "FS02_dev_012", rows=[(0.0, 2.0, "SPEECH")])
    expected["FS02_dev_012.txt"] = "unknown label SPEECH"
    make(root, "FS02_dev_013", rows=[(5.0, 6.0, "S")])
    expected["FS02_dev_013.txt"] = "begin at 5.00 s"
    make(root, "FS02_dev_015", rows=[(0.0, 0.5, "NS"), (0.5, 1800.0, "S")])
    expected["FS02_dev_015.txt"] = "its labels run to 1800.00 s, the audio ends at 2.00 s"
    labels = make(root, "FS02_dev_016")[1]
    labels.write_text(labels.read_text().replace("FS02_dev_016", "FS02_dev_001"))
    expected["FS02_dev_016.txt"] = "its first column names another recording, FS02_dev_001"
    make(root, "FS02_dev_017", samples=32768 * stream(), subtype="FLOAT")
    expected["FS02_dev_017.wav"] = "beyond 2 (such as "
    make(root, "FS02_dev_018", samples=stream()[:, None] * [1, -1])
    expected["FS02_dev_018.wav"] = "silent: its channels hold nothing, or cancel each other"
    make(root, "FS02_dev_014")
    write_stream(root / "Audio/Streams/Dev/copies/FS02_dev_014.wav")
    expected["FS02_dev_014.wav"] = "same name as"
    return expected


def test_every_problem_is_named(tmp_path):
    expected = break_things(tmp_path / "c")
    with pytest.raises(UserError, match=f"{len(expected)} problems; mend them, or skip_bad=true") as error:
        fearless.prepare(tmp_path / "c", tmp_path / "out", LOG)
    lines = {line.split(": ", 1)[0].rsplit("/", 1)[-1]: line for line in str(error.value).splitlines()[1:]}
    for name, words in expected.items():
        assert words in lines[name], name
    assert lines["FS02_dev_010.txt"].count("0.5") and lines["FS02_dev_010.txt"].count("0.75")
    assert not list((tmp_path / "out").glob("*.jsonl.gz"))
    assert len((tmp_path / "out/problems.txt").read_text().splitlines()) == len(expected)


def test_skip_bad_leaves_them_out(tmp_path, caplog):
    expected = break_things(tmp_path / "c")
    assert fearless.prepare(tmp_path / "c", tmp_path / "out", LOG, skip_bad=True) == {"dev": 2}
    assert sorted(cuts(tmp_path / "out")) == ["FS02_dev_001", "FS02_dev_014"]
    assert f"left out {len(expected)} files" in caplog.text and "FS02_dev_006.wav: silent" in caplog.text


def test_many_problems_are_cut_short_on_screen(tmp_path):
    for number in range(30):
        make(tmp_path / "c", f"FS02_dev_{number:03d}", samples=np.zeros(800))
    with pytest.raises(UserError) as error:
        fearless.prepare(tmp_path / "c", tmp_path / "out", LOG)
    assert len(str(error.value).splitlines()) == 22
    assert len((tmp_path / "out/problems.txt").read_text().splitlines()) == 30


def test_unlabelled_train_is_not_used(tmp_path, caplog):
    make(tmp_path / "c", "FS_P01_train_001", "Train", rows=None)
    make(tmp_path / "c", "FS_P01_dev_001")
    assert fearless.prepare(tmp_path / "c", tmp_path / "out", LOG) == {"dev": 1}
    assert "train: no label files" in caplog.text


def test_names_with_spaces_and_accents(tmp_path):
    make(tmp_path / "c dir", "Übertragung an Houston 1")
    assert fearless.prepare(tmp_path / "c dir", tmp_path / "out", LOG) == {"dev": 1}
    (cut,) = cuts(tmp_path / "out").values()
    assert cut.load_audio().shape == (1, 16000)
    assert read_reference(tmp_path / "out/reference/dev" / f"{cut.id}.txt") == LABELS


def test_names_that_differ_in_form_only(tmp_path):
    write_stream(tmp_path / "c/Audio/Streams/Dev/FS_P01_dev_001.wav")
    write_labels(tmp_path / "c/Transcripts/SAD/Dev/FS01_dev_001.txt")
    assert fearless.prepare(tmp_path / "c", tmp_path / "out", LOG) == {"dev": 1}


def test_other_rates_are_resampled_on_the_fly(tmp_path, caplog):
    caplog.set_level("INFO")
    make(tmp_path / "c", samples=noise(2.0), rate=16000, suffix=".flac")
    fearless.prepare(tmp_path / "c", tmp_path / "out", LOG)
    cut = cuts(tmp_path / "out")["FS02_dev_001"]
    assert cut.sampling_rate == 8000 and cut.load_audio().shape == (1, 16000)
    assert "[16000] Hz are resampled" in caplog.text and not (tmp_path / "out/audio").exists()


@pytest.mark.parametrize("options", [{"channels": 2}, {"suffix": ".sph", "format": "NIST"}])
def test_stereo_and_sphere_are_copied(tmp_path, caplog, options):
    caplog.set_level("INFO")
    channels = options.pop("channels", 1)
    audio, _ = make(tmp_path / "c", samples=stream(channels=channels), **options)
    fearless.prepare(tmp_path / "c", tmp_path / "out", LOG)
    cut = cuts(tmp_path / "out")["FS02_dev_001"]
    original = soundfile.read(str(audio), always_2d=True)[0].mean(axis=1)
    np.testing.assert_allclose(cut.load_audio()[0], original, atol=1e-4)
    assert "mixed and copied" in caplog.text


def test_hidden_files_are_passed_over(tmp_path):
    make(tmp_path / "c")
    (tmp_path / "c/Transcripts/SAD/Dev/._FS02_dev_001.txt").write_bytes(b"\x00\x05\x16\x07")
    (tmp_path / "c/Audio/Streams/Dev/._FS02_dev_001.wav").write_bytes(b"\x00\x05\x16\x07")
    assert fearless.prepare(tmp_path / "c", tmp_path / "out", LOG) == {"dev": 1}


def test_what_is_no_label_file_is_passed_over(tmp_path):
    make(tmp_path / "c")
    (tmp_path / "c/Transcripts/SAD/Dev/README.txt").write_text("read me")
    (tmp_path / "c/Transcripts/SAD/Dev/back").symlink_to(tmp_path / "c")
    for folder in ("ref_gt", "sys_results"):  # of the scoring toolkit
        write_labels(tmp_path / "c/Scoring_Toolkit/egs" / folder / "SAD/FS02_dev_001.txt")
    assert fearless.prepare(tmp_path / "c", tmp_path / "out", LOG) == {"dev": 1}


def test_labels_may_name_the_stream_in_another_way_or_not_at_all(tmp_path):
    for number, name in enumerate(("FS01_dev_001", "fsc_p4_dev_2", "X"), 1):
        labels = make(tmp_path / "c", f"FS_P01_dev_{number:03d}")[1]
        labels.write_text(labels.read_text().replace(labels.stem, name))
    assert fearless.prepare(tmp_path / "c", tmp_path / "out", LOG) == {"dev": 3}


def test_a_piped_flac_file_is_read_to_its_end(tmp_path, monkeypatch):
    """Its header says no length. ffmpeg decodes such a file; here, a script in its place that knows what is in it."""
    audio, _ = make(tmp_path / "c", suffix=".flac")
    soundfile.write(str(tmp_path / "decoded.au"), stream(), 8000, subtype="FLOAT")
    content = bytearray(audio.read_bytes())
    content[21] &= 0xF0
    content[22:26] = bytes(4)
    audio.write_bytes(content)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(UserError, match="FS02_dev_001.flac: cannot be read as audio: its header does not say how long it is"):
        fearless.prepare(tmp_path / "c", tmp_path / "out", LOG)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ffmpeg").write_text(f"#!/bin/sh\nexec /bin/cat '{tmp_path}/decoded.au'\n")
    (tmp_path / "bin/ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert fearless.prepare(tmp_path / "c", tmp_path / "out", LOG) == {"dev": 1}
    np.testing.assert_allclose(cuts(tmp_path / "out")["FS02_dev_001"].load_audio()[0], stream(), atol=1e-4)
