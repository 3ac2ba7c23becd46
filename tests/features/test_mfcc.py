"""MFCC with deltas: against torchaudio's Kaldi MFCC and plain loops; normalisation; snippets and silence."""

import numpy as np
import pytest
import torch
import torchaudio
from tiny_audio import noise_tensor

from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.fbank import GlobalStats, fbank
from pyspeech.features.mfcc import add_deltas, compute_features, mfcc, raw_features
from pyspeech.features.stft import MagnitudeStft

CONFIG = MfccConfig()


def test_sizes():
    assert (CONFIG.dim, CONFIG.frame_seconds, MfccConfig(kind="log_mel").dim) == (39, 0.01, 80)
    magnitudes = CONFIG.magnitudes
    assert (magnitudes.n_fft, magnitudes.window, magnitudes.shift) == (1024, 400, 160)


@pytest.mark.parametrize("filters, cepstra", [(23, 13), (40, 20)])
def test_equals_torchaudio(filters, cepstra):
    signal = noise_tensor(8013)
    expected = torchaudio.compliance.kaldi.mfcc(
        signal[None].double(), num_ceps=cepstra, num_mel_bins=filters, sample_frequency=16000.0, dither=0.0
    )
    ours = mfcc(signal, MfccConfig(mel_filters=filters, cepstra=cepstra))
    assert ours.dtype == torch.float32 and ours.shape == expected.shape
    assert (ours - expected).abs().max() < 1e-4


def plain_deltas(frames):
    """Kaldi's definition, number by number: windows of the first and second order over clamped frames."""
    slope = [-0.2, -0.1, 0.0, 0.1, 0.2]
    curvature = [0.0] * 9
    for i, first in enumerate(slope):
        for j, second in enumerate(slope):
            curvature[i + j] += first * second
    last, result = len(frames) - 1, []
    for t in range(len(frames)):
        row = list(frames[t])
        for window in (slope, curvature):
            reach = len(window) // 2
            row += [
                sum(weight * frames[min(max(0, t + j - reach), last)][d] for j, weight in enumerate(window))
                for d in range(len(frames[t]))
            ]
        result.append(row)
    return result


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_deltas_equal_the_plain_version(count):
    frames = noise_tensor(3 * count).reshape(count, 3)
    np.testing.assert_allclose(add_deltas(frames), plain_deltas(frames.tolist()), atol=1e-6)


def test_deltas_equal_torchaudio_inside():
    frames = noise_tensor(40 * 13).reshape(40, 13)
    first = torchaudio.functional.compute_deltas(frames.T[None], 5)
    second = torchaudio.functional.compute_deltas(first, 5)
    ours = add_deltas(frames)
    assert (ours[:, 13:26] - first[0].T).abs().max() < 1e-6
    assert (ours[2:-2, 26:] - second[0].T[2:-2]).abs().max() < 1e-6


def test_each_utterance_has_mean_0_and_variance_1():
    features = compute_features(noise_tensor(16000) * torch.linspace(0.1, 1, 16000), CONFIG)
    assert features.dtype == torch.float32 and features.shape == (98, 39)
    np.testing.assert_allclose(features.mean(dim=0), 0, atol=1e-4)
    np.testing.assert_allclose(features.var(dim=0, unbiased=False), 1, atol=1e-3)


def test_a_gain_is_normalised_away():
    signal = noise_tensor(16000)
    np.testing.assert_allclose(compute_features(signal, CONFIG), compute_features(0.3 * signal, CONFIG), atol=1e-4)


def test_log_mel_is_fbank():
    config = MfccConfig(kind="log_mel", normalise="none")
    assert torch.equal(compute_features(noise_tensor(4000), config), fbank(noise_tensor(4000), config.log_mel))


def test_corpus_statistics_and_their_share_in_an_utterance():
    loudness = torch.cat([torch.linspace(0.01, 1, 4000), torch.linspace(1, 0.01, 4000)])  # no value with hardly a variance
    corpus = [raw_features(noise_tensor(8000 * n, seed=n) * loudness.repeat(n), CONFIG) for n in (1, 2)]
    stats = GlobalStats.compute(corpus)
    snippet = noise_tensor(1520, seed=9, scale=0.02)  # 0.095 s
    raw = raw_features(snippet, CONFIG)
    of_corpus = compute_features(snippet, MfccConfig(normalise="corpus"), stats)
    assert torch.equal(of_corpus, stats.apply(raw))
    # the plain way: an utterance with the corpus itself appended, when it has just so many frames
    prior = sum(map(len, corpus))
    joined = torch.cat([raw, *corpus]).double()
    expected = (raw - joined.mean(dim=0)) / joined.std(dim=0, unbiased=False)
    mixed = compute_features(snippet, MfccConfig(prior_frames=prior), stats)
    np.testing.assert_allclose(mixed, expected, atol=2e-3)
    with pytest.raises(ValueError, match="needs a corpus's statistics"):
        compute_features(snippet, MfccConfig(prior_frames=10))


@pytest.mark.parametrize("kind", ["mfcc", "log_mel"])
@pytest.mark.parametrize("count, frames", [(0, 0), (1, 1), (399, 1), (400, 1), (560, 2), (1520, 8)])
def test_snippets_and_silence(kind, count, frames):
    config = MfccConfig(kind=kind)
    for signal in (noise_tensor(count), torch.zeros(count), noise_tensor(count).numpy()):
        features = compute_features(signal, config)
        assert features.shape == (frames, config.dim) and torch.isfinite(features).all()
    assert config.num_frames(count) == frames
    # Matrix products may round equal rows differently, by their place.
    assert torch.allclose(compute_features(torch.zeros(count), config), torch.zeros(frames, config.dim), atol=1e-9)
    magnitudes = MagnitudeStft(config.magnitudes)(noise_tensor(count)[None], frames)
    assert magnitudes.shape == (1, frames, 513)


def test_options_that_make_no_sense():
    for options in ({"kind": "plp"}, {"normalise": "speaker"}, {"cepstra": 24}, {"prior_frames": -1}, {"shift_ms": 30}):
        with pytest.raises(UserError, match="^features option [a-z_]*=[-a-z0-9]+: expected"):
            MfccConfig(**options).check()
