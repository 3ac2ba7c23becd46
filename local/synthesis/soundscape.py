"""Noise and music made up from random numbers, for training where no recordings are at hand.

Noise is Gaussian, coloured between white and brown, in a band, swelling and fading, often with hum or with knocks in it.
Music is notes of a pentatonic scale, each of a few harmonics that die away, two voices at a time. Neither has what real
rooms, streets and orchestras have: they keep a detector from taking silence for a cue, and teach it little more.
"""

import numpy as np

SECONDS = 10.0  # of a sound
SCALE = (0, 2, 4, 7, 9)  # semitones


def make_noise(number: int, rate: int) -> np.ndarray:
    """A noise, (n,) float32 at `rate` Hz, peak 1, by its number."""
    rng = np.random.Generator(np.random.PCG64([1, number]))
    count = round(SECONDS * rate)
    frequency = np.fft.rfftfreq(count, 1 / rate)
    low, high = rng.uniform(0, 300), rng.uniform(0.2, 1.0) * rate / 2
    shape = np.maximum(frequency, 20.0) ** -rng.uniform(0.0, 1.0) / (1 + (low / np.maximum(frequency, 1.0)) ** 4)
    shape /= 1 + (frequency / high) ** 8
    noise = np.fft.irfft(shape * np.fft.rfft(rng.standard_normal(count)), count)
    noise /= noise.std()
    points = rng.uniform(-12, 0, 12)  # dB, from end to end
    noise *= 10 ** (np.interp(np.linspace(0, 11, count), np.arange(12), points) / 20)
    times = np.arange(count) / rate
    if rng.random() < 0.3:  # hum
        noise += sum(
            rng.uniform(0, 0.7) * np.sin(2 * np.pi * rng.choice([50, 60]) * harmonic * times) for harmonic in (1, 2, 3)
        )
    if rng.random() < 0.3:  # knocks
        for start in rng.integers(count, size=rng.integers(3, 30)):
            length = min(rate // 5, count - start)
            noise[start : start + length] += (
                rng.uniform(2, 6) * rng.standard_normal(length) * np.exp(-np.arange(length) / (0.02 * rate))
            )
    return (noise / np.abs(noise).max()).astype(np.float32)


def make_music(number: int, rate: int) -> np.ndarray:
    """A piece of music, (n,) float32 at `rate` Hz, peak 1, by its number."""
    rng = np.random.Generator(np.random.PCG64([2, number]))
    count = round(SECONDS * rate)
    music, key, beat = np.zeros(count), rng.uniform(110, 220), rng.uniform(0.12, 0.4)
    strengths, decay = rng.uniform(0.2, 1.0, 8) / np.arange(1, 9), rng.uniform(0.1, 0.6)
    for octave in (1, 2):
        start = 0
        while start < count:
            length = min(round(rng.integers(1, 5) * beat * rate), count - start)
            pitch = key * octave * 2 ** (SCALE[rng.integers(len(SCALE))] / 12)
            times = np.arange(length) / rate
            for harmonic, strength in enumerate(strengths, start=1):
                if harmonic * pitch < rate / 2:
                    music[start : start + length] += (
                        strength * np.sin(2 * np.pi * harmonic * pitch * times) * np.exp(-times / decay)
                    )
            start += length
    return (music / np.abs(music).max()).astype(np.float32)
