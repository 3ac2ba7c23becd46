"""Measures of resynthesis: the distortion against a plain slow version, voices against scipy, made-up speakers told apart."""

import math

import numpy as np
import pytest
from scipy import stats
from tiny_zerospeech import RATE, TEST_SPEAKERS, VOICES, phone_sound, sentence

from pyspeech.errors import UserError
from pyspeech.features.fbank import fbank
from pyspeech.units import voices
from pyspeech.units.voices import fit_voice, log_likelihoods, mel_cepstral_distortion, spectrum_frames, voice_frames
from steps.units.voices import margin


def phones(names, voice, seed=0, seconds=0.15):
    rng = np.random.default_rng(seed)
    return np.concatenate([phone_sound(name, seconds, voice, rng) for name in names])


def plain_distortion(first, second):
    """Recursion with memory over the definition; the mean over the best path's cells."""

    def cepstra(samples):
        samples = (samples - samples.mean()) * 10 ** (-30 / 20) / samples.std()
        rows = []
        for energies in fbank(samples.astype(np.float32), voices.SPECTRUM.log_mel).double().numpy():
            rows.append(
                [
                    sum(energy / 80 * math.cos(math.pi / 40 * (place + 0.5) * d) for place, energy in enumerate(energies))
                    for d in range(1, 13)
                ]
            )
        return rows

    a, b = cepstra(first), cepstra(second)
    local = [
        [10 / math.log(10) * math.sqrt(2 * sum((x - y) ** 2 for x, y in zip(row, column, strict=True))) for column in b]
        for row in a
    ]
    best = {}
    for i in range(len(a)):
        for j in range(len(b)):
            before = [best[cell] for cell in ((i - 1, j - 1), (i, j - 1), (i - 1, j)) if cell in best]
            cost, steps = min(before, key=lambda found: found[0]) if before else (0.0, 0)
            best[i, j] = (cost + local[i][j], steps + 1)
    cost, steps = best[len(a) - 1, len(b) - 1]
    return cost / steps


def test_distortion_is_the_plain_one():
    first, second = phones("ai", VOICES["V001"]), phones("au", VOICES["V002"], seconds=0.1)
    assert mel_cepstral_distortion(first, second) == pytest.approx(plain_distortion(first, second), rel=1e-4)


def test_distortion_is_of_sounds_not_of_level_time_or_pauses():
    reference = phones("aiueo", VOICES["V001"])
    assert mel_cepstral_distortion(reference, reference) < 1e-6
    assert mel_cepstral_distortion(reference, 0.05 * reference + 0.2) < 0.05
    silence = np.zeros(RATE // 2)
    assert mel_cepstral_distortion(reference, np.concatenate([silence, reference, silence])) < 0.6
    slower = phones("aiueo", VOICES["V001"], seconds=0.25)
    other = phones("oueia", VOICES["V001"])
    assert mel_cepstral_distortion(reference, slower) < 0.5 * mel_cepstral_distortion(reference, other)


def test_cepstra_mean_the_square_of_the_log_spectrum():
    """2 sum c^2 over all cepstra is the mean square of log amplitude about its mean (Parseval)."""
    samples = phones("a", VOICES["V001"])
    level = (samples - samples.mean()) * voices.LEVEL / samples.std()
    log_amplitude = fbank(level.astype(np.float32), voices.SPECTRUM.log_mel).double().numpy() / 2
    loud = np.exp(2 * log_amplitude).sum(axis=1)
    log_amplitude = log_amplitude[loud > loud.max() * 1e-4]
    places = np.arange(40) + 0.5
    rest = log_amplitude @ np.cos(np.pi / 40 * np.outer(places, np.arange(13, 40))) / 40
    both = 2 * (np.square(spectrum_frames(samples)).sum(axis=1) + np.square(rest).sum(axis=1))
    np.testing.assert_allclose(both, log_amplitude.var(axis=1), rtol=1e-6)


@pytest.mark.parametrize("silent", [np.zeros(0), np.zeros(1), np.zeros(RATE), np.full(RATE, 0.3)])
def test_distortion_of_silence_is_an_error(silent):
    with pytest.raises(UserError, match="the second of two recordings is silent"):
        mel_cepstral_distortion(phones("a", VOICES["V001"]), silent)


def test_likelihood_is_that_of_scipy():
    rng = np.random.default_rng(3)
    voice = fit_voice(sentence(VOICES["V001"], rng) for _ in range(3))
    other = sentence(VOICES["V002"], rng)
    frames = voice_frames(other)
    expected = stats.multivariate_normal(voice.mean, voice.covariance).logpdf(frames).mean()
    assert log_likelihoods(other, {"V001": voice})["V001"] == pytest.approx(expected, rel=1e-9)


def test_voices_are_told_apart():
    rng = np.random.default_rng(4)
    speakers = {**VOICES, **TEST_SPEAKERS}
    fitted = {name: fit_voice(sentence(sound, rng) for _ in range(4)) for name, sound in speakers.items()}
    for name, (pitch, _) in speakers.items():
        assert fitted[name].pitch == pytest.approx(pitch, rel=0.05)
    for name, sound in VOICES.items():
        said = sentence(sound, rng)
        scores = log_likelihoods(said, fitted)
        assert max(scores, key=scores.get) == name
        other = next(voice for voice in VOICES if voice != name)
        expected = scores[name] - scores[other]
        assert margin(said, name, other, [name, other], fitted) == pytest.approx(expected) and expected > 0
        assert margin(0.01 * said + 0.1, name, other, [name, other], fitted) == pytest.approx(expected, rel=0.01)


def test_without_voiced_frames():
    voice = fit_voice([phones("aiueo", VOICES["V001"])])
    for samples in (np.zeros(0), np.zeros(1), np.zeros(RATE), 0.1 * np.random.default_rng(0).standard_normal(3200)):
        assert voice_frames(samples).shape == (0, 13)
        assert log_likelihoods(samples, {"a": voice}) is None
        assert margin(samples, "a", "b", ["a", "b"], {"a": voice, "b": voice}) is None
    with pytest.raises(UserError, match="^0 voiced frames in 2 recordings; expected at least 50"):
        fit_voice([np.zeros(RATE), np.zeros(RATE)])
    with pytest.raises(UserError, match="^0 voiced frames in 0 recordings"):
        fit_voice([])


def stub_resemblyzer(monkeypatch, trim=lambda samples: samples):
    """A package whose embedding is the samples as it is given them."""
    import sys
    import types

    class VoiceEncoder:
        def __init__(self, device, verbose):
            assert device == "cpu" and not verbose

        def embed_utterance(self, samples):
            return samples

    package = types.SimpleNamespace(VoiceEncoder=VoiceEncoder, trim_long_silences=trim)
    monkeypatch.setitem(sys.modules, "resemblyzer", package)


def test_embedder_where_it_is_installed(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "resemblyzer", None)
    assert voices.load_embedder() is None
    stub_resemblyzer(monkeypatch)
    given = voices.load_embedder()(phones("aiu", VOICES["V001"]))
    assert given.dtype == np.float32 and np.sqrt(np.square(given).mean()) == pytest.approx(10 ** (-30 / 20), rel=1e-3)
    for silent in (np.zeros(0), np.zeros(1), np.ones(1), np.zeros(RATE), np.full(RATE, 0.5)):
        assert voices.load_embedder()(silent) is None
    stub_resemblyzer(monkeypatch, trim=lambda samples: samples[:0])  # nothing that it takes for speech
    assert voices.load_embedder()(phones("aiu", VOICES["V001"])) is None


def test_a_package_that_does_not_load_is_an_error(monkeypatch, tmp_path):
    import sys

    (tmp_path / "resemblyzer.py").write_text("import scipy.of_another_time\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "resemblyzer", raising=False)
    with pytest.raises(ImportError, match="of_another_time"):
        voices.load_embedder()


def test_centroid():
    assert voices.centroid([]) is None and voices.centroid([None, None]) is None
    found = voices.centroid(np.float32([[1, 0], [0, 1]]))
    np.testing.assert_allclose(found, [0.5**0.5] * 2, rtol=1e-6)
    np.testing.assert_allclose(voices.centroid([None, np.array([0.6, 0.8])]), [0.6, 0.8])
