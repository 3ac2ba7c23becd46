"""Items of an ABX test: tokens of phones with their context and speaker, as `.item` files have them.

A header names the columns, in any order: `#file onset offset #phone prev-phone next-phone speaker`, and further ones that are
not read. Without a header the columns are these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspeech.errors import UserError
from pyspeech.units.features_files import read_text

COLUMNS = ("file", "onset", "offset", "phone", "phone-before", "phone-after", "speaker")
SYNONYMS = {
    "file_id": "file",
    "begin": "onset",
    "end": "offset",
    "prev-phone": "phone-before",
    "next-phone": "phone-after",
    "prev": "phone-before",
    "next": "phone-after",
}
EXPECTED = f"expected `{' '.join(COLUMNS)}`"
ANY = ("any", "any")


class Item(NamedTuple):
    """A token of a phone: onset and offset in seconds from the start of its file, offset infinite where it ends with the file;
    context (phone before, phone after)."""

    file: str
    onset: float
    offset: float
    phone: str
    context: tuple
    speaker: str


def read_items(path: Path | str) -> list[Item]:
    """Read the items of an `.item` file.

    Raises:
        UserError: with the line, for what is not as described on top.
    """
    lines = [(number, line) for number, line in enumerate(read_text(path).split("\n"), 1) if line.strip()]
    order, count = range(len(COLUMNS)), len(COLUMNS)
    if lines and lines[0][0] == 1 and lines[0][1].startswith("#"):
        order, count = column_order(path, lines.pop(0)[1])
    items = []
    for number, line in lines:
        fields = line.split()
        if len(fields) != count:
            raise UserError(f"{path}:{number}: {len(fields)} columns, of {count}; {EXPECTED}")
        items.append(_item(f"{path}:{number}", [fields[place] for place in order]))
    if not items:
        raise UserError(f"{path}: no items; expected a line for each phone token after the header")
    return items


def column_order(path: Path | str, header: str) -> tuple[Sequence[int], int]:
    """Return (the places of COLUMNS, number of columns) by the header of an `.item` file.

    A first line that names none but the file is a remark: then they are COLUMNS. UserError for a header that lacks one.
    """
    names = [SYNONYMS.get(name, name) for name in (field.lstrip("#").lower() for field in header.split()) if name]
    missing = [name for name in COLUMNS if name not in names]
    if len(missing) >= len(COLUMNS) - 1:
        return range(len(COLUMNS)), len(COLUMNS)
    if missing:
        raise UserError(f"{path}:1: a header without {', '.join(missing)}; {EXPECTED}, in any order")
    return [names.index(name) for name in COLUMNS], len(names)


def _item(where, fields):
    try:
        onset, offset = float(fields[1]), float(fields[2])
    except ValueError:
        raise UserError(f"{where}: times {fields[1]} {fields[2]}; {EXPECTED}, times in seconds") from None
    if not 0 <= onset <= offset < math.inf:
        raise UserError(f"{where}: from {onset:g} s to {offset:g} s; expected 0 <= onset <= offset")
    return Item(fields[0], onset, offset, fields[3], (fields[4], fields[5]), fields[6])


def in_any_context(items: Iterable[Item]) -> list[Item]:
    """Return items as if they had one context: then A, B and X are compared whatever phones stand beside them."""
    return [item._replace(context=ANY) for item in items]
