"""Discrete units in files of text, as encode_units and other tools write them: numbers of codes, from 0.

NAME.txt      the codes of an utterance in one line, `12 12 7 3`
NAME.jsonl    a record for each unit with `code`, as encode_units' format json
x.txt         of many utterances, a line each, `NAME 12 12 7 3`, or a tab behind a name with spaces
x.jsonl       of many utterances, records with `recording` and `code`
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from pyspeech.errors import UserError


def is_codes(rows: list[list[float]]) -> bool:
    """True if the rows of a text file are one line of codes: whole numbers, two or more, but no one-hot vector."""
    if len(rows) != 1 or len(rows[0]) < 2:
        return False
    [row] = rows
    return all(value >= 0 and float(value).is_integer() for value in row) and sorted(row)[-2:] != [0, 1]


def read_code_lines(path: Path | str, text: str) -> dict[str, np.ndarray]:
    """Return {name: codes (C, 1)} of a text with a line for each utterance; UserError with the line for others."""
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        name, tab, codes = line.partition("\t")
        if not tab:
            name, *codes = line.split()
            codes = " ".join(codes)
        where = f"{path}, line {number}"
        if not codes.split() or not all(code.isdecimal() for code in codes.split()):
            raise UserError(f"{where}: '{line.strip()[:80]}'; expected `NAME 12 12 7 3`, a name and whole numbers")
        _add(found, name.strip(), np.array(codes.split(), dtype=np.float64)[:, None], where)
    return found


def read_code_records(path: Path | str, text: str) -> dict[str, np.ndarray]:
    """Return {recording: codes (C, 1)} of JSON lines of units; records without a code, such as summaries, are passed over."""
    codes = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "code" in record:
                codes.setdefault(str(record["recording"]), []).extend([int(record["code"])] * int(record.get("frames", 1)))
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path}, line {number}: '{line.strip()[:80]}'; expected a record of a unit, with code") from None
    return {name: np.array(of_one, dtype=np.float64)[:, None] for name, of_one in codes.items()}


def _add(found, name, codes, where):
    if name in found:
        raise UserError(f"{where}: {name} is there twice; expected each utterance once")
    found[name] = codes


def runs(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what runs of equal codes (C,) are of, and how long they are: (R,) each."""
    codes = np.asarray(codes)
    starts = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1) != 0)
    return codes[starts], np.diff(starts, append=len(codes))
