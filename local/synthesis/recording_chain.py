"""One recording chain for genuine and fake speech, so that nothing but the speech itself tells which is which.

Speech of either class is trimmed by one rule, cut at random places to a length drawn beforehand, heard in a room by a
microphone, sent over a line that delays frequencies differently, given the same noise floor (what the speech brings along
is counted), limited to one bandwidth, coded as Ogg Vorbis or not, turned down where it is peaked, brought to a level drawn
beforehand, dithered and written as 16-bit FLAC at 16 kHz. Line and limiter are there as vocoders that set phases by a rule
make waveforms more or less peaked than people do, which level meters would tell.
"""

from dataclasses import dataclass

import numpy as np

from pyspeech.audio.coding import coded

RATE = 16000
MARGIN = 1600  # samples before and after the cut, for the ends of filters and coders
FRAME, HOP = 400, 160  # samples: frames of 25 ms every 10 ms
DEPTH = 30.0  # dB below the loud frames: what is quieter at either end is trimmed
LOWEST = 80.0  # Hz: edge of the high-pass filter
DISPERSION = 0.008  # seconds: the longest delay of the line, drawn anew for each 1 kHz
ATTACK = 40  # samples before and after a peak in which the limiter turns down
VORBIS = 0.5  # compression level of the coder


@dataclass(frozen=True)
class Recording:
    """Conditions of the recording of an utterance, drawn without regard to its class.

    samples: length; band: upper edge in Hz; floor: noise floor in dB of the loud frames; level: RMS in dB of full
    scale; reverberation: of the room, seconds (0: none); colour: of the noise floor, 0 white to 1 brown; equaliser:
    gains in dB at 0, 1, 2 ... 8 kHz; snr: of the background in dB; peak: highest sample in dB of the RMS, at most; coded:
    True where coded as Ogg Vorbis.
    """

    samples: int
    band: float
    floor: float
    level: float
    reverberation: float
    colour: float
    equaliser: tuple
    snr: float
    peak: float
    coded: bool


def draw(rng: np.random.Generator, samples: int, band: float) -> Recording:
    """A Recording."""
    return Recording(
        samples,
        band,
        rng.uniform(-60.0, -30.0),
        rng.uniform(-38.0, -24.0),
        rng.uniform(0.1, 0.35) if rng.random() < 0.5 else 0.0,
        rng.uniform(0.0, 0.95),
        tuple(rng.uniform(-3.0, 3.0, 9)),
        rng.uniform(5.0, 20.0),
        rng.uniform(11.5, 14.0),
        rng.random() < 0.5,
    )


def frame_levels(samples: np.ndarray) -> np.ndarray:
    """Levels in dB of frames of 25 ms every 10 ms: (T,); none for less than a frame."""
    if len(samples) < FRAME:
        return np.zeros(0)
    power = np.concatenate([[0.0], np.cumsum(np.square(samples))])
    starts = np.arange(0, len(samples) - FRAME + 1, HOP)
    return 10.0 * np.log10(np.maximum(power[starts + FRAME] - power[starts], 0.0) / FRAME + 1e-12)


def speech_bounds(samples: np.ndarray) -> tuple[int, int]:
    """(first, last) sample of speech by level; (0, 0) where there is none.

    That is: from the first to the last frame within DEPTH dB of the loud frames (95 % quantile).
    """
    levels = frame_levels(samples)
    if len(levels) == 0 or np.quantile(levels, 0.95) < -80.0:
        return 0, 0
    active = np.flatnonzero(levels > np.quantile(levels, 0.95) - DEPTH)
    return int(active[0]) * HOP, int(active[-1]) * HOP + FRAME


def cut(samples: np.ndarray, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """A random piece of the speech, `wanted` samples and MARGIN on either side (zeros beyond the ends).

    Shorter speech gives a shorter piece, with its margins.
    """
    first, last = speech_bounds(samples)
    wanted = min(wanted, last - first)
    start = first + int(rng.integers(0, last - first - wanted + 1))
    padded = np.concatenate([np.zeros(MARGIN), samples, np.zeros(MARGIN)])
    return padded[start : start + wanted + 2 * MARGIN]


def record(
    piece: np.ndarray, recording: Recording, rng: np.random.Generator, background: np.ndarray | None = None
) -> np.ndarray:
    """A piece with its margins (`cut`), (N + 2 MARGIN,) -> recorded signal (N,) int16.

    background: (N + 2 MARGIN,) of any level, mixed in at recording.snr; None for none.
    """
    piece = line(_microphone(_room(piece, recording.reverberation, rng), recording.equaliser), rng)
    loud = np.quantile(frame_levels(piece), 0.95)
    if background is not None:
        piece = piece + background * 10.0 ** ((loud - recording.snr) / 20.0) / (_rms(background) + 1e-9)
    piece = _bounded(piece + _floor(piece, loud, recording, rng), recording.band)
    if recording.coded:
        piece = coded(piece * 0.1 / _rms(piece), RATE, "OGG", "VORBIS", VORBIS)[: len(piece)]
    jitter = int(rng.integers(-MARGIN // 4, MARGIN // 4 + 1))
    piece = piece[MARGIN + jitter :][: len(piece) - 2 * MARGIN]
    piece = limited(piece - piece.mean(), recording.peak)
    piece = (piece - piece.mean()) / _rms(piece) * 10.0 ** (recording.level / 20.0)
    dither = rng.random(len(piece)) + rng.random(len(piece)) - 1.0
    return np.clip(np.rint(piece * 32767.0 + dither), -32768, 32767).astype(np.int16)


def _rms(samples):
    return np.sqrt(np.mean(np.square(samples)) + 1e-20)


def _room(samples, reverberation, rng):
    """Through an impulse response: the direct sound and a tail of noise that falls by 60 dB in `reverberation` s."""
    from scipy.signal import oaconvolve

    if not reverberation:
        return samples
    size = int(reverberation * RATE)
    tail = rng.standard_normal(size) * 10.0 ** (-3.0 * np.arange(size) / size)
    tail *= 10.0 ** (-rng.uniform(3.0, 12.0) / 20.0) / np.sqrt(np.sum(np.square(tail)))
    tail[0] = 1.0
    return oaconvolve(samples, tail)[: len(samples)]


def _microphone(samples, gains):
    """Linear-phase filter with `gains` in dB every 1 kHz."""
    from scipy.signal import firwin2, oaconvolve

    kernel = firwin2(129, np.linspace(0.0, 1.0, len(gains)), 10.0 ** (np.array(gains) / 20.0))
    return oaconvolve(samples, kernel)[64 : 64 + len(samples)]


def line(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Through an all-pass filter, whose group delay is linear between random values, up to DISPERSION s, every 1 kHz."""
    from scipy.signal import oaconvolve

    size = 1024  # and what comes before the delay is kept
    knots = rng.uniform(0.0, DISPERSION, 9) * RATE + size // 4
    turns = np.cumsum(np.interp(np.arange(size // 2 + 1), np.linspace(0, size // 2, 9), knots)) / size
    turns *= np.rint(2 * turns[-1]) / (2 * turns[-1])  # real at half the rate
    return oaconvolve(samples, np.fft.irfft(np.exp(-2j * np.pi * turns)))[size // 4 :][: len(samples)]


def _floor(samples, loud, recording, rng):
    """Noise that lifts what is quiet in the samples (5 % quantile of their frames) to the floor."""
    from scipy.signal import lfilter

    noise = lfilter([1.0], [1.0, -recording.colour], rng.standard_normal(len(samples)))
    own = 10.0 ** (np.quantile(frame_levels(samples), 0.05) / 10.0)
    wanted = 10.0 ** ((loud + recording.floor) / 10.0)
    return noise / _rms(noise) * np.sqrt(max(wanted - own, 0.1 * wanted))


def _bounded(samples, band):
    """Nothing below LOWEST and above `band` Hz."""
    from scipy.signal import firwin, oaconvolve

    kernel = firwin(801, [LOWEST, band], pass_zero=False, fs=RATE, window="blackman")
    return oaconvolve(samples, kernel)[400 : 400 + len(samples)]


def limited(samples: np.ndarray, peak: float) -> np.ndarray:
    """Samples (N,) turned down around what is higher than `peak` dB above their RMS, smoothly."""
    from scipy.ndimage import minimum_filter1d, uniform_filter1d

    found = samples
    for _ in range(4):  # what is turned down lowers the RMS too
        ceiling = _rms(found) * 10.0 ** (peak / 20.0)
        gains = minimum_filter1d(np.minimum(1.0, ceiling / np.maximum(np.abs(samples), 1e-9)), 4 * ATTACK + 1)
        found = samples * uniform_filter1d(uniform_filter1d(gains, 2 * ATTACK + 1), 2 * ATTACK + 1)
    return found
