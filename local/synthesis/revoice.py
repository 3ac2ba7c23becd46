"""One recorded voice as many: pitch, vocal tract and pace of a talker drawn apart, whispers among them.

The packages' voices are women and high-pitched men; detectors that learn from these alone miss low-pitched men and children.
Three talkers in four are analysed and synthesised by WORLD (Morise et al. 2016) without its band aperiodicity, which needs
more bandwidth than 8 kHz has: the breathiness of voiced frames is drawn instead. The others are resampled, so that natural
waveforms remain: pitch, formants and pace move together, as on a tape of another speed.

Random numbers are drawn as in radio.py. Samples are float64 at 8 kHz.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from local.synthesis.radio import RATE, chance, uniform
from local.synthesis.receiver import log_uniform
from local.synthesis.vocoders import warp

TYPICAL = {"f": 215.0, "m": 130.0}  # Hz: about the median of the packages' voices
SPEEDS = {"f": (55, 105), "m": (70, 112)}  # percent, of those that are resampled
# Median pitch of those that WORLD synthesises: weight, Hz from, to; each octave of a range as likely as any other
PITCHES = ((0.45, 62.0, 105.0), (0.22, 105.0, 180.0), (0.17, 180.0, 300.0), (0.16, 300.0, 520.0))
# With more voices of children, for close speech
YOUNG_PITCHES = ((0.38, 62.0, 105.0), (0.2, 105.0, 180.0), (0.17, 180.0, 300.0), (0.25, 300.0, 600.0))
GOLDEN = (5.0**0.5 - 1.0) / 2.0  # multiples of it, modulo 1, are spread evenly however many there are
LIMITS = (50.0, 650.0)  # Hz, of single frames
SHIFT_MS = 5.0
TRACT = 0.25  # exponent: formants move by the fourth root of the pitch; those of women and children by about this


@dataclass
class Manner:
    """Manner of speaking of a talker. `speed` alone counts where there is one; else all others."""

    speed: int | None = None  # percent: clips are resampled by 100 / speed
    pitch: float = 0.0  # Hz, of a clip whose median is `typical`; 0: whispered
    typical: float = 1.0  # Hz
    liveliness: float = 1.0  # exponent of the deviations from the median
    tract: float = 1.0  # factor of the formants
    pace: float = 1.0  # 1.25 is a quarter faster
    breath: tuple[float, float] = (0.0, 0.0)  # amplitude of noise in voiced frames, at 0 and at 4000 Hz
    jitter: float = 0.0  # random deviation of the pitch from frame to frame, natural logarithm


def draw_manners(
    rng: Generator, sexes: Sequence[str], pitches: Sequence[tuple[float, float, float]] = PITCHES, apart: float = 0.0
) -> list[Manner]:
    """Draw the manner of each talker of a recording. sexes: of their clips, "f" a woman's and "m" a man's.

    Their pitches are spread over all that there are, as a few talkers drawn by chance would not be.

    pitches: as PITCHES. apart: the share of talkers whose formants do not follow their pitch, 0 to 1.
    """
    first = rng.random()
    return [_draw_manner(rng, sex, (first + number * GOLDEN) % 1.0, pitches, apart) for number, sex in enumerate(sexes)]


def _draw_manner(rng, sex, place, pitches, apart):
    if chance(rng, 0.25):
        return Manner(speed=int(uniform(rng, *SPEEDS[sex])))
    pitch = pitch_at(place, pitches)
    if apart and chance(rng, apart):  # no number is drawn without: the other corpora stay as they are
        tract = np.exp(0.15 * rng.standard_normal())
    else:
        tract = (pitch / TYPICAL[sex]) ** TRACT * np.exp(0.08 * rng.standard_normal())
    return Manner(
        pitch=0.0 if chance(rng, 0.04) else pitch,
        typical=TYPICAL[sex],
        liveliness=uniform(rng, 0.5, 1.4),
        tract=float(np.clip(tract, 0.7, 1.4)),
        pace=log_uniform(rng, 0.8, 1.25),
        breath=(uniform(rng, 0.01, 0.15), uniform(rng, 0.2, 0.9)),
        jitter=0.05 * rng.random() ** 2,
    )


def pitch_at(place: float, pitches: Sequence[tuple[float, float, float]] = PITCHES) -> float:
    """The median pitch in Hz below which lies the share `place` (0 to 1) of `pitches`, as PITCHES."""
    above = np.cumsum([0.0, *(weight for weight, _, _ in pitches)])
    edges = [pitches[0][1], *(high for _, _, high in pitches)]
    return float(np.exp(np.interp(place, above, np.log(edges))))


def revoice(rng: Generator, samples: np.ndarray, manner: Manner) -> np.ndarray:
    """A clip (N,) as a talker of that Manner says it: about (N / pace,)."""
    from scipy.signal import resample_poly

    if manner.speed is not None:
        return resample_poly(samples, 100, manner.speed)
    if len(samples) < RATE // 10:
        return samples
    return _synthesized(rng, np.ascontiguousarray(samples, np.float64), manner)


def _synthesized(rng, samples, manner):
    import pyworld

    found, times = pyworld.dio(samples, RATE, f0_floor=60.0, f0_ceil=600.0, frame_period=SHIFT_MS, allowed_range=0.1)
    envelope = warp(pyworld.cheaptrick(samples, found, times, RATE, f0_floor=60.0), manner.tract)
    voiced = (found > 0) & (manner.pitch > 0)
    deviation = manner.jitter * rng.standard_normal(len(found))
    pitch = manner.pitch * (np.maximum(found, 1.0) / manner.typical) ** manner.liveliness * np.exp(deviation)
    pitch = np.where(voiced, np.clip(pitch, *LIMITS), 0.0)
    noise = np.where(voiced[:, None], np.linspace(manner.breath[0], manner.breath[1], envelope.shape[1]), 1.0)
    if manner.pitch == 0:
        # A whisper lacks the low frequencies that the vocal folds make: 12 dB an octave below 800 Hz.
        frequency = np.linspace(0.0, RATE / 2, envelope.shape[1])
        envelope = envelope * np.minimum(np.maximum(frequency, 50.0) / 800.0, 1.0) ** 4
    return pyworld.synthesize(pitch, envelope, noise, RATE, SHIFT_MS / manner.pace)
