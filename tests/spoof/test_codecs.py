"""pyspeech/spoof/codecs.py: speech through a codec for training."""

import io

import numpy as np
import pytest
import soundfile

from pyspeech.spoof.augmentation import augment
from pyspeech.spoof.codecs import CODECS, TELEPHONE, opus_level, through_codec
from pyspeech.spoof.config import AugmentConfig

RATE = 16000


def pulses(seconds=1.0, rate=RATE):
    """Something like a voice: harmonics of 120 to 160 Hz up to 3 kHz, and silence before it."""
    time = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * (120 * time + 20 * time**2)
    voice = sum(np.sin(number * phase) / number for number in range(1, 18))
    return (0.2 * voice * (time > 0.2)).astype(np.float32)


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("rate", [8000, RATE, 44100])
def test_length_and_waveform_survive(name, rate):
    samples = pulses(rate=rate)
    heard = through_codec(samples, rate, np.random.default_rng(3), name)
    assert heard.dtype == np.float32 and heard.shape == samples.shape
    assert np.corrcoef(samples, heard)[0, 1] > 0.9
    assert not np.array_equal(samples, heard)


def test_mu_law_errs_as_g711_does():
    # G.711 has 16 even steps in each segment, which is as wide as all before it and its bias together: half a step is
    # at most 1/33 of where a segment begins, less the bias, so a little more in the lowest ones
    samples = pulses(rate=TELEPHONE)
    heard = through_codec(samples, TELEPHONE, np.random.default_rng(0), "mu-law")
    scale = 0.9 / np.abs(samples).max()
    allowed = np.maximum(np.abs(samples) * scale / 25, 9 / 2**15)
    assert (np.abs(heard - samples) * scale <= allowed).all()


@pytest.mark.parametrize("name", ["mu-law", "a-law", "gsm"])
def test_telephone_has_nothing_above_4_khz(name):
    noise = np.random.default_rng(0).standard_normal(RATE).astype(np.float32)
    spectrum = np.abs(np.fft.rfft(through_codec(noise, RATE, np.random.default_rng(0), name))) ** 2
    assert spectrum[4200:].sum() < 0.01 * spectrum.sum()


def test_draws_each_codec_and_silence_stays():
    samples = pulses(0.3)
    heard = {through_codec(samples, RATE, np.random.default_rng(seed)).tobytes() for seed in range(60)}
    assert len(heard) > len(CODECS)
    assert not through_codec(np.zeros(800, np.float32), RATE, np.random.default_rng(0)).any()
    assert through_codec(samples[:0], RATE, np.random.default_rng(0)).shape == (0,)


def test_opus_has_the_bit_rates_of_voice_messages(rng):
    """kbit/s, measured on what libsndfile writes."""
    samples = 0.1 * rng.standard_normal(10 * RATE)
    rates = []
    for drawn in np.linspace(0, 1, 5):
        stream = io.BytesIO()
        soundfile.write(stream, samples, RATE, format="OGG", subtype="OPUS", compression_level=opus_level(drawn))
        rates.append(len(stream.getvalue()) * 8 / 10 / 1000)
    assert rates == pytest.approx([8, 13.5, 22.6, 38, 64], rel=0.25)


def test_what_else_is_drawn_stays():
    samples, noise = pulses(), np.random.default_rng(1).standard_normal(RATE).astype(np.float32)

    def heard(codec, seed):
        config = AugmentConfig(mcadams=0.0, reverberation=0.0, noise=0.5, music=0.0, codec=codec)
        rng = np.random.default_rng(seed)
        return augment(samples, RATE, config, rng, noises=[noise]), rng.random()

    changed = 0
    for seed in range(10):
        (without, after), (coded, after_coded) = heard(0.0, seed), heard(1.0, seed)
        assert after == after_coded
        assert np.corrcoef(without, coded)[0, 1] > 0.6
        changed += not np.array_equal(without, coded)
    assert changed == 10
