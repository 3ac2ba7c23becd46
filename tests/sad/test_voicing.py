"""Voicing: against plain definitions, at its edges, and what it is for: noise that switches on and off is no speech."""

from dataclasses import replace

import numpy as np
import pytest
import soundfile
from tiny_corpora import RATE, radio_stream, voiced

from pyspeech.sad.config import StatisticalConfig
from pyspeech.sad.detector import load_detector
from pyspeech.sad.segments import segments_to_frames
from pyspeech.sad.stat_energies import frame_energies
from pyspeech.sad.statistical import detect, detect_stream, frame_voicing_llr
from pyspeech.sad.voicing import voicing_tracks

CONFIG = StatisticalConfig()
PLAIN = replace(CONFIG, voicing=False)


def llr(samples, config=CONFIG):
    return frame_voicing_llr(frame_energies([samples.astype(np.float32)], config), config)


def band_noise(rng, seconds, low, high, rate=RATE):
    """Gaussian noise of unit power between two frequencies, Hz."""
    spectrum = np.fft.rfft(rng.standard_normal(int(seconds * rate)))
    frequency = np.fft.rfftfreq(int(seconds * rate), 1 / rate)
    samples = np.fft.irfft(spectrum * ((frequency >= low) & (frequency <= high)), int(seconds * rate))
    return samples / samples.std()


def switched(rng, samples, shortest, longest):
    """The samples let through, or 25 dB weaker, in turn: for `shortest` to `longest` seconds each."""
    gain, position, opened = np.empty(len(samples)), 0, False
    while position < len(samples):
        end = position + int(rng.uniform(shortest, longest) * RATE)
        gain[position:end] = 1.0 if opened else 10 ** (-25 / 20)
        position, opened = end, not opened
    return 0.1 * gain * samples


def tone(frequency, seconds=3.0, rate=RATE):
    return np.sin(2 * np.pi * frequency * np.arange(int(seconds * rate)) / rate)


def test_harmonicity_is_the_highest_normalised_autocorrelation(rng):
    """Against autocorrelations lag by lag of single windows, of samples that lie in the band."""
    samples = band_noise(rng, 1.0, 350, 1500) + 2 * tone(450, 1.0) + tone(600, 1.0)
    tracks = voicing_tracks(samples.astype(np.float32), 160, RATE)
    window = np.hanning(401)[:-1]
    own = [window @ np.roll(window, lag) for lag in range(401)]
    frequency = np.arange(201) * 20.0
    inside = np.flatnonzero((frequency >= 200) & (frequency <= 1800))
    taper = np.zeros(201)
    taper[inside] = np.hanning(len(inside) + 2)[1:-1] ** 0.25  # of amplitudes
    assert len(tracks.harmonicity) == (8000 - 400) // 160 + 1
    for index in (0, 7, 47):
        frame = samples[160 * index : 160 * index + 400] * window
        frame = np.fft.irfft(np.fft.rfft(frame) * taper, 400)
        ratios = [frame @ np.roll(frame, lag) / (frame @ frame) / (own[lag] / own[0]) for lag in range(20, 134)]
        assert tracks.harmonicity[index] == pytest.approx(max(ratios), abs=1e-3)
        assert tracks.tonality[index] == pytest.approx(np.mean(np.square(ratios)) / max(ratios) ** 2, abs=1e-3)
    assert np.allclose(tracks.shares.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("rate", [8000, 16000])
def test_noise_of_any_band_is_not_voiced(rng, rate):
    config = replace(CONFIG, sampling_rate=rate, hop=rate // 100, n_fft=256 * rate // 8000)
    for low, high in ((0, rate / 2), (300, 3000), (250, 1200), (900, 1900)):
        assert (llr(band_noise(rng, 10, low, high, rate), config) < -10).mean() > 0.95, (low, high)


@pytest.mark.parametrize("rate", [8000, 16000])
def test_voices_are_voiced_also_in_noise(rng, rate):
    config = replace(CONFIG, sampling_rate=rate, hop=rate // 100, n_fft=256 * rate // 8000)
    for _ in range(3):
        voice = voiced(3.0, rng, rate)
        noise = voice.std() * 10 ** (-6 / 20) * band_noise(rng, 3, 300, 3000, rate)
        assert llr(voice, config).min() > 0 and (llr(voice + noise, config) > 0).all()


@pytest.mark.parametrize("frequency", [450, 1000, 1700])
def test_tones_are_not_voices(rng, frequency):
    assert (llr(tone(frequency) + 0.01 * rng.standard_normal(3 * RATE)) < -10).all()


@pytest.mark.parametrize("shortest, longest", [(0.05, 0.5), (0.2, 3.0)])
@pytest.mark.parametrize("low, high", [(300, 3000), (0, 4000), (300, 1300)])
def test_switched_noise_is_no_speech(rng, shortest, longest, low, high):
    samples = switched(rng, band_noise(rng, 40, low, high), shortest, longest)
    assert detect(samples, RATE, PLAIN).decisions.mean() > 0.1
    assert detect(samples, RATE).decisions.mean() < 0.05


def test_speech_between_switched_noise(rng):
    """The voices are found as without that noise, and little else."""
    segments = [(start, start + 2.0) for start in (3.0, 12.0, 20.0, 33.0)]
    samples = switched(rng, band_noise(rng, 40, 300, 3000), 0.05, 1.5)
    for start, end in segments:
        samples[int(start * RATE) : int(end * RATE)] = 0.3 * voiced(2.0, rng)
    speech, near = (segments_to_frames([(a - reach, b + reach) for a, b in segments], 4000) for reach in (0.0, 0.6))
    plain, found = (detect(samples, RATE, config).decisions for config in (PLAIN, CONFIG))
    assert found[speech].mean() > 0.97 and not found[~near].any() and plain[~near].mean() > 0.3


def test_quiet_music_and_hum_gain_little(rng):
    """Voicing alone makes no speech: it counts at most `voicing_favour` for it."""
    chord = sum(tone(130.8 * harmonic, 10.0) / harmonic for harmonic in range(1, 12))
    assert llr(chord).max() <= CONFIG.voicing_favour
    assert not detect(chord, RATE).decisions.any()


@pytest.mark.parametrize("size", [1001, 33333])
def test_blocks_and_chunks_change_nothing(rng, monkeypatch, size):
    from pyspeech.sad import stat_energies

    samples = radio_stream(20.0, rng)[0].astype(np.float32)
    for config in (CONFIG, replace(CONFIG, iterations=0)):
        whole = frame_energies([samples], config).voicing
        with monkeypatch.context() as patch:
            patch.setattr(stat_energies, "CHUNK_FRAMES", 120)
            parts = frame_energies((samples[start : start + size] for start in range(0, len(samples), size)), config).voicing
        for name in ("harmonicity", "tonality", "amplitude", "shares"):
            np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("gain", [1e-6, 1e3])
def test_gain_changes_nothing(rng, gain):
    samples = radio_stream(10.0, rng)[0]
    np.testing.assert_allclose(llr(gain * samples), llr(samples), atol=0.02)


@pytest.mark.parametrize("length", [0, 1, 79, 80, 81, 400, 1601])
@pytest.mark.parametrize("value", [0.0, 0.3])
def test_edges(length, value):
    found = detect_stream([np.full(length, value)], CONFIG)
    assert len(found.llr) == -(-length // 80) and np.isfinite(found.llr).all() and not found.decisions.any()


def test_silence_tells_nothing(rng):
    """Digital silence counts neither for nor against speech, and does not weaken the voices beside it."""
    voice = voiced(2.0, rng)
    found = llr(np.concatenate([np.zeros(4 * RATE), voice, np.zeros(4 * RATE)]))
    assert (found[405:595] > 0).all() and (found[:300] == 0).all() and (found[700:] == 0).all()


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_files_of_any_rate(rng, tmp_path, rate):
    """A buzzing voice of a second and a half between bursts of noise."""
    noise = 0.1 * rng.standard_normal(12 * rate) * (np.arange(12 * rate) % (rate // 2) < rate // 5)
    noise[5 * rate : 13 * rate // 2] = 0.3 * voiced(1.5, rng, rate)
    soundfile.write(tmp_path / "a.wav", noise + 1e-4 * rng.standard_normal(12 * rate), rate)
    plain, found = (load_detector(system)(tmp_path / "a.wav").segments for system in ("statistical_plain", "statistical"))
    assert len(found) == 1 and np.ptp(plain) > 10
    assert 4.4 < found[0, 0] < 5.1 and 6.4 < found[0, 1] < 7.1  # no more than half of voicing_seconds around the voice
