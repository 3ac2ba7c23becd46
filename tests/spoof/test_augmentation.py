"""Augmentation of training speech: against lhotse's mixer and a plain convolution; chance."""

import numpy as np
import pytest
from lhotse.audio.mixer import AudioMixer

from pyspeech.audio.level import fit, mix
from pyspeech.errors import UserError
from pyspeech.spoof.augmentation import augment, reverberate
from pyspeech.spoof.config import AugmentConfig
from pyspeech.spoof.mcadams import anonymize
from utils.bench.mcadams import make_speech

RATE = 16000
OFF = dict(mcadams=0, reverberation=0, noise=0, music=0)
SPEECH = make_speech(0.5).astype(np.float32)
NOISE = [np.random.default_rng(1).standard_normal(size).astype(np.float32) for size in (3000, 20000)]
ROOM = [np.r_[np.zeros(40), 1.0, np.zeros(99), 0.5, -0.2].astype(np.float32)]


def rms(samples):
    return np.sqrt(np.mean(np.square(samples, dtype=np.float64)))


def one(kind, seed=0, **options):
    config = AugmentConfig(**{**OFF, kind: 1.0, **options})
    return augment(SPEECH, RATE, config, np.random.default_rng(seed), NOISE, NOISE, ROOM)


def test_nothing_is_changed_where_all_is_off():
    made = augment(SPEECH, RATE, AugmentConfig(**OFF), np.random.default_rng(0))
    assert np.array_equal(made, SPEECH) and made is not SPEECH and not np.shares_memory(made, SPEECH)


@pytest.mark.parametrize("kind", ["noise", "music"])
def test_snr_is_drawn_from_its_range(kind):
    found = []
    for seed in range(60):
        made = one(kind, seed, **{f"{kind}_snr": (3.0, 9.0)})
        found.append(20 * np.log10(rms(SPEECH) / rms(made - SPEECH)))
    assert min(found) >= 2.99 and max(found) <= 9.01 and min(found) < 4 and max(found) > 8


def test_mix_is_that_of_lhotse():
    mixer = AudioMixer(SPEECH[None], RATE)
    mixer.add_to_mix(NOISE[1][None, : len(SPEECH)], snr=7.0)
    np.testing.assert_allclose(mix(SPEECH, NOISE[1][: len(SPEECH)], 7.0), mixer.mixed_audio[0], atol=1e-5)
    assert np.array_equal(mix(SPEECH, np.zeros(len(SPEECH)), 0.0), SPEECH)
    assert not mix(np.zeros(500, np.float32), NOISE[0][:500], 0.0).any()


def test_pieces_are_cut_or_repeated(rng):
    long, short = np.arange(100.0), np.arange(7.0)
    begins = {int(fit(long, 95, rng)[0]) for _ in range(200)}
    assert begins == set(range(6))
    for _ in range(20):
        piece = fit(short, 30, rng)
        assert len(piece) == 30 and np.array_equal(np.diff(piece) % 7, np.ones(29))
    assert np.array_equal(fit(long, 100, rng), long)
    assert not fit(np.zeros(0), 5, rng).any() and len(fit(long, 0, rng)) == 0


def test_room_is_a_convolution_without_its_delay():
    plain = np.convolve(SPEECH.astype(np.float64), ROOM[0])[40 : 40 + len(SPEECH)]
    plain *= rms(SPEECH) / rms(plain)
    np.testing.assert_allclose(one("reverberation"), plain, atol=1e-5)
    for silent in (np.zeros(0), np.zeros(9)):
        assert np.array_equal(reverberate(SPEECH, silent), SPEECH)
    assert np.allclose(reverberate(SPEECH, np.ones(1)), SPEECH, atol=1e-6)


def test_anonymisation_takes_one_of_the_coefficients():
    expected = [anonymize(SPEECH, coefficient) for coefficient in (0.7, 0.9)]
    made = [one("mcadams", seed, coefficients=[0.7, 0.9]) for seed in range(20)]
    hits = [[np.array_equal(item, other) for other in expected] for item in made]
    assert np.array_equal(np.sum(hits, axis=1), np.ones(20)) and np.sum(hits, axis=0).min() >= 3


def test_probabilities_are_kept_and_each_draw_is_its_own():
    config = AugmentConfig(**{**OFF, "noise": 0.3, "reverberation": 0.6})
    tone = np.ones(200, np.float32)

    def changes(config):
        made = [augment(tone, RATE, config, np.random.default_rng(seed), NOISE, (), ROOM) for seed in range(500)]
        return [not np.array_equal(item, tone) for item in made]

    changed = {
        kind: changes(AugmentConfig(**{**OFF, kind: probability}))
        for kind, probability in (("noise", 0.3), ("reverberation", 0.6))
    }
    assert abs(np.mean(changed["noise"]) - 0.3) < 0.07 and abs(np.mean(changed["reverberation"]) - 0.6) < 0.07
    assert changes(config) == [a or b for a, b in zip(changed["noise"], changed["reverberation"], strict=True)]


def test_same_seed_same_result_and_all_at_once():
    config = AugmentConfig(mcadams=1, reverberation=1, noise=1, music=1)
    first, second, other = [
        augment(SPEECH, RATE, config, np.random.default_rng(seed), NOISE, NOISE, ROOM) for seed in (3, 3, 4)
    ]
    assert np.array_equal(first, second) and not np.array_equal(first, other)
    assert first.dtype == np.float32 and first.shape == SPEECH.shape and np.isfinite(first).all()
    for length in (0, 1, 7):
        for samples in (np.zeros(length), SPEECH[4000 : 4000 + length]):
            made = augment(samples, RATE, config, np.random.default_rng(0), NOISE, NOISE, ROOM)
            assert made.shape == (length,) and np.isfinite(made).all()
    assert not augment(np.zeros(1000), RATE, config, np.random.default_rng(0), NOISE, NOISE, ROOM).any()


def test_bad_options_are_said():
    with pytest.raises(UserError, match="no pieces of music"):
        augment(SPEECH, RATE, AugmentConfig(**{**OFF, "music": 1.0}), np.random.default_rng(0), NOISE)
    for options, message in (
        (dict(noise=1.5), "noise=1.5: expected a probability"),
        (dict(mcadams=-1), "0 to 1"),
        (dict(coefficients=[]), "numbers above 0"),
        (dict(coefficients=[0.0]), "numbers above 0"),
        (dict(music_snr=[9, 3]), "lowest and the highest"),
    ):
        with pytest.raises(UserError, match=message):
            AugmentConfig(**options).check()
    AugmentConfig().check()
    AugmentConfig(mcadams=0, coefficients=[]).check()
