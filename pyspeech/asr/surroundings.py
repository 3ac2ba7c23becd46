"""Utterances in training as recordings have them: with pauses before and behind, joined, at other levels, in noise.

A transducer that has heard utterances alone, cut at their first and last word, hardly recognises speech that follows silence.
A pause is

    floor    noise of the spectrum and level of the utterance's own quietest 0.1 s
    silence  zeros
    noise    white noise of -80 to -40 dB of full scale
    room     the same, falling by 3 to 9 dB an octave
    end      the last 0.3 s of another utterance, and its floor
    folder   a piece of a recording in a folder, of -80 to -40 dB

Every second pause of noise, room or folder goes on under the speech. Noise under an utterance is of these three kinds too, at a
drawn distance from the RMS of its speech. All chance comes from numpy's global generator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import scipy.fft

from pyspeech.asr.config import PAUSE_KINDS, DataConfig
from pyspeech.audio.level import power

QUIET = 0.1  # seconds of which an utterance's floor is measured
SHORTEST, END = 0.05, 0.3  # seconds of a pause, and of another utterance's end
LEVELS = (-80.0, -40.0)  # dB of full scale
SLOPES = (3.0, 9.0)  # dB an octave
LOWEST = 50.0  # Hz: a room's noise rises no further below
Read = Callable[[], np.ndarray]
NOISY = ("noise", "room", "folder")


class Surroundings:
    """Pauses and noises around utterances at `rate` Hz.

    config: its pauses, longest_pause, pause_kinds, join, level_db, noise and snr_db count. noises: recordings for the kind
    folder, which is not drawn without.
    """

    def __init__(self, config: DataConfig, rate: int, noises: Sequence[Path] = ()) -> None:
        self.config, self.rate, self.noises = config, rate, list(noises)
        self.kinds = [kind for kind in PAUSE_KINDS if kind in config.pause_kinds and (noises or kind != "folder")]

    @property
    def used(self) -> bool:
        """Return True where any of it is switched on."""
        return any((self.config.pauses, self.config.join, self.config.level_db, self.config.noise))

    def joins(self) -> bool:
        """Draw whether an utterance is followed by another."""
        return self.config.join > 0 and np.random.random() < self.config.join

    def surround(self, utterances: Sequence[Read], other: Read) -> np.ndarray | None:
        """Samples (N,) of one or several utterances with what is drawn around and between them; None where nothing is.

        utterances: functions that give their samples; other: that gives those of another utterance, for the kind end.
        """
        gain, before, behind, noisy = self._gain(), self._has_pause(), self._has_pause(), self._is_noisy()
        if len(utterances) == 1 and gain == 1 and not (before or behind or noisy):
            return None
        speech = [read() for read in utterances]
        parts, grounds = [], []
        wanted = [before, *[True] * (len(utterances) - 1), behind]
        for place, (drawn, nearest) in enumerate(zip(wanted, [speech[0], *speech], strict=True)):
            if drawn:
                pause, ground = self._pause(nearest, other)
                parts.append(pause)
                grounds += [ground] * (ground is not None)
            if place < len(speech):
                parts.append(np.float32(gain) * speech[place])
        if noisy:
            grounds.insert(0, self._noise_under(gain * np.concatenate(speech)))
        samples = np.concatenate(parts).astype(np.float32)
        return samples + grounds[0](len(samples)) if grounds else samples

    def _gain(self):
        most = self.config.level_db
        return 10 ** (np.random.uniform(-most, most) / 20) if most else 1.0

    def _has_pause(self):
        return bool(self.config.pauses) and np.random.random() < self.config.pauses

    def _pause(self, utterance, other):
        """(samples, what goes on under the speech: a function of the length, or None) of a pause."""
        count = round(np.random.uniform(SHORTEST, self.config.longest_pause) * self.rate)
        kind = self.kinds[np.random.randint(len(self.kinds))]
        if kind in NOISY:
            make = self._noise(kind)
            return (make(count), None) if np.random.random() < 0.5 else (np.zeros(count, np.float32), make)
        if kind == "floor":
            return floor_noise(utterance, count, self.rate), None
        if kind == "end":
            ended = other()
            return np.concatenate([ended[-round(END * self.rate) :], floor_noise(ended, count, self.rate)]), None
        return np.zeros(count, np.float32), None

    def _is_noisy(self):
        return bool(self.config.noise) and np.random.random() < self.config.noise

    def _noise_under(self, speech):
        """A function of the length: noise of a drawn kind and distance from speech (N,)."""
        kinds = [kind for kind in NOISY if self.noises or kind != "folder"]
        level = 10 * np.log10(max(power(speech), 1e-12))
        nearest, farthest = self.config.snr_db
        return self._noise(kinds[np.random.randint(len(kinds))], level - np.random.uniform(nearest, farthest))

    def _noise(self, kind, level=None):
        """A function of the length: noise of a kind, whose colour and, without `level`, level are drawn now."""
        level = np.random.uniform(*LEVELS) if level is None else level
        if kind == "folder":
            piece = _read(self.noises[np.random.randint(len(self.noises))], self.rate)
            return lambda count: at_level(_cut(piece, count), level)
        slope = np.random.uniform(*SLOPES) if kind == "room" else 0.0
        return lambda count: at_level(coloured(count, self.rate, slope), level)


def floor_noise(samples: np.ndarray, count: int, rate: int) -> np.ndarray:
    """`count` samples of noise with the spectrum and level of the quietest 0.1 s of an utterance (N,); zeros of silence."""
    size = min(len(samples), round(QUIET * rate))
    if size < 2 or count == 0:
        return np.zeros(count, np.float32)
    step = max(1, size // 2)
    pieces = [samples[start : start + size] for start in range(0, len(samples) - size + 1, step)]
    quiet = min(pieces, key=power).astype(np.float64)
    quiet = quiet - quiet.mean()
    return _shaped(count, np.abs(np.fft.rfft(quiet * np.hanning(size))), float(np.sqrt(np.mean(np.square(quiet)))))


def coloured(count: int, rate: int, slope: float) -> np.ndarray:
    """`count` samples of noise of RMS 1 that falls by `slope` dB an octave from 50 Hz on."""
    frequencies = np.fft.rfftfreq(1024, 1 / rate)
    return _shaped(count, (np.maximum(frequencies, LOWEST) / LOWEST) ** (-slope / (20 * np.log10(2))), 1.0)


def at_level(samples: np.ndarray, level: float) -> np.ndarray:
    """Samples (N,) scaled to an RMS of `level` dB of full scale; silence as it is."""
    rms = float(np.sqrt(power(samples)))
    return (samples * (10 ** (level / 20) / rms)).astype(np.float32) if rms else samples.astype(np.float32)


def _shaped(count, magnitudes, rms):
    """Gaussian noise (count,) of a spectrum, magnitudes at equal distances from 0 to half the rate, and an RMS."""
    size: int = scipy.fft.next_fast_len(count, real=True)  # pyright: ignore[reportAssignmentType]
    spectrum = np.random.standard_normal((size // 2 + 1, 2)) @ np.array([1, 1j])
    places = np.linspace(0, len(magnitudes) - 1, len(spectrum))
    noise = np.fft.irfft(spectrum * np.interp(places, np.arange(len(magnitudes)), magnitudes), size)[:count]
    found = float(np.sqrt(np.mean(np.square(noise))))
    return (noise * (rms / found)).astype(np.float32) if found else np.zeros(count, np.float32)


def _cut(piece, count):
    """`count` samples of a piece from a random place on, begun again where it ends."""
    begin = np.random.randint(max(1, len(piece) - count + 1))
    return np.take(piece, np.arange(begin, begin + count), mode="wrap")


@functools.lru_cache(maxsize=64)
def _read(path, rate):
    from pyspeech.audio.io import read_audio

    return read_audio(path, rate)[0]
