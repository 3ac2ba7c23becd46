"""Audio that comes in through a pipe: WAV of any codec and raw samples, however they arrive; what is a file, and what none."""

import io
import struct

import numpy as np
import pytest
import soundfile
from tiny_asr import babble
from tool_harness import one_line_error

from pyspeech.audio.io import read_audio
from pyspeech.audio.live import stream_live
from pyspeech.audio.raw import RawFormat
from pyspeech.audio.sources import open_stream

RATE = 16000


def wav_stream(samples, rate=RATE, size=0xFFFFFFFF, after=b"", tag=1):
    """A WAV file as programs write it into a pipe, 16 bits; samples (n,) or (n, channels)."""
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    data = (samples * 32767).round().astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", tag, channels, rate, rate * 2 * channels, 2 * channels, 16)
    start = b"RIFF" + struct.pack("<I", 0xFFFFFFFF) + b"WAVE" + b"LIST" + struct.pack("<I", 3) + b"abc\0"
    return start + b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size or len(data)) + data + after


class Dribble(io.RawIOBase):
    """A pipe that brings a few bytes at a time."""

    def __init__(self, data, sizes):
        self.data, self.sizes, self.place = data, sizes, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), self.sizes[self.place % len(self.sizes)])
        part, self.data, self.place = self.data[:count], self.data[count:], self.place + 1
        buffer[: len(part)] = part
        return len(part)


def received(data, rate=RATE, raw=None, sizes=(100000,), **options):
    return np.concatenate(list(stream_live(io.BufferedReader(Dribble(data, sizes)), rate, raw, **options)))


def as_file(samples, **kind):
    stream = io.BytesIO()
    soundfile.write(stream, samples, RATE, **kind)
    return stream.getvalue()


@pytest.mark.parametrize("sizes", [[5], [1, 2, 777], [100000]])
def test_live_audio_does_not_depend_on_how_it_arrives(sizes, rng):
    samples = rng.integers(-32768, 32768, 4001).astype("<i2")
    whole = samples.astype(np.float32) / 32768
    stereo, raw = np.stack([whole, 0.5 * whole], axis=1), RawFormat(RATE)
    assert np.array_equal(received(samples.tobytes() + b"x", raw=raw, sizes=sizes), whole)  # half a sample at the end
    for size, after in ((0xFFFFFFFF, b""), (0x7FFFFFFF, b""), (0, b"LIST\4\0\0\0junk")):  # 0: its true size
        found = received(wav_stream(stereo, size=size, after=after), sizes=sizes, channel=1)
        np.testing.assert_allclose(found, stereo[:, 1], atol=1e-4)
    np.testing.assert_allclose(received(wav_stream(stereo), sizes=sizes), stereo.mean(axis=1), atol=1e-4)
    at_8k = received(samples.tobytes(), 8000, raw, sizes)
    assert abs(len(at_8k) - 2000) <= 1
    np.testing.assert_allclose(at_8k, received(samples.tobytes(), 8000, raw, sizes, block_seconds=0.011), atol=1e-6)


@pytest.mark.parametrize("kind", ["WAV", "WAVEX"])
@pytest.mark.parametrize(
    "subtype, tolerance",
    [
        ("PCM_U8", 1 / 128),
        ("PCM_16", 1e-4),
        ("PCM_24", 1e-6),
        ("FLOAT", 1e-6),
        ("DOUBLE", 1e-6),
        ("ULAW", 0.02),
        ("ALAW", 0.02),
    ],
)
def test_wav_streams_are_as_their_files(tmp_path, caplog, kind, subtype, tolerance):
    samples = np.stack([babble(0.2)] * 3, axis=1)
    data = as_file(samples, format=kind, subtype=subtype)
    (tmp_path / "a.wav").write_bytes(data)
    found = received(data, channel=1)
    np.testing.assert_allclose(found, samples[:, 1], atol=tolerance)
    np.testing.assert_array_equal(found, read_audio(tmp_path / "a.wav", channel=1)[0])
    assert not caplog.records


@pytest.mark.parametrize(
    "kind, subtype",
    [("WAV", "IMA_ADPCM"), ("WAV", "MS_ADPCM"), ("WAV", "GSM610"), ("FLAC", None), ("OGG", None), ("MP3", None), ("AIFF", None)]
    + [("AU", None), ("CAF", None), ("W64", None), ("RF64", None), ("NIST", None), ("VOC", None)],
)
def test_other_files_are_read_to_their_end(tmp_path, caplog, kind, subtype):
    """With the samples that the file gives; MP3 as soundfile writes it has no ID3."""
    data = as_file(babble(0.3), format=kind, subtype=subtype)
    (tmp_path / "a.audio").write_bytes(data)
    np.testing.assert_array_equal(received(data, sizes=(7, 4096)), read_audio(tmp_path / "a.audio")[0])
    assert "standard input: is read to its end first" in caplog.text and len(caplog.records) == 1


@pytest.mark.parametrize(
    "start", [b"\0\0\0\x20ftypM4A ", b"\x1aE\xdf\xa3webm", b"#!AMR\n1234567", b"\x0bw\0\0\0\0", b"0&\xb2u\x8ef\xcf\x11"]
)
def test_what_libsndfile_cannot_read_is_not_taken_for_samples(monkeypatch, start):
    monkeypatch.setenv("PATH", "")  # no ffmpeg
    with one_line_error("standard input: cannot be read as audio: .*ffmpeg"):
        received(start + bytes(range(256)) * 20)


def test_ffmpeg_reads_streams_that_start_as_audio_files(tmp_path, monkeypatch):
    """A stand-in for ffmpeg, which decodes anything: it is not asked about samples without a header."""
    (tmp_path / "answer.au").write_bytes(as_file(babble(0.2), format="AU", subtype="FLOAT"))
    (tmp_path / "ffmpeg").write_text(f"#!/bin/sh\nexec /bin/cat '{tmp_path}/answer.au'\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    np.testing.assert_allclose(received(b"\0\0\0\x20ftypM4A " + bytes(500)), babble(0.2), atol=1e-6)
    noise = np.random.default_rng(0).integers(-9, 9, 500).astype("<i2").tobytes()
    with one_line_error("need --raw"), open_stream(io.BytesIO(noise), "standard input"):
        pass


def test_a_stream_goes_on_where_its_size_was_modulo_4_gib(caplog):
    """The size is that of the first 1.5 frames."""
    samples = np.stack([babble(0.2), babble(0.2, seed=1)], axis=1)
    np.testing.assert_allclose(received(wav_stream(samples, size=6), channel=1, sizes=(5,)), samples[:, 1], atol=1e-4)
    assert "has more audio than its header says" in caplog.text


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "holds no samples"),
        (b"RIFF", "ends within the header"),
        (b"RIFF0000AVI LIST", "cannot be read as audio"),
        (wav_stream(np.zeros(5), tag=0x9999), "cannot be read as audio"),
        (wav_stream(np.zeros(5))[:50], "ends within"),
        (wav_stream(np.zeros(5))[:24] + b"fmt \2\0\0\0ab", "its format has 2 bytes"),
        (wav_stream(np.zeros(0)), "holds no samples"),
        (np.arange(500, dtype="<i2").tobytes(), "does not start as an audio file of a known kind; raw samples need --raw"),
        (b"\xff" * 500, "need --raw"),
        (b"Dear diary, ...", "need --raw"),
    ],
)
def test_live_audio_that_is_none(monkeypatch, data, message):
    monkeypatch.setenv("PATH", "")
    with one_line_error(f"standard input: .*{message}"):
        received(data)
