"""Rows of the text files in which scores and labels of fake audio detection come.

Told apart by their content: JSON (a list, or a record a line), the log of the scripts of NII (`Output, NAME, KEY, SCORE`),
columns with commas, tabs or semicolons, and columns with white space. A first line that names a column of utterances and one
of scores or labels is a header.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspeech.errors import UserError

JSON = re.compile(r"\s*(\[\s*[{\]]|\{\s*[\"}])")
NII_LOG = re.compile(r"\s*Output,\s*(.+?),\s*([^,]*),\s*([^,]+?)\s*$")
NAMES = ("file", "filename", "path", "filepath", "name", "utt", "uttid", "utterance", "utteranceid", "recording", "audio")


@dataclass(frozen=True)
class Table:
    """Rows of a file.

    Attributes:
        path: Of the file.
        header: Names of the columns as `column_name` gives them; None where there is no header.
        rows: (number of the line or record from 1, fields).
        spaces: Whether white space parts the columns, so that a name may take several.
    """

    path: str
    header: list[str] | None
    rows: list[tuple[int, list[str]]]
    spaces: bool = False

    def place(self, names: Collection[str]) -> int | None:
        """Return the place of the first column of the header whose name is one of `names`; None where there is none."""
        return next((place for place, name in enumerate(self.header or []) if name in names), None)


def read_table(path: Path | str, what: str, values: Collection[str], number: bool) -> Table:
    """Read a table.

    Args:
        path: A text file in UTF-8 or UTF-16.
        what: What messages call it.
        values: Names of columns, besides those of NAMES, one of which a header has to have.
        number: Whether a line has a number (a score), else one of two kinds (a label); this tells a comma between columns
            from one in a name.

    Raises:
        UserError: for what is not text, empty, or damaged JSON.
    """
    text = _text(path, what)
    if JSON.match(text):
        return _from_json(path, text, what)
    lines = [(place, line) for place, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise UserError(f"{path}: empty; expected a {what}, a line an utterance")
    log = [(place, found) for place, line in lines if (found := NII_LOG.match(line))]
    if number and log:
        return Table(str(path), ["name", "key", "score"], [(place, list(found.groups())) for place, found in log])
    for delimiter in (",", "\t", ";"):
        rows = [(place, _split(line, delimiter)) for place, line in lines] if delimiter in lines[0][1] else []
        header = _header(rows[0][1], values) if rows else None
        if header or _has_values(rows, number):
            return Table(str(path), header, rows[1:] if header else rows)
    rows = [(place, line.split()) for place, line in lines]
    header = _header(lines[0][1].lstrip("# ").split(), values)
    return Table(str(path), header, rows[1:] if header else rows, spaces=True)


def column_name(text: str) -> str:
    """Return a column's name in small letters, without marks between words: `CM-Score` -> `cmscore`."""
    return re.sub(r"[\s_#-]+", "", text.lower())


def _text(path, what):
    try:
        data = Path(path).read_bytes()
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return data.decode("utf-16" if wide else "utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file in UTF-8 or UTF-16; expected a {what}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot read the {what}: {error.strerror}") from None


def _from_json(path, text, what):
    try:
        whole = text.lstrip().startswith("[")
        records = json.loads(text) if whole else [json.loads(line) for line in text.split("\n") if line.strip()]
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); expected a {what}: a list of records, or a record a line") from None
    if not records or not all(isinstance(record, dict) for record in records):
        raise UserError(f"{path}: expected a {what}: a list of records, or a record a line, with names of columns")
    keys = list(dict.fromkeys(key for record in records for key in record))
    rows = [(place, [str(record.get(key, "")) for key in keys]) for place, record in enumerate(records, 1)]
    return Table(str(path), [column_name(key) for key in keys], rows)


def _split(line, delimiter):
    return [field.strip() for field in next(csv.reader([line], delimiter=delimiter))]


def _header(fields: Sequence[str], values):
    names = [column_name(field) for field in fields]
    return names if any(name in NAMES for name in names) and any(name in values for name in names) else None


def _has_values(rows, number):
    """Whether one of the fields is a number, or a label, in more than half of the rows."""
    from pyspeech.spoof.formats import kind_named

    is_value = is_number if number else kind_named
    return 2 * sum(any(map(is_value, fields)) for _, fields in rows) > len(rows)


def is_number(text: str) -> bool:
    """True if a text is a number, finite or not."""
    try:
        float(text)
    except ValueError:
        return False
    return True
