"""Signals of radio that are no speech, made from their standards: keyed, paged, printed, timed.

    morse       ITU-R M.1677: dots of 1.2 / (words a minute) seconds, dashes of three, gaps of one, three and seven
    rtty        ITA2, five bits between a start bit and one and a half stop bits, frequency-shift keying by 170 Hz and more
    ft8         79 symbols of 0.16 s, Costas arrays at both ends and in the middle, 8 tones 6.25 Hz apart, slots of 15 s
    pocsag      ITU-R M.584: 576 bits of preamble, batches of a sync word and 16 code words, BCH (31, 21) with even parity
    two_tone    sequential paging, a tone of 1 s and one of 3 s
    five_tone   ZVEI selective calling, 70 ms a tone
    quindar     2525 Hz for 250 ms where somebody keys, 2475 Hz where they let go

Each takes a generator and a number of samples and gives (size,) float64 at 8 kHz, of about unit power where it sounds. Random
numbers are drawn as in radio.py.
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from local.synthesis import radio, receiver
from local.synthesis.radio import RATE, amplitude, chance, uniform
from local.synthesis.receiver import log_uniform

ALPHABET = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.. "
    "----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----."
)
MORSE = ALPHABET.split()  # A to Z, 0 to 9
COSTAS = (3, 1, 4, 0, 6, 5, 2)
FT8_SYMBOLS, FT8_BAUD, FT8_SLOT, FT8_START = 79, 6.25, 15.0, 0.5
FT8_SMOOTH = 0.0106  # seconds, deviation of the Gaussian with BT = 2: sqrt(ln 2) / (2 pi 2 6.25)
POCSAG_SYNC, POCSAG_IDLE, POCSAG_GENERATOR = 0x7CD215D8, 0x7A89C197, 0x769
ZVEI = (2400.0, 1060.0, 1160.0, 1270.0, 1400.0, 1530.0, 1670.0, 1830.0, 2000.0, 2200.0, 2600.0)  # Hz: 0 to 9, repeat


def draw_signal(rng: Generator, size: int) -> np.ndarray:
    """One of the signals at random, sometimes on a fading path, in noise 0 to 40 dB below it: (size,)."""
    sound = SIGNALS[int(rng.random() * len(SIGNALS))](rng, size)
    if chance(rng, 0.5):
        sound = sound * amplitude(radio.wander(rng, size, uniform(rng, 0.5, 5.0), log_uniform(rng, 0.1, 5.0)))
    return sound + amplitude(-uniform(rng, 0.0, 40.0)) * rng.standard_normal(size)


def draw_piece(rng: Generator, recorded: Sequence[np.ndarray], size: int) -> np.ndarray:
    """A piece (size,) of one of some recordings (N,) from a random place on, repeated where it is too short."""
    source = recorded[int(rng.random() * len(recorded))]
    start = int(rng.random() * max(len(source) - size, 1))
    return np.resize(source[start : start + size], size)


def morse(rng: Generator, size: int) -> np.ndarray:
    """One to three stations, each at a pitch and a speed of its own."""
    total = np.zeros(size)
    for _ in range(1 + int(3 * rng.random() ** 2)):
        edge = uniform(rng, 0.003, 0.01)
        key = receiver.smooth(morse_key(rng, size, uniform(rng, 8.0, 35.0), uniform(rng, 0.0, 0.15)), edge)
        total += amplitude(uniform(rng, -12.0, 0.0)) * key * radio.sine(np.full(size, uniform(rng, 350.0, 1500.0)))
    return total


def morse_key(rng: Generator, size: int, words_a_minute: float, sloppiness: float = 0.0) -> np.ndarray:
    """Key a transmitter: True while the key is down, bool (size,), words of random letters and digits.

    sloppiness: relative deviation of the lengths.
    """
    gate, position, dot = np.zeros(size, bool), 0.0, 1.2 / words_a_minute * RATE

    def units(count):
        return dot * count * max(0.3, 1.0 + sloppiness * rng.standard_normal())

    while position < size:
        for _ in range(1 + int(rng.random() * 7)):
            for sign in MORSE[int(rng.random() * len(MORSE))]:
                end = position + units(3 if sign == "-" else 1)
                gate[int(position) : int(end)] = True
                position = end + units(1)
            position += units(2)
        position += units(4)
    return gate


def rtty(rng: Generator, size: int) -> np.ndarray:
    """A teleprinter that types, or idles with the stop tone for a while."""
    baud = (45.45, 50.0, 75.0)[int(rng.random() * 3)]
    shift = (170.0, 170.0, 425.0, 850.0)[int(rng.random() * 4)]
    bits = rtty_bits(rng, int(size / RATE * baud * 2) + 2)
    mark = uniform(rng, 500.0, 3300.0 - shift)
    halves = bits[(np.arange(size) * 2 * baud / RATE).astype(np.int64)]
    return radio.sine(mark + shift * (1 - halves))


def rtty_bits(rng: Generator, count: int) -> np.ndarray:
    """Half bits of random characters, int (count,), 1 mark and 0 space: a start bit, five, and one and a half stop bits."""
    halves = []
    while len(halves) < count:
        if chance(rng, 0.02):
            halves += [1] * int(rng.random() * 200)
        halves += [0, 0]
        for _ in range(5):
            halves += [int(rng.random() < 0.5)] * 2
        halves += [1] * 3
    return np.array(halves[:count])


def ft8(rng: Generator, size: int) -> np.ndarray:
    """A band of one to twelve stations, which answer each other in slots of 15 s."""
    total, begin = np.zeros(size), -int(rng.random() * FT8_SLOT * RATE)
    for _ in range(1 + int(rng.random() * 12)):
        low, level, turn = uniform(rng, 200.0, 3000.0), amplitude(uniform(rng, -20.0, 0.0)), int(rng.random() * 2)
        start = begin
        for slot in range(int(size / RATE / FT8_SLOT) + 2):
            if slot % 2 == turn or chance(rng, 0.2):
                piece = level * ft8_message(rng, low)
                first = start + int((FT8_START + uniform(rng, -0.3, 0.3)) * RATE)
                radio.add(total, piece, first)
            start += int(FT8_SLOT * RATE)
    return total


def ft8_message(rng: Generator, low: float) -> np.ndarray:
    """79 symbols from `low` Hz upwards, (101120,), 12.64 s; the frequency changes smoothly (BT = 2)."""
    from scipy.ndimage import gaussian_filter1d

    symbols = [int(rng.random() * 8) for _ in range(FT8_SYMBOLS)]
    for start in (0, 36, 72):
        symbols[start : start + 7] = COSTAS
    width, coarse = round(RATE / FT8_BAUD), 8  # of whose samples the smooth frequency needs one in so many
    steps = np.repeat(np.array(symbols, np.float64), width // coarse)
    steps = gaussian_filter1d(steps, FT8_SMOOTH * RATE / coarse, mode="nearest")
    steps = np.interp(np.arange(FT8_SYMBOLS * width), np.arange(len(steps)) * coarse, steps)
    return radio.sine(low + FT8_BAUD * steps) * radio.tone_edges(len(steps), 0.02)


def pocsag(rng: Generator, size: int) -> np.ndarray:
    """Pages one after another, as a receiver's discriminator gives them: square waves without their lowest frequencies."""
    baud = (512.0, 1200.0, 1200.0, 2400.0)[int(rng.random() * 4)]

    def page():
        bits = 2.0 * pocsag_bits(rng, 1 + int(6 * rng.random() ** 2)) - 1.0
        return bits[np.minimum((np.arange(int(len(bits) * RATE / baud)) * baud / RATE).astype(np.int64), len(bits) - 1)]

    track = _repeated(rng, size, page)
    return radio.convolve(track, radio.band_kernel(uniform(rng, 30.0, 250.0), uniform(rng, 2500.0, 3900.0)))


def pocsag_bits(rng: Generator, batches: int) -> np.ndarray:
    """Preamble and batches, int (576 + 544 batches,), the most significant bit of each code word first."""
    words = []
    for _ in range(batches):
        words.append(POCSAG_SYNC)
        for _ in range(16):
            words.append(POCSAG_IDLE if chance(rng, 0.2) else code_word(int(rng.random() * 2**21)))
    bits = [(word >> place) & 1 for word in words for place in range(31, -1, -1)]
    return np.array([1, 0] * 288 + bits)


def code_word(data: int) -> int:
    """Code word of 32 bits: 21 bits of data, ten check bits of the BCH code, even parity."""
    remainder = data << 10
    for place in range(30, 9, -1):
        if remainder >> place & 1:
            remainder ^= POCSAG_GENERATOR << (place - 10)
    word = (data << 11) | (remainder << 1)
    return word | (bin(word).count("1") & 1)


def two_tone(rng: Generator, size: int) -> np.ndarray:
    """Calls of two tones each, as alert fire brigades; seconds between them."""

    def call():
        first, second = (log_uniform(rng, 290.0, 3000.0) for _ in range(2))
        return np.concatenate([radio.tone(RATE, first, 1.0), radio.tone(3 * RATE, second, 1.0)])

    return _repeated(rng, size, call)


def five_tone(rng: Generator, size: int) -> np.ndarray:
    """Calls of five tones each, no tone twice in a row."""
    length = int(0.07 * RATE)

    def call():
        tones = []
        for _ in range(5):
            digit = int(rng.random() * 10)
            tones.append(10 if tones and digit == tones[-1] else digit)
        return np.concatenate([radio.tone(length, ZVEI[tone], 1.0, edge=0.002) for tone in tones])

    return _repeated(rng, size, call)


def quindar(rng: Generator, size: int) -> np.ndarray:
    """Tones of a key that is pressed and let go with no words in between."""

    def call():
        silence = np.zeros(int(log_uniform(rng, 0.3, 8.0) * RATE))
        return np.concatenate([radio.tone(RATE // 4, 2525.0, 1.0), silence, radio.tone(RATE // 4, 2475.0, 1.0)])

    return _repeated(rng, size, call)


SIGNALS = (morse, rtty, ft8, pocsag, two_tone, five_tone, quindar)


def _repeated(rng, size, call):
    """What `call` gives, again and again after pauses of 0.3 to 8 s."""
    track, position = np.zeros(size), 0
    while position < size:
        piece = call()
        radio.add(track, piece, position)
        position += len(piece) + int(log_uniform(rng, 0.3, 8.0) * RATE)
    return track
