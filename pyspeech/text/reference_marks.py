"""NIST's marks in references (trn, stm, ctm): { a / b / @ } are alternatives, of which @ is no word; (a) is an optional word.

Of each reference the reading that costs least is scored, as sclite does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspeech.errors import UserError
from pyspeech.text.transcript_files import Said

# sclite's costs, in thousandths: of a wrong word, of one too few or too many, of an optional one that is missing, of @.
REPLACED, MISSED, FORGIVEN, NOTHING = 4000, 3000, 2000, 1


def parse_marks(text: str, optional: bool = False) -> list[tuple[list[list[str]], bool]]:
    """Split a reference into slots: (alternatives, whether nothing will do), each alternative a list of words.

    optional: take (a) as an optional word, as sclite -D does; otherwise it is a word as it stands. ValueError for braces
    that do not fit.
    """
    tokens, slots = iter(text.split()), []
    for token in tokens:
        if token == "{":
            slots.append((_alternatives(tokens), False))
        elif token == "}":
            raise ValueError(token)
        elif optional and re.fullmatch(r"\(.+\)", token):
            slots.append(([[token[1:-1]]], True))
        else:
            slots.append(([[token]], False))
    return slots


def _alternatives(tokens: Iterator[str]) -> list[list[str]]:
    """The readings of what follows an opening brace, up to its closing one."""
    readings, current = [], [[]]
    for token in tokens:
        if token in ("/", "}"):
            readings += current
            current = [[]]
            if token == "}":
                return readings
        else:
            added = _alternatives(tokens) if token == "{" else [[] if token == "@" else [token]]
            current = [one + more for one in current for more in added]
    raise ValueError("{")


def best_reading(slots: list[tuple[list[list[str]], bool]], hypothesis: list[str]) -> tuple[list[str], list[str]]:
    """Choose the reading of a reference that costs least.

    slots: of `parse_marks`; without marks both sides stay as they are. Returns (reference words, hypothesis words). An
    optional word that is missing stands as `(word)` on both sides: it counts as correct, as with sclite -D.
    """
    if all(len(alternatives) == 1 and not may_be_missing for alternatives, may_be_missing in slots):
        return [word for (words,), _ in slots for word in words], hypothesis
    # (cost, what was chosen) for each number of words heard
    row: list[tuple[int, Any]] = [(MISSED * place, None) for place in range(len(hypothesis) + 1)]
    for alternatives, may_be_missing in slots:
        rows: list[list[tuple[int, Any]]] = [
            [(cost + NOTHING * (not words), (chosen, words)) for cost, chosen in _advance(row, words, hypothesis)]
            for words in alternatives
        ]
        if may_be_missing:
            missing = [f"({word})" for word in alternatives[0]]
            rows.append([(cost + FORGIVEN, (chosen, (missing, place))) for place, (cost, chosen) in enumerate(row)])
        row = [min(column, key=lambda item: item[0]) for column in zip(*rows, strict=True)]
    return _spelt_out(row[-1][1], hypothesis)


def _advance(row, words, hypothesis):
    """The row behind some words of the reference: the edit distance's recursion."""
    for word in words:
        new = [(row[0][0] + MISSED, row[0][1])]
        for place, heard in enumerate(hypothesis):
            steps = ((row[place], REPLACED * (word != heard)), (row[place + 1], MISSED), (new[place], MISSED))
            new.append(min(((cost + more, chosen) for (cost, chosen), more in steps), key=lambda item: item[0]))
        row = new
    return row


def _spelt_out(chosen, hypothesis):
    reference, missing = [], []
    while chosen is not None:
        chosen, words = chosen
        if isinstance(words, tuple):
            reference.append(words[0])
            missing.append(words)
        else:
            reference.append(words)
    heard = list(hypothesis)
    for words, place in missing:  # the last ones first: places stay right
        heard[place:place] = words
    return [word for words in reversed(reference) for word in words], heard


def resolved(
    references: dict[str, Said],
    hypotheses: dict[str, Said],
    optional: bool,
    path: Path | str,
    clean: Callable[[str, str | None], str],
) -> tuple[dict[str, Said], dict[str, Said]]:
    """Both sides with the marks of the references resolved, see `best_reading`.

    clean: function of a text and its language that is applied to each reading and hypothesis (a normaliser).
    """
    refs, hyps = {}, {}
    for name, said in references.items():
        heard = hypotheses.get(name, Said(""))
        try:
            slots = parse_marks(said.text, optional)
        except ValueError as error:
            raise UserError(f"{path}: {name}: '{error}' without its partner; expected {{ a / b }}") from None
        cleaned = [([clean(" ".join(one), said.language).split() for one in ways], free) for ways, free in slots]
        words, best = best_reading(cleaned, clean(heard.text, said.language).split())
        refs[name], hyps[name] = replace(said, text=" ".join(words)), replace(heard, text=" ".join(best))
    return refs, {**hypotheses, **hyps}
