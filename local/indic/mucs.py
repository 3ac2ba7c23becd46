"""MUCS 2021 subtask 1 (six Indian languages) and Microsoft's speech corpus of Tamil, Telugu and Gujarati.

MUCS: https://navana-tech.github.io/MUCS2021 (Hindi, Marathi, Odia: OpenSLR 103; 8 kHz). Microsoft's: "Microsoft Speech
Corpus (Indian languages)" (16 kHz), to be had after registration. Their layouts, below whatever folder they are in:

    Hindi/train/audio/*.wav        Hindi/train/transcription.txt         Hindi/test/... alike
    ta-in-Train/Audios/*.wav       ta-in-Train/transcription.txt         ta-in-Test/... alike

A line of transcription.txt is `utterance text`. Nothing depends on these names but: each file whose name begins with
transcri (.txt, .tsv) is a set; the folders above it say which language (Gujarati, gu, gu-in; a name that is no known
language is a language of that name), and these or its own name whether it is train, test or dev; its audio files (of
any format) lie anywhere beside or below it. Upper or lower case, tabs or spaces, byte order marks, line ends and the
Unicode form of names are all the same.

Neither corpus has a dev set or tells speakers: 10 % of a language's training utterances (at most 500) are held out as
dev, by texts where these are sentences (`local.splits.hold_out`), the same ones each time; supervisions have no
speaker. A language without a training or a test set is left out. Checks, and the {train,dev,test}.jsonl.gz that are
written, are those of local/indic/transcribed.py.
"""

import logging
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from local.indic.languages import choose_codes, language_code
from local.indic.lengths import NO_LIMIT, LengthLimit
from local.indic.transcribed import write_corpus
from pyspeech.data.audio_checks import AUDIO_SUFFIXES
from pyspeech.data.manifests import Utterance
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.text.tags import DEFAULT_TAGS

SPLITS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "eval": "test",
    "evaluation": "test",
    "dev": "dev",
    "development": "dev",
    "val": "dev",
    "valid": "dev",
    "validation": "dev",
}
GENERIC = {"audio", "audios", "wav", "wavs", "data", "text", "transcripts", "transcriptions", "transcription"}
DEV_SHARE = 0.1


@dataclass(frozen=True)
class Part:
    """A transcription file with the language and the split that its path names."""

    path: Path
    language: str
    split: str


def prepare(
    corpus: str | Path,
    out: str | Path,
    log: logging.Logger,
    *,
    languages: Sequence[str] = (),
    tags: Sequence[str] = DEFAULT_TAGS,
    limit: LengthLimit = NO_LIMIT,
    skip_bad: bool = False,
    parts: Parts | None = None,
) -> dict[str, dict[str, int]]:
    """Check a corpus in one of the layouts and write out/{train,dev,test}.jsonl.gz.

    corpus: its folder. languages: codes (hi-IN) or names of those to take, all where empty. tags: of the transcripts, to be
    dropped (pyspeech/text/tags.py). Utterances with problems are left out and listed, more than isolated ones stop unless
    skip_bad (`local.indic.transcribed.write_corpus`). Returns
    {language: {set: number of utterances}}. UserError in one line for a corpus that cannot be used.
    """
    corpus = Path(corpus)
    if not corpus.is_dir():
        raise UserError(
            f"corpus={corpus}: no such folder; expected one with Hindi/train/transcription.txt, or "
            f"ta-in-Train/transcription.txt, and the audio beside"
        )
    sets = choose_languages(find_parts(corpus, log), languages, corpus, log)
    utterances, problems = [], []
    for part in sets:
        found, wrong = read_part(part, sets, corpus)
        utterances += found
        problems += wrong
        log.info("%s %s: %d utterances in %s", part.language, part.split, len(found), part.path)
    return write_corpus(utterances, out, log, f"corpus={corpus}", skip_bad, problems, DEV_SHARE, parts, tags, limit)


# Which sets there are


def find_parts(corpus: Path, log: logging.Logger) -> list[Part]:
    """Parts of the corpus, in order; UserError where there is none."""
    parts = []
    for folder, names in _walk(corpus):
        texts = [name for name in names if re.fullmatch(r"transcri.*\.(txt|tsv)", name.lower())]
        exact = [name for name in texts if name.lower() == "transcription.txt"]
        for path in [folder / name for name in exact or texts]:
            relative = (corpus.resolve().name, *path.relative_to(corpus).parts[:-1], path.stem)
            language, split = language_of(relative), split_of(relative[1:])
            if split is None or language is None:
                log.warning(
                    "%s: not used, as no folder above it says %s",
                    path,
                    "train, test or dev" if split is None else "which language it is",
                )
            else:
                parts.append(Part(path, language, split))
    if not parts:
        raise UserError(
            f"corpus={corpus}: no transcription.txt in folders that say train or test; expected "
            f"Hindi/train/transcription.txt or ta-in-Train/transcription.txt"
        )
    used = {part.path.relative_to(corpus).parts[0] for part in parts}
    for folder in sorted(corpus.iterdir()):
        if folder.is_dir() and folder.name not in used and not folder.name.startswith("."):
            log.warning("%s: not used, as there is no transcription.txt in a train or test folder in it", folder)
    return parts


def _walk(root, others=()):
    """Yield (folder, names of its files), in order, of a folder and those below; without hidden ones and `others`."""
    visited = set()
    for folder, folders, names in os.walk(root, followlinks=True):
        identity = os.path.realpath(folder)
        if identity in visited:  # a link that leads back up
            folders.clear()
            continue
        visited.add(identity)
        folders[:] = sorted(name for name in folders if name[0] != "." and Path(folder) / name not in others)
        yield Path(folder), sorted(name for name in names if name[0] != ".")


def split_of(names: Sequence[str]) -> str | None:
    """The split that the last of some folder names says; None where none does."""
    for name in reversed(names):
        for word in name_words(name):
            if word in SPLITS:
                return SPLITS[word]
    return None


def language_of(names: Sequence[str]) -> str | None:
    """Code of the language that some folder names say, the first of which is the corpus's; None where none does.

    The last name of a known language counts; without one, the last that stands above the split's folder or in its name
    is taken for a language; without that either, the corpus may have a known one's name.
    """
    said = ["-".join(word for word in name_words(name) if word not in SPLITS) for name in names]
    known = [language_code(name) for name in said[1:] if language_code(name)]
    if known:
        return known[-1]
    place = max([number for number, name in enumerate(names) if split_of([name])], default=0)
    others = [name for name in said[1 : place + 1] if len(name) > 1 and name not in GENERIC]
    return others[-1] if others else language_code(said[0])


def name_words(name: str) -> list[str]:
    """Words of a folder's name in small letters: "Hindi_Train", "HindiTrain" and "hindi train" are hindi, train."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", unicodedata.normalize("NFC", name))
    return [word for word in re.split(r"[\W_\d]+", parted.lower()) if word]


def choose_languages(parts: Sequence[Part], wanted: Sequence[str], corpus: Path, log: logging.Logger) -> list[Part]:
    """The parts of the wanted languages that have a training and a test set; UserError where none has, or a wanted
    one has not."""
    splits = defaultdict(set)
    for part in parts:
        splits[part.language].add(part.split)
    usable = []
    for language in choose_codes(sorted(splits), wanted, f"corpus={corpus}"):
        missing = sorted({"train", "test"} - splits[language], reverse=True)
        if not missing:
            usable.append(language)
            continue
        where = ", ".join(str(part.path) for part in parts if part.language == language)
        message = (
            f"{language}: no {' and no '.join(missing)} set (found only {where}); expected a folder "
            f"{' and one '.join(missing)} with transcription.txt"
        )
        if wanted:
            raise UserError(message)
        log.warning("%s; the language is left out", message)
    if not usable:
        raise UserError(
            f"corpus={corpus}: no language has both a training and a test set; there are {', '.join(sorted(splits))}"
        )
    return [part for part in parts if part.language in usable]


# What is in a set


def read_part(part: Part, parts: Sequence[Part], corpus: Path) -> tuple[list[Utterance], list[tuple[Path | str, str]]]:
    """([Utterance, ...], [(file or utterance, what is wrong), ...]) of one set.

    parts: all sets; audio in another set's folder is not this one's.
    """
    folders = [other.path.parent for other in parts]
    audio, problems = find_set_audio(part.path, set(folders), corpus)
    folded = {key.casefold(): key for key in audio}
    utterances, used = [], set()
    for name, texts in read_transcription(part.path).items():
        key = name if name in audio else folded.get(name.casefold())
        used.add(key)
        problem = _problem(texts, key)
        if problem:
            problems.append((f"{part.path}, {name}", problem))
        else:
            utterances.append(
                Utterance(f"{part.language}-{part.split}-{name}", str(audio[key]), texts[0], part.language, None, part.split)  # pyright: ignore[reportArgumentType]
            )
    if folders.count(part.path.parent) == 1:  # else what is left over is another set's
        problems += [(path, "audio without transcript") for key, path in sorted(audio.items()) if key not in used]
    return utterances, problems


def _problem(texts, key):
    if key is None:
        return "transcript without audio"
    if len(set(texts)) > 1:
        return f"{len(texts)} lines with this id and different texts"
    return None if texts[0] else "no text"


def find_set_audio(
    transcription: Path, folders: set[Path], corpus: Path
) -> tuple[dict[str, Path], list[tuple[Path | str, str]]]:
    """({utterance: audio path}, problems) of the audio files below a transcription's folder, or, where there are none,
    below the folder above."""
    found, problems = {}, []
    for root in (transcription.parent, transcription.parent.parent):
        if found or not root.is_relative_to(corpus):  # as they are named: links may lead out of it
            break
        for folder, names in _walk(root, folders - {transcription.parent}):
            for path in [folder / name for name in names if name.lower().endswith(AUDIO_SUFFIXES)]:
                key = unicodedata.normalize("NFC", path.stem)
                if key in found:
                    problems.append((path, f"same name as {found[key]}; the first is used"))
                found.setdefault(key, path)
    return found, problems


def read_transcription(path: Path | str) -> dict[str, list[str]]:
    """{utterance: [text, ...]}, a text for each of its lines, of a file of lines `utterance text`.

    What an utterance is called ends before the first tab or space; folders and a file's ending are no part of it.
    """
    texts = defaultdict(list)
    for line in re.split(r"\r\n|\r|\n", _decoded(path)):
        fields = re.split(r"\s+", line.strip("\ufeff \t"), maxsplit=1)
        if fields[0]:
            texts[_utterance_name(fields[0])].append(fields[1].strip() if len(fields) == 2 else "")
    return texts


def _utterance_name(field):
    name = unicodedata.normalize("NFC", field).replace("\\", "/").rsplit("/", 1)[-1]
    return name[: name.rindex(".")] if name.lower().endswith(AUDIO_SUFFIXES) else name


def _decoded(path):
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: not UTF-8 text; convert the file (iconv -t UTF-8)") from None
