"""Rows of speech labels from one file of any format that tools write; the format is found by the content.

    official    Fearless Steps reference and hypothesis, one recording each (pyspeech/sad/formats.py)
    RTTM        SPEAKER is speech, NON-SPEECH is not, NOSCORE is not scored; further types (words, ...) are passed over
    Audacity    start, end, label: tabs or spaces; start and end alone will do
    TextGrid    Praat, long and short form, UTF-8 or UTF-16; a tier named speech, sad or vad, else all interval tiers
    tables      CSV or TSV with a header; columns by their names (COLUMNS)
    segments    Kaldi: utterance, recording, start, end; where both names are numbers, in a file named segments or *.segments
    JSON        lines: what `detect --format json` writes, lhotse supervisions, and lhotse cuts with their supervisions

Blocks under `# name`, as `detect` shows several recordings on the screen, are read each by itself; a single `# text` at the
top is a comment.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pyspeech.errors import UserError
from pyspeech.sad.formats import hypothesis_rows, read_time, reference_rows
from pyspeech.sad.segments import union

SPEECH, NONSPEECH, UNSCORED = "S", "NS", "nonScorable"
MARKED = ""  # the label of a row that is marked without saying as what
RTTM_TYPES = {"SPEAKER": SPEECH, "NON-SPEECH": NONSPEECH, "NOSCORE": UNSCORED}
RTTM_OTHERS = {"SEGMENT", "LEXEME", "NON-LEX", "FILLER", "EDIT", "SU", "CB", "IP", "A/P", "SPKR-INFO"}
NOT_SPEECH = ("non-speech", "nonspeech", "non_speech")  # what a speaker of RTTM is not named
COLUMNS = {
    "recording": (
        "recording",
        "recordingid",
        "file",
        "filename",
        "filepath",
        "audio",
        "audiofile",
        "path",
        "wav",
        "name",
        "uri",
    ),
    "start": (
        "start",
        "starts",
        "starttime",
        "starttimes",
        "startsec",
        "onset",
        "begin",
        "begintime",
        "begintimes",
        "tmin",
        "from",
    ),
    "end": ("end", "ends", "endtime", "endtimes", "endsec", "stop", "offset", "tmax", "to"),
    "duration": ("duration", "durations", "dur", "durs", "length"),
    "label": ("label", "class", "kind", "type", "event", "annotation", "speech", "isspeech"),
}
SPEECH_TIERS = ("speech", "sad", "vad")
_CHANNEL = re.compile(r"\d+|[A-Za-z]|<?NA>?")
_TIME = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?")
_TEXTGRID = re.compile(r'"(?:[^"]|"")*"|<\w+>|(?<!\S)-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?!\S)')


class NotLabelsError(UserError):
    """A table that may well be in order but holds no labels: a manifest, results."""


@dataclass
class FileLabels:
    """Labels of one recording in a file.

    Attributes:
        rows: (start, end, label): seconds, and S, NS, ... of the official formats where the format says it, else the
            label as written; MARKED where there is none.
        length: Seconds of the recording, where the file tells it.
        whole: Whether the rows follow each other without gaps, as the official formats do.
        free: Whether labels are what people write.
    """

    rows: list[tuple[float, float, str]] = field(default_factory=list)
    length: float | None = None
    whole: bool = False
    free: bool = False


def read_file(path: Path) -> dict[str | None, FileLabels]:
    """Read a label file.

    Returns {name of the recording as written: FileLabels}; the name is None where the format has no place for it, and
    nothing of a file that is empty. UserError for a line that is wrong, with file, line and what was expected;
    NotLabelsError for a table without times.
    """
    found: dict[str | None, FileLabels] = {}
    for block, first, lines in _blocks(_text(path).split("\n")):
        for name, labels in _read_block(path, first, lines).items():
            name = block if name is None else name
            if name in found:
                raise UserError(f"{path}: labels of '{name}' stand in two places; expected them in one")
            found[name] = labels
    return found


def read_uem(path: Path | str) -> dict[str, np.ndarray]:
    """Read the regions of a UEM file (lines: recording channel start end): {recording: float64 (n, 2), seconds}."""
    found = {}
    for number, line in enumerate(_text(Path(path)).split("\n"), start=1):
        where, fields = f"{path}, line {number}", line.split()
        if not fields or fields[0].startswith(";;"):
            continue
        if len(fields) != 4:
            raise UserError(f"{where}: {len(fields)} columns; expected those of UEM: recording channel start end")
        start, end = read_time(where, fields[2]), read_time(where, fields[3])
        found.setdefault(fields[0], []).append((start, _ordered(where, start, end)))
    return {name: union(regions) for name, regions in found.items()}


def _text(path):
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix.lower() == ".gz" else data
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file in UTF-8 or UTF-16; expected labels") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot read the label file: {getattr(error, 'strerror', None) or error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _blocks(lines):
    """Yield (name, number of the first line, lines) of the blocks under `# name`; without two of them all, name None."""
    starts = [number for number, line in enumerate(lines) if line.startswith("# ")]
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        yield None, 1, lines
        return
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start][2:].strip() if len(starts) > 1 else None, start + 2, lines[start + 1 : end]


def _read_block(path, first, lines):
    """{name or None: FileLabels} of lines, the first of which has the number `first` in its file."""
    numbered = [(f"{path}, line {number}", line) for number, line in enumerate(lines, first) if line.strip()]
    if not numbered:
        return {}
    return _reader(path, numbered[0][1])(path, numbered)


def _reader(path, line):
    """The function that reads a file whose first line that is not blank this is."""
    if line.startswith(("File type", '"TextGrid"', "ooTextFile", "ooBinaryFile")):
        return _textgrid
    if line.lstrip().startswith(("{", "[")):
        return _json
    words, tabs = line.split(), line.split("\t")
    if line.startswith(";;") or words[0].upper() in RTTM_TYPES | dict.fromkeys(RTTM_OTHERS):
        return _rttm
    if len(tabs) >= 8 and tabs[3] == "SAD":
        return _hypothesis
    if len(tabs) >= 5 and _is_time(tabs[3]):
        return _reference
    kaldi = len(words) == 4 and _is_time(words[2]) and _is_time(words[3])
    if kaldi and (path.name.lower() == "segments" or path.name.lower().endswith(".segments")):
        return _segments
    if _is_time(words[0]) and len(words) > 1 and _is_time(words[1]):
        return _audacity
    if len(words) == 4 and _is_time(words[2]):
        return _segments
    if path.name.lower().endswith((".csv", ".tsv")) or _columns(next(_rows([("", line)]))[1]):
        return _table
    raise UserError(
        f"{path}: its first line fits no label format; expected Fearless Steps (tabs), RTTM, Audacity, TextGrid, CSV, "
        "Kaldi segments or lhotse supervisions"
    )


def _is_time(text):
    return _TIME.fullmatch(text) is not None


# Each of these reads [("path, line n", line), ...], without blank lines, to {name or None: FileLabels}.


def _reference(path, lines):
    return {None: FileLabels(reference_rows(lines), whole=True)}


def _hypothesis(path, lines):
    rows = hypothesis_rows(lines)
    return {None: FileLabels(rows, length=rows[-1][1], whole=True)}


def _rttm(path, lines):
    found = {}
    for where, line in lines:
        fields = line.split()
        kind = fields[0].upper()
        if kind.startswith(";;") or kind in RTTM_OTHERS:
            continue
        if kind not in RTTM_TYPES or len(fields) < 5:
            raise UserError(f"{where}: '{line.strip()[:40]}'; expected RTTM: SPEAKER recording channel start duration ...")
        if not _CHANNEL.fullmatch(fields[2]):
            raise UserError(f"{where}: '{fields[2]}' is not a channel; expected RTTM, in which names have no spaces")
        if len(fields) > 7 and fields[7].lower() in NOT_SPEECH:
            kind = "NON-SPEECH"
        start = read_time(where, fields[3])
        _add(found, fields[1], where, start, start + read_time(where, fields[4]), RTTM_TYPES[kind])
    return found


def _audacity(path, lines):
    labels = FileLabels(free=True)
    for where, line in lines:
        if line.startswith("\\"):  # the frequencies of the label before
            continue
        fields = line.strip().split("\t" if "\t" in line.strip() else None, 2)
        if len(fields) < 2:
            raise UserError(f"{where}: '{line.strip()[:40]}'; expected start, end and label")
        start, end = (read_time(where, text.replace(",", ".")) for text in fields[:2])
        labels.rows.append((start, _ordered(where, start, end), "".join(fields[2:]).strip()))
    return {None: labels}


def _segments(path, lines):
    found = {}
    for where, line in lines:
        fields = line.split()
        if len(fields) != 4:
            raise UserError(f"{where}: {len(fields)} columns; expected those of Kaldi segments: utterance recording start end")
        _add(found, fields[1], where, read_time(where, fields[2]), read_time(where, fields[3]), SPEECH)
    return found


def _table(path, lines):
    rows = _rows(lines)
    header = next(rows)[1]
    columns = _columns(header)
    if not columns:
        raise NotLabelsError(f"{path}: its columns ({', '.join(header)[:80]}) have no start and end")
    last = "end" if "end" in columns else "duration"
    found = {} if "recording" in columns else {None: FileLabels(free=True)}
    for where, row in rows:
        cells = dict(zip(columns, _chosen(where, row, columns.values()), strict=True))
        start, other = (read_time(where, cells[role].replace(",", ".")) for role in ("start", last))
        end = other if last == "end" else start + other
        label = cells.get("label", MARKED)
        _add(found, cells.get("recording"), where, start, end, label, free=True)
    return found


def _rows(lines):
    """Yield ("path, line n", fields) of a table, whose separator is the one that its first line has most of.

    A field in quotes may go on over several lines. UserError for one that does not end, which would take all lines to come.
    """
    delimiter, before = max("\t;,", key=lines[0][1].count), 0
    reader = csv.reader((f"{line}\n" for _, line in lines), delimiter=delimiter)
    try:
        for row in reader:
            if reader.line_num == len(lines) > before + 1:
                list(csv.reader((f"{line}\n" for _, line in lines[before:]), delimiter=delimiter, strict=True))
            before = reader.line_num
            yield lines[before - 1][0], [cell.strip() for cell in row]
    except csv.Error as error:
        raise UserError(f"{lines[before][0]}: {error}; expected the quotes of CSV") from None


def _columns(header):
    """{"start": number of the column, ...}; empty where there is no time in it."""
    plain = [re.sub(r"[\W_]+", "", cell.lower()) for cell in header]
    found = {role: plain.index(name) for role, names in COLUMNS.items() for name in names[::-1] if name in plain}
    return found if "start" in found and ("end" in found or "duration" in found) else {}


def _chosen(where, cells, numbers):
    if len(cells) <= max(numbers):
        raise UserError(f"{where}: {len(cells)} columns; the header has more")
    return [cells[number] for number in numbers]


def _json(path, lines):
    found = {}
    for number, (where, line) in enumerate(lines):
        try:
            _add_entry(found, where, json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            if number > 0:
                raise UserError(f"{where}: not JSON with labels as on the lines before") from None
            raise NotLabelsError(f"{path}: JSON, but neither lhotse supervisions nor what detect writes") from None
    return found


def _add_entry(found, where, entry):
    """Add a line of JSON; KeyError and the like where it is of none of the three kinds."""
    if "speech" in entry:
        labels = found.setdefault(entry["recording"], FileLabels())
        labels.length = float(entry["duration"])
        times = entry["speech"]
    elif "supervisions" in entry:
        labels = found.setdefault(entry["id"], FileLabels())
        labels.length = float(entry["duration"])
        times = [(one["start"], one["start"] + one["duration"]) for one in entry["supervisions"]]
    elif "recording_id" in entry:
        labels = found.setdefault(entry["recording_id"], FileLabels())
        times = [(entry["start"], entry["start"] + entry["duration"])]
    else:
        raise KeyError("speech")
    for start, end in times:
        start, end = max(0.0, float(start)), round(float(end), 9)  # a supervision may begin before its cut
        labels.rows.append((read_time(where, start), _ordered(where, start, end), SPEECH))


def _textgrid(path, lines):
    try:
        return {None: _tiers(path, _TEXTGRID.findall("\n".join(line for _, line in lines)))}
    except (IndexError, StopIteration, ValueError):
        raise UserError(f"{path}: not a whole TextGrid as Praat saves it as text") from None


def _tiers(path, tokens):
    """FileLabels of the tokens of a TextGrid: texts in quotes, numbers and flags."""
    at = next(number for number, token in enumerate(tokens) if token == "<exists>")
    labels, tiers = FileLabels(length=float(tokens[at - 1]), free=True), []
    count, at = int(tokens[at + 1]), at + 2
    for _ in range(count):
        kind, name, rows = _unquoted(tokens[at]), _unquoted(tokens[at + 1]), int(tokens[at + 4])
        at, width = at + 5, 3 if kind == "IntervalTier" else 2
        if kind == "IntervalTier":
            tiers.append((name.strip().lower(), [tokens[at + 3 * row : at + 3 * row + 3] for row in range(rows)]))
        at += width * rows
    if at > len(tokens) or not tiers:
        raise ValueError("tokens")
    for name, rows in [tier for tier in tiers if tier[0] in SPEECH_TIERS] or tiers:
        for start, end, text in rows:
            times = read_time(f"{path}, tier {name}", start), read_time(f"{path}, tier {name}", end)
            labels.rows.append((times[0], _ordered(f"{path}, tier {name}", *times), _unquoted(text).strip() or NONSPEECH))
    return labels


def _unquoted(token):
    if not token.startswith('"'):
        raise ValueError(token)
    return token[1:-1].replace('""', '"')


def _add(found, name, where, start, end, label, free=False):
    found.setdefault(name, FileLabels(free=free)).rows.append((start, _ordered(where, start, round(end, 9)), label))


def _ordered(where, start, end):
    if end < start:
        raise UserError(f"{where}: the segment ends ({end:g} s) before it starts ({start:g} s)")
    return end
