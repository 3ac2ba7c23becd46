"""Augmentation of training speech: McAdams anonymisation, rooms, noise, music (Li et al. 2022, sections 3.2 and 4); codecs.

The masks on the spectrogram, the paper's SM, are pyspeech/features/specaugment.py.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from pyspeech.audio.level import fit, mix, power
from pyspeech.errors import UserError
from pyspeech.spoof.codecs import through_codec
from pyspeech.spoof.config import AugmentConfig  # noqa: F401 (belongs to this module)
from pyspeech.spoof.mcadams import anonymize

Choice = TypeVar("Choice")


def augment(
    samples: np.ndarray,
    rate: int,
    config: AugmentConfig,
    rng: np.random.Generator,
    noises: Sequence[np.ndarray] = (),
    musics: Sequence[np.ndarray] = (),
    rirs: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """A crop as the detector shall hear it in training: a new array (N,) float32, the same length.

    samples: (N,) at `rate` Hz. config: AugmentConfig. rng: numpy Generator, the only source of chance; what is drawn
    depends neither on the samples nor on what else is switched on. noises, musics: lists of arrays (n,) at `rate`, of
    any length; one is cut at random or repeated. rirs: impulse responses (n,). The speech keeps its RMS in a room, and
    under noise; the sum does not. UserError where something is switched on and the list for it is empty.
    """
    kinds = ("mcadams", "reverberation", "noise", "music")
    seeds = rng.integers(2**63, size=len(kinds))
    streams = {kind: np.random.default_rng(seed) for kind, seed in zip(kinds, seeds, strict=True)}
    streams["codec"] = np.random.default_rng(seeds)  # so that what else is drawn does not depend on whether there are codecs
    samples = np.asarray(samples, dtype=np.float32)
    if drawn(streams["mcadams"], config.mcadams):
        samples = anonymize(samples, one_of(streams["mcadams"], config.coefficients, "coefficients"), rate)
    if drawn(streams["reverberation"], config.reverberation):
        samples = reverberate(samples, one_of(streams["reverberation"], rirs, "impulse responses"))
    for name, pieces, limits in (("noise", noises, config.noise_snr), ("music", musics, config.music_snr)):
        if drawn(streams[name], getattr(config, name)):
            piece = one_of(streams[name], pieces, f"pieces of {name}")
            samples = mix(samples, fit(piece, len(samples), streams[name]), streams[name].uniform(*limits))
    if drawn(streams["codec"], config.codec):
        samples = through_codec(samples, rate, streams["codec"])
    return np.array(samples, dtype=np.float32)


def drawn(rng: np.random.Generator, probability: float) -> bool:
    return rng.random() < probability


def one_of(rng: np.random.Generator, choices: Sequence[Choice], what: str) -> Choice:
    """Draw one of a list uniformly; if it is empty, UserError that says what it lists."""
    if len(choices) == 0:
        raise UserError(f"augmentation: there are no {what}; give some, or set their probability to 0")
    return choices[rng.integers(len(choices))]  # pyright: ignore[reportCallIssue, reportArgumentType]


def reverberate(samples: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Samples (N,) in a room: impulse response (n,), its largest value at no delay; the same length and RMS."""
    from scipy.signal import oaconvolve

    direct = int(np.argmax(np.abs(response))) if len(response) else 0
    if power(samples) == 0 or power(response) == 0:
        return samples
    heard = oaconvolve(samples, np.asarray(response, dtype=np.float32))[direct : direct + len(samples)]
    return heard * np.float32(np.sqrt(power(samples) / max(power(heard), 1e-30)))
