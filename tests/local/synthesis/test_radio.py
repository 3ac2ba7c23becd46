"""The building blocks of the simulated channel, and the marks on clean clips."""

import numpy as np
import pytest
from tiny_corpora import voiced

from local.synthesis import radio
from local.synthesis.stream_scene import mark_speech

RATE = radio.RATE


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def spectrum(samples, bins=400):
    """Mean power spectrum: (frequencies, dB)."""
    frames = samples[: len(samples) // bins * bins].reshape(-1, bins) * np.hanning(bins)
    power = np.mean(np.abs(np.fft.rfft(frames, axis=1)) ** 2, axis=0)
    return np.fft.rfftfreq(bins, 1 / RATE), 10 * np.log10(power)


def test_random_numbers_are_those_of_the_bit_generator():
    rng = generator(2020)
    assert [rng.random() for _ in range(2)] == [0.46830754332228663, 0.5143422311454066]
    assert radio.uniform(generator(2020), 10.0, 20.0) == 10.0 + 10.0 * 0.46830754332228663


def test_level():
    assert radio.level(0.1 * np.ones(100)) == pytest.approx(-20.0, abs=1e-6)
    assert radio.level(np.zeros(0)) == radio.level(np.zeros(5)) == -120.0


def test_convolve_is_numpy_convolve_without_the_delay():
    samples, kernel = generator().standard_normal(1000), radio.band_kernel(300.0, 3000.0)
    np.testing.assert_allclose(radio.convolve(samples, kernel), np.convolve(samples, kernel, mode="same"), atol=1e-12)
    assert len(radio.convolve(np.zeros(0), kernel)) == 0
    assert len(radio.convolve(np.ones(1), kernel)) == 1


def test_channel_passes_its_band():
    for seed in range(10):
        kernel = radio.channel_kernel(generator(seed), 300.0, 3000.0)
        frequencies = np.linspace(0, RATE / 2, len(np.fft.rfft(kernel, 4096)))
        gain = 20 * np.log10(np.abs(np.fft.rfft(kernel, 4096)) + 1e-9)
        inside = gain[(frequencies > 500) & (frequencies < 2500)].mean()
        assert inside > gain[frequencies > 3900].mean() + 8 and inside > gain[frequencies < 80].mean() + 8
        np.testing.assert_allclose(kernel, kernel[::-1], atol=1e-12)


@pytest.mark.parametrize("slope", [0.0, 1.0, 2.0])
def test_noise_has_unit_power_and_its_slope(slope):
    samples = radio.noise(generator(), 400000, radio.sloped_kernel(slope, 20.0, 3990.0))
    assert radio.level(samples) == pytest.approx(0.0, abs=0.3)
    frequencies, decibel = spectrum(samples)
    band = (frequencies >= 200) & (frequencies <= 3200)
    fitted = np.polyfit(np.log10(frequencies[band]), decibel[band], 1)[0]
    assert fitted == pytest.approx(-10 * slope, abs=1.0)


def test_noise_is_band_limited():
    samples = radio.noise(generator(), 200000, radio.sloped_kernel(0.0, 300.0, 2500.0, order=10.0))
    frequencies, decibel = spectrum(samples)
    inside = decibel[(frequencies > 600) & (frequencies < 2200)].mean()
    assert inside > decibel[frequencies > 3200].max() + 15 and inside > decibel[frequencies < 150].max() + 15


@pytest.mark.parametrize("length", [0, 1, 159, 160, 161, 5000])
def test_lengths(length):
    rng = generator()
    kernel = radio.sloped_kernel(0.0, 100.0, 3000.0)
    samples = rng.standard_normal(length)
    made = (
        radio.noise(rng, length, kernel),
        radio.wander(rng, length, 1.0, 0.5),
        radio.steps(rng, length, 3.0, 1.0),
        radio.gain_control(samples, -20.0, 1.0, 0.01, 0.1, 20.0),
        radio.hum(rng, length, 60.0),
        radio.tone(length, 440.0, 1.0),
        radio.keyed_tones(rng, length),
        radio.coder_holes(samples, 30.0),
        radio.rustle(rng, length),
    )
    for result in made:
        assert result.shape == (length,) and np.isfinite(result).all()


def test_gain_control_levels_what_it_is_told_to():
    rng = generator()
    samples = np.concatenate([rng.standard_normal(16000) * amount for amount in (1.0, 0.01, 1.0)])
    for strength, distance in ((0.0, 40.0), (0.5, 20.0), (1.0, 0.0)):
        out = samples * radio.gain_control(samples, -10.0, strength, 0.01, 0.05, 60.0)
        assert radio.level(out[8000:16000]) - radio.level(out[28000:32000]) == pytest.approx(distance, abs=1.5)
    limited = samples * radio.gain_control(samples, 0.0, 1.0, 0.01, 0.05, 15.0)
    assert radio.level(limited[28000:32000]) == pytest.approx(-25.0, abs=0.5)


def test_envelope_against_a_plain_loop():
    samples, block = generator().standard_normal(1000) * np.linspace(0, 1, 1000), 20
    expected, state = [], None
    for start in range(0, 1000, block):
        power = sum(value**2 for value in samples[start : start + block]) / block
        state = power if state is None else state
        keep = np.exp(-block / RATE / (0.01 if power > state else 0.1))
        state = keep * state + (1 - keep) * power
        expected.append(10 * np.log10(state + 1e-12))
    np.testing.assert_allclose(radio.envelope(samples, 0.01, 0.1, block), expected, rtol=1e-12)


def test_quindar_tone():
    tone = radio.tone(RATE // 4, 2525.0, 0.1)
    frequencies, decibel = spectrum(tone)
    assert abs(frequencies[decibel.argmax()] - 2525.0) <= 20 and radio.level(tone) == pytest.approx(-20.0, abs=0.5)
    assert tone[0] == 0.0 and abs(tone).max() == pytest.approx(0.1 * np.sqrt(2), rel=0.01)


def test_coder_keeps_what_is_not_masked():
    samples = generator().standard_normal(20001)
    np.testing.assert_allclose(radio.coder_holes(samples, 400.0), samples, atol=1e-12)
    loud = np.sin(2 * np.pi * 1000 / RATE * np.arange(20000))
    out = radio.coder_holes(loud + 1e-4 * samples[:20000], 30.0)
    frequencies, decibel = spectrum(out)
    assert decibel[np.abs(frequencies - 3000).argmin()] < decibel.max() - 90


def test_crackle_rate():
    rng = generator()
    sparse, dense = radio.crackle(rng, 80000, 0.5), radio.crackle(rng, 80000, 50.0)
    assert np.mean(sparse != 0) < 0.05 < np.mean(dense != 0)


def clip_with_pause(pause, floor=1e-4):
    """Half a second of quiet, 0.8 s of voice, a pause, 0.6 s of voice, half a second of quiet."""
    rng = np.random.default_rng(1)
    parts = [np.zeros(4000), 0.3 * voiced(0.8, rng), np.zeros(int(pause * RATE)), 0.3 * voiced(0.6, rng), np.zeros(4000)]
    samples = np.concatenate(parts)
    return samples + floor * rng.standard_normal(len(samples))


def test_marks_are_where_the_voice_is():
    marks = mark_speech(clip_with_pause(1.0), pad=0.0)
    np.testing.assert_allclose(marks, [[0.5, 1.3], [2.3, 2.9]], atol=0.05)
    padded = mark_speech(clip_with_pause(1.0), pad=0.04)
    np.testing.assert_allclose(padded, marks + [-0.04, 0.04], atol=1e-9)


def test_short_pauses_are_filled():
    assert len(mark_speech(clip_with_pause(0.2))) == 1
    assert len(mark_speech(clip_with_pause(0.7))) == 2


@pytest.mark.parametrize("gain", [0.03, 3.0])
def test_marks_do_not_depend_on_the_level(gain):
    clip = clip_with_pause(1.0)
    np.testing.assert_allclose(mark_speech(gain * clip), mark_speech(clip), atol=0.011)


def test_no_voice_no_marks():
    for clip in (np.zeros(8000), np.zeros(0), np.ones(100)):
        assert mark_speech(clip).shape == (0, 2)
