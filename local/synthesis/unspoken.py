"""Sounds where nobody speaks: switched receiver noise, carriers, modems, hum, alarms, music, noises, rooms.

Used by local/synthesis/close_scene.py. What a voice has is in here too, each by itself or with others, so that none of it
will do as a cue: harmonics whose pitch glides, holds or jumps; bursts at the pace of syllables; formants of a fixed or
moving filter; onsets and pauses; levels that rise and fall. `take_sound` is as of `close_scene.render`.
"""

from collections.abc import Callable, Mapping

import numpy as np

from local.synthesis import radio, receiver, signals
from local.synthesis.radio import RATE, amplitude, chance, uniform
from local.synthesis.receiver import log_uniform

# Kinds of stretches and how often each is drawn.
KINDS = {
    "receiver": 3.0,
    "music": 2.5,
    "noise": 1.5,
    "modem": 1.0,
    "signal": 2.0,
    "carrier": 1.0,
    "alarm": 0.5,
    "bursts": 0.5,
    "hum": 0.5,
    "hiss": 0.5,
    "room": 1.0,
}
NEAR, FAR = (-18.0, 3.0), (-3.0, 9.0)  # dB of a room, of the direct sound: a microphone at the mouth, and on a table
MAINS = (50.0, 60.0, 100.0, 120.0, 400.0)  # Hz


def draw_kind(rng: np.random.Generator, kinds: Mapping[str, float] = KINDS) -> str:
    """One of the kinds, by their weights."""
    place = rng.random() * sum(kinds.values())
    for kind, weight in kinds.items():
        place -= weight
        if place < 0:
            return kind
    return kind


def stretch(
    rng: np.random.Generator, kind: str, size: int, take_sound: Callable[[str, float], np.ndarray | None]
) -> np.ndarray:
    """A stretch of (size,) samples of a kind of KINDS, at about 0 dB, sometimes heard through a narrow line or in a room,
    sometimes swelling and fading."""
    sound = _make(rng, kind, size, take_sound)
    if chance(rng, 0.25):
        sound = radio.convolve(sound, radio.channel_kernel(rng, uniform(rng, 50.0, 500.0), uniform(rng, 1800.0, 3900.0)))
    if chance(rng, 0.2):
        sound = heard_in(sound, placed(rng, room_kernel(rng)))
    if chance(rng, 0.2):
        sound = sound * amplitude(radio.wander(rng, size, uniform(rng, 1.0, 6.0), log_uniform(rng, 0.1, 3.0)))
    return sound * amplitude(-radio.level(sound))


def _make(rng, kind, size, take_sound):
    if kind in ("music", "noise"):
        sound = take_sound(kind, size / RATE)
        if sound is not None:
            return sound
        kind = "hiss"
    if kind == "modem":
        sound = take_sound("signals", size / RATE) if chance(rng, 0.6) else None
        return radio.keyed_tones(rng, size) if sound is None else sound
    if kind == "room":
        room = background(rng, size, take_sound)
        return room + heard_in(events(rng, size, take_sound, uniform(rng, -10.0, 20.0)), placed(rng, room_kernel(rng)))
    if kind == "signal":
        return signals.draw_signal(rng, size)
    return {"receiver": _receiver, "carrier": _carriers, "alarm": _alarm, "bursts": _bursts, "hum": _hum, "hiss": _hiss}[kind](
        rng, size
    )


def _receiver(rng, size):
    quiet = radio.noise(rng, size, radio.band_kernel(uniform(rng, 50.0, 500.0), uniform(rng, 1500.0, 3900.0)))
    return receiver.open_receiver(rng, size, 0.0, []) + amplitude(uniform(rng, -40.0, -18.0)) * quiet


def _hum(rng, size):
    return radio.hum(rng, size, MAINS[int(rng.random() * len(MAINS))])


def _hiss(rng, size):
    body = radio.noise(
        rng, size, radio.sloped_kernel(uniform(rng, -0.7, 2.0), uniform(rng, 20.0, 300.0), uniform(rng, 1500.0, 4000.0))
    )
    return body * amplitude(radio.wander(rng, size, uniform(rng, 0.0, 4.0), uniform(rng, 0.2, 5.0)))


def _carriers(rng, size):
    """One to three carriers: steady tones, drifting whistles, Morse code; with little or much noise."""
    sound = amplitude(uniform(rng, -40.0, 0.0)) * rng.standard_normal(size)
    for _ in range(1 + int(rng.random() * 3)):
        kind, level = int(rng.random() * 3), amplitude(uniform(rng, -12.0, 0.0))
        if kind == 0:
            sound += level * receiver.whistle(rng, size)
        elif kind == 1:
            sound += level * radio.tone(size, uniform(rng, 150.0, 3500.0), 1.0)
        else:
            sound += level * signals.morse(rng, size)
    return sound


def _alarm(rng, size):
    """Harmonics of a pitch that holds, jumps or glides, sounding all the time or on and off: dial tones, buzzers, sirens,
    engines, horns."""
    motion, spread = int(rng.random() * 4), uniform(rng, 0.0, 1.0)
    # What moves lies above the pitch of voices: below, nobody could tell it from one on a bad line.
    base, octaves = log_uniform(rng, 350.0 if motion else 60.0, 1200.0), np.zeros(size)
    if motion == 1:
        octaves = radio.wander(rng, size, 0.5 * spread, log_uniform(rng, 0.1, 3.0))
    elif motion == 2:
        octaves = radio.steps(rng, size, 0.6 * spread, log_uniform(rng, 0.15, 2.0))
    elif motion == 3:
        octaves = 0.5 * spread * np.sin(2.0 * np.pi * log_uniform(rng, 0.2, 8.0) * np.arange(size) / RATE)
    pitch = np.clip(base * 2.0**octaves, 40.0, 3600.0)
    phase, slope, total = 2.0 * np.pi * np.cumsum(pitch) / RATE, uniform(rng, 0.0, 2.0), np.zeros(size)
    for harmonic in range(1, 1 + int(log_uniform(rng, 1.0, 24.0))):
        strength = harmonic**-slope * (0.3 + rng.random()) * (harmonic * pitch < RATE / 2 - 200)
        total += strength * np.sin(harmonic * phase + 2.0 * np.pi * rng.random())
    if chance(rng, 0.6):
        gate = receiver.on_off(rng, size, (0.08, uniform(rng, 0.1, 2.0)), (0.05, uniform(rng, 0.1, 4.0)))
        total *= receiver.smooth(gate, log_uniform(rng, 0.003, 0.1))
    if chance(rng, 0.4):
        total = radio.clip_softly(total, uniform(rng, 0.2, 2.0))
    return total + amplitude(uniform(rng, -60.0, -15.0)) * rng.standard_normal(size)


def _bursts(rng, size):
    """Noise that comes and goes at the pace of syllables or faster: machines, water, steps, wind on a microphone."""
    low = log_uniform(rng, 50.0, 1200.0)
    total = np.zeros(size)
    for _ in range(1 + int(rng.random() * 3)):
        body = radio.noise(rng, size, radio.band_kernel(low, min(low * uniform(rng, 1.5, 12.0) + 100.0, 3900.0)))
        depth, knot = uniform(rng, 2.0, 10.0), 1.0 / log_uniform(rng, 0.5, 25.0)
        total += body * amplitude(radio.wander(rng, size, depth, knot))
        low = log_uniform(rng, 50.0, 2500.0)
    return total + amplitude(uniform(rng, -45.0, -15.0)) * rng.standard_normal(size)


def room_kernel(rng: np.random.Generator) -> np.ndarray:
    """The late part of a room's response, (n,) of unit power: noise that dies away, the treble sooner."""
    seconds = 0.1 * 9.0 ** rng.random()  # in which it falls by 60 dB
    size = int(seconds * RATE)
    time = np.arange(size) / size
    dark = radio.noise(rng, size, radio.sloped_kernel(1.0, 60.0, 1500.0))
    kernel = rng.standard_normal(size) * 10.0 ** (-4.0 * time) + dark * 10.0 ** (-3.0 * time)
    kernel[: int(uniform(rng, 0.001, 0.008) * RATE)] = 0.0
    return kernel / np.sqrt(np.sum(np.square(kernel)) + 1e-12)


def placed(rng: np.random.Generator, room: np.ndarray, reach: tuple[float, float] = NEAR) -> np.ndarray:
    """The response from a place: the direct sound, and the room at a level of it within `reach`, NEAR or FAR."""
    kernel = room * amplitude(uniform(rng, *reach))
    kernel[0] = 1.0
    return kernel


def heard_in(samples: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Causal filter: samples (N,), response (K,) -> (N,)."""
    from scipy.signal import oaconvolve

    return oaconvolve(samples, kernel)[: len(samples)]


def background(rng: np.random.Generator, length: int, take_sound: Callable[[str, float], np.ndarray | None]) -> np.ndarray:
    """Steady or slowly changing noise, recorded noise or music, or several of these, at 0 dB: (length,)."""
    total = np.zeros(length)
    kinds = [
        kind
        for kind, probability in (("hiss", 0.6), ("hum", 0.25), ("noise", 0.4), ("music", 0.15))
        if chance(rng, probability)
    ]
    for kind in kinds or ["hiss"]:
        body = _background(rng, kind, length, take_sound)
        total += body * amplitude(uniform(rng, -12.0, 0.0) - radio.level(body))
    return total * amplitude(-radio.level(total))


def _background(rng, kind, length, take_sound):
    sound = take_sound(kind, length / RATE) if kind in ("noise", "music") else None
    if sound is not None:
        return sound
    return _hum(rng, length) if kind == "hum" else _hiss(rng, length)


def events(
    rng: np.random.Generator, length: int, take_sound: Callable[[str, float], np.ndarray | None], level: float
) -> np.ndarray:
    """Single sounds here and there, knocks, handling, tones, recorded ones, of `level` dB: (length,)."""
    track = np.zeros(length)
    for _ in range(int(length / RATE / 60.0 * uniform(rng, 1.0, 12.0)) + 1):
        size = min(int(0.05 * 60.0 ** rng.random() * RATE), length - 1)
        kind = int(rng.random() * 4)
        sound = take_sound("noise", size / RATE) if kind == 0 else None
        if sound is None:
            sound = (
                radio.rustle(rng, size)
                if kind <= 1
                else _knock(rng, size)
                if kind == 2
                else radio.tone(size, uniform(rng, 200.0, 3500.0), 1.0)
            )
        sound = sound * amplitude(level + 4.0 * rng.standard_normal() - radio.level(sound))
        radio.add(track, sound, int(rng.random() * (length - size)))
    return track


def _knock(rng, size):
    """A blow on a table or a key: noise that dies away within 10 to 150 ms."""
    return rng.standard_normal(size) * np.exp(-np.arange(size) / (uniform(rng, 0.003, 0.05) * RATE))
