"""Scores of utterances and of speaker verification in files, and the labels that they stand for.

Scores are numbers, higher means more likely genuine. A line is one of

    ADD_E_00000000.wav 2.75                  ADD2022, ASVspoof 2021: the name is all before the score, and may hold spaces
    LA_E_1 A07 spoof 2.75                    ASVspoof 2019; other columns before the score likewise
    LA_0015 LA_E_1 2.75 spoof                score before key, as the scorer of ASVspoof 5 has it
    Output, LA_E_1, 0, 2.75                  the log of NII's scripts

or of CSV, TSV or JSON with names of columns, such as those of `detect_fake`, or `filename cm-score`. `columns` names those of
other files. Scores of speaker verification (ASV), for the t-DCF, are lines `source target|nontarget|spoof score` as
distributed with ASVspoof 2019, or `speaker utterance score` with a key of the same lines, as with ASVspoof 2021.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspeech.data.names import KnownNames
from pyspeech.errors import UserError
from pyspeech.spoof.formats import KINDS, kind_named, utterance_name
from pyspeech.spoof.label_files import subset_of
from pyspeech.spoof.text_tables import NAMES, is_number, read_table

SCORES = ("score", "scores", "cmscore", "llr")
LOGITS = {"genuine": ("genuine", "bonafide", "real"), "fake": ("fake", "spoof")}
ASV_KINDS = ("target", "nontarget", "spoof")
IGNORED = "-"
COLUMNS = ("name", "score", *KINDS, IGNORED)


@dataclass(frozen=True)
class AsvScores:
    """Scores of speaker verification, lists of float: of target speakers, other speakers, and fakes of targets."""

    target: list
    nontarget: list
    spoof: list


def read_scores(path: Path | str, columns: Sequence[str] | None = None) -> dict[str, float]:
    """Read {name: score}, names as they are written (`match_scores` finds the labels that they stand for).

    Args:
        path: A file of one of the forms above.
        columns: What its columns are, of COLUMNS: name and score, or name, genuine and fake, two logits of which the score is
            the difference. None tells it from the header or the values.

    Raises:
        UserError: with the line, for what is not finite or is there twice.
    """
    table = read_table(path, "score file", (*SCORES, *LOGITS["genuine"]), number=True)
    parse = _by_columns(columns, table) if columns else _by_header(table) if table.header else _by_values(table)
    scores, places = {}, {}
    for number, fields in table.rows:
        where = f"{path}:{number}"
        name, score = parse(where, fields)
        if name in scores:
            raise UserError(f"{where}: utterance '{name}' is there twice, first in line {places[name]}; remove one")
        scores[name], places[name] = score, number
    return scores


def _by_columns(columns, table):
    places = {column: place for place, column in enumerate(columns) if column != IGNORED}
    if set(places) not in ({"name", "score"}, {"name", *KINDS}) or len(places) != sum(one != IGNORED for one in columns):
        raise UserError(
            f"--columns {','.join(columns)}: expected name and score, or name, genuine and fake, each once, and - for others"
        )
    return _at(places, len(columns))


def _by_header(table):
    places = {"name": table.place(NAMES), "score": table.place(SCORES)}
    if places["score"] is None:
        places.update({kind: table.place(names) for kind, names in LOGITS.items()})
        del places["score"]
    if None in places.values():
        raise UserError(
            f"{table.path}: columns {', '.join(table.header)}; expected a column of names (such as file) and score, or genuine "
            "and fake; --columns says which they are"
        )
    return _at(places, len(table.header))


def _at(places, count):
    def parse(where, fields):
        if len(fields) != count:
            raise UserError(f"{where}: {len(fields)} columns; expected {count}")
        name = fields[places["name"]]
        values = {kind: _score(where, fields[place], name) for kind, place in places.items() if kind != "name"}
        return name, values["score"] if "score" in values else values["genuine"] - values["fake"]

    return parse


def _by_values(table):
    """The last column is the score, or the one before it where that is a word for genuine or fake in all lines."""
    keyed = all(len(fields) > 2 and kind_named(fields[-1]) and is_number(fields[-2]) for _, fields in table.rows)
    keyed = keyed and not all(is_number(fields[-1]) for _, fields in table.rows)
    place = -2 if keyed else -1

    def parse(where, fields):
        if len(fields) < 2:
            raise UserError(f"{where}: '{fields[0][:120]}'; expected 2 columns or more of a score file")
        name = " ".join(fields[:place])
        return name, _score(where, fields[place], name)

    return parse


def _score(where, text, name):
    try:
        value = float(text)
    except ValueError:
        raise UserError(
            f"{where}: '{text}' is not a number; expected the score of '{name}' (--columns says which column is what)"
        ) from None
    if not math.isfinite(value):
        raise UserError(f"{where}: the score of '{name}' is {text}; expected a finite number")
    return value


def match_scores(scores: Mapping[str, float], labels: Iterable[str], path: Path | str) -> dict[str, float]:
    """Give scores the names of the labels that they stand for; scores without a label keep theirs.

    A score's name is a label's as it is written, or without the ending of an audio file. Where folders differ, the one that
    is the end of the other (`eval/real/x.wav`, `real/x`) stands for it, if there is one alone. Where that is so of no score,
    one of the columns before the score is the name.

    Args:
        scores: Of `read_scores`.
        labels: Names of utterances.
        path: The score file's.

    Raises:
        UserError: for two scores of one utterance, and for two numbers behind the names.
    """
    known = KnownNames(labels, utterance_name)
    columns = [name.split() for name in scores]
    width = {len(column) for column in columns}
    tries = [list(scores)]
    if len(width) == 1 and not any(known.find(name) for name in scores):
        tries += [[column[place] for column in columns] for place in range(max(width))]
    found = [[known.find(name) for name in names] for names in tries]
    best = max(range(len(found)), key=lambda place: sum(name is not None for name in found[place]))
    if best == 1 and width == {2}:
        _check_second(columns, path)
    matched, origins = {}, {}
    for name, label, (origin, score) in zip(tries[best], found[best], scores.items(), strict=True):
        name = label or utterance_name(name)
        if name in matched:
            raise UserError(f"{path}: '{origins[name]}' and '{origin}' both name utterance '{name}'; remove one")
        matched[name], origins[name] = score, origin
    return matched


def _check_second(columns, path):
    """UserError where a number that is no key stands between name and score: which of the two is the score?"""
    if all(is_number(column[1]) for column in columns) and not all(kind_named(column[1]) for column in columns):
        raise UserError(
            f"{path}: two numbers behind each name; say what they are, such as --columns name,fake,genuine for two logits, or "
            "--columns name,-,score"
        )


# Speaker verification.


def read_asv_scores(path: Path | str, key: Path | str | None = None, subset: str | None = None) -> AsvScores:
    """Read scores of speaker verification.

    Args:
        path: Lines `source target|nontarget|spoof score`; with a key, lines `speaker utterance score`.
        key: The key of ASVspoof 2021, whose lines are of the same trials in the same order.
        subset: Subset of the key to take; None for all.

    Raises:
        UserError: where a kind is missing, and for a key of other trials.
    """
    rows = _asv_rows(path) if key is None else _keyed_asv_rows(path, key, subset)
    found = {kind: [] for kind in ASV_KINDS}
    for kind, score in rows:
        found[kind].append(score)
    for kind, scores in found.items():
        if not scores:
            of = f" in subset {subset}" if subset else ""
            raise UserError(f"{path}: no score of kind {kind}{of}; a file of ASV scores has target, nontarget and spoof")
    return AsvScores(**found)


def _fields(path, what, columns):
    """Yield ("path:line", fields) of a file of white-space columns."""
    for number, fields in read_table(path, what, (), number=True).rows:
        if len(fields) < columns:
            raise UserError(f"{path}:{number}: '{' '.join(fields)[:120]}'; expected {columns} columns or more of a {what}")
        yield f"{path}:{number}", fields


def _asv_rows(path):
    for where, fields in _fields(path, "file of ASV scores", 3):
        if fields[-2] not in ASV_KINDS:
            hint = "; scores of ASVspoof 2021 need their key (--asv-key)" if is_number(fields[-1]) else ""
            raise UserError(f"{where}: column {len(fields) - 1} is '{fields[-2]}'; expected target, nontarget or spoof{hint}")
        yield fields[-2], _score(where, fields[-1], fields[-2])


def _keyed_asv_rows(path, key, subset):
    scores, keys = list(_fields(path, "file of ASV scores", 3)), list(_fields(key, "key of ASV trials", 8))
    if len(scores) != len(keys):
        raise UserError(f"{path}: {len(scores)} lines, {key}: {len(keys)}; expected the same trials in the same order")
    for (where, fields), (place, trial) in zip(scores, keys, strict=True):
        found = next((at for at, field in enumerate(trial) if field in ASV_KINDS), None)
        if found is None:
            raise UserError(f"{place}: '{' '.join(trial)[:120]}'; expected target, nontarget or spoof in one of its columns")
        if fields[1] != trial[1]:
            raise UserError(f"{where}: a score of {fields[1]}, {place}: {trial[1]}; expected the same trials in the same order")
        if subset is None or subset_of(trial) == subset:
            yield trial[found], _score(where, fields[-1], fields[1])
