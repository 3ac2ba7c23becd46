"""Signals that are no speech, against their standards: lengths, tones, spacings, check bits, and what they are cut to."""

import numpy as np
import pytest

from local.synthesis import signals
from local.synthesis.radio import RATE


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def loudest(samples, least=1 << 18):
    """Frequency of the highest line, Hz."""
    size = max(least, len(samples))
    return np.abs(np.fft.rfft(samples * np.hanning(len(samples)), size)).argmax() * RATE / size


@pytest.mark.parametrize("make", signals.SIGNALS)
@pytest.mark.parametrize("size", [0, 1, 100, 40001])
def test_any_size(make, size):
    for seed in range(3):
        sound = make(generator(seed), size)
        assert sound.shape == (size,) and np.isfinite(sound).all() and np.abs(sound).max(initial=0) < 30
    assert signals.draw_signal(generator(1), size).shape == (size,)


@pytest.mark.parametrize("make", signals.SIGNALS)
def test_unit_power_where_it_sounds(make):
    powers = []
    for seed in range(5):
        sound = make(generator(seed), 60 * RATE)
        frames = np.square(sound).reshape(-1, 80).mean(axis=1)
        powers.append(np.median(frames[frames > 0.1 * frames.max()]))
    assert 0.3 < np.median(powers) < 6  # several stations at a time add up


def test_morse_has_dots_and_dashes_of_three():
    dot = round(1.2 / 12 * RATE)  # twelve words a minute: 0.1 s
    key = signals.morse_key(generator(), 120 * RATE, 12.0)
    edges = np.flatnonzero(np.diff(key.astype(int)))
    lengths = np.diff(edges) / dot
    let_go, pressed = lengths[::2], lengths[1::2]  # it begins pressed
    assert set(np.round(pressed, 2)) == {1, 3} and set(np.round(let_go, 2)) == {1, 3, 7}
    assert len(signals.MORSE) == len(set(signals.MORSE)) == 36
    assert [signals.MORSE[ord(letter) - ord("A")] for letter in "SOS"] == ["...", "---", "..."]


def test_rtty_characters_start_with_space_and_end_with_mark():
    halves = signals.rtty_bits(generator(3), 15 * 20)
    position, characters = 0, 0
    while position + 15 <= len(halves):
        if halves[position]:
            position += 1  # idle
            continue
        assert not halves[position + 1] and halves[position + 12 : position + 15].all()
        bits = halves[position + 2 : position + 12].reshape(5, 2)
        assert (bits[:, 0] == bits[:, 1]).all()
        position, characters = position + 15, characters + 1
    assert characters >= 15


def test_ft8_symbols_lie_on_eight_tones():
    message = signals.ft8_message(generator(4), 1000.0)
    assert len(message) == round(12.64 * RATE)
    symbols = message.reshape(79, 1280)
    heard = np.array([loudest(symbol[200:-200]) for symbol in symbols])
    tones = (heard - 1000.0) / 6.25
    assert np.abs(tones - np.round(tones)).max() < 0.35 and set(np.round(tones)) <= set(range(8))
    for start in (0, 36, 72):
        assert np.round(tones[start : start + 7]).tolist() == [3, 1, 4, 0, 6, 5, 2]


def remainder(word):
    """Of 31 bits, the parity left out, by the generator polynomial x^10 + x^9 + x^8 + x^6 + x^5 + x^3 + 1."""
    bits, divisor = [int(bit) for bit in f"{word >> 1:031b}"], [1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1]
    for start in range(21):
        if bits[start]:
            for place, bit in enumerate(divisor):
                bits[start + place] ^= bit
    return bits[21:]


def test_pocsag_words_have_their_check_bits():
    assert not any(remainder(signals.POCSAG_SYNC)) and not any(remainder(signals.POCSAG_IDLE))  # as the standard has them
    assert signals.code_word(signals.POCSAG_IDLE >> 11) == signals.POCSAG_IDLE
    assert signals.code_word(signals.POCSAG_SYNC >> 11) == signals.POCSAG_SYNC
    bits = signals.pocsag_bits(generator(), 3)
    assert len(bits) == 576 + 3 * 17 * 32 and bits[:576].tolist() == [1, 0] * 288
    words = [int("".join(map(str, row)), 2) for row in bits[576:].reshape(-1, 32)]
    assert words[::17] == [signals.POCSAG_SYNC] * 3
    assert not any(any(remainder(word)) or bin(word).count("1") % 2 for word in words)


def test_pages_and_quindar_tones_last_as_long_as_they_shall():
    page = signals.two_tone(generator(2), 4 * RATE)
    first, second = loudest(page[800:7200]), loudest(page[8800:31000])
    assert 290 <= first <= 3000 and 290 <= second <= 3000 and first != pytest.approx(second, abs=1)
    call = signals.five_tone(generator(5), 5 * 560).reshape(5, 560)
    heard = [loudest(tone) for tone in call]
    assert all(min(abs(tone - one) for one in signals.ZVEI) < 4 for tone in heard)
    assert np.abs(np.diff(heard)).min() > 50
    keyed = signals.quindar(generator(1), 20 * RATE)
    assert loudest(keyed[:2000]) == pytest.approx(2525, abs=1)
    assert not keyed[2001 : 2000 + int(0.3 * RATE)].any()
    later = 2000 + np.flatnonzero(keyed[2001:])[0]
    assert loudest(keyed[later : later + 2000]) == pytest.approx(2475, abs=1)
