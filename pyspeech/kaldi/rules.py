"""The rules of a Kaldi data directory, each fault in a line: those of Kaldi's validate_data_dir.sh.

A data directory (https://kaldi-asr.org/doc/data_prep.html) is a folder of tables; each line is an id and what belongs
to it, with spaces or tabs between. Lines are in the order of the bytes of their ids (the C locale), no id comes twice,
and tables about the same things have the same ids:

    utterances   utt2spk (speaker); text; segments (recording, start and end in seconds); utt2lang, utt2dur, feats.scp, ...
    speakers     spk2utt (its utterances: the inverse of utt2spk); spk2gender (m or f), ...
    recordings   wav.scp (file, `command |` or `x.ark:offset`); reco2dur; without segments each is an utterance

Kaldi also wants utt2spk sorted by speaker, which ids get that begin with the speaker's; nothing here needs it, so
`speaker_order` says it apart. Faults here, though not there: what is not UTF-8, carriage returns, empty lines, durations
that are no numbers. lhotse.kaldi reads such folders without rules: of two lines with one id the last one counts.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspeech.errors import UserError

UTTERANCES, SPEAKERS, RECORDINGS = "utterances", "speakers", "recordings"
REQUIRED = ("utt2spk", "spk2utt", "wav.scp")
FORBIDDEN = re.compile(r"(?<!\w)(?:<s>|</s>|#0)(?!\w)", re.ASCII)  # symbols that Kaldi uses itself, as words of a text
ODD_SPACE = re.compile(r"[^\S \t]")  # white space that parts no words in Kaldi


class Line(NamedTuple):
    """A line of a table: its number, counted from 1, the id that it begins with, and the rest."""

    number: int
    key: str
    value: str


@dataclass(frozen=True)
class Table:
    """Kind of a table: its subject, the format of its lines, and the check of a line."""

    about: str
    layout: str
    good: Callable[[str], object] = str.strip


def _pattern(pattern):
    return re.compile(pattern).fullmatch


def _number(least=0.0, most=math.inf):
    return lambda value: least < _float(value) < most


def _float(text):
    return float(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) else math.nan


def _is_segment(value):
    fields = value.split()
    return len(fields) == 3 and 0 <= _float(fields[1]) < _float(fields[2]) < math.inf


def _is_text(value):
    return not ODD_SPACE.search(value) and not FORBIDDEN.search(value)


TABLES = {
    "utt2spk": Table(UTTERANCES, "one speaker", _pattern(r"\S+")),
    "spk2utt": Table(SPEAKERS, "its utterances"),
    "text": Table(UTTERANCES, "words with spaces or tabs between, none of them <s>, </s> or #0", _is_text),
    "segments": Table(UTTERANCES, "recording, start and end in seconds, the end after the start", _is_segment),
    "wav.scp": Table(RECORDINGS, "an audio file, not from ~, or a command and |", lambda value: value and value[0] != "~"),
    "feats.scp": Table(UTTERANCES, "archive:offset"),
    "vad.scp": Table(UTTERANCES, "archive:offset"),
    "cmvn.scp": Table(SPEAKERS, "archive:offset"),
    "utt2lang": Table(UTTERANCES, "a language"),
    "utt2uniq": Table(UTTERANCES, "an utterance"),
    "utt2dur": Table(UTTERANCES, "seconds, more than 0", _number()),
    "utt2num_frames": Table(UTTERANCES, "a whole number, more than 0", _pattern(r"0*[1-9]\d*")),
    "utt2warp": Table(UTTERANCES, "a number from 0.5 to 1.5", _number(0.5, 1.5)),
    "spk2gender": Table(SPEAKERS, "m or f", _pattern("[mf]")),
    "spk2warp": Table(SPEAKERS, "a number from 0.5 to 1.5", _number(0.5, 1.5)),
    "reco2dur": Table(RECORDINGS, "seconds, more than 0", _number()),
    "reco2file_and_channel": Table(RECORDINGS, "a file and A, B or 1", _pattern(r"\S+[ \t]+[AB1]")),
}


def read_table(path: Path) -> Iterator[Line]:
    """The lines of a table, one after the other; UserError for a file or a line that cannot be one."""
    try:
        stream = open(path, "rb")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    with stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise UserError(f"{path}, line {number}: not UTF-8 text; convert the file (iconv -t UTF-8)") from None
            if line.startswith("\ufeff"):
                raise UserError(
                    f"{path}, line {number}: begins with a byte order mark; remove it (sed -i '1s/^\\xEF\\xBB\\xBF//')"
                )
            if not line.endswith("\n"):
                raise UserError(f"{path}, line {number}: no line end; is the file cut off?")
            if "\r" in line:
                raise UserError(f"{path}, line {number}: a carriage return; convert the file (dos2unix)")
            line = line.strip(" \t\n")
            key = line.split(" ", 1)[0].split("\t", 1)[0]
            if not key:
                raise UserError(f"{path}, line {number}: empty; expected an id and what belongs to it")
            yield Line(number, key, line[len(key) :].lstrip(" \t"))


def check_data_dir(folder: Path | str) -> Iterator[str]:
    """The faults of a data directory, a line each: file, number of the line, what was found, what was expected.

    Tables are read side by side, so memory holds the recordings of `segments` at most. Ids of two tables are compared
    where both are in order.
    """
    folder = Path(folder)
    if not folder.is_dir():
        yield f"{folder}: no such folder; expected a Kaldi data directory (with {', '.join(REQUIRED)})"
        return
    missing = [name for name in REQUIRED if not (folder / name).is_file()]
    yield from (f"{folder / name}: no such file; every Kaldi data directory has one" for name in missing)
    ordered = set()
    for name in TABLES:
        if (folder / name).is_file():
            problems = 0
            for problem in _check_lines(folder / name, TABLES[name]):
                problems += 1
                yield problem
            if not problems:
                ordered.add(name)
    if not missing:
        yield from _compare_tables(folder, ordered)


def _check_lines(path, table):
    before = ""
    try:
        for line in read_table(path):
            if line.key == before:
                yield f"{path}, line {line.number}: {line.key} is there twice; expected each id once"
            elif line.key < before:  # code points are ordered as the bytes of UTF-8 are
                yield (
                    f"{path}, line {line.number}: {line.key} comes after {before}; expected the order of the C locale "
                    "(LC_ALL=C sort; Kaldi's fix_data_dir.sh does it)"
                )
            if not table.good(line.value) or path.name == "text" and not _is_text(line.key):
                odd = _odd_spaces(f"{line.key} {line.value}")
                yield f"{path}, line {line.number}: '{line.key} {line.value}'{odd}; expected after the id: {table.layout}"
            before = line.key
        if not before:
            yield f"{path}: is empty"
    except UserError as error:
        yield str(error)


def _odd_spaces(line):
    """What to say of white space that Kaldi takes for a part of a word."""
    found = sorted(set(ODD_SPACE.findall(line)))
    named = ", ".join(f"U+{ord(one):04X} ({unicodedata.name(one, 'a control character').lower()})" for one in found)
    return f" has {named}, which parts no words" if found else ""


def _compare_tables(folder, ordered):
    """Differences between the ids of tables in order."""
    if {"utt2spk", "spk2utt"} <= ordered:
        yield from _compare_speakers(folder)
    segmented = (folder / "segments").is_file()
    if segmented and {"segments", "wav.scp"} <= ordered:
        yield from _differences(folder / "segments", _recordings_of(folder), folder / "wav.scp", _ids(folder / "wav.scp"))
    leading = {UTTERANCES: "utt2spk", SPEAKERS: "spk2utt", RECORDINGS: "wav.scp" if segmented else "utt2spk"}
    for name in TABLES:
        first = leading[TABLES[name].about]
        if name != first and {first, name} <= ordered and not (segmented and name == "wav.scp"):
            yield from _differences(folder / first, _ids(folder / first), folder / name, _ids(folder / name))


def _ids(path):
    return ((line.key, line.number) for line in read_table(path))


def _recordings_of(folder):
    """(recording, the line of segments that has it first), in order."""
    first = {}
    for line in read_table(folder / "segments"):
        first.setdefault(line.value.split()[0], line.number)
    return sorted(first.items())


def _differences(path: Path, ids: Iterable, other: Path, other_ids: Iterable, name: str = "{}") -> Iterator[str]:
    """What one of two tables in order has, and not the other; ids: (id or tuple of them, line number); name: how it is
    called."""
    left, right = iter(ids), iter(other_ids)
    one, two = next(left, None), next(right, None)
    while one is not None or two is not None:
        if one is not None and (two is None or one[0] < two[0]):
            yield f"{other}: nothing for {name.format(*_tuple(one[0]))}, which {path.name} has in line {one[1]}"
            one = next(left, None)
        elif two is not None and (one is None or two[0] < one[0]):
            yield f"{other}, line {two[1]}: {name.format(*_tuple(two[0]))} is not in {path.name}"
            two = next(right, None)
        else:
            one, two = next(left, None), next(right, None)


def _tuple(key):
    return key if isinstance(key, tuple) else (key,)


def _compare_speakers(folder):
    """Where spk2utt is not the inverse of utt2spk."""
    path, other = folder / "utt2spk", folder / "spk2utt"
    pairs = (((line.value, line.key), line.number) for line in read_table(path))
    inverse = (((line.key, each), line.number) for line in read_table(other) for each in line.value.split())
    if speaker_order(folder):
        pairs, inverse = sorted(pairs), sorted(inverse)
    yield from _differences(path, pairs, other, inverse, "the utterance {1} of {0}")


def speaker_order(folder: Path | str) -> str | None:
    """Report an utt2spk that is not also sorted by speaker, as Kaldi's scripts expect: one line, or None."""
    before, path = ("", ""), Path(folder) / "utt2spk"
    for line in read_table(path):
        if (line.value, line.key) < before:
            return (
                f"{path}, line {line.number}: not in the order of speakers ({line.value} after {before[0]}); Kaldi's scripts "
                "want ids of utterances to begin with the speaker's"
            )
        before = line.value, line.key
    return None
