"""A small synthetic corpus of en-IN, hi-IN, ta-IN and gu-IN, for egs/indic without the real corpora.

Utterances of one to six words out of 60 of each language (drawn from local/indic/text.py), spoken by eSpeak NG
(local/synthesis/espeak.py), at 16 kHz. As in Table 1 of Joshi et al. 2021 the languages are unequal, two large and two small,
though not by as much: a tenth of hundreds would be too few to learn from. Speakers are eSpeak NG's voice variants, each
with its own pitch, range, rate, length of the vocal tract (played faster or slower) and spectral tilt; a variant may be
several speakers, but none is heard in two of train, dev and test. Dev and test are
of four to six words, all heard in training, in sequences that are not: long enough to tell whether it pays to stop the
decoders of other languages early. Level (20 dB) and noise (15 to 35 dB below the
speech, white to brown) differ from utterance to utterance, the rate a little too.

Limits, to keep in mind with any figure from this corpus: no human voice is in it. eSpeak NG is far from human speech (a
recogniser of English got 94 % of its words wrong, of a human prompt's 27 %), says a word nearly alike every time, and
its variants differ less than people do. The words come in random order, so that there is no grammar to learn; they
are few, and the same names of months and countries sound much alike in several languages. The English is that of
eSpeak NG in the sounds of its Hindi voice, an accent that nobody has judged. A system that does well here has been
built right; how well it does on Indian speech only a real corpus tells.

The same seed and scale give the same samples wherever the C library computes alike: `digest` checks it against the
ones in this file.
"""

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from local.indic import text as indic_text
from local.indic.languages import choose_codes
from local.indic.transcribed import write_corpus
from local.synthesis import espeak
from pyspeech.data.audio_files import digest, write_audio
from pyspeech.data.manifests import Utterance, clear
from pyspeech.engine.parts import Parts, in_parts

RATE = 16000
SEED = 2021
SPLITS = ("train", "dev", "test")
# Utterances at scale 1
TRAIN = {"en-IN": 1600, "hi-IN": 1700, "ta-IN": 700, "gu-IN": 800}
HELD_OUT = {"dev": 50, "test": 100}
UTTERANCES_PER_SPEAKER = 12
# eSpeak NG's 22050 Hz resampled by these, and taken as 16 kHz: vocal tracts from 1.1 to 0.92 times as long
TRACTS = ((4, 5), (7, 9), (3, 4), (8, 11), (5, 7), (7, 10), (2, 3))
LEXICON = 60  # words in use: more would take longer to learn than anybody waits for on two cores
# Shares of utterances of one word, of two ...
LENGTHS = {"train": (0.15, 0.25, 0.25, 0.15, 0.1, 0.1), "dev": (0, 0, 0, 0.2, 0.4, 0.4), "test": (0, 0, 0, 0.2, 0.4, 0.4)}
LETTERS = 64  # of an utterance, at most, but that it has as many words as the shortest
# SHA-256 (of `digest`) of the corpora that figures are published for: scale -> digest, with SEED
DIGESTS = {1.0: "7eda48231e63cee8b090132f2111ff66c2713cebef79b70882df5a2ebd93f4bc"}


@dataclass
class Spoken:
    """An utterance to be made: where to write it, who says what, and how it is recorded."""

    id: str
    path: Path
    text: str
    language: str
    speaker: str
    split: str
    voice: espeak.Voice
    tract: tuple  # the speaker's, one of TRACTS
    tilt: float  # of the speaker's microphone: coefficient of a one-pole low-pass filter
    seed: list  # of level and noise


def prepare(
    out: str | Path,
    log: logging.Logger,
    *,
    scale: float = 1.0,
    languages: Sequence[str] = (),
    seed: int = SEED,
    jobs: int | None = None,
    where: Any = None,
    parts: Parts | None = None,
) -> None:
    """Make the corpus in `out`: spoken/<language>/<split>/*.flac and {train,dev,test}.jsonl.gz.

    scale: share of the training utterances; dev, test and the number of words go with its square root.
    jobs: processes, by default the cores of the stage. where: see espeak.synthesize. languages: codes or names of those to
    make, all where empty. Manifests are written when all audio is there; a stage that was killed goes on with the speakers
    who are missing (pyspeech.engine.parts). UserError where the package of eSpeak NG
    cannot be had or does not run, and for a language that the corpus does not have.
    """
    folder, languages = Path(out).resolve(), choose_codes(list(TRAIN), languages, "corpus=mini")
    where = where or espeak.library()
    utterances = [one for language in languages for one in plan(folder, language, scale, seed)]
    clear(folder, SPLITS, "spoken", keep=[one.path for one in utterances])
    record_all(utterances, where, jobs, log, parts)
    write_corpus(
        [Utterance(one.id, str(one.path), one.text, one.language, one.speaker, one.split) for one in utterances],
        folder,
        log,
        "the synthetic corpus",
    )
    expected = DIGESTS.get(scale) if seed == SEED and languages == list(TRAIN) else None
    if expected and digest(folder.glob("spoken/*/*/*.flac")) != expected:
        log.warning(
            "these are not the very same samples as those of the published figures: another C library or "
            "processor; figures can differ a little"
        )


def plan(folder: Path, language: str, scale: float, seed: int = SEED) -> list[Spoken]:
    """Texts and speakers of one language: list of Spoken."""
    number = list(TRAIN).index(language)
    rng = np.random.Generator(np.random.PCG64([seed, number]))
    words = choose_words(rng, language, scale)
    counts = {
        "train": max(4, round(scale * TRAIN[language])),
        **{split: max(2, round(math.sqrt(min(1.0, scale)) * count)) for split, count in HELD_OUT.items()},
    }
    taken, planned = set(), []
    for split in SPLITS:
        texts = make_texts(rng, words, counts[split], taken, LENGTHS[split])
        speakers = make_speakers(rng, language, split, counts[split])
        for index, text in enumerate(texts):
            speaker, voice, tract, tilt = speakers[index % len(speakers)]
            voice = espeak.Voice(
                voice.language,
                voice.variant,
                voice.rate + int(rng.integers(-8, 9)),
                voice.pitch + int(rng.integers(-3, 4)),
                voice.range,
            )
            name = f"{language}-{split}-{index:04d}"
            planned.append(
                Spoken(
                    name,
                    folder / "spoken" / language / split / f"{name}.flac",
                    text,
                    language,
                    speaker,
                    split,
                    voice,
                    tract,
                    tilt,
                    [seed, number, SPLITS.index(split), index],
                )
            )
    return planned


def choose_words(rng: np.random.Generator, language: str, scale: float) -> list[str]:
    """The words in use: all from scale 1 on, else a random share of sqrt(scale), at least 8."""
    words = indic_text.words(language)
    wanted = max(8, round(math.sqrt(min(1.0, scale)) * LEXICON))
    return [words[index] for index in sorted(rng.permutation(len(words))[:wanted])]


def make_texts(
    rng: np.random.Generator, words: Sequence[str], count: int, taken: set[str], lengths: Sequence[float]
) -> list[str]:
    """`count` texts, each word used once before any is used again, no sequence of two or more that is in the set
    `taken`, to which they are added. lengths: shares of one word, two words ... ValueError where words do not suffice."""
    queue, texts = [], []
    shortest = 1 + next(index for index, share in enumerate(lengths) if share)
    for _ in range(100 * count):
        if len(texts) == count:
            return texts
        length = 1 + int(rng.choice(len(lengths), p=lengths))
        chosen = []
        while len(chosen) < length:
            if not queue:
                queue = [words[index] for index in rng.permutation(len(words))]
            if len(chosen) >= shortest and sum(map(len, chosen)) + len(queue[-1]) > LETTERS:
                break
            chosen.append(queue.pop())
        text = " ".join(chosen)
        if len(chosen) > 1 and text in taken:
            queue = chosen + queue
            continue
        taken.add(text)
        texts.append(text)
    raise ValueError(f"{len(words)} words give fewer than {count} new sequences")


def make_speakers(
    rng: np.random.Generator, language: str, split: str, utterances: int
) -> list[tuple[str, espeak.Voice, tuple[int, int], float]]:
    """Speakers of a split: list of (name, Voice, tract, tilt). Only in train is a variant several speakers."""
    variants = espeak.VARIANTS[split]
    count = max(2, math.ceil(utterances / UTTERANCES_PER_SPEAKER))
    count = count if split == "train" else min(len(variants), count)
    speakers = []
    for index in range(count):
        turn, variant = divmod(index, len(variants))
        name = f"{language}-{variants[variant]}" + (f"-{turn + 1}" if turn else "")
        voice = espeak.Voice(
            language,
            variants[variant],
            rate=int(rng.integers(130, 181)),
            pitch=int(rng.integers(38, 63)),
            range=int(rng.integers(35, 66)),
        )
        speakers.append((name, voice, TRACTS[rng.integers(len(TRACTS))], float(rng.uniform(-0.15, 0.35))))
    return speakers


def record_all(utterances: Iterable[Spoken], where: Any, jobs: int | None, log: logging.Logger, parts: Parts | None) -> None:
    """Speak and write all utterances; one eSpeak NG process for each speaker of a split."""
    groups = {}
    for one in utterances:
        groups.setdefault(f"{one.speaker} {one.split}", []).append(one)
    in_parts(
        parts,
        "speakers",
        lambda group: record(group, where),
        groups,
        jobs,
        files=lambda group: [one.path for one in group],
        log=log,
    )


def record(utterances: Sequence[Spoken], where: Any) -> None:
    """Speak the utterances in one process and write them as 16-bit FLAC at 16 kHz."""
    spoken = espeak.synthesize([(one.voice, one.text) for one in utterances], where)
    for one, samples in zip(utterances, spoken, strict=True):
        recorded = through_microphone(samples / 32768.0, one.tract, one.tilt, np.random.Generator(np.random.PCG64(one.seed)))
        write_audio(one.path, recorded, RATE)


def through_microphone(speech: np.ndarray, tract: tuple[int, int], tilt: float, rng: np.random.Generator) -> np.ndarray:
    """Speech (N,) at eSpeak NG's 22050 Hz -> recorded signal at 16 kHz, within -1 and 1: tract, silence around it, tilt,
    noise 15 to 35 dB below the speech, its peak between 0.08 and 0.8."""
    from scipy.signal import lfilter, resample_poly

    signal = resample_poly(speech, *tract)
    signal = np.concatenate([np.zeros(int(rng.uniform(0.1, 0.3) * RATE)), signal, np.zeros(int(rng.uniform(0.1, 0.3) * RATE))])
    signal = lfilter([1.0 - tilt], [1.0, -tilt], signal)
    noise = lfilter([1.0], [1.0, -rng.uniform(0.0, 0.95)], rng.standard_normal(len(signal)))
    active = np.abs(signal) > 0.05 * np.abs(signal).max()
    level = np.sqrt(np.mean(np.square(signal[active])) / np.mean(np.square(noise)))
    signal = signal + noise * level * 10.0 ** (-rng.uniform(15.0, 35.0) / 20.0)
    return signal / np.abs(signal).max() * 0.8 * 10.0 ** (-rng.uniform(0.0, 20.0) / 20.0)
