"""Contents of the mini corpus of genuine and fake speech (local/add2022/mini.py): its sets, and each utterance of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from local.synthesis.espeak import VARIANTS
from local.synthesis.fake_speech import LANGUAGES, QUIET, SPEAKING, name_speaker
from local.synthesis.recording_chain import RATE, Recording, draw, speech_bounds
from pyspeech.engine.parts import Parts, fingerprint, in_parts
from pyspeech.errors import UserError

SHORTEST, LONGEST = 1.3, 4.0  # seconds
FEWEST = 2  # genuine utterances of each voice, however small the corpus
SETS = {
    "train": (
        *"tuxpaint-fr tuxpaint-ru tuxpaint-ro tuxpaint-be fillets-cs-small fillets-cs-big fillets-nl-small".split(),
        *"festvox-ru asterisk-ru asterisk-es asterisk-fr".split(),
    ),
    "dev": ("tuxpaint-es", "fillets-nl-big", "asterisk-it"),
    "adapt": ("tuxpaint-da", "asterisk-en"),
    "eval": ("tuxpaint-bg", "tuxpaint-el", "tuxpaint-ca", "ami-en"),
}
GENUINE = {"train": 1000, "dev": 120, "adapt": 80, "eval": 200}  # utterances at scale 1
FAKES = {"train": 2.0, "dev": 2.0, "adapt": 2.0, "eval": 3.0}  # of each genuine utterance
# Engines by family: what they have in common goes from one to the other
FAMILIES = {
    "WORLD": ("world", "world_convert"),
    "Griffin-Lim": ("griffin_lim",),
    "linear prediction": ("lpc",),
    "sinusoids": ("sinusoidal",),
    "phase vocoder": ("phase_vocoder",),
    "formants": ("espeak",),
    "diphones": ("flite_kal",),
    "CLUSTERGEN": ("flite_parametric",),
    "HiFi-GAN": ("hifigan", "hifigan_lj"),
    "MelGAN": ("melgan",),
    "iSTFTNet": ("kokoro",),
    "VITS": ("piper",),
}
NEURAL = ("HiFi-GAN", "MelGAN", "iSTFTNet", "VITS")
FAMILY_OF = {engine: family for family, engines in FAMILIES.items() for engine in engines}
SEEN = ("world", "griffin_lim", "lpc", "espeak", "hifigan")
ADAPTED = (*SEEN, "world_convert", "melgan")
ALL = tuple(FAMILY_OF)
ENGINES = {"train": SEEN, "dev": SEEN, "adapt": ADAPTED, "eval": ALL}
CONDITIONS = {"train": ("clean",), "dev": ("clean",), "adapt": ("noise", "music"), "eval": ("clean", "noise", "music")}
SPEAKERS = {
    "train": VARIANTS["train"][:30],
    "dev": VARIANTS["dev"],
    "adapt": VARIANTS["train"][30:],
    "eval": VARIANTS["test"],
}  # of eSpeak NG
NARROW, WIDE = 3400.0, (6800.0, 7700.0)  # Hz
NARROWED = 0.15  # share of the other recordings that are sent over a telephone too
# Noise floors in dB of the voices' recordings, medians: what is spoken from a text gets as much noise, within HISS dB
FLOORS = {
    "tuxpaint-fr": -20.0,
    "tuxpaint-ru": -25.0,
    "tuxpaint-ro": -27.0,
    "tuxpaint-be": -29.0,
    "fillets-cs-small": -28.0,
    "fillets-cs-big": -27.0,
    "fillets-nl-small": -27.0,
    "fillets-nl-big": -28.0,
    "festvox-ru": -45.0,
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
TASK = 10  # clips that a process measures, or utterances that it makes, at a time


@dataclass
class Item:
    """An utterance to be made. voice: whose recordings its genuine one is of; clip: the recording that it is, is made of or
    stands beside; original: the id of the genuine utterance that is this recording; take: the seed of how it is recorded, which
    a fake shares with that one, so that a copy is of the same words in the same room; seed: of the engine; texts: for engines
    that speak, said one after the other until they are long enough."""

    id: str
    part: str
    system: str  # an engine, or "-": genuine
    speaker: str
    voice: str
    language: str
    clip: Path
    condition: str
    recording: Recording
    original: str
    take: list
    seed: list
    texts: list = field(default_factory=list)
    background: tuple = ()  # path and where in it to begin, from 0 to 1


@dataclass
class Sources:
    """The sources of the corpus: {voice: {speaker: [clip paths]}}, {language: [texts]}, {part: backgrounds(part)}, and
    `fake_speech.find_engines()`.
    """

    clips: dict
    texts: dict
    backgrounds: dict
    engines: dict


def kind_of(engine: str) -> str:
    """Kind of an engine's family: neural, or other; "-" for none."""
    return "-" if engine not in FAMILY_OF else "neural" if FAMILY_OF[engine] in NEURAL else "other"


def plan(
    part: str, scale: float, seed: int, sources: Sources, jobs: int | None = None, parts: Parts | None = None
) -> list[Item]:
    """List of Item of one set: genuine utterances and behind each its fakes, by the set's engines in turn."""
    rng = np.random.Generator(np.random.PCG64([seed, list(SETS).index(part)]))
    genuine = []
    for voice, count in zip(SETS[part], _shares(part, scale, sources), strict=True):
        for speaker, clip, seconds in choose_clips(rng, sources.clips[voice], count, jobs, parts):
            wanted = int(RATE * rng.uniform(max(SHORTEST, 0.6 * min(seconds, LONGEST)), min(seconds, LONGEST)))
            genuine.append((voice, speaker, clip, wanted))
    items, turns = [], {}
    for number, index in enumerate(rng.permutation(len(genuine))):
        voice, language = genuine[index][0], genuine[index][0].split("-")[1]
        fakes = int((number + 1) * FAKES[part]) - int(number * FAKES[part])
        usable = speaking(ENGINES[part], language, sources)
        condition = take_turn(turns, rng, "condition", CONDITIONS[part])
        original = make_genuine(rng, part, len(items), *genuine[index], condition, seed, sources)  # pyright: ignore[reportCallIssue]
        items.append(original)
        for engine in [take_turn(turns, rng, voice, usable) for _ in range(fakes)]:
            items.append(make_fake(rng, original, len(items), engine, sources))
    return items


def speaking(engines: Iterable[str], language: str, sources: Sources) -> list[str]:
    """Select the available engines that speak a language; those that speak English alone come more often there."""
    usable = [engine for engine in engines if engine in sources.engines and language in LANGUAGES.get(engine, (language,))]
    return usable + [engine for engine in usable if LANGUAGES.get(engine) == ("en",)] * 2


def _shares(part, scale, sources):
    """Genuine utterances of each voice of a set: equally many, but no more than half the clips of AMI's few."""
    names = SETS[part]
    total = max(FEWEST * len(names), round(scale * GENUINE[part]))
    few = sum(len(clips) for clips in sources.clips["ami-en"].values()) // 2
    counts = [total // len(names)] * len(names)
    counts = [min(count, few) if voice == "ami-en" else count for voice, count in zip(names, counts, strict=True)]
    for index in range(total - sum(counts)):
        counts[index % (len(counts) - ("ami-en" in names))] += 1
    return counts


def take_turn(turns: dict[Any, list[Any]], rng: np.random.Generator, key: Any, choices: Sequence[Any]) -> Any:
    """The choices in a random order, each once before any comes again."""
    if not turns.get(key):
        turns[key] = [choices[index] for index in rng.permutation(len(choices))]
    return turns[key].pop()


def choose_clips(
    rng: np.random.Generator,
    clips: Mapping[str, Sequence[Path]],
    count: int,
    jobs: int | None = None,
    parts: Parts | None = None,
) -> list[tuple[str, Path, float]]:
    """[(speaker, path, seconds of speech), ...]: `count` clips of {speaker: [paths]} with at least SHORTEST of speech,
    each once; UserError where there are fewer."""
    everything = [(speaker, path) for speaker in sorted(clips) for path in clips[speaker]]
    order, chosen = [everything[index] for index in rng.permutation(len(everything))], []
    while len(chosen) < count and order:
        looked_at, order = order[: max(TASK, count - len(chosen))], order[max(TASK, count - len(chosen)) :]
        lengths = measure([path for _, path in looked_at], jobs, parts)
        chosen += [
            (speaker, path, seconds)
            for (speaker, path), seconds in zip(looked_at, lengths, strict=True)
            if seconds >= SHORTEST and "doppler_honk" not in path.name
        ]
    if len(chosen) < count:
        raise UserError(
            f"{everything[0][1].parent if everything else 'no clips'}: {len(chosen)} clips with "
            f"{SHORTEST:g} s of speech, {count} wanted; choose a smaller scale"
        )
    return chosen[:count]


def measure(paths: Sequence[Path], jobs: int | None, parts: Parts | None) -> list[float]:
    """`speech_seconds` of clips."""
    tasks = {fingerprint(some): some for some in (paths[start : start + TASK] for start in range(0, len(paths), TASK))}
    return sum(in_parts(parts, "clips", lambda some: [speech_seconds(path) for path in some], tasks, jobs).values(), [])


def speech_seconds(path: Path | str) -> float:
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


def make_genuine(
    rng: np.random.Generator,
    part: str,
    number: int,
    voice: str,
    speaker: str,
    clip: Path,
    wanted: int,
    condition: str,
    seed: int,
    sources: Sources,
) -> Item:
    """The Item of a genuine utterance: `wanted` samples of a clip of a speaker of a voice."""
    narrow = voice.startswith("asterisk") or rng.random() < NARROWED
    recording = draw(rng, wanted, NARROW if narrow else rng.uniform(*WIDE))
    name, take = f"{part}-{number:05d}", [seed, list(SETS).index(part), number]
    item = Item(name, part, "-", speaker, voice, voice.split("-")[1], clip, condition, recording, name, take, take)
    if condition != "clean":
        pieces = sources.backgrounds[part][condition]
        item.background = pieces[rng.integers(len(pieces))], float(rng.random())
    return item


def make_fake(rng: np.random.Generator, original: Item, number: int, engine: str, sources: Sources) -> Item:
    """A fake of a genuine Item, or beside it; what comes without noise gets as much as the voice's recordings have."""
    seed = [*original.take[:2], number]
    item = replace(original, id=f"{original.part}-{number:05d}", system=engine, seed=seed)
    if engine in QUIET:
        floor = FLOORS[item.voice] + rng.uniform(-HISS, HISS)
        item.recording = replace(item.recording, floor=max(item.recording.floor, floor))
    if engine in SPEAKING:
        texts = sources.texts[item.language]
        item.texts = [texts[index] for index in rng.integers(0, len(texts), 12)]
        item.speaker = name_speaker(engine, SPEAKERS[item.part], rng)
    return item
