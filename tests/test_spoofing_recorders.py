"""pyspeech/spoofing/recorders.py: speech as another device records it, for training."""

import numpy as np
import pytest

from pyspeech.spoofing import recorders
from pyspeech.spoofing.augmentation import augment
from pyspeech.spoofing.config import AugmentConfig
from pyspeech.spoofing.recorders import clip_hard, clip_softly, control_level, hiss, recorded, root_mean_square

RATE = 16000


def tone(seconds=1.0, rate=RATE, level=0.2):
    return (level * np.sin(2 * np.pi * 200.0 * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


@pytest.mark.parametrize("rate", [8000, RATE, 44100])
@pytest.mark.parametrize("slope", [-6.0, 0.0, 3.0])
def test_hiss_has_its_slope_and_unit_power(rate, slope):
    from scipy.signal import welch

    noise = hiss(np.random.default_rng(0), 20 * rate + 7, rate, slope)
    assert noise.dtype == np.float32 and noise.shape == (20 * rate + 7,)
    assert root_mean_square(noise) == pytest.approx(1.0, abs=1e-3)
    frequencies, power = welch(noise, rate, nperseg=2048)
    used = (frequencies > 100) & (frequencies < 0.45 * rate)
    found = np.polyfit(np.log2(frequencies[used]), 10 * np.log10(power[used]), 1)[0]
    assert found == pytest.approx(slope, abs=0.2)
    assert power[1] < 20 * power[np.argmin(np.abs(frequencies - 60))]  # it does not go on falling below 50 Hz


def test_level_control_halves_the_decibels():
    samples = np.concatenate([tone(), 0.1 * tone(), np.zeros(RATE, np.float32)])
    heard = control_level(samples, 800, 0.5)
    loud, quiet = (root_mean_square(heard[start + 2000 : start + RATE - 2000]) for start in (0, RATE))
    assert 20 * np.log10(loud / quiet) == pytest.approx(10.0, abs=0.1)
    assert not heard[2 * RATE + 800 :].any()


def test_an_overdriven_amplifier_adds_odd_harmonics():
    for bend in (clip_hard, clip_softly):
        heard = bend(tone(), 0.1)
        assert np.abs(heard).max() < 0.1001
        spectrum = np.abs(np.fft.rfft(heard))
        assert spectrum[600] > 0.1 * spectrum[200] > 1e3 * spectrum[400]


@pytest.mark.parametrize("rate", [8000, RATE, 44100])
def test_level_stays_but_for_the_hiss(monkeypatch, rate):
    samples = tone(rate=rate)
    for hissing in (0.0, 1.0):
        monkeypatch.setattr(recorders, "HISSING", hissing)
        for seed in range(20):
            heard = recorded(samples, rate, np.random.default_rng(seed))
            assert heard.dtype == np.float32 and heard.shape == samples.shape
            gain = 20 * np.log10(root_mean_square(heard) / root_mean_square(samples))
            assert abs(gain) < (1e-3 if not hissing else 0.3)


def test_snr_is_within_its_limits(monkeypatch):
    monkeypatch.setattr(recorders, "CONTROLLED", 0.0)
    monkeypatch.setattr(recorders, "OVERDRIVEN", 0.0)
    monkeypatch.setattr(recorders, "HISSING", 1.0)
    samples = tone()
    noises = [recorded(samples, RATE, np.random.default_rng(seed)) - samples for seed in range(200)]
    found = [20 * np.log10(root_mean_square(samples) / root_mean_square(noise)) for noise in noises]
    low, high = recorders.SNR
    assert low - 0.1 < min(found) < low + 2 and high - 2 < max(found) < high + 0.1


def test_silence_stays_and_what_is_given_too():
    assert not recorded(np.zeros(800, np.float32), RATE, np.random.default_rng(0)).any()
    assert recorded(np.zeros(0, np.float32), RATE, np.random.default_rng(0)).shape == (0,)
    samples = tone()
    before = samples.copy()
    for seed in range(10):
        recorded(samples, RATE, np.random.default_rng(seed))
    np.testing.assert_array_equal(samples, before)


def test_an_original_and_its_copy_go_through_the_same_device(monkeypatch):
    """What is drawn does not depend on the samples: of the same draws, a copy of half the level comes out at half the level."""
    samples = tone() * np.linspace(0.1, 1.0, RATE, dtype=np.float32)
    for seed in range(20):
        one, half = (recorded(gain * samples, RATE, np.random.default_rng(seed)) for gain in (1.0, 0.5))
        np.testing.assert_allclose(0.5 * one, half, atol=1e-5)


def test_what_else_is_drawn_stays():
    samples, noise = tone(), np.random.default_rng(1).standard_normal(RATE).astype(np.float32)

    def heard(recorder, seed):
        config = AugmentConfig(mcadams=0.0, reverberation=0.0, noise=0.5, music=0.0, recorder=recorder, codec=0.5)
        rng = np.random.default_rng(seed)
        return augment(samples, RATE, config, rng, noises=[noise]), rng.random()

    changed = 0
    for seed in range(10):
        (without, after), (with_it, after_it) = heard(0.0, seed), heard(1.0, seed)
        assert after == after_it
        assert np.corrcoef(without, with_it)[0, 1] > 0.6
        changed += not np.array_equal(without, with_it)
    assert changed >= 8
