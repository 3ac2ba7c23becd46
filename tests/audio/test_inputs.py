"""Audio as the Python API takes it: arrays and tensors of any type, with channels; what is no audio."""

import numpy as np
import pytest
import torch
from tool_harness import one_line_error

from pyspeech.audio.inputs import stream_inputs


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


@pytest.mark.parametrize(
    "audio, message",
    [
        (1.5, "^recording: float; expected a path, a NumPy array, a torch tensor or a list"),
        ([[0.5, 0.5]], "^recording 1: list; expected"),
        (np.zeros((2, 3, 4)), r"float64 of shape \(2, 3, 4\); expected numbers \(N,\) or \(channels, N\)"),
        (np.array(["a.wav"]), "expected numbers"),
        (torch.zeros(2, 0), "recording: holds no samples"),
        (np.zeros((500, 2)), "500 channels of 2 samples; expected .channels, N.: transpose it"),
    ],
)
def test_what_is_no_audio(audio, message):
    with one_line_error(message):
        joined(audio)


@pytest.mark.parametrize("sampling_rate", [0, -8000, float("nan"), "16k"])
def test_what_is_no_sampling_rate(sampling_rate):
    with one_line_error("^recording: sampling_rate=.*; expected the Hz"):
        joined(np.zeros(100), sampling_rate)
