"""Sounds on a loop between the words: key-ups, lost locks, tones, signals, handling, whistles, bursts, other loops.

Used by local/synthesis/stream_scene.py. Random numbers are drawn as in radio.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from local.synthesis import radio, signals
from local.synthesis.radio import RATE, amplitude, chance, uniform
from local.synthesis.receiver import log_uniform
from pyspeech.sad.segments import segments_to_frames

if TYPE_CHECKING:
    from local.synthesis.stream_scene import Talker


def carrier_noise(rng: Generator, talker: Talker, length: int) -> np.ndarray:
    """Noise of a talker's path, about unit power, changing in level: (length,)."""
    body = radio.noise(rng, length, talker.noise_kernel)
    if talker.noise_kind == 1:
        rate = uniform(rng, 4.0, 40.0)
        body *= 1.0 + uniform(rng, 0.3, 0.9) * np.sin(2.0 * np.pi * rate * np.arange(length) / RATE)
    elif talker.noise_kind == 2:
        body = 0.7 * body + radio.crackle(rng, length, uniform(rng, 5.0, 60.0))
    elif talker.noise_kind == 3:
        body = 0.8 * body + radio.tone(length, uniform(rng, 300.0, 2600.0), 0.6)
    return body * amplitude(radio.wander(rng, length, uniform(rng, 0.5, 3.0), uniform(rng, 0.2, 2.0)))


def quiet_place(rng: Generator, spoken: np.ndarray, size: int) -> int:
    """Start of `size` samples with as little speech as a few random tries find.

    spoken: number of speech samples before each sample, (N + 1,).
    """
    starts = [int(rng.random() * (len(spoken) - 1 - size)) for _ in range(8)]
    return min(starts, key=lambda start: spoken[start + size] - spoken[start])


def interference(
    rng: Generator,
    length: int,
    talkers: Mapping[Any, Talker],
    speech: Sequence[tuple[float, float]],
    recorded: Sequence[np.ndarray],
) -> np.ndarray:
    """Sounds that are no speech, at the levels of the talkers, seldom over speech: (length,).

    Key-ups without words, loss of lock (bursts of white noise), tones, data, handling noise, steady whistles. `speech` is a
    list of segments in seconds, `recorded` are recordings (N,) of real modem signals.
    """
    track = np.zeros(length)
    spoken = np.concatenate([[0], np.cumsum(segments_to_frames(speech, length, 1.0 / RATE))])
    minutes = length / RATE / 60.0
    people = [talkers[role] for role in sorted(talkers)]

    def scatter(rate, shortest, longest, make):
        for _ in range(int(rate * minutes + rng.random())):
            size = min(int(shortest * (longest / shortest) ** rng.random() * RATE), length - 1)
            talker = people[int(rng.random() * len(people))]
            radio.add(track, make(talker, size), quiet_place(rng, spoken, size))

    def key_up(talker, size):
        return amplitude(talker.level - talker.snr + 2.0 * rng.standard_normal()) * carrier_noise(rng, talker, size)

    def unlocked(talker, size):
        kernel = radio.sloped_kernel(uniform(rng, -0.5, 0.5), 100.0, uniform(rng, 2200.0, 4000.0), uniform(rng, 2.0, 8.0))
        return amplitude(talker.level + uniform(rng, -8.0, 5.0)) * radio.noise(rng, size, kernel)

    def beep(talker, size):
        return radio.tone(size, uniform(rng, 350.0, 3000.0), amplitude(talker.level + uniform(rng, -20.0, 0.0)))

    def handling(talker, size):
        return amplitude(talker.level + uniform(rng, -25.0, -5.0)) * radio.rustle(rng, size)

    def data(talker, size):
        if recorded and chance(rng, 0.3):
            body = signals.draw_piece(rng, recorded, size)
        else:
            body = signals.draw_signal(rng, size) if chance(rng, 0.8) else radio.keyed_tones(rng, size)
        body = body * amplitude(radio.wander(rng, size, uniform(rng, 0.0, 3.0), 1.0) - radio.level(body))
        return amplitude(talker.level + uniform(rng, -22.0, -2.0)) * radio.convolve(body, talker.kernel)

    def whistle(talker, size):
        pitch = log_uniform(rng, 200.0, 3500.0) * 2.0 ** radio.wander(rng, size, uniform(rng, 0.0, 0.02), 1.0)
        return amplitude(talker.level + uniform(rng, -28.0, -3.0)) * radio.tone_edges(size, 0.01) * radio.sine(pitch)

    for probability, most, shortest, longest, make in (
        (0.6, 4.0, 0.15, 5.0, key_up),
        (0.3, 3.0, 0.1, 6.0, unlocked),
        (0.35, 3.0, 0.1, 1.5, beep),
        (0.5, 5.0, 0.1, 3.0, handling),
        (0.45, 1.0, 2.0, 40.0, data),
        (0.2, 0.8, 3.0, 60.0, whistle),
    ):
        if chance(rng, probability):
            scatter(uniform(rng, 0.3, most), shortest, longest, make)
    if chance(rng, 0.25):
        track += bursts(rng, length, people)
    return track


def bursts(rng: Generator, length: int, people: Sequence[Talker]) -> np.ndarray:
    """Crashes of the whole band, 10 to 300 ms, as loud as the talkers, in words and between them: (length,)."""
    track = np.zeros(length)
    for _ in range(int(length / RATE / 60.0 * log_uniform(rng, 1.0, 15.0))):
        burst = rng.standard_normal(int(log_uniform(rng, 0.01, 0.3) * RATE))
        level = people[int(rng.random() * len(people))].level + uniform(rng, -10.0, 8.0)
        radio.add(track, amplitude(level) * burst * radio.tone_edges(len(burst), 0.002), int(rng.random() * length))
    return track


def murmur(
    rng: Generator, length: int, talkers: Mapping[Any, Talker], floor: float, take_clip: Callable[[str, float], np.ndarray]
) -> np.ndarray:
    """Other loops bleeding through, too weak to be understood: (length,).

    Low-passed voices below the background of `floor` dB. take_clip: as of `stream_scene.render`.
    """
    track = np.zeros(length)
    role = sorted(talkers)[int(rng.random() * len(talkers))]
    kernel = radio.band_kernel(150.0, uniform(rng, 600.0, 1500.0))
    for _ in range(int(length / RATE / 60.0 * uniform(rng, 2.0, 8.0))):
        clip = radio.convolve(take_clip(talkers[role].voice, uniform(rng, 1.0, 5.0)), kernel)
        gain = amplitude(floor + uniform(rng, -14.0, -4.0) - radio.level(clip))
        radio.add(track, clip * gain, int(rng.random() * length))
    return track
