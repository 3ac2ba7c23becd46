"""A vowel /a/ in speech that nobody has labelled, for Figure 2 of Li et al. 2022: a steady voiced frame by its formants.

A frame is voiced by the autocorrelation (pyspeech/features/pitch.py); its formants are the sharp poles of the linear
prediction of pre-emphasised speech; they have to be those of an open vowel (Hillenbrand et al. 1995 measure on average
768 and 1333 Hz of men, 936 and 1551 of women), with a third above them, and to stay for 50 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

RATE = 16000  # Hz, of the speech
SIZE, SHIFT = 320, 160  # samples of a frame, and from frame to frame
PERIODIC = 0.85  # autocorrelation
HIGHEST = 180.0  # Hz: of a higher voice, linear prediction shows the harmonics instead of formants
LEVEL = 0.1  # of the mean square of the loudest frame
BROADEST = 400.0  # Hz: the bandwidth of a formant
LOWEST = 200.0  # Hz: what is below is the voice itself
FIRST, RATIO, THIRD = (650.0, 1100.0), (1.35, 2.1), (1900.0, 4000.0)  # F1 in Hz, F2 / F1, F3 in Hz
STEADY = 0.1  # of the first two formants from frame to frame
AROUND = 2  # frames on each side


@dataclass(frozen=True)
class Vowel:
    """start: the first of the SIZE samples of its frame; strength: of its voice, 0 to 1; pitch and formants (three) in Hz."""

    start: int
    strength: float
    pitch: float
    formants: tuple


def find_vowel(samples: np.ndarray) -> Vowel | None:
    """The most strongly voiced Vowel /a/ of samples (N,) at RATE; None where there is none."""
    import numpy as np

    from pyspeech.features.config import FbankConfig
    from pyspeech.features.pitch import periodicity

    frames = FbankConfig(RATE, window_ms=1000 * SIZE // RATE, shift_ms=1000 * SHIFT // RATE, stack=1, stack_shift=1)
    pitch, strength, energy = (values.double().numpy() for values in periodicity(samples, frames))
    candidates = np.flatnonzero((strength > PERIODIC) & (pitch < HIGHEST) & (energy > LEVEL * energy.max(initial=0.0)))
    found = np.full((len(strength), 3), np.nan)
    found[candidates] = formants(samples, candidates * SHIFT)
    good = [index for index in candidates if _is_open(found[index]) and _is_steady(found, index)]
    if not good:
        return None
    best = max(good, key=lambda index: strength[index])
    return Vowel(int(best * SHIFT), min(1.0, float(strength[best])), float(pitch[best]), tuple(found[best].tolist()))


def formants(samples: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The first three formants in Hz, (frames, 3), of the frames (SIZE,) of samples (N,) at RATE that begin at `starts`; nan
    where there are fewer."""
    import numpy as np

    from pyspeech.spoof.mcadams import burg
    from pyspeech.spoof.roots import find_roots

    if len(starts) == 0:
        return np.zeros((0, 3))
    samples = np.asarray(samples, dtype=np.float64)
    emphasised = np.pad(np.append(samples[:1], samples[1:] - 0.97 * samples[:-1]), (0, SIZE))
    frames = np.stack([emphasised[start : start + SIZE] for start in starts], axis=1) * np.hamming(SIZE)[:, None]
    poles = find_roots(burg(frames)[0])
    bandwidth = -np.log(np.maximum(np.abs(poles), 1e-12)) * RATE / np.pi
    frequency = np.angle(poles) * RATE / (2 * np.pi)
    frequency = np.where((bandwidth < BROADEST) & (frequency > LOWEST), frequency, np.nan)
    return np.sort(frequency, axis=0)[:3].T  # nan is last


def _is_open(found):
    first, second, third = found
    return FIRST[0] < first < FIRST[1] and RATIO[0] < second / first < RATIO[1] and THIRD[0] < third < THIRD[1]


def _is_steady(found, index):
    import numpy as np

    around = found[max(0, index - AROUND) : index + AROUND + 1, :2]
    return len(around) == 2 * AROUND + 1 and bool(np.all(np.abs(around / found[index, :2] - 1) < STEADY))
