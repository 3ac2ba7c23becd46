"""A small corpus of real voices in es, fr, ru, it and ro, for egs/indic: people who read prompts and descriptions.

Voices are those of two Debian sources: telephone prompts (asterisk-core-sounds, es fr ru it, with texts in
core-sounds-<l>.txt) and the descriptions of drawing stamps (tuxpaint-stamps-default, es fr ru ro, with texts in lines
<l>.utf8=). In es, fr and ru the stamps' voice is trained on and the prompts' voice tested on; it and ro have one voice
each, which is divided by text: their test is of the same voice, and figures of the two kinds must not be averaged
without saying so. Dev is always of the training voice, by text. All audio is brought to the 8 kHz of the prompts, so
that the bandwidth tells neither the source nor the language.

Left out are clips and texts as in `local.voices.usable_clips`, and silence. Written are spoken/<language>/*.flac and the
manifests of local/indic/transcribed.py, which checks the audio again.

Limits: one voice a language and split, 9 (it) to 21 (ro) minutes of training speech a language, and in es, fr and ru
another domain, vocabulary, microphone and speaker in the test: word error rates near 100 % are to be expected there,
and one voice a language lets a system tell languages by voices. What the corpus is good for is to see that a
recipe runs on human speech, and how far from it the synthetic corpus is.
"""

import gzip
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from local import voices
from local.indic.languages import choose_codes
from local.indic.transcribed import SETS, write_corpus
from local.splits import share_of, share_of_words
from pyspeech.data.audio_files import write_audio
from pyspeech.data.manifests import Utterance, clear
from pyspeech.engine.parts import Parts, in_parts
from pyspeech.fetch.download import fetch_debian
from pyspeech.fetch.unpack import unpack

RATE = 8000
TASK = 50  # clips that a process copies at a time
# language -> source whose voice is trained on, source whose voice is tested on
SOURCES = {
    "es": ("tuxpaint", "asterisk"),
    "fr": ("tuxpaint", "asterisk"),
    "it": ("asterisk", "asterisk"),
    "ro": ("tuxpaint", "tuxpaint"),
    "ru": ("tuxpaint", "asterisk"),
}
HELD_OUT = {"dev": 0.08, "test": 0.12}  # share of the texts of a voice that is divided
# package: SHA-256
TEXTS = voices.debian_packages(
    "asterisk-core-sounds",
    "1.6.1-1",
    {
        "asterisk-core-sounds-es": "9afdab7f559f036649fb406e625899306ca1004df8ebe39c30bfbd5912d66f74",
        "asterisk-core-sounds-fr": "04c82c78c570c43a7136cbc5e2488d0c470b775468dff9fbce4a131b18cf1056",
        "asterisk-core-sounds-it": "3884d9457e12f21caa018c18f0d587df5d53ebea14b673d8453a134c5941ab3b",
        "asterisk-core-sounds-ru": "28a61616bb0cd3345a7ea532dec4df9f071e5d0fa9f8c1a563ea9669002f39ab",
    },
)


def prepare(
    out: str | Path,
    log: logging.Logger,
    *,
    scale: float = 1.0,
    languages: Sequence[str] = (),
    jobs: int | None = None,
    clips: dict | None = None,
    parts: Parts | None = None,
) -> None:
    """Make the corpus in `out`: spoken/<language>/*.flac and {train,dev,test}.jsonl.gz.

    scale: share of the clips, at most 1. jobs: processes, by default the cores of the stage. clips: {voice: [(path,
    text)]}, default `find_clips()`, which downloads about 220 MB into the cache once. languages: codes or names of those to
    take, all where empty. Manifests are written when all audio is there; a stage that was killed goes on with the clips that
    are missing (pyspeech.engine.parts). UserError where packages cannot be had, and for a language that the corpus does not
    have.
    """
    folder, languages = Path(out).resolve(), choose_codes(list(SOURCES), languages, "corpus=prompts")
    clips = clips or find_clips()
    chosen = []
    for language in languages:
        train, test = SOURCES[language]
        for source in dict.fromkeys((train, test)):
            voice = f"{source}-{language}"
            usable = voices.usable_clips(clips[voice], language)
            log.info("%s: %d of %d clips are usable", voice, len(usable), len(clips[voice]))
            for path, text in usable:
                if share_of(f"{voice} {path.name}") < scale:
                    split = split_of(text, tested=source == test, trained=source == train)
                    name = f"{language}-{split}-{source}-{len(chosen):05d}"
                    chosen.append(Utterance(name, str(path), text, language, voice, split))
    written = copy_all(chosen, folder, jobs, log, parts)
    write_corpus(written, folder, log, "the corpus of prompts")


def split_of(text: str, trained: bool, tested: bool) -> str:
    """Split of a text of a voice that is trained on, tested on, or both; by the text alone."""
    share = share_of_words(text)
    if not trained:
        return "test"
    if tested and share >= 1.0 - HELD_OUT["test"]:
        return "test"
    return "dev" if share < HELD_OUT["dev"] else "train"


def copy_all(
    utterances: Sequence[Utterance], folder: Path, jobs: int | None, log: logging.Logger, parts: Parts | None
) -> list[Utterance]:
    """Write the clips as mono 16-bit FLAC at 8 kHz to folder/spoken: the utterances with their new paths."""
    written = [replace(one, audio=str(folder / "spoken" / one.language / f"{one.id}.flac")) for one in utterances]
    pairs = list(zip(utterances, written, strict=True))
    clear(folder, SETS, "spoken", keep=[Path(one.audio) for one in written])

    def copy(some):
        for one, target in some:
            write_audio(Path(target.audio), voices.load_clip(one.audio, RATE), RATE)

    tasks = {f"{start:05d}": pairs[start : start + TASK] for start in range(0, len(pairs), TASK)}
    in_parts(parts, "clips", copy, tasks, jobs, files=lambda some: [Path(target.audio) for _, target in some], log=log)
    return written


def find_clips() -> dict[str, list[tuple[Path, str]]]:
    """{voice: [(path, text)]} of the packages, downloaded where they are not in the cache."""
    used = {f"{source}-{language}" for language, both in SOURCES.items() for source in both}
    archives = fetch_debian([voices.PACKAGES["tuxpaint-stamps-default"], *TEXTS.values()])
    found = {}
    for voice, (folder, paths) in voices.fetch_clips(sorted(used)).items():
        source, language = voice.split("-")
        if source == "asterisk":
            texts = unpack(archives[f"asterisk-core-sounds-{language}"], ["usr/share/doc/*/core-sounds-*.txt.gz"])
            found[voice] = prompt_texts(paths, next(texts.rglob("core-sounds-*.txt.gz")))
        else:
            texts = unpack(archives["tuxpaint-stamps-default"], ["usr/share/tuxpaint/stamps/*.txt"])
            found[voice] = stamp_texts(paths, folder, texts, language)
    return found


def prompt_texts(paths: Iterable[Path], listing: Path) -> list[tuple[Path, str]]:
    """[(path, text)] of the prompts in the list "key: text", key = path below <language>_<country>_<sex>_<name>/."""
    texts = {}
    for line in gzip.decompress(Path(listing).read_bytes()).decode("utf-8", "replace").splitlines():
        key, separator, text = line.partition(":")
        if separator and not line.startswith(";"):
            texts[key.strip()] = text.strip().removeprefix(f"{key.strip()}:").strip()
    found = []
    for path in paths:
        parts = path.with_suffix("").parts
        key = "/".join(parts[parts.index("sounds") + 2 :])
        if texts.get(key):
            found.append((path, texts[key]))
    return found


def stamp_texts(paths: Iterable[Path], folder: Path, texts: Path, language: str) -> list[tuple[Path, str]]:
    """[(path, text)] of the stamps X_desc_<language>.ogg: the line <language>.utf8= of X.txt."""
    found = []
    for path in paths:
        name = path.relative_to(folder).as_posix().removesuffix(f"_desc_{language}.ogg") + ".txt"
        if not (texts / name).exists():
            continue
        for line in (texts / name).read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(f"{language}.utf8=") and "doppler_honk" not in name:
                found.append((path, line.split("=", 1)[1].strip()))
    return found
