"""Reading audio: formats, seamless resampling, what is mended, what is refused; and finding recordings."""

import json
import logging
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pyspeech.audio.io import find_audio, read_audio, read_channels, stream_audio
from pyspeech.audio.raw import ENCODINGS, RawFormat
from pyspeech.audio.recordings import Recording, find_recordings
from pyspeech.audio.sources import open_source
from pyspeech.data.cuts import read_samples
from pyspeech.errors import UserError

REPOSITORY = Path(__file__).resolve().parents[2]


def noise(seconds, rate, channels=1, seed=0):
    return (0.1 * np.random.default_rng(seed).standard_normal((round(seconds * rate), channels))).astype(np.float32)


@pytest.mark.parametrize(
    "suffix, subtype, tolerance",
    [
        ("wav", "PCM_U8", 0.01),
        ("wav", "PCM_16", 1e-4),
        ("wav", "PCM_24", 1e-6),
        ("wav", "FLOAT", 0),
        ("wav", "DOUBLE", 0),
        ("wav", "ULAW", 0.02),
        ("flac", "PCM_16", 1e-4),
        ("aiff", "PCM_16", 1e-4),
        ("sph", "PCM_16", 1e-4),
    ],
)
def test_sample_formats(tmp_path, suffix, subtype, tolerance):
    samples = noise(0.5, 16000, 2)
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, samples, 16000, subtype=subtype, format="NIST" if suffix == "sph" else None)
    for channel, expected in ((None, samples.mean(1)), (0, samples[:, 0]), (1, samples[:, 1])):
        found, rate = read_audio(path, channel=channel)
        assert rate == 16000 and found.dtype == np.float32 and found.shape == (8000,)
        assert np.abs(found - expected).max() <= tolerance + 1e-7


@pytest.mark.parametrize("suffix", ["ogg", "mp3"])
def test_lossy_formats(tmp_path, suffix):
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(44100) / 44100)
    soundfile.write(tmp_path / f"a.{suffix}", tone, 44100)
    found, rate = read_audio(tmp_path / f"a.{suffix}", 8000)
    assert rate == 8000 and abs(len(found) - 8000) <= 80
    assert np.argmax(np.abs(np.fft.rfft(found, 8000))) == 440


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 44100, 96000, 6000])
def test_stream_equals_one_shot(tmp_path, rate):
    path = tmp_path / "a.wav"
    soundfile.write(path, noise(3.3, rate, 2), rate, subtype="FLOAT")
    whole, _ = read_audio(path, 8000)
    for block_seconds in (60, 1, 0.0371):
        blocks = list(stream_audio(path, 8000, block_seconds=block_seconds))
        assert all(block.dtype == np.float32 and block.ndim == 1 for block in blocks)
        streamed = np.concatenate(blocks)
        assert streamed.shape == whole.shape and np.abs(streamed - whole).max() <= 1e-6
    assert abs(len(whole) - 3.3 * 8000) <= 1


@pytest.mark.parametrize("suffix", ["flac", "ogg", "mp3"])
def test_stream_equals_one_shot_for_compressed_files(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, noise(3, 16000), 16000)
    whole = soundfile.read(path, dtype="float32")[0]
    streamed = np.concatenate(list(stream_audio(path, 16000, block_seconds=0.1)))
    assert streamed.shape == whole.shape and np.abs(streamed - whole).max() <= 1e-6


@pytest.mark.parametrize("rate", [16000, 44100])
def test_resampling_keeps_time_and_level(tmp_path, rate):
    time = np.arange(rate * 2) / rate
    both = 0.5 * np.sin(2 * np.pi * 1000 * time) + 0.4 * np.sin(2 * np.pi * 5000 * time)
    soundfile.write(tmp_path / "a.wav", both, rate, subtype="FLOAT")
    found, _ = read_audio(tmp_path / "a.wav", 8000)
    expected = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(16000) / 8000)  # 5 kHz is above what 8 kHz can carry
    assert np.abs(found - expected)[200:-200].max() < 1e-3


def test_part_of_a_file(tmp_path, caplog):
    samples = noise(2, 8000)[:, 0]
    soundfile.write(tmp_path / "a.wav", samples, 8000, subtype="FLOAT")
    part = np.concatenate(list(stream_audio(tmp_path / "a.wav", 8000, block_seconds=0.3, start=0.5, duration=1.0)))
    assert np.array_equal(part, samples[4000:12000])
    rest = np.concatenate(list(stream_audio(tmp_path / "a.wav", 8000, start=1.75)))
    assert np.array_equal(rest, samples[14000:])
    assert len(list(stream_audio(tmp_path / "a.wav", 8000, start=1.0, duration=1.05))) == 1 and not caplog.records
    list(stream_audio(tmp_path / "a.wav", 8000, start=1.0, duration=500.0))
    assert "a.wav: ends 499.00 s before the part that was asked for does, which has 500.00 s" in caplog.text
    with pytest.raises(UserError, match="no samples"):
        list(stream_audio(tmp_path / "a.wav", 8000, start=2.5))


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_one_sample(tmp_path, rate):
    soundfile.write(tmp_path / "a.wav", np.ones(1), rate, subtype="FLOAT")
    found, _ = read_audio(tmp_path / "a.wav", 8000)
    assert found.ndim == 1 and len(found) <= 1  # less than a sample may be left of it
    assert read_audio(tmp_path / "a.wav")[0].tolist() == [1.0]


def test_truncated_wav(tmp_path, caplog):
    soundfile.write(tmp_path / "whole.wav", noise(3, 8000, 2), 8000)
    data = (tmp_path / "whole.wav").read_bytes()
    (tmp_path / "cut.wav").write_bytes(data[: 44 + 2 * 2 * 8000 + 1])
    found, _ = read_audio(tmp_path / "cut.wav")
    assert np.array_equal(found, read_audio(tmp_path / "whole.wav")[0][:8000])
    assert len(caplog.records) == 1 and "1.00 s of audio, its header says 3.00 s" in caplog.text
    (tmp_path / "nothing.wav").write_bytes(data[:44])
    with pytest.raises(UserError, match="nothing.wav: truncated or damaged: holds no samples .* 3.00 s"):
        read_audio(tmp_path / "nothing.wav")
    caplog.clear()
    header = bytearray(data)
    header[40:44] = struct.pack("<I", 0xFFFFFFFF)  # what is written to a pipe: length unknown
    (tmp_path / "piped.wav").write_bytes(header)
    assert len(read_audio(tmp_path / "piped.wav")[0]) == 24000 and not caplog.records


@pytest.mark.parametrize(
    "kind, subtype",
    [("WAVEX", "PCM_24"), ("NIST", "PCM_16"), ("AU", "PCM_16"), ("AU", "DOUBLE"), ("AU", "ULAW"), ("AIFF", "PCM_24")],
)
def test_truncated_files_of_other_kinds(tmp_path, caplog, kind, subtype):
    path = tmp_path / "a.audio"
    soundfile.write(path, noise(3, 8000, 2), 8000, subtype=subtype, format=kind)
    whole, _ = read_audio(path)
    assert len(whole) == 24000 and not caplog.records
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    found, _ = read_audio(path)
    assert 11000 < len(found) < 12000 and np.array_equal(found, whole[: len(found)])
    assert len(caplog.records) == 1 and "s of audio, its header says 3.00 s" in caplog.text


@pytest.mark.parametrize(
    "kind, sizes",
    [
        ("AU", {b".snd": (8, 0xFFFFFFFF)}),
        ("AIFF", {b"FORM": (4, 0x7F00002E), b"COMM": (10, 0x3F800000), b"SSND": (4, 0x7F000008)}),
    ],
)
def test_other_kinds_that_were_piped(tmp_path, caplog, kind, sizes):
    """The lengths that sox writes where it cannot know them."""
    soundfile.write(tmp_path / "a.audio", noise(1, 8000), 8000, subtype="PCM_16", format=kind)
    data = bytearray((tmp_path / "a.audio").read_bytes())
    for chunk, (place, size) in sizes.items():
        struct.pack_into(">I", data, data.index(chunk) + place, size)
    (tmp_path / "a.audio").write_bytes(data)
    assert len(read_audio(tmp_path / "a.audio")[0]) == 8000 and not caplog.records


@pytest.mark.parametrize("kind, subtype", [("WAV", "PCM_16"), ("WAV", "ULAW"), ("WAVEX", "FLOAT")])
def test_wav_whose_header_was_never_finished(tmp_path, caplog, kind, subtype):
    path = tmp_path / "a.wav"
    soundfile.write(path, noise(1, 8000, 2), 8000, subtype=subtype, format=kind)
    whole, _ = read_audio(path)
    data = path.read_bytes()
    size_at = data.index(b"data") + 4
    start = size_at + 4
    samples = data[start : start + struct.unpack("<I", data[size_at:start])[0]]
    for riff_size in (0, start - 8, len(data) - 8):
        path.write_bytes(data[:4] + struct.pack("<I", riff_size) + data[8:size_at] + bytes(4) + samples)
        found = np.concatenate(list(stream_audio(path, 8000, block_seconds=0.3)))
        assert np.array_equal(found, whole) and "header was never finished" in caplog.text and "1.00 s" in caplog.text
        part = np.concatenate(list(stream_audio(path, 8000, start=0.25)))
        assert np.array_equal(part, whole[2000:])
    for behind in (b"", b"LIST\x04\0\0\0INFO"):  # none were recorded
        path.write_bytes(data[:size_at] + bytes(4) + behind)
        with pytest.raises(UserError, match="holds no samples"):
            read_audio(path)


GIB_4 = 1 << 32


def write_large_wav(path, size_in_header, last, seconds_before, rate=48000, behind=b""):
    """A sparse WAV file: silence of so many seconds, then `last`, int16 (n, channels); its header says `size_in_header`."""
    channels = last.shape[1]
    length = seconds_before * rate * channels * 2
    head = struct.pack(
        "<4sI4s4sIHHIIHH", b"RIFF", 0, b"WAVE", b"fmt ", 16, 1, channels, rate, rate * channels * 2, channels * 2, 16
    )
    with open(path, "wb") as stream:
        stream.write(head + b"data" + struct.pack("<I", size_in_header(length + last.nbytes)))
        stream.seek(length, os.SEEK_CUR)
        stream.write(last.tobytes() + behind)


@pytest.mark.parametrize(
    "size_in_header, behind",
    [
        (lambda size: 0xFFFFFFFF, b""),
        (lambda size: 0x7FFFF000, b""),
        (lambda size: 0, b""),
        (lambda size: size % GIB_4, b""),
        (lambda size: size % GIB_4, b"LIST\4\0\0\0INFO"),
    ],
)
def test_wav_above_4_gib_is_read_to_its_end(tmp_path, caplog, size_in_header, behind):
    last = (32768 * noise(1, 48000, 2)).astype("<i2")
    before = GIB_4 // (48000 * 4) + 10  # seconds
    write_large_wav(tmp_path / "long.wav", size_in_header, last, before, behind=behind)
    with open_source(tmp_path / "long.wav") as source:
        source.skip(before * 48000 - 100)
        found = source.read(10**6)
    assert np.array_equal(found, np.concatenate([np.zeros((100, 2)), last / 32768]))
    assert f": {before + 1:.2f} s of audio" in caplog.text
    part = list(stream_audio(tmp_path / "long.wav", 48000, 1, start=before))
    assert np.array_equal(np.concatenate(part), last[:, 1] / np.float32(32768))


def test_wav_above_4_gib_of_other_chunks_is_as_its_header_says(tmp_path):
    last = (32768 * noise(1, 48000, 2)).astype("<i2")
    write_large_wav(tmp_path / "a.wav", lambda size: last.nbytes, last, 0, behind=b"junk" + struct.pack("<I", 0xFFFFFFF0))
    os.truncate(tmp_path / "a.wav", GIB_4 + (1 << 28))
    with open_source(tmp_path / "a.wav") as source:
        assert np.array_equal(source.read(10**6), last / 32768)


@pytest.mark.parametrize("mixed_in, warned", [(0.0, True), (0.05, True), (1.0, False)])
def test_channels_that_cancel_are_said_to(tmp_path, caplog, mixed_in, warned):
    """In antiphase, with a little noise in each of them or none; not where they differ."""
    voice, others = noise(1, 8000), noise(1, 8000, 2, seed=1)
    samples = np.concatenate([voice, -voice], axis=1) + mixed_in * others
    soundfile.write(tmp_path / "a.wav", samples if mixed_in < 1 else others, 8000, subtype="FLOAT")
    assert len(read_audio(tmp_path / "a.wav", 16000)[0]) == 16000
    assert ("its channels cancel each other when mixed" in caplog.text) == warned
    caplog.clear()
    read_audio(tmp_path / "a.wav", channel=0)
    soundfile.write(tmp_path / "b.wav", np.zeros((8000, 2)), 8000)
    read_audio(tmp_path / "b.wav")
    assert not caplog.records


def test_truncated_flac(tmp_path, caplog):
    soundfile.write(tmp_path / "whole.flac", noise(20, 8000), 8000)
    data = (tmp_path / "whole.flac").read_bytes()
    (tmp_path / "cut.flac").write_bytes(data[: len(data) // 2])
    found, _ = read_audio(tmp_path / "cut.flac")
    assert 6 * 8000 < len(found) < 11 * 8000 and "header says 20.00 s" in caplog.text
    assert np.array_equal(found, read_audio(tmp_path / "whole.flac")[0][: len(found)])


def test_samples_that_are_not_numbers(tmp_path, caplog):
    samples = noise(1, 8000)[:, 0]
    samples[[100, 4000]] = np.nan, np.inf
    soundfile.write(tmp_path / "a.wav", samples, 8000, subtype="FLOAT")
    found = np.concatenate(list(stream_audio(tmp_path / "a.wav", 8000, block_seconds=0.25)))
    assert np.array_equal(found, np.where(np.isfinite(samples), samples, 0))
    assert [record.levelno for record in caplog.records] == [logging.WARNING] and "1e+18: 2 (" in caplog.text


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("rate", [8000, 44100])
def test_samples_beyond_all_measure(tmp_path, caplog, channels, rate):
    samples = noise(1, rate, channels)
    samples[100:110] = np.finfo(np.float32).max * np.array([[1], [-1]] * 5)
    samples[200] = 1e17
    soundfile.write(tmp_path / "a.wav", samples, rate, subtype="FLOAT")
    found, _ = read_audio(tmp_path / "a.wav", 8000)
    assert np.isfinite(found).all() and np.isfinite(read_channels(tmp_path / "a.wav")[0]).all()
    assert 0.1e17 < found.max() < 1.5e17 and "samples not finite or beyond 1e+18: 10" in caplog.text


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("empty.wav", b"", "is empty (0 bytes)"),
        ("text.wav", b"Dear diary, this is not audio.\n", "it looks like a text file"),
        ("header.wav", b"RIFF\x24\0\0\0WAVEfmt ", "cannot be read as audio"),
        ("samples.raw", b"\0\1" * 100, "has no header"),
    ],
)
def test_refused_files(tmp_path, monkeypatch, name, content, message):
    monkeypatch.setenv("PATH", "")  # no ffmpeg
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_audio(tmp_path / name)
    assert message in str(caught.value) and name in str(caught.value) and "\n" not in str(caught.value)


def test_refused_paths_and_channels(tmp_path):
    soundfile.write(tmp_path / "a.wav", noise(0.1, 8000, 2), 8000)
    soundfile.write(tmp_path / "none.wav", np.zeros((0, 1)), 8000)
    for path, message in (
        (tmp_path / "b.wav", "No such file"),
        (tmp_path, "is a folder"),
        (tmp_path / "none.wav", "no samples"),
    ):
        with pytest.raises(UserError, match=message):
            read_audio(path)
    for channel in (2, -1):
        with pytest.raises(UserError, match=f"no channel {channel}; the file has 2"):
            read_audio(tmp_path / "a.wav", channel=channel)


def test_ffmpeg_is_used_for_what_libsndfile_refuses(tmp_path, monkeypatch):
    """A stand-in for ffmpeg: called with the file, it answers with an AU stream, here of two channels."""
    samples = noise(0.5, 11025, 2)
    header = b".snd" + struct.pack(">5I", 28, 0xFFFFFFFF, 6, 11025, 2) + b"note"
    (tmp_path / "answer.au").write_bytes(header + samples.astype(">f4").tobytes())
    program = tmp_path / "bin" / "ffmpeg"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\ncase \"$*\" in\n*film.mp4*) cat '{tmp_path}/answer.au';;\n*) echo no such codec >&2; exit 1;;\nesac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (tmp_path / "film.mp4").write_bytes(b"\0\0\0\x20ftypisom" * 10)
    (tmp_path / "other.mp4").write_bytes(b"\0\0\0\x20ftypisom" * 10)
    found, rate = read_audio(tmp_path / "film.mp4")
    assert rate == 11025 and np.abs(found - samples.mean(1)).max() < 1e-6
    with pytest.raises(UserError, match="no such codec"):
        read_audio(tmp_path / "other.mp4")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_samples_without_a_header(tmp_path, encoding):
    """Against what libsndfile makes of the same bytes behind a header."""
    subtype, size = ENCODINGS[encoding]
    samples = noise(0.5, 8000, 2)
    kind = {"format": "RAW", "subtype": subtype, "endian": "LITTLE"}
    soundfile.write(tmp_path / "a.raw", samples, 8000, **kind)
    assert (tmp_path / "a.raw").stat().st_size == 4000 * 2 * size
    found = np.concatenate(list(stream_audio(tmp_path / "a.raw", 8000, 1, raw=RawFormat(8000, encoding, 2))))
    assert np.abs(found - samples[:, 1]).max() < (0.02 if size == 1 else 1e-4)
    with pytest.raises(UserError, match="a.raw: has no header"):
        read_audio(tmp_path / "a.raw")


def test_standard_input_and_named_pipe(tmp_path):
    soundfile.write(tmp_path / "a.wav", noise(0.2, 8000), 8000)
    code = "import sys; from pyspeech.audio.io import read_audio; print(len(read_audio(sys.argv[1])[0]))"
    for path in ("-", "/dev/stdin"):
        done = subprocess.run(
            [sys.executable, "-c", code, path], capture_output=True, cwd=REPOSITORY, input=(tmp_path / "a.wav").read_bytes()
        )
        assert done.stdout == b"1600\n", done.stderr


def test_name_that_is_not_utf8(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9 1.wav")
    soundfile.write(path, noise(0.1, 8000), 8000)
    (recording,) = find_recordings([tmp_path])
    assert len(read_audio(recording.path)[0]) == 800


def test_find_audio(tmp_path):
    for name in ("b/two.WAV", "b/a/one.flac", "b/notes.txt", "b/.hidden.wav", "b/.git/x.wav", "día 1/tres.ogg", "odd.name"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    os.symlink(tmp_path, tmp_path / "b" / "up")
    below = ["b/a/one.flac", "b/two.WAV"]
    assert find_audio([tmp_path / "b" / "a"]) == [tmp_path / below[0]]
    found = find_audio([tmp_path, tmp_path / "odd.name", tmp_path / "b" / "two.WAV"])
    assert found == [tmp_path / name for name in (*below, "día 1/tres.ogg", "odd.name")]
    with pytest.raises(UserError, match="no audio files"):
        find_audio([_folder(tmp_path / "bare")])
    with pytest.raises(UserError, match="^'': expected the name of a recording or a folder"):
        find_audio([""])
    with pytest.raises(UserError, match="absent: no such file or folder"):
        find_audio([tmp_path / "absent"])


def test_endings_that_are_found(tmp_path):
    names = ["book.m4b", "film.mkv", "old.VOC", "radio.mp2", "talk.mka"]
    for name in (*names, "notes.md"):
        (tmp_path / name).touch()
    assert [path.name for path in find_audio([tmp_path])] == names


def _folder(path):
    path.mkdir()
    return path


def test_names_of_recordings(tmp_path):
    for name in ("a/1.wav", "b/1.wav", "b/2.wav", "c/x/3.wav", "d/x/3.wav", "e/4.wav", "e/4.flac"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    found = find_recordings([tmp_path])
    assert [recording.name for recording in found] == ["a_1", "b_1", "2", "c_x_3", "d_x_3", "4_flac", "4_wav"]
    assert find_recordings([tmp_path / "a" / "1.wav"]) == [Recording("1", str(tmp_path / "a" / "1.wav"))]
    assert find_recordings(["-"]) == [Recording("stdin", "-")]


def test_kaldi_table(tmp_path):
    import kaldiio

    (tmp_path / "my audio").mkdir()
    samples = noise(0.1, 8000)[:, 0]
    soundfile.write(tmp_path / "my audio" / "a.wav", samples, 8000, subtype="PCM_16")
    with kaldiio.WriteHelper(f"ark,scp:{tmp_path}/b.ark,{tmp_path}/b.scp") as archive:
        archive["b"] = (8000, np.round(samples * 32768).astype(np.int16))
    ark_line = (tmp_path / "b.scp").read_text()
    (tmp_path / "wav.scp").write_text(f"rec-1 my audio/a.wav\nrec-2 cat '{tmp_path}/my audio/a.wav' |\n{ark_line}bad false |\n")
    found = find_recordings([tmp_path / "wav.scp"])
    assert [recording.name for recording in found] == ["rec-1", "rec-2", "b", "bad"]
    for recording in found[:3]:
        read, rate = read_audio(recording.path)
        assert rate == 8000 and np.abs(read - samples).max() < 1e-4, recording
    (tmp_path / "bom.scp").write_bytes(b"\xef\xbb\xbfrec-1 my audio/a.wav\r\nrec-2 b.wav\r\n")
    assert [recording.name for recording in find_recordings([tmp_path / "bom.scp"])] == ["rec-1", "rec-2"]
    with pytest.raises(UserError, match="^false [|]: the command failed with exit status 1"):
        read_audio(found[3].path)
    (tmp_path / "bad.scp").write_text("rec-1\n")
    with pytest.raises(UserError, match="bad.scp, line 1: 'rec-1' has no audio"):
        find_recordings([tmp_path / "bad.scp"])
    (tmp_path / "twice.scp").write_text("x my audio/a.wav\nx b.wav\n")
    with pytest.raises(UserError, match="two recordings are named 'x'"):
        find_recordings([tmp_path / "twice.scp"])


def test_lhotse_manifests(tmp_path):
    from lhotse import CutSet, Recording as LhotseRecording, RecordingSet

    soundfile.write(tmp_path / "a.wav", noise(1, 8000, 2), 8000)
    recordings = RecordingSet.from_recordings([LhotseRecording.from_file(tmp_path / "a.wav")])
    recordings.to_file(tmp_path / "recordings.jsonl.gz")
    assert find_recordings([tmp_path / "recordings.jsonl.gz"]) == [Recording("a", str(tmp_path / "a.wav"))]
    cuts = CutSet.from_manifests(recordings=recordings)
    windows = cuts.cut_into_windows(0.4).to_eager()
    windows.to_file(tmp_path / "cuts.jsonl")
    found = find_recordings([tmp_path / "cuts.jsonl"])
    assert [(r.start, r.duration) for r in found] == [(0.0, 0.4), (0.4, 0.4), (0.8, pytest.approx(0.2))]
    part = np.concatenate(list(stream_audio(found[1].path, 8000, start=found[1].start, duration=found[1].duration)))
    assert np.abs(part - windows[1].load_audio().mean(0)).max() < 1e-6
    for name, text, message in (
        ("mixed", '{"id": "x", "type": "MixedCut", "tracks": []}', "be saved as audio first"),
        ("text", "hello", "not an entry"),
        ("empty", "\n", "lists no recordings"),
    ):
        (tmp_path / f"{name}.jsonl").write_text(text)
        with pytest.raises(UserError, match=message):
            find_recordings([tmp_path / f"{name}.jsonl"])
    (tmp_path / "bom.jsonl").write_text((tmp_path / "cuts.jsonl").read_text(), encoding="utf-8-sig")
    assert find_recordings([tmp_path / "bom.jsonl"]) == found
    data = (tmp_path / "recordings.jsonl.gz").read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError, match="damaged"):
        find_recordings([tmp_path / "cut.jsonl.gz"])


def test_a_file_of_a_lhotse_manifest_is_no_command(tmp_path, monkeypatch):
    """Whatever its name; where it is there, it is read."""
    from lhotse import Recording as LhotseRecording

    monkeypatch.chdir(tmp_path)
    samples = noise(1, 8000, 1)[:, 0]
    soundfile.write("a.wav", samples, 8000)
    plain = LhotseRecording.from_file("a.wav")
    plain.sources[0].source = "touch run |"
    for item in (plain, plain.to_cut()):
        (tmp_path / "x.jsonl").write_text(json.dumps(item.to_dict()) + "\n")
        (recording,) = find_recordings([tmp_path / "x.jsonl"])
        with pytest.raises(UserError, match="touch run"):
            list(stream_audio(recording.path, 8000))
    with pytest.raises(UserError, match="cannot read its audio .touch run"):
        read_samples(plain.to_cut(), 8000)
    (tmp_path / "a.wav").rename(tmp_path / "touch run |")
    for found in (np.concatenate(list(stream_audio(recording.path, 8000))), read_samples(plain.to_cut(), 8000)):
        np.testing.assert_allclose(found, samples, atol=1e-4)
    assert not (tmp_path / "run").exists()


def test_lhotse_manifests_of_commands_and_transforms(tmp_path):
    """Read as lhotse reads them; a command that fails is named."""
    from lhotse import Recording as LhotseRecording

    path = tmp_path / "a.wav"
    soundfile.write(path, noise(2, 8000, 2), 8000)
    plain = LhotseRecording.from_file(path)
    command = LhotseRecording.from_dict(plain.to_dict())
    command.sources[0].type, command.sources[0].source = "command", f"cat {path}"
    fails = LhotseRecording.from_dict(command.to_dict())
    fails.sources[0].source = "cat /none"
    items = [command, plain.perturb_speed(1.1), plain.resample(16000), plain.perturb_volume(0.5), fails]
    cuts = [item.to_cut().truncate(offset=0.5, duration=1.0, preserve_id=False) for item in items[:4]]
    lines = [json.dumps(item.to_dict()) for item in [*items, *cuts]]
    (tmp_path / "x.jsonl").write_text(
        "".join(line.replace('"id": "a', f'"id": "{number}', 1) + "\n" for number, line in enumerate(lines))
    )
    found = find_recordings([tmp_path / "x.jsonl"])
    assert len(found) == 9
    for recording, item in zip(found[:4] + found[5:], items[:4] + cuts, strict=True):
        rate, expected = item.sampling_rate, item.load_audio().mean(axis=0)
        blocks = stream_audio(recording.path, rate, recording.channel, 0.3, recording.start, recording.duration)
        np.testing.assert_allclose(np.concatenate(list(blocks)), expected, atol=2e-4)
        cut = item if hasattr(item, "supervisions") else item.to_cut()
        if rate == 8000:  # else it is resampled by other means
            np.testing.assert_allclose(read_samples(cut, rate), expected, atol=2e-4)
    with pytest.raises(UserError, match="^cat /none [|]: the command failed with exit status 1 .*No such file"):
        read_audio(found[4].path)
    bad = plain.perturb_speed(1.1).to_dict()
    bad["sources"][0]["source"] = "/none.wav"
    (tmp_path / "bad.jsonl").write_text(json.dumps(bad) + "\n")
    with pytest.raises(UserError, match="bad.jsonl, line 1, a_sp1.1: lhotse cannot read it"):
        read_audio(find_recordings([tmp_path / "bad.jsonl"])[0].path)


@pytest.mark.parametrize(
    "changed, sources, message",
    [
        ({"duration": None}, None, "duration is null; expected a number of seconds, 0 or more"),
        ({"duration": -1}, None, "duration is -1;"),
        ({"duration": "1"}, None, 'duration is "1";'),
        ({"start": "x"}, None, 'start is "x";'),
        ({"start": float("nan")}, None, "start is NaN;"),
        ({}, "a.wav", "recording 'a' does not say where its audio is"),
        ({}, ["a.wav"], "does not say where its audio is"),
        ({}, [{"type": "file", "channels": [0]}], "does not say where its audio is"),
        ({}, [{"type": "file", "channels": [0], "source": 1}], "does not say where its audio is"),
    ],
)
def test_damaged_entries_of_lhotse_manifests(tmp_path, changed, sources, message):
    good = [{"type": "file", "channels": [0], "source": "a.wav"}]
    recording = {"id": "a", "sources": sources or good, "sampling_rate": 8000, "num_samples": 8000, "duration": 1.0}
    cut = {"id": "cut", "start": 0, "duration": 1, "channel": 0, "recording": recording, "type": "MonoCut", **changed}
    if cut["duration"] is None:
        del cut["duration"]
    (tmp_path / "cuts.jsonl").write_text(json.dumps(cut))
    with pytest.raises(UserError) as caught:
        find_recordings([tmp_path / "cuts.jsonl"])
    assert str(caught.value).startswith(f"{tmp_path / 'cuts.jsonl'}, line 1: ") and message in str(caught.value)
