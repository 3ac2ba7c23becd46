"""Audio to codes: what the model gives directly, windows of long audio, blocks, times, snippets, nothing."""

import numpy as np
import pytest
import torch
from tiny_units import make_pair
from tiny_zerospeech import VOICES, sentence

from pyspeech.errors import UserError
from pyspeech.features.mfcc import compute_features
from pyspeech.units import encoding
from pyspeech.units.encoding import code_seconds, code_times, encode, encode_blocks


@pytest.fixture(scope="module")
def bundle():
    return make_pair()[0]


def speech(seconds, seed=0):
    rng = np.random.default_rng(seed)
    samples = np.concatenate([sentence(VOICES["V001"], rng) for _ in range(int(seconds) + 2)])
    return samples[: round(seconds * 16000)].astype(np.float32)


def directly(bundle, samples):
    """The codes of one utterance, as the model gives them."""
    features = compute_features(samples, bundle.features, bundle.stats)
    return bundle.model.encode(features[None], torch.tensor([len(features)]))[0][0].numpy()


def short_windows(monkeypatch, window=1.0, margin=0.2):
    monkeypatch.setattr(encoding, "WINDOW", window)
    monkeypatch.setattr(encoding, "MARGIN", margin)


@pytest.mark.parametrize("seconds", [0.095, 0.235, 3, 30])
def test_short_audio_is_encoded_as_a_whole(bundle, seconds):
    samples = speech(seconds)
    codes, vectors = encode(bundle, samples)
    np.testing.assert_array_equal(codes, directly(bundle, samples))
    np.testing.assert_array_equal(vectors, bundle.model.codebook.numpy()[codes])
    assert codes.dtype == np.int64 and vectors.dtype == np.float32
    assert seconds < 3 or len(set(codes)) > 4  # the tiny model tells sounds apart


@pytest.mark.parametrize("length, expected", [(1, 1), (160, 1), (1520, 2), (880, 1), (1040, 2), (15599, 24), (16000, 25)])
def test_at_least_one_code(bundle, length, expected):
    codes, vectors = encode(bundle, speech(2)[:length])
    assert codes.shape == (expected,) and vectors.shape == (expected, 8)


@pytest.mark.parametrize("kind", ["zeros", "float64", "tensor", "whole numbers"])
def test_kinds_of_samples(bundle, kind):
    samples = speech(0.5)
    given = {
        "zeros": np.zeros(8000),
        "float64": samples.astype(np.float64),
        "tensor": torch.from_numpy(samples),
        "whole numbers": np.zeros(8000, np.int64),
    }[kind]
    expected = samples if kind in ("float64", "tensor") else np.zeros(8000, np.float32)
    np.testing.assert_array_equal(encode(bundle, given)[0], directly(bundle, expected))


def test_windows_keep_what_each_has(bundle, monkeypatch):
    """Windows of 25 codes every 15, of which each keeps those that are 5 or more from its ends."""
    samples = speech(4.3)
    total = len(directly(bundle, samples))
    short_windows(monkeypatch)
    codes, _ = encode(bundle, samples)
    expected, start = [], 0
    while True:
        last = total - start <= 25
        window = samples[start * 640 :] if last else samples[start * 640 : start * 640 + 99 * 160 + 400]
        found = directly(bundle, window)
        expected += list(found[5 if start else 0 : None if last else 20])
        if last:
            break
        start += 15
    np.testing.assert_array_equal(codes, expected)
    assert len(codes) == total == 107


@pytest.mark.parametrize("length", [15999, 16000, 16239, 16240, 16241, 16400, 25600, 41839, 48000, 69999])
def test_as_many_codes_in_windows_as_in_the_whole(bundle, monkeypatch, length):
    samples = speech(5)[:length]
    whole = directly(bundle, samples)
    short_windows(monkeypatch)
    assert len(encode(bundle, samples)[0]) == len(whole) == bundle.model.config.num_codes(bundle.features.num_frames(length))


def test_windows_differ_little_from_the_whole_where_features_need_no_utterance(monkeypatch):
    """With corpus-free features and convolutions alone, a window sees all that matters: the codes are those of the whole."""
    bundle = make_pair(normalise="none")[0]
    model = bundle.model
    for layers in model.encoder.layers:
        del layers[:]  # no attention
    monkeypatch.setattr(model.config, "kind", "conv")  # no positions
    samples = speech(6)
    whole = directly(bundle, samples)
    short_windows(monkeypatch)
    np.testing.assert_array_equal(encode(bundle, samples)[0], whole)


@pytest.mark.parametrize("size", [1, 700, 16000, 100000])
def test_blocks_change_nothing(bundle, monkeypatch, size):
    samples = speech(3.3)[: 3000 if size == 1 else None]
    short_windows(monkeypatch)
    blocks = (samples[start : start + size] for start in range(0, len(samples), size))
    np.testing.assert_array_equal(encode_blocks(bundle, blocks), encode(bundle, samples)[0])


def test_only_a_window_and_a_block_are_kept(bundle, monkeypatch):
    short_windows(monkeypatch)
    longest = []
    monkeypatch.setattr(
        encoding, "compute_features", lambda samples, *given: longest.append(len(samples)) or compute_features(samples, *given)
    )
    encode_blocks(bundle, (speech(0.5, seed) for seed in range(40)))
    assert len(longest) > 30 and max(longest) <= 16240 + 160


def test_no_samples_are_an_error(bundle):
    for blocks in ([], [np.zeros(0, np.float32)] * 3):
        with pytest.raises(UserError, match="^a file: no samples at 16000 Hz; expected at least one$"):
            encode_blocks(bundle, blocks, "a file")


@pytest.mark.parametrize("length", [1, 1520, 16000, 54682])
def test_times_follow_each_other_to_the_end(bundle, length):
    codes, _ = encode(bundle, speech(4)[:length])
    starts, ends = code_times(bundle, len(codes), length)
    assert starts[0] == 0 and ends[-1] == length / 16000 and (ends > starts).all()
    np.testing.assert_array_equal(starts[1:], ends[:-1])
    np.testing.assert_allclose(starts, 0.04 * np.arange(len(codes)))
    assert code_seconds(bundle) == pytest.approx(0.04)


def test_other_rates():
    bundle = make_pair(sampling_rate=8000)[0]
    samples = speech(1)[::2]
    codes, _ = encode(bundle, samples)
    np.testing.assert_array_equal(codes, directly(bundle, samples))
    assert code_times(bundle, len(codes), len(samples))[1][-1] == len(samples) / 8000
