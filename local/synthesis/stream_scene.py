"""One simulated stream of mission audio: talkers on a push-to-talk loop, what is heard between them, the recorder.

Used by local/fearless/mini.py, whose docstring says what the corpus is and what it is not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from local.synthesis import radio, receiver, revoice
from local.synthesis.interference import carrier_noise, interference, murmur
from local.synthesis.radio import RATE, amplitude, chance, uniform
from local.synthesis.receiver import log_uniform
from pyspeech.audio.pitch import median_pitch

TakeClip = Callable[[str, float], np.ndarray]  # (voice, seconds) -> samples (N,) of the next clip, 8 kHz
GROUND = ("CC", "CT")  # roles on the ground side of the air-to-ground loop: these key Quindar tones


@dataclass
class Talker:
    """The person and the path of one role in one stream; levels in dB relative to the loudest talker."""

    voice: str
    manner: revoice.Manner
    level: float
    snr: float  # speech level over all noise during its transmissions, dB: 0 to 20, of a talker without radio noise 30 to 50
    kernel: np.ndarray
    noise_kernel: np.ndarray
    band: np.ndarray  # plain band pass behind the level control
    noise_kind: int  # 0 plain, 1 pulsating, 2 crackling, 3 whining
    noisy_mike: bool  # the noise passes the level control with the speech, else it is added behind it
    strength: float  # level control of the voice, 0 none, 1 a constant level
    lift: float  # dB by which it may raise what is quiet, noise in pauses included
    release: float
    drive: float  # dB by which peaks exceed the clipping limit; below -12 nothing is clipped
    before: float  # carrier before and after the words, seconds
    after: float
    burst: float  # level of the switching noise relative to the carrier noise, dB
    late_key: float  # longest piece of the first word that is lost, seconds
    quindar: float | None  # level of the tones relative to the speech, dB; None without


@dataclass
class Transmission:
    """One entry of the transcript: when, who, and how many seconds the text takes to say."""

    start: float
    role: str
    seconds: float


def draw_talkers(rng: Generator, roles: Sequence[str], voices: Mapping[str, str]) -> dict[str, Talker]:
    """Draw a talker for each role. voices: {name: "f" or "m"}; no voice is used twice before all are used."""
    names = [name for _, name in sorted((rng.random(), name) for name in sorted(voices))]
    spread = uniform(rng, 5.0, 40.0)
    typical = uniform(rng, 4.0, 19.0)
    quindar = uniform(rng, -12.0, -2.0) if chance(rng, 0.4) else None
    cast = [names[index % len(names)] for index in range(len(roles))]
    manners = revoice.draw_manners(rng, [voices[name] for name in cast])
    talkers = {}
    for role, name, manner in zip(roles, cast, manners, strict=True):
        snr = float(np.clip(typical + 4.0 * rng.standard_normal() + (3.0 if role in GROUND else 0.0), 0.0, 20.0))
        clean = chance(rng, 0.12)  # a voice from another line, without radio noise
        snr = uniform(rng, 30.0, 50.0) if clean else snr
        low, high = uniform(rng, 150.0, 550.0), uniform(rng, 1800.0, 3700.0)
        talkers[role] = Talker(
            voice=name,
            manner=manner,
            level=-spread * rng.random(),
            snr=snr,
            kernel=radio.channel_kernel(rng, low, high),
            band=radio.band_kernel(0.7 * low, 1.15 * high),
            noise_kernel=radio.sloped_kernel(
                uniform(rng, -0.7, 1.6),
                low * uniform(rng, 0.2, 1.0),
                min(high * uniform(rng, 0.9, 1.4), 4000.0),
                uniform(rng, 2.0, 12.0),
            ),
            noise_kind=int(rng.random() * 8) if chance(rng, 0.6) else 0,
            noisy_mike=not clean and chance(rng, 0.4),
            strength=uniform(rng, 0.0, 0.95),
            lift=min(snr, 20.0) * uniform(rng, 0.0, 0.6),
            release=uniform(rng, 0.05, 0.6),
            drive=uniform(rng, -18.0, 6.0),
            before=uniform(rng, 0.05, 0.6),
            after=uniform(rng, 0.05, 0.8),
            burst=-40.0 if clean else uniform(rng, -12.0, 12.0),
            late_key=uniform(rng, 0.0, 0.15) if chance(rng, 0.3) else 0.0,
            quindar=quindar if role in GROUND else None,
        )
    return talkers


def mark_speech(
    clip: np.ndarray, bridge: float = 0.3, pad: float = 0.04, depth: float = 30.0, margin: float = 9.0
) -> np.ndarray:
    """Mark speech on a clean clip at 8 kHz as a person would: (N,) -> float64 (n, 2), seconds.

    Energy criterion on frames of 25 ms every 10 ms of the band 200 to 3400 Hz: within `depth` dB of the loud frames
    (95 % quantile) and `margin` dB over the quiet ones (5 % quantile; at most 12 dB below the loud). Pauses below
    `bridge` seconds are filled, as in the manual labels of Fearless Steps (of their gaps one in ten is shorter), what
    is shorter than 60 ms is dropped, and each segment grows by `pad` seconds on either side.
    """
    hop, window = RATE // 100, RATE // 40
    if len(clip) < window:
        return np.zeros((0, 2))
    power = np.square(radio.convolve(clip, radio.band_kernel(200.0, 3400.0)))
    cumulated = np.concatenate([[0.0], np.cumsum(power)])
    starts = np.arange(0, len(clip) - window + 1, hop)
    energy = 10.0 * np.log10((cumulated[starts + window] - cumulated[starts]) / window + 1e-10)
    loud, quiet = np.quantile(energy, [0.95, 0.05])
    if loud < -65.0:
        return np.zeros((0, 2))
    active = energy > max(loud - depth, min(quiet + margin, loud - 12.0))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], active.astype(np.int8), [0]]))).reshape(-1, 2)
    merged = []
    for first, last in edges:
        start, end = starts[first] / RATE + 0.0075, (starts[last - 1] + window) / RATE - 0.0075
        if end - start < 0.06 - 0.015:
            continue
        if merged and start - merged[-1][1] < bridge:
            merged[-1][1] = end
        else:
            merged.append([start, end])
    return np.clip(np.array(merged).reshape(-1, 2) + [-pad, pad], 0.0, len(clip) / RATE)


def say(
    rng: Generator, talker: Talker, seconds: float, take_clip: TakeClip, marking: Mapping[str, float] | None = None
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Clips of the talker's voice for about `seconds`: (samples (N,), speech segments (n, 2) in seconds, the median pitch of
    each clip, Hz, nan where it has none).

    `take_clip(voice, seconds)` gives the next clip, float64 at 8 kHz. What lies more than about 12 dB below the noise
    cannot be heard, so the marks leave it out.
    """
    pieces, marks, pitches, position, wanted = [], [], [], 0.0, seconds
    for _ in range(20):
        clip = revoice.revoice(rng, take_clip(talker.voice, wanted), talker.manner)
        found = mark_speech(clip, depth=min(30.0, talker.snr + 14.0), **(marking or {}))
        if not len(found):
            continue
        first = max(int(found[0, 0] * RATE) - RATE // 20, 0)
        last = min(int(found[-1, 1] * RATE) + RATE // 20, len(clip))
        count = np.arange(last - first)
        clip = clip[first:last] * np.clip(np.minimum(count, count[::-1]) / 160, 0, 1)
        active = np.concatenate([clip[int(a * RATE) - first : int(b * RATE) - first] for a, b in found])
        pitches.append(median_pitch(active, RATE))
        pieces.append(clip * amplitude(-radio.level(active)))
        marks.append(found - first / RATE + position)
        pause = int((0.05 + 0.85 * rng.random() ** 2) * RATE)
        pieces.append(np.zeros(pause))
        position += (len(clip) + pause) / RATE
        wanted -= len(clip) / RATE
        if wanted < 0.5:
            break
    if not marks:
        return np.zeros(0), np.zeros((0, 2)), []
    samples, marks = np.concatenate(pieces[:-1]), np.concatenate(marks)
    lost = int(talker.late_key * rng.random() * RATE)
    samples, marks = samples[lost:], np.maximum(marks - lost / RATE, 0.0)
    return samples, marks[marks[:, 1] - marks[:, 0] > 0.05], pitches


def transmit(rng: Generator, talker: Talker, words: np.ndarray, marks: np.ndarray) -> tuple[np.ndarray, int]:
    """One transmission as received, at a speech level of about 0 dB: (samples (N,), offset of the words in samples).

    words, marks: as of `say`.
    """
    lead, tail = int(talker.before * uniform(rng, 0.5, 1.5) * RATE), int(talker.after * uniform(rng, 0.5, 1.5) * RATE)
    body = np.zeros(lead + len(words) + tail)
    body[lead : lead + len(words)] = words
    snr = float(np.clip(talker.snr + 2.5 * rng.standard_normal(), 0.0, max(22.0, talker.snr)))
    static = amplitude(-snr) * carrier_noise(rng, talker, len(body))
    spoken = radio.convolve(body, talker.kernel)
    active = np.concatenate([spoken[lead + int(a * RATE) : lead + int(b * RATE)] for a, b in marks])
    received = spoken * amplitude(-radio.level(active))
    if talker.noisy_mike:
        heard = radio.convolve(static, talker.kernel)
        received += heard * amplitude(-snr - radio.level(heard))
    received *= radio.gain_control(received, 0.0, talker.strength, 0.005, talker.release, talker.lift)
    if talker.drive > -12.0:
        received = radio.clip_softly(received, amplitude(6.0 - talker.drive))
    received = radio.convolve(received, talker.band)
    if not talker.noisy_mike:
        received += static
    click = min(int(uniform(rng, 0.005, 0.06) * RATE), len(received) // 2)
    if click:
        received[:click] += amplitude(talker.burst - snr) * rng.standard_normal(click)
        squelch = min(int(uniform(rng, 0.02, 0.2) * RATE), len(received) // 2)
        received[-squelch:] += amplitude(talker.burst - snr) * rng.standard_normal(squelch)
    return received, lead


def converse(
    rng: Generator,
    transmissions: Sequence[Transmission],
    talkers: Mapping[str, Talker],
    length: int,
    take_clip: TakeClip,
    marking: Mapping[str, float] | None = None,
) -> tuple[np.ndarray, list[tuple[float, float]], list[tuple[int, int, float]], list[float]]:
    """All transmissions of a stream: (track (length,), speech segments as a list of (start, end) in seconds, and where
    somebody is keyed, as a list of (first sample, end, dB of the noise that is heard with the words), pitches as of `say`)."""
    track, speech, keyed, pitches, free = np.zeros(length), [], [], [], 0.0
    for one in transmissions:
        talker = talkers[one.role]
        words, marks, heights = say(rng, talker, one.seconds, take_clip, marking)
        waiting = free > one.start  # the talk is dense: answers come at once
        start = max(one.start + rng.random(), free + uniform(rng, -0.15, 0.5 if waiting else 1.6))
        if not len(marks) or start + len(words) / RATE + 1.0 > length / RATE or start > one.start + 30.0:
            continue
        free = start + len(words) / RATE
        received, lead = transmit(rng, talker, words, marks)
        gain = amplitude(talker.level + 1.5 * rng.standard_normal())
        first = int(start * RATE) - lead
        radio.add(track, received * gain, first)
        if talker.quindar is not None:
            tones = RATE // 4
            loud = gain * amplitude(talker.quindar)
            radio.add(track, radio.tone(tones, 2525.0, loud), first - tones)
            radio.add(track, radio.tone(tones, 2475.0, loud), first + len(received))
        speech += [(start + a, start + b) for a, b in marks]
        pitches += heights
        keyed.append((first, first + len(received), talker.level - talker.snr))
    return track, speech, keyed, pitches


def background(rng: Generator, length: int, floor: float) -> np.ndarray:
    """Sound of a loop with nobody keyed, `floor` dB in the speech band: (length,).

    Hiss, rumble, hum and a tone, all changing.
    """
    total = radio.noise(
        rng,
        length,
        radio.sloped_kernel(
            uniform(rng, -0.5, 1.5), uniform(rng, 20.0, 400.0), uniform(rng, 2000.0, 4000.0), uniform(rng, 2.0, 10.0)
        ),
    )
    if chance(rng, 0.7):
        rumble = radio.noise(rng, length, radio.sloped_kernel(2.0, 20.0, uniform(rng, 120.0, 500.0)))
        total += amplitude(uniform(rng, -12.0, 12.0)) * rumble
    total *= amplitude(radio.wander(rng, length, uniform(rng, 0.3, 2.5), uniform(rng, 0.5, 15.0)))
    if chance(rng, 0.5):
        total *= amplitude(radio.steps(rng, length, uniform(rng, 1.0, 5.0), uniform(rng, 10.0, 90.0)))
    if chance(rng, 0.15):
        # A floor that jumps: another receiver is switched in and out.
        gate = receiver.smooth(receiver.on_off(rng, length, (0.5, 40.0), (0.5, 40.0)), log_uniform(rng, 0.002, 0.1))
        total *= amplitude(-uniform(rng, 15.0, 35.0) * (1.0 - gate))
    if chance(rng, 0.7):
        base = (50.0, 60.0, 60.0, 120.0, 400.0)[int(rng.random() * 5)] * uniform(rng, 0.97, 1.03)
        total += amplitude(uniform(rng, -15.0, 8.0)) * radio.hum(rng, length, base)
    if chance(rng, 0.3):
        total += radio.tone(length, uniform(rng, 200.0, 3200.0), amplitude(uniform(rng, -20.0, 3.0)))
    if chance(rng, 0.4):
        total += amplitude(uniform(rng, 0.0, 12.0)) * radio.crackle(rng, length, uniform(rng, 0.1, 8.0))
    return total * amplitude(floor - radio.level(radio.convolve(total, radio.band_kernel(200.0, 3400.0))))


def receiver_level(rng: Generator, talkers: Mapping[Any, Talker], floor: float) -> float:
    """Level in dB of an open receiver.

    18 to 32 dB over the background of `floor` dB, but audible beside the talkers, and no louder than they are.
    """
    levels = [talker.level for talker in talkers.values()]
    audible = np.median(levels) + uniform(rng, -20.0, -4.0)
    return float(min(max(floor + uniform(rng, 18.0, 32.0), audible), max(levels) + uniform(rng, -6.0, 3.0)))


def control_gain(rng: Generator, track: np.ndarray, quickest: float) -> np.ndarray:
    """A track (length,) behind a level control drawn at random, which takes `quickest` to 6 seconds to turn up again."""
    busy = np.quantile(radio.envelope(track, 0.01, 0.1, 200), 0.9)
    strength, attack, release = uniform(rng, 0.3, 0.9), uniform(rng, 0.005, 0.1), uniform(rng, quickest, 6.0)
    return track * radio.gain_control(track, busy, strength, attack, release, uniform(rng, 3.0, 14.0), 80)


def record(rng: Generator, track: np.ndarray) -> np.ndarray:
    """The recorder: level control, tape response and hiss, drop-outs, coder's holes, level, offset: (N,) -> (N,) within +-1."""
    length = len(track)
    if chance(rng, 0.45):
        track = control_gain(rng, track, 1.0)
    if chance(rng, 0.3):
        track = radio.clip_softly(track, np.quantile(np.abs(track), uniform(rng, 0.97, 0.9995)))
    track = radio.convolve(track, radio.channel_kernel(rng, uniform(rng, 30.0, 250.0), uniform(rng, 2300.0, 3900.0)))
    for _ in range(int(length / RATE / 60.0 * uniform(rng, 0.0, 3.0))):
        size = int(uniform(rng, 0.02, 0.15) * RATE)
        start = int(rng.random() * (length - size))
        track[start : start + size] *= amplitude(-uniform(rng, 6.0, 40.0))
    peak = amplitude(uniform(rng, -22.0, -0.5)) / (np.quantile(np.abs(track), 0.9995) + 1e-9)
    track = track * peak + amplitude(uniform(rng, -85.0, -55.0)) * rng.standard_normal(length)
    if chance(rng, 0.3):
        track = radio.coder_holes(track, uniform(rng, 25.0, 45.0))
    return np.clip(track + (uniform(rng, -0.004, 0.004) if chance(rng, 0.3) else 0.0), -1.0, 1.0)


def second_loop(transmissions: Sequence[Transmission], length: int) -> list[Transmission]:
    """The talk of another loop that is heard as loud as the first: every second transmission, half a stream later."""
    seconds = length / RATE
    moved = [Transmission((one.start + seconds / 2) % seconds, one.role, one.seconds) for one in transmissions[::2]]
    return sorted(moved, key=lambda one: one.start)


def squelch(rng: Generator, samples: np.ndarray, keyed: receiver.Keyed) -> np.ndarray:
    """A stream that is digital silence where nobody is keyed and its receiver is closed: (N,) -> (N,)."""
    gate = receiver.on_off(rng, len(samples), (0.1, 5.0), (1.0, 60.0))
    gate = receiver.open_around(rng, gate, keyed)
    for first, last, _ in keyed:
        gate[max(first, 0) : max(last, 0)] = True
    return samples * gate


def render(
    rng: Generator,
    transmissions: Sequence[Transmission],
    seconds: float,
    voices: Mapping[str, str],
    take_clip: TakeClip,
    signals: Sequence[np.ndarray],
    marking: Mapping[str, float] | None = None,
) -> tuple[np.ndarray, list[tuple[float, float]], list[float]]:
    """One stream: samples float64 (seconds * 8000,) within +-1, its speech segments, a list of (start, end), and the
    pitches of its clips, Hz, as of `say`.

    transmissions: list of Transmission, times from the start of the stream. voices: {name: "f" or "m"}.
    take_clip(voice, seconds): the next clip, float64 at 8 kHz. signals: list of float64 arrays, sounds that are no
    speech. marking: `bridge` and `pad` of `mark_speech`, where these shall not be its own.
    """
    length = int(round(seconds * RATE))
    roles = sorted({one.role for one in transmissions})
    loops = [(draw_talkers(rng, roles, voices), transmissions)]
    if chance(rng, 0.12):
        loops.append((draw_talkers(rng, roles, voices), second_loop(transmissions, length)))
    talkers = {(number, role): talker for number, (some, _) in enumerate(loops) for role, talker in some.items()}
    floor = min(talker.level - min(talker.snr, 20.0) for talker in talkers.values()) - 25.0 * rng.random() ** 1.5
    floor -= 30.0 if chance(rng, 0.15) else 0.0  # squelched: next to nothing between transmissions
    track, speech, keyed, pitches = np.zeros(length), [], [], []
    for some, said in loops:
        heard = converse(rng, said, some, length, take_clip, marking)
        track += heard[0]
        speech, keyed, pitches = sorted(speech + heard[1]), sorted(keyed + heard[2]), pitches + heard[3]
    track += background(rng, length, floor)
    track += interference(rng, length, talkers, speech, signals)
    if chance(rng, 0.3):
        track += murmur(rng, length, talkers, floor, take_clip)
    if chance(rng, 0.75):
        track += receiver.open_receiver(rng, length, receiver_level(rng, talkers, floor), keyed)
    samples = record(rng, track)
    return squelch(rng, samples, keyed) if chance(rng, 0.12) else samples, speech, pitches
