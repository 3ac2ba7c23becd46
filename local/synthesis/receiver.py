"""The noise of an open receiver, which switches on and off with no voice in it.

Where no carrier is strong enough, an air-to-ground receiver gives its own noise, 20 to 30 dB over what is heard while its
squelch is closed. On recordings it stays open for minutes, opens for tenths of a second at a time when the signal is near
the squelch's threshold (chatter), before and after a transmission (squelch tail), clicks when it is keyed, drifts with its
tuning and whistles where two carriers beat. A transmission quiets it, at once with FM, with the delay of the gain control
otherwise. All of it is no speech.

Samples are float64 at 8 kHz; random numbers are drawn as in radio.py, so a seed gives the same samples everywhere.
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from local.synthesis import radio
from local.synthesis.radio import RATE, amplitude, chance, uniform

Keyed = Sequence[tuple[int, int, float]]  # transmissions: first sample, end, dB of the noise that they leave
# Kinds of spells: their weight, their length, and the lengths of noise and of silence in them (seconds; None: all the spell)
SPELLS = (
    (0.30, (4.0, 60.0), None, (60.0, 60.0)),  # closed
    (0.25, (3.0, 120.0), (120.0, 120.0), None),  # open
    (0.25, (2.0, 40.0), (0.03, 0.6), (0.03, 0.6)),  # chatter
    (0.20, (8.0, 60.0), (0.1, 3.0), (0.8, 8.0)),  # bursts
)


def log_uniform(rng: Generator, low: float, high: float) -> float:
    """A number between `low` and `high`, each octave as likely as any other."""
    return low * (high / low) ** rng.random()


def on_off(rng: Generator, length: int, sounding: tuple[float, float] | None, silent: tuple[float, float] | None) -> np.ndarray:
    """Noise and silence in turn: bool (length,). sounding, silent: (shortest, longest) in seconds; None: never."""
    gate, position = np.zeros(length, bool), 0
    state = sounding is not None and (silent is None or chance(rng, 0.5))
    while position < length:
        limits = sounding if state else silent
        end = position + max(1, int(log_uniform(rng, *limits) * RATE))  # pyright: ignore[reportOptionalIterable]
        gate[position:end] = state
        position, state = end, not state if sounding and silent else state
    return gate


def squelch_gate(rng: Generator, length: int) -> np.ndarray:
    """True where the receiver is open: bool (length,), in spells of one of the kinds of SPELLS."""
    gate, position = np.zeros(length, bool), 0
    while position < length:
        drawn, kind = rng.random(), 0
        while kind < len(SPELLS) - 1 and drawn >= SPELLS[kind][0]:
            drawn, kind = drawn - SPELLS[kind][0], kind + 1
        _, lengths, sounding, silent = SPELLS[kind]
        end = min(length, position + int(log_uniform(rng, *lengths) * RATE))
        gate[position:end] = on_off(rng, end - position, sounding, silent)
        position = end
    return gate


def open_around(rng: Generator, gate: np.ndarray, keyed: Keyed) -> np.ndarray:
    """`gate` (N,) with the squelch open just before and after transmissions: bool (N,)."""
    gate, lead, tail = gate.copy(), uniform(rng, 0.0, 0.3), log_uniform(rng, 0.03, 0.8)
    for first, last, _ in keyed:
        before, after = lead * rng.random(), tail * uniform(rng, 0.6, 1.4)
        gate[max(0, first - int(before * RATE)) : max(0, first)] = True
        gate[max(0, last) : max(0, last + int(after * RATE))] = True
    return gate


def drifting_noise(rng: Generator, length: int) -> np.ndarray:
    """Noise of about unit power through a filter that drifts: (length,)."""
    low, high = uniform(rng, 60.0, 500.0), uniform(rng, 1800.0, 3900.0)
    bodies, curves = [], []
    for _ in range(3):
        kernel = radio.sloped_kernel(
            uniform(rng, -0.8, 1.6), low * uniform(rng, 0.5, 1.6), high * uniform(rng, 0.6, 1.1), uniform(rng, 2.0, 10.0)
        )
        bodies.append(radio.noise(rng, length, kernel))
        curves.append(amplitude(radio.wander(rng, length, uniform(rng, 1.0, 8.0), log_uniform(rng, 0.5, 30.0))))
    total = sum(body * curve for body, curve in zip(bodies, curves, strict=True))
    return total / np.sqrt(sum(np.square(curve) for curve in curves) + 1e-12)


def whistle(rng: Generator, length: int) -> np.ndarray:
    """The beat of two carriers, of unit RMS where it sounds: (length,), drifting in frequency, sometimes keyed."""
    octaves = radio.wander(rng, length, uniform(rng, 0.0, 0.4), log_uniform(rng, 0.3, 10.0))
    frequency = np.clip(log_uniform(rng, 250.0, 3200.0) * 2.0**octaves, 60.0, 3700.0)
    sound = radio.sine(frequency)
    if chance(rng, 0.3):
        sound *= smooth(on_off(rng, length, (0.04, 0.3), (0.04, 0.4)), 0.005)
    return sound * amplitude(radio.wander(rng, length, uniform(rng, 0.0, 3.0), 0.5))


def click(rng: Generator) -> np.ndarray:
    """A key click: a damped ring of peak about 1, some milliseconds long: (N,)."""
    time = np.arange(int(uniform(rng, 0.002, 0.03) * RATE)) / RATE
    ring = np.exp(-time / uniform(rng, 0.0005, 0.008)) * np.cos(2.0 * np.pi * uniform(rng, 100.0, 2500.0) * time)
    return ring * (1.0 if chance(rng, 0.5) else -1.0)


def smooth(gate: np.ndarray, seconds: float) -> np.ndarray:
    """A gate, bool (N,), with edges of `seconds`: float64 (N,), 0 to 1."""
    size = max(1, int(seconds * RATE))
    return np.clip(radio.convolve(gate.astype(np.float64), np.hanning(2 * (size // 2) + 3)[1:-1] / (size // 2 + 1)), 0.0, 1.0)


def quieting(length: int, loudness: float, keyed: Keyed, recovery: float) -> np.ndarray:
    """Gain in dB, (length,), that holds noise of `loudness` dB to what transmissions leave of it.

    It is back `recovery` seconds after each.
    """
    gain, ramp = np.zeros(length), np.linspace(1.0, 0.0, max(2, int(recovery * RATE)))
    for first, last, ceiling in keyed:
        depth = min(0.0, ceiling - loudness)
        first, last = max(first, 0), min(max(last, 0), length)
        gain[first:last] = np.minimum(gain[first:last], depth)
        after = gain[last : last + len(ramp)]
        np.minimum(after, depth * ramp[: len(after)], out=after)
    return gain


def open_receiver(rng: Generator, length: int, loudness: float, keyed: Keyed) -> np.ndarray:
    """Noise of the receiver itself, at `loudness` dB where its squelch is open: (length,)."""
    gate = squelch_gate(rng, length)
    if chance(rng, 0.6):
        gate = open_around(rng, gate, keyed)
    track = drifting_noise(rng, length) * smooth(gate, log_uniform(rng, 0.001, 0.03))
    if chance(rng, 0.6):
        for _ in range(int(length / RATE / 60.0 * uniform(rng, 0.3, 2.0) + rng.random())):
            size = min(int(log_uniform(rng, 0.3, 30.0) * RATE), length)
            start = int(rng.random() * (length - size + 1))
            edges = radio.tone_edges(size, 0.01)
            track[start : start + size] += amplitude(uniform(rng, -15.0, 2.0)) * edges * whistle(rng, size)
    track *= amplitude(loudness + quieting(length, loudness, keyed, log_uniform(rng, 0.01, 1.0)))
    if chance(rng, 0.5):
        busy = gate.copy()
        for first, last, _ in keyed:
            busy[max(first, 0) : max(last, 0)] = True
        switched = np.flatnonzero(np.diff(busy.astype(np.int8))).tolist()
        loud = loudness + uniform(rng, -3.0, 15.0)
        for place in switched:
            ring = click(rng)[: length - place]
            track[place : place + len(ring)] += amplitude(loud + 3.0 * rng.standard_normal()) * ring
    return track
