"""Files of fake audio detection: scores, labels and protocols.

Scores, one utterance a line, higher means more likely genuine (the format of ASVspoof 2021 and ADD2022; the last column
is the score and all before it the name, so a name may hold spaces):

    ADD_E_00000000.wav 2.75

or `utterance attack bonafide|spoof score`, as the scorer of ASVspoof 2019 reads them (`match_scores`). Scores of
speaker verification (ASV), for the t-DCF, as distributed with ASVspoof 2019: `source target|nontarget|spoof score`.

Labels, told apart by their columns:

    ADD_T_00000000.wav genuine                               ADD2022: file, genuine or fake
    LA_0079 LA_T_1138215 - - bonafide                        ASVspoof 2019: speaker, utterance, environment, attack, key
    LA_0009 LA_E_9332881 alaw ita_tx A07 spoof notrim eval   ASVspoof 2021: speaker, utterance, codec, channel, attack,
                                                             key, trimmed, subset; DF also the kind of vocoder and more
    T_4850 T_0000000000 F - - - AC3 A05 spoof -              ASVspoof 5: speaker, utterance, gender, codec, two more, tag,
                                                             attack, key, one more

The ending of an audio file's name is no part of the utterance's: labels and scores agree with and without it. Files of
labels name audio files, so it is taken off there; scores keep it for `match_scores`, as it may belong to a name. In a
manifest, a cut has one supervision: `text` "genuine" or "fake", `speaker`, and `custom = {"attack": ..., "condition":
...}`; "-" stands for what is not known or does not apply. `custom` may have "original", "family", "kind" and "page"
too (`original_of`, `family_of`, `kind_of`, `page_of`).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyspeech.audio.io import FFMPEG_SUFFIXES, SNDFILE_SUFFIXES
from pyspeech.errors import UserError
from pyspeech.files import atomic_write

if TYPE_CHECKING:
    from lhotse.cut import Cut

Item = TypeVar("Item")
KINDS = ("genuine", "fake")
KEYS = {"bonafide": "genuine", "spoof": "fake", "genuine": "genuine", "fake": "fake"}
UNKNOWN = "-"
MANIFESTS = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True)
class Label:
    """What an utterance is. kind: "genuine" or "fake"; attack: the system that made a fake; "-" where not known."""

    kind: str
    speaker: str = UNKNOWN
    attack: str = UNKNOWN
    condition: str = UNKNOWN  # such as a codec, noise or music
    family: str = UNKNOWN  # kind of the system that made a fake
    subset: str = UNKNOWN  # of a key that holds several sets

    @property
    def genuine(self) -> bool:
        return self.kind == "genuine"


@dataclass(frozen=True)
class AsvScores:
    """Scores of speaker verification, lists of float: of target speakers, other speakers, and fakes of targets."""

    target: list
    nontarget: list
    spoof: list


def utterance_name(name: str) -> str:
    """A file's name without the ending of audio files: `ADD_T_00000000.wav` -> `ADD_T_00000000`.

    In composed characters (NFC) and with single spaces, so that files and the lines of label files agree.
    """
    name = unicodedata.normalize("NFC", " ".join(name.split()))
    stem, dot, ending = name.rpartition(".")
    return stem.rstrip() if stem and dot + ending.lower() in SNDFILE_SUFFIXES + FFMPEG_SUFFIXES else name


# Scores.


def read_scores(path: Path | str) -> dict[str, float]:
    """{name: score} of a score file, names as they are written (`match_scores` finds the labels that they stand for).

    UserError, with the line, for what is not finite or is there twice.
    """
    scores, places = {}, {}
    for number, where, fields in _lines(path, "score file", 2):
        name = " ".join(fields[:-1])
        _add(scores, places, name, _score(where, fields[-1], name), number, where)
    return scores


def write_scores(path: Path | str, scores: Mapping[str, float]) -> None:
    """Write {utterance: score}, with all digits, whole or not at all."""
    with atomic_write(path) as stream:
        for name, score in scores.items():
            if not math.isfinite(score):
                raise UserError(f"{path}: the score of '{name}' is {score}; expected a finite number")
            stream.write(f"{_one_line(path, name)} {float(score)!r}\n")


def match_scores(
    scores: Mapping[str, float], labels: Mapping[str, Item], path: Path | str
) -> tuple[dict[str, float], Mapping[str, Item]]:
    """(scores, labels) of the same utterances under the same names; all others stay in both as well.

    scores: of `read_scores`; labels: of `read_labels`; path: the score file's. A score's name is a label's as it is
    written, or without the ending of an audio file. Where that is so of no score, the names are the first column of
    ASVspoof 2019's format, if every line fits it, or else both are taken without folders. UserError for two scores of
    one utterance.
    """
    tries = [(list(scores), labels)]
    columns = [name.split() for name in scores]
    if all(len(column) == 3 and column[2] in ("bonafide", "spoof") for column in columns):
        tries.append(([column[0] for column in columns], labels))
    without_folders = {_base(name): label for name, label in labels.items()}
    if len(without_folders) == len(labels):
        tries.append(([_base(name) for name in scores], without_folders))
    tries = [(_known_names(names, known), known) for names, known in tries]
    names, known = next((one for one in tries if not one[1].keys().isdisjoint(one[0])), tries[0])
    matched, origins = {}, {}
    for name, (origin, score) in zip(names, scores.items(), strict=True):
        if name in matched:
            raise UserError(f"{path}: '{origins[name]}' and '{origin}' both name utterance '{name}'; remove one")
        matched[name], origins[name] = score, origin
    return matched, known


def _known_names(names, known):
    """For each name the one of `known` that it stands for, else itself without an audio file's ending."""
    own = {utterance_name(name): name for name in known} | {name: name for name in known}
    return [own.get(name) or own.get(utterance_name(name), utterance_name(name)) for name in names]


def _base(name):
    return name.rpartition("/")[2]


def read_asv_scores(path: Path | str) -> AsvScores:
    """AsvScores of a file of lines `source target|nontarget|spoof score`; UserError where a kind is missing."""
    found = {"target": [], "nontarget": [], "spoof": []}
    for _, where, fields in _lines(path, "file of ASV scores", 3):
        if fields[-2] not in found:
            raise UserError(f"{where}: column {len(fields) - 1} is '{fields[-2]}'; expected target, nontarget or spoof")
        found[fields[-2]].append(_score(where, fields[-1], fields[-2]))
    for key, scores in found.items():
        if not scores:
            raise UserError(f"{path}: no score of kind {key}; a file of ASV scores has target, nontarget and spoof")
    return AsvScores(**found)


# Labels.


def read_labels(path: Path | str) -> dict[str, Label]:
    """{utterance: Label} of a label file, a protocol, or a manifest of cuts (*.jsonl, *.jsonl.gz), in its order."""
    if str(path).endswith(MANIFESTS):
        return _read_manifest(path)
    labels, places = {}, {}
    for number, where, fields in _lines(path, "label file", 2):
        name, label = _parse_label(where, fields)
        _add(labels, places, utterance_name(name), label, number, where)
    return labels


def label_of(cut: Cut) -> Label:
    """The Label of a cut with one supervision (see above); UserError that names the cut for any other."""
    if len(cut.supervisions) != 1:
        raise UserError(f"{cut.id}: {len(cut.supervisions)} supervisions; expected one, with text genuine or fake")
    supervision = cut.supervisions[0]
    if supervision.text not in KINDS:
        raise UserError(f"{cut.id}: the text of its supervision is {supervision.text!r}; expected genuine or fake")
    custom = supervision.custom or {}
    return Label(
        supervision.text,
        supervision.speaker or UNKNOWN,
        str(custom.get("attack", UNKNOWN)),
        str(custom.get("condition", UNKNOWN)),
    )


def original_of(cut: Cut) -> str:
    """The id of the genuine cut whose recording a fake was made of or stands beside, a genuine cut's own; "" where the
    supervision does not say it (custom field `original`)."""
    return str((cut.supervisions[0].custom or {}).get("original", ""))


def family_of(cut: Cut) -> str:
    """The family of the engine that made a fake (custom field `family`; the engine where it is not said); "-" of a genuine
    cut."""
    label = label_of(cut)
    return UNKNOWN if label.genuine else str((cut.supervisions[0].custom or {}).get("family", label.attack))


def page_of(cut: Cut) -> str:
    """The source of a recording, such as a web page (custom field `page`); "-" where it is not said."""
    return str((cut.supervisions[0].custom or {}).get("page", UNKNOWN))


def kind_of(cut: Cut) -> str:
    """What kind of engines a fake's family is of, "neural" for one (custom field `kind`); "-" where it is not said."""
    return str((cut.supervisions[0].custom or {}).get("kind", UNKNOWN))


def labels_of(cuts: Iterable[Cut]) -> dict[str, Label]:
    """{cut id: Label} of a CutSet."""
    return {cut.id: label_of(cut) for cut in cuts}


def _parse_label(where, fields):
    """(name, Label) of a line's fields."""
    family = subset = UNKNOWN
    if len(fields) == 5 and fields[4] in ("bonafide", "spoof"):
        speaker, name, condition, attack, key = fields
    elif len(fields) == 10 and fields[8] in ("bonafide", "spoof"):
        speaker, name, _, condition, _, _, _, attack, key, _ = fields
    elif len(fields) >= 8 and fields[5] in ("bonafide", "spoof"):
        speaker, name, condition, _, attack, key, _, subset = fields[:8]
        family = fields[8] if len(fields) > 8 else UNKNOWN
    elif fields[-1] in KEYS:
        speaker, name, condition, attack, key = UNKNOWN, " ".join(fields[:-1]), UNKNOWN, UNKNOWN, fields[-1]
    else:
        raise UserError(
            f"{where}: '{' '.join(fields)[:120]}' has no label; expected `FILE genuine|fake` (ADD2022) or "
            "`SPEAKER UTTERANCE - ATTACK bonafide|spoof` (ASVspoof 2019)"
        )
    kind = KEYS[key]
    if kind == "genuine":  # the protocols of 2021 call its attack "bonafide"
        attack = family = UNKNOWN
    return name, Label(kind, speaker, attack, condition, family, subset)


def _read_manifest(path):
    from lhotse import CutSet

    try:
        cuts = CutSet.from_file(path).to_eager()
    except OSError as error:
        raise UserError(f"{path}: cannot read the manifest: {error.strerror or error}") from None
    except Exception as error:  # lhotse raises nearly every kind
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{path}: not a manifest of cuts ({type(error).__name__}: {reason})") from error
    if len(cuts) == 0:
        raise UserError(f"{path}: holds no cuts; expected a manifest of utterances, each genuine or fake")
    return labels_of(cuts)


def _lines(path, what, columns):
    """Yield (number, "path:number", fields) for the lines of a file of `what`; blank ones are passed over."""
    try:
        with open(path, encoding="utf-8-sig") as stream:
            lines = stream.read().split("\n")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file; expected a {what}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot read the {what}: {error.strerror}") from None
    if not any(line.strip() for line in lines):
        raise UserError(f"{path}: empty; expected a {what}, a line an utterance")
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) < columns:
            raise UserError(f"{path}:{number}: '{line.strip()[:120]}'; expected {columns} columns or more of a {what}")
        yield number, f"{path}:{number}", fields


def _add(entries, places, name, value, number, where):
    if name in entries:
        raise UserError(f"{where}: utterance '{name}' is there twice, first in line {places[name]}; remove one")
    entries[name], places[name] = value, number


def _score(where, text, name):
    try:
        value = float(text)
    except ValueError:
        raise UserError(f"{where}: '{text}' is not a number; expected the score of '{name}'") from None
    if not math.isfinite(value):
        raise UserError(f"{where}: the score of '{name}' is {text}; expected a finite number")
    return value


def _one_line(path, name):
    if not name or name != " ".join(name.split()):
        raise UserError(f"{path}: {name!r} cannot name an utterance: line breaks and runs of spaces would be lost")
    return name
