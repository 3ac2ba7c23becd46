"""One simulated recording of close speech, or of no speech at all: talkers in a room, what else is heard, the recorder.

Used by local/detector/scenes.py. The blocks that it builds with are those of local/synthesis/radio.py.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.random import Generator

from local.synthesis import radio, revoice
from local.synthesis.radio import RATE, amplitude, chance, uniform
from local.synthesis.receiver import log_uniform
from local.synthesis.stream_scene import TakeClip, control_gain, mark_speech
from local.synthesis.unspoken import FAR, KINDS, NEAR, background, draw_kind, events, heard_in, placed, room_kernel, stretch
from pyspeech.audio.coding import coded
from pyspeech.audio.pitch import median_pitch

TakeSound = Callable[[str, float], np.ndarray | None]  # (kind, seconds) -> samples (N,) at 8 kHz, None without any
# What counts as speech between two words: `mark_speech` with these differs least from the phones of 60 sentences of
# festvox-ru, pauses of at least 0.1 s between them (missed 1.5 %, false 2.5 %).
WORDS = {"bridge": 0.12, "pad": 0.015}
AUDIBLE = 12.0  # dB below the noise in the speech band: what is weaker is not heard, so it is no speech
CODERS = (  # format and subtype of libsndfile, compression levels from ... to
    ("WAV", "ULAW", None),
    ("WAV", "ALAW", None),
    ("WAV", "GSM610", None),
    ("WAV", "IMA_ADPCM", None),
    ("OGG", "VORBIS", (0.1, 1.0)),
    ("MP3", "MPEG_LAYER_III", (0.3, 0.95)),
)


def render(
    rng: Generator, seconds: float, people: Mapping[str, str], take_clip: TakeClip, take_sound: TakeSound
) -> tuple[np.ndarray, list[tuple[float, float]], list[float]]:
    """A recording of close speech: samples float64 (seconds * 8000,) within +-1, and its speech segments, a list of
    (start, end) in seconds, with every pause of more than WORDS["bridge"], and the median pitches of the clips in Hz.

    people: {name: "f" or "m"}. take_clip(voice, seconds): the next clip, float64 at 8 kHz, of about so many seconds.
    take_sound(kind, seconds): as many seconds of "noise", "music" or "signals", float64 at 8 kHz, or None without any.
    """
    length = int(round(seconds * RATE))
    snr = _draw_snr(rng)
    speech, pitches, track = [], [], np.zeros(length)
    spread, pause = uniform(rng, 0.0, 15.0), 0.12 * 25.0 ** rng.random()
    room = room_kernel(rng) if chance(rng, 0.5) else None
    reach = FAR if chance(rng, 0.3) else NEAR
    microphone = radio.channel_kernel(rng, uniform(rng, 30.0, 250.0), uniform(rng, 2800.0, 4000.0))
    names = sorted(people)
    manners = revoice.draw_manners(rng, [people[name] for name in names], revoice.YOUNG_PITCHES, apart=0.4)
    tracks = {name: (np.zeros(length), manner, -spread * rng.random()) for name, manner in zip(names, manners, strict=True)}
    position = uniform(rng, 0.0, 2.5)
    name = names[int(rng.random() * len(names))]
    while position < seconds:
        if chance(rng, 0.3):
            name = names[int(rng.random() * len(names))]
        own, manner, level = tracks[name]
        clip, marks, pitch = _words(rng, take_clip(name, uniform(rng, 0.5, 9.0)), manner, snr + level)
        if len(marks) and position + len(clip) / RATE < seconds:
            radio.add(own, clip * amplitude(level + 2.0 * rng.standard_normal()), int(position * RATE))
            speech += [(position + start, position + end) for start, end in marks]
            pitches.append(pitch)
        position += len(clip) / RATE + pause * rng.random() ** 2 + (uniform(rng, 1.0, 10.0) if chance(rng, 0.06) else 0.0)
    for own, _, _ in tracks.values():
        # Each talker is somewhere else in the same room.
        track += own if room is None else heard_in(own, placed(rng, room, reach))
    track = radio.convolve(track, microphone)
    if speech:
        active = np.concatenate([track[int(start * RATE) : int(end * RATE)] for start, end in speech])
        track *= amplitude(-radio.level(active))
    if snr < 60.0:
        track += background(rng, length, take_sound) * amplitude(-snr)
    if chance(rng, 0.35):
        track += events(rng, length, take_sound, uniform(rng, -35.0, 0.0))
    return record(rng, track), speech, pitches


def render_without_speech(
    rng: Generator, seconds: float, take_sound: TakeSound, kinds: Mapping[str, float] = KINDS
) -> np.ndarray:
    """A recording in which nobody speaks, float64 (seconds * 8000,) within +-1: stretches of 3 to 40 s of the kinds of
    unspoken.KINDS, or of some of them, {kind: weight}, each at a level of its own. take_sound: as of `render`."""
    length = int(round(seconds * RATE))
    track, position = np.zeros(length), 0
    while position < length:
        size = min(int(log_uniform(rng, 3.0, 39.0) * RATE), length - position)
        body = _faded(rng, stretch(rng, draw_kind(rng, kinds), size, take_sound))
        track[position : position + size] = body * amplitude(uniform(rng, -30.0, 0.0))
        position += size
    if chance(rng, 0.6):
        track += background(rng, length, take_sound) * amplitude(uniform(rng, -60.0, -15.0))
    return record(rng, track)


def draw_interruptions(rng: Generator, seconds: float) -> list[float]:
    """Lengths, in whole hundredths of a second, of the stretches without speech that interrupt a recording of so many seconds;
    often none."""
    count = int(seconds / 60.0 * uniform(rng, 0.0, 3.0)) if chance(rng, 0.4) else 0
    return [round(log_uniform(rng, 1.0, 12.0), 2) for _ in range(count)]


def interrupt(
    rng: Generator,
    samples: np.ndarray,
    speech: np.ndarray | Sequence[tuple[float, float]],
    lengths: Sequence[float],
    take_sound: TakeSound,
) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """A recording with stretches as of `render_without_speech` put into its pauses, which grow by that: as `render`.

    samples (N,), speech: what `render` gave. lengths: of the stretches, seconds. Their levels are -30 to 6 dB of the speech.
    """
    pauses = np.concatenate([[0.0], np.ravel(speech), [len(samples) / RATE]]).reshape(-1, 2)
    places = np.append(pauses[pauses[:, 1] - pauses[:, 0] > 0.2].mean(axis=1), len(samples) / RATE)
    active = np.concatenate([samples[:0], *(samples[int(start * RATE) : int(end * RATE)] for start, end in speech)])
    loud = radio.level(active if len(active) else samples)
    moved = np.reshape(speech, (-1, 2)).copy()
    chosen = [(places[int(rng.random() * len(places))], seconds) for seconds in lengths]
    for place, seconds in sorted(chosen, reverse=True):
        body = _faded(rng, stretch(rng, draw_kind(rng), round(seconds * RATE), take_sound))
        body = np.clip(body * amplitude(loud + uniform(rng, -30.0, 6.0)), -1.0, 1.0)
        samples = np.insert(samples, int(place * RATE), body)
        moved[moved[:, 0] >= place] += len(body) / RATE
    return samples, [tuple(segment) for segment in moved.tolist()]


def _faded(rng, body):
    """A stretch (N,) with edges of 1 to 300 ms."""
    count = np.arange(len(body))
    return body * np.clip(np.minimum(count, count[::-1]) / (uniform(rng, 0.001, 0.3) * RATE), 0.0, 1.0)


def _draw_snr(rng):
    """dB of the speech over all noise: more than 60 is none at all."""
    part = rng.random()
    if part < 0.4:
        return uniform(rng, 30.0, 75.0)
    return uniform(rng, 10.0, 30.0) if part < 0.8 else uniform(rng, -2.0, 10.0)


def _words(rng, clip, manner, snr):
    """A clip as it is said here, from its first to its last word, at a level of 0 dB: (samples (N,), marks (n, 2), its median
    pitch in Hz)."""
    clip = revoice.revoice(rng, clip, manner)
    found = mark_speech(clip, depth=float(np.clip(snr + AUDIBLE, 12.0, 30.0)), **WORDS)
    if not len(found):
        return np.zeros(RATE // 10), found, float("nan")
    first = max(int((found[0, 0] - uniform(rng, 0.03, 0.3)) * RATE), 0)
    last = min(int((found[-1, 1] + uniform(rng, 0.05, 0.3)) * RATE), len(clip))
    count = np.arange(last - first)
    clip = clip[first:last] * np.clip(np.minimum(count, count[::-1]) / 160, 0, 1)
    marks = found - first / RATE
    active = np.concatenate([clip[int(start * RATE) : int(end * RATE)] for start, end in marks])
    return clip * amplitude(-radio.level(active)), marks, median_pitch(active, RATE)


def record(rng: Generator, track: np.ndarray) -> np.ndarray:
    """The recorder: level control, clipping, a telephone band, a coder, level and rounding: (N,) -> (N,) within +-1."""
    length = len(track)
    if chance(rng, 0.2):
        track = control_gain(rng, track, 0.3)
    if chance(rng, 0.15):
        track = radio.clip_softly(track, np.quantile(np.abs(track), uniform(rng, 0.95, 0.9995)) + 1e-9)
    if chance(rng, 0.3):
        track = radio.convolve(track, radio.band_kernel(uniform(rng, 150.0, 400.0), uniform(rng, 2400.0, 3900.0)))
    track = track / (np.abs(track).max() + 1e-9)
    if chance(rng, 0.35):
        track = _coded(rng, track * amplitude(-uniform(rng, 0.5, 20.0)))[:length]
        track = np.pad(track, (0, length - len(track)))
    track = (
        track
        / (np.abs(track).max() + 1e-9)
        * amplitude(-(uniform(rng, 20.0, 50.0) if chance(rng, 0.2) else uniform(rng, 0.0, 20.0)))
    )
    if chance(rng, 0.5):
        track = track + amplitude(uniform(rng, -95.0, -65.0)) * rng.standard_normal(length)
    return np.clip(track + (uniform(rng, -0.004, 0.004) if chance(rng, 0.2) else 0.0), -1.0, 1.0)


def _coded(rng, track):
    """Coded and decoded by one of CODERS."""
    container, kind, levels = CODERS[int(rng.random() * len(CODERS))]
    return coded(track, RATE, container, kind, None if levels is None else uniform(rng, *levels))
