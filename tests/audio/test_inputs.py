"""Audio as the Python API takes it: arrays and tensors of any type, with channels; what is no audio."""

import io

import numpy as np
import pytest
import soundfile
import torch
from tool_harness import one_line_error

from pyspeech.audio.inputs import Feed, is_many, read_input, stream_inputs


def joined(audio, sampling_rate=16000, rate=16000):
    return [(name, np.concatenate(list(blocks))) for name, blocks in stream_inputs(audio, sampling_rate, rate)]


def test_types_and_channels(rng):
    samples = rng.integers(-32768, 32768, 5000).astype(np.int16)
    expected = (samples / 32768).astype(np.float32)
    both = np.stack([expected, -0.5 * expected])
    for audio in (samples, samples.astype(np.int32) << 16, expected, expected.astype(np.float64), torch.from_numpy(samples)):
        ((name, found),) = joined(audio)
        assert name == "recording" and found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)
    (first, found), (second, again) = joined([both, torch.from_numpy(both)[:, ::2]])
    assert (first, second) == ("recording 1", "recording 2")
    np.testing.assert_allclose(found, expected / 4, atol=1e-7)
    np.testing.assert_array_equal(found[::2], again)
    assert len(joined(expected, 8000)[0][1]) == 10000


def test_pairs_and_files_in_memory(tmp_path, rng):
    """(samples, rate) is one recording, whatever rate is given beside; bytes and streams are what the file is."""
    samples = (0.1 * rng.standard_normal(5000)).astype(np.float32)
    stream = io.BytesIO()
    soundfile.write(stream, samples, 16000, format="WAV", subtype="FLOAT")
    data = stream.getvalue()
    (tmp_path / "a.wav").write_bytes(data)
    with open(tmp_path / "a.wav", "rb") as opened:
        for audio, name in (
            ((samples, 16000), "recording"),
            ((torch.from_numpy(samples), np.int64(16000)), "recording"),
            (data, "recording"),
            (memoryview(data), "recording"),
            (io.BytesIO(data), "recording"),
            (opened, "a"),
            (tmp_path / "a.wav", "a"),
        ):
            ((found_name, found),) = joined(audio, 8000)
            assert found_name == name
            np.testing.assert_array_equal(found, samples)
            assert not is_many(audio)
    several = joined([(samples, 8000), data, samples], 16000)
    assert [name for name, _ in several] == ["recording 1", "recording 2", "recording 3"]
    assert [len(found) for _, found in several] == [10000, 5000, 5000] and is_many((samples, samples))


def test_the_channels_of_an_input(tmp_path, rng):
    pcm = rng.integers(-32768, 32768, (500, 2)).astype(np.int16)
    soundfile.write(tmp_path / "a.wav", pcm, 8000)
    for audio in (tmp_path / "a.wav", (tmp_path / "a.wav").read_bytes(), (pcm.T, 8000)):
        samples, rate = read_input(audio, None)
        np.testing.assert_array_equal(samples, pcm.T / np.float32(32768))
        assert rate == 8000


@pytest.mark.parametrize("rate", [8000, 16000, 22050])
def test_a_feed_gives_what_the_whole_gives(rng, caplog, rate):
    """However the samples are cut; one that is not finite is read as 0, and said once."""
    samples = rng.integers(-32768, 32768, 5000).astype(np.int16)
    for whole in (samples, samples / 32768):
        feed = Feed(rate, 16000)
        parts = [feed.add(whole[start : start + 333]) for start in range(0, len(whole), 333)]
        np.testing.assert_allclose(np.concatenate([*parts, feed.finish()]), joined(whole, rate)[0][1], atol=1e-6)
    assert not caplog.records
    feed = Feed(16000, 16000)
    assert feed.add(np.array([0.5, np.nan, np.inf])).tolist() == [0.5, 0, 0]
    assert feed.add(torch.tensor([-np.inf])).tolist() == [0] and len(feed.add([])) == 0
    assert len(caplog.records) == 1 and "stream: samples that are not finite" in caplog.text


def test_a_feed_refuses_integers_of_64_bit():
    with one_line_error("stream: int64 of shape .*; expected floats"):
        Feed(16000, 16000).add(np.arange(160))


@pytest.mark.parametrize("shape", [(1, 160), (160, 2), ()])
def test_shapes_that_a_feed_refuses(shape):
    with one_line_error(r"stream: float64 of shape \(.*\); expected floats .*, \(N,\)"):
        Feed(16000, 16000).add(np.zeros(shape))


@pytest.mark.parametrize(
    "audio, message",
    [
        (1.5, "^recording: float; expected a path, a NumPy array, a torch tensor or a list"),
        ([[0.5, 0.5]], "^recording 1: list; expected"),
        (np.zeros((2, 3, 4)), r"float64 of shape \(2, 3, 4\); expected floats .*, \(N,\) or \(channels, N\)"),
        (np.array(["a.wav"]), "expected floats"),
        (np.zeros(5, dtype=np.int64), "recording: int64 of shape .*; expected floats from -1 to 1, int8, int16 or int32"),
        (np.zeros(5, dtype=np.uint8), "recording: uint8 of shape .*; expected floats from -1 to 1, int8, int16 or int32"),
        (torch.zeros(2, 0), "recording: holds no samples"),
        ((16000, np.zeros(5)), "recording: int; expected a path"),
        ((np.zeros(5), 0), "recording: sampling_rate=0; expected the Hz"),
        (b"", r"recording: is empty \(0 bytes\)"),
        (b"Dear diary", "recording: cannot be read as audio: .*text file"),
        (io.StringIO("x"), "recording: a stream of text; expected one of bytes"),
        (torch.eye(9).to_sparse(), "recording: a tensor whose layout is torch.sparse_coo; expected a dense one"),
        (np.zeros((500, 2)), "500 channels of 2 samples; expected .channels, N.: transpose it"),
    ],
)
def test_what_is_no_audio(monkeypatch, audio, message):
    monkeypatch.setenv("PATH", "")  # no ffmpeg
    with one_line_error(message):
        joined(audio)


def test_a_file_that_soundfile_has_open(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(100), 8000)
    with (
        soundfile.SoundFile(tmp_path / "a.wav") as file,
        one_line_error("recording: SoundFile, .*; expected .samples, sampling rate."),
    ):
        joined(file)


@pytest.mark.parametrize("rate", [np.int64(16000), np.array(16000), torch.tensor(16000), torch.tensor(16000.0)])
def test_rates_of_any_type_make_pairs(rate):
    assert not is_many((np.zeros(5), rate)) and not is_many((torch.zeros(5), rate))
    assert read_input((torch.zeros(5), rate), None)[1] == 16000


def test_what_is_not_finite_is_read_as_silence(caplog):
    samples, rate = read_input(np.array([0.5, np.nan, -np.inf, 1e30, 0.25]), 8000)
    assert samples.tolist() == [0.5, 0, 0, 0, 0.25] and rate == 8000
    assert [record.getMessage() for record in caplog.records] == ["recording: samples not finite or beyond 1e+18: 3; read as 0"]


def test_a_rate_that_no_file_has():
    with one_line_error("recording: sampling_rate=16000.5; expected whole Hz"):
        read_input(np.zeros(5), 16000.5)


@pytest.mark.parametrize("sampling_rate", [0, -8000, float("nan"), "16k", True, 16, None])
def test_what_is_no_sampling_rate(sampling_rate):
    with one_line_error("^recording: sampling_rate=.*; expected the Hz of samples in memory, such as 16000"):
        joined(np.zeros(100), sampling_rate)
