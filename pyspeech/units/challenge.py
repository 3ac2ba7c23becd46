"""Contents of a ZeroSpeech 2019 corpus, by its folders and lists (local/zerospeech/zerospeech2019.py describes the layout)."""

from __future__ import annotations

import fnmatch
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pyspeech.data.audio_checks import AUDIO_SUFFIXES
from pyspeech.data.manifests import Utterance
from pyspeech.errors import UserError
from pyspeech.units.bitrate import listed_name
from pyspeech.units.submission import folder_of

Row = TypeVar("Row", bound=tuple[Any, ...])
LIBRISPEECH = re.compile(r"(\d+)-\d+-\d+")  # speaker, chapter, utterance; Libri-light's items use these names
SETS = ("unit", "voice", "test")
FOLDERS = {
    "unit": "unit",
    "units": "unit",
    "unitdiscovery": "unit",
    "voice": "voice",
    "voices": "voice",
    "test": "test",
    "testing": "test",
    "parallel": "parallel",
}  # by their names in small letters, `train` before them or not
LISTS = ("bitrate_filelist*", "synthesis.txt", "*.item", "*.abx", "alignment*.ctm")
EXPECTED = "english/train/unit/*.wav, english/train/voice/*.wav and english/test/*.wav"


@dataclass
class Language:
    """A language of the corpus: its folder, the audio files of unit, voice, test and parallel, and its lists."""

    folder: Path
    audio: dict = field(default_factory=lambda: defaultdict(list))
    lists: list = field(default_factory=list)
    shared: list = field(default_factory=list)  # lists that may be of another language too

    def named(self, pattern: str) -> list[Path]:
        """Return paths of lists of that name, its own ones first."""
        return [path for path in self.lists + self.shared if fnmatch.fnmatchcase(path.name.lower(), pattern)]

    def rows(self, pattern: str, read: Callable[[Path], list[Row]], test: Collection[str]) -> tuple[Path | None, list[Row]]:
        """(path, rows) of the first list of that name with an utterance of `test`; (None, []) where there is none.

        read: path -> rows, each of which begins with the name of an utterance. UserError for lists of its own that
        name none.
        """
        paths = self.named(pattern)
        for path in paths:
            rows = read(path)
            if any(row[0] in test for row in rows):
                return path, rows
        if paths and paths[0] in self.lists:
            raise UserError(
                f"{paths[0]}: names no usable test utterance; expected names such as {min(test)}; mend the "
                "file, or take it away"
            )
        return None, []


def expected_files(corpus: Path | str, language: str | None = None) -> dict[str, tuple[set[str], set[tuple[str, str]] | None]]:
    """Return what a submission holds for a corpus: {language: (test utterances, {(utterance, voice) to synthesise} or None)}.

    None where the corpus has no synthesis.txt. language: the one to take; None takes all; a single one has the name of
    its folder in a submission (`submission.folder_of`). Audio is not opened.
    """
    expected = {}
    languages = find_languages(Path(corpus))
    for name, found in languages.items():
        if language and language.casefold() != name.casefold() or not found.audio["test"]:
            continue
        sets = list_sets(found, name)
        test, voices = (
            {utterance.id for utterance in sets["test"]},
            {utterance.speaker for utterance in sets["voice"] if utterance.speaker},
        )
        path, pairs = found.rows("synthesis.txt", lambda path: read_synthesis(path, voices), test)
        expected[name] = test, {pair for pair in pairs if pair[0] in test} if path else None
    if len(expected) == 1:
        return {folder_of(name): wanted for name, wanted in expected.items()}
    if not expected:
        raise UserError(
            f"corpus={corpus}: no language{'' if language is None else ' ' + language} with a folder test; "
            f"expected {EXPECTED}; there is {', '.join(languages)}"
        )
    return expected


def find_languages(corpus: Path) -> dict[str, Language]:
    """Return {name: Language} of the corpus, in order of name; UserError where there is none."""
    if not corpus.is_dir():
        raise UserError(f"corpus={corpus}: no such folder; expected one with {EXPECTED}")
    found, lists = {}, []
    for path in _files(corpus):
        folders = path.relative_to(corpus).parts[:-1]
        place = _place(folders)
        if place and path.suffix.lower() in AUDIO_SUFFIXES:
            root = corpus.joinpath(*folders[: place[0]])
            found.setdefault(root, Language(root)).audio[place[1]].append(path)
        elif any(fnmatch.fnmatchcase(path.name.lower(), pattern) for pattern in LISTS):
            lists.append(path)
    languages = _by_name(found, corpus)
    for path in lists:
        owner = _owner(path, languages, corpus)
        for name, language in languages.items():
            if owner == name or len(languages) == 1:
                language.lists.append(path)
            elif owner is None:
                language.shared.append(path)
    for language in languages.values():
        language.lists.sort(key=lambda path: language.folder not in path.parents)  # those in its folder first
    return languages


def _owner(path, languages, corpus):
    """The language whose folder a list is in, or that a folder above it names; None where there is none."""
    inside = [name for name, language in languages.items() if language.folder in path.parents]
    if inside:
        return max(inside, key=lambda name: len(languages[name].folder.parts))
    folders = [folder.casefold() for folder in path.relative_to(corpus).parts[:-1]]
    return next((name for name in languages if name.casefold() in folders), None)


def _by_name(found, corpus):
    """{name in small letters: Language} of {folder: Language}; of folders of one name, the one with unit and test.

    A folder that links lead to as well is one.
    """
    names = defaultdict(list)
    for root, language in sorted(found.items()):
        names[(root if root != corpus else corpus.resolve()).name.lower()].append(language)
    for name, languages in names.items():
        whole = [language for language in languages if language.audio["unit"] and language.audio["test"]]
        names[name] = list({os.path.realpath(language.folder): language for language in whole or languages}.values())
        if len(names[name]) > 1:
            raise UserError(
                f"corpus={corpus}: {name} is there {len(names[name])} times ({names[name][0].folder}, "
                f"{names[name][1].folder}); give the folder of one of them"
            )
    if not names:
        raise UserError(f"corpus={corpus}: no audio in folders named unit, voice or test; expected {EXPECTED}")
    return {name: names[name][0] for name in sorted(names)}


def _place(folders):
    """(number of folders above the language's parts, which part) of the folders above a file; None for other files."""
    words = [re.sub(r"[^a-z]", "", folder.lower()) for folder in folders]
    parts = [FOLDERS.get(word.removeprefix("train")) for word in words]
    known = [number for number, part in enumerate(parts) if part]
    if not known:
        return None
    last = parts.index("parallel") if "parallel" in parts else known[-1]
    return (last - 1 if last and words[last - 1] in ("train", "training") else last), parts[last]


def _files(folder, above=()):
    """Files in a folder and below, in order; hidden ones are passed over, links are followed.

    above: the real paths of the folders that it is in.
    """
    identity = os.path.realpath(folder)
    if identity in above:  # a link that leads back up
        return
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files(entry, (*above, identity))
        else:
            yield entry


def list_sets(found: Language, language: str) -> dict[str, list[Utterance]]:
    """Return {set: [Utterance, ...]} of a Language. Without a folder voice, the voices are those of the unit set that are
    named as voices are, or all of it."""
    sets = {part: list_utterances(found.audio[part], part, language) for part in SETS}
    if not sets["voice"]:
        sets["voice"] = [utterance for utterance in sets["unit"] if re.match(r"V\d", utterance.speaker or "")] or sets["unit"]
    return sets


def list_utterances(paths: list[Path], part: str, language: str) -> list[Utterance]:
    """Return [Utterance, ...] of the audio files of a set; `split` is the set, the text is not known.

    A file that several folders lead to is there once.
    """
    utterances = {}
    for path in paths:
        name = utterance_name(path.stem)
        speaker, underscore, _ = name.partition("_")
        if book := LIBRISPEECH.fullmatch(name):
            speaker = book[1]
        elif not underscore or not speaker:
            speaker = utterance_name(path.parent.name)
            name = name if FOLDERS.get(speaker.lower()) else f"{speaker}_{name}"
        utterances.setdefault((name, os.path.realpath(path)), Utterance(name, str(path), None, language, speaker, part))  # pyright: ignore[reportArgumentType]
    return sorted(utterances.values(), key=lambda utterance: utterance.id)


def utterance_name(text: str) -> str:
    """Return a file's or a list's name for an utterance as it is used here: composed letters, hyphens in place of spaces.

    .item files, features and submissions could not hold names with spaces.
    """
    return re.sub(r"\s+", "-", unicodedata.normalize("NFC", text).strip())


def read_synthesis(path: Path, voices: set[str]) -> list[tuple[str, str]]:
    """Return [(utterance, voice), ...] of a synthesis.txt: lines `utterance voice`; without a voice it stands for each one."""
    pairs = []
    for line in read_lines(path):
        fields = [word for word in re.split(r"[\s,]+", line.strip()) if word]
        if not fields:
            continue
        voice = utterance_name(fields[-1]) if len(fields) > 1 else None
        name = utterance_name(listed_name(" ".join(fields[:-1] if voice else fields)))
        pairs += [(name, speaker) for speaker in ([voice] if voice else sorted(voices))]
    return list(dict.fromkeys(pairs))


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 text file; UserError for another encoding."""
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; convert the file (iconv -t UTF-8)") from None
