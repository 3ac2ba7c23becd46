"""Tables of recipes and tools: Markdown that also reads well on a terminal, aligned columns, formats of figures, and the
frame of RESULTS.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """`header`: list of str; `rows`: lists of cells (str, number or None, which prints as an en dash). Returns str.

    The first column is aligned left, the others right; every column is as wide as its widest cell.
    """
    cells = _padded([header, *rows], "–", least=3)
    first, *others = (len(cell) for cell in cells[0])
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    lines.insert(1, "|" + "|".join(["-" * (first + 2), *("-" * (width + 1) + ":" for width in others)]) + "|")
    return "\n".join(lines) + "\n"


def aligned(rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of columns for a terminal, a rule below the first, which has the titles; a cell of None prints as a hyphen."""
    first, *rest = ("  ".join(row) for row in _padded(rows, "-"))
    return [first, "-" * len(first), *rest]


def _padded(rows, missing, least=0):
    """Rows of str, the first column aligned left, the others right, each at least `least` wide."""
    cells = [[missing if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(least, *map(len, column)) for column in zip(*cells, strict=True)]
    return [
        [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=False))]
        for row in cells
    ]


def decimals(value: float | None, form: str = ".2f") -> str | None:
    """A number in a format; None stays None."""
    return None if value is None else format(value, form)


def percent(value: float | None, digits: int = 2) -> str | None:
    """A fraction as a percentage without its sign; None stays None."""
    return None if value is None else f"{100 * value:.{digits}f}"


def bracketed(interval: Iterable[float], digits: int = 1) -> str:
    """ "[low, high]" in % of two fractions."""
    return f"[{', '.join(percent(value, digits) for value in interval)}]"  # pyright: ignore[reportArgumentType, reportCallIssue]


def spread(values: Sequence[float], scale: float = 1) -> str | None:
    """ "mean ± standard deviation" of some numbers times `scale`; a single one as it is; None for none."""
    if not values:
        return None
    deviation = f" ± {scale * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{scale * statistics.mean(values):.2f}{deviation}"


def report_text(title: str, note: str, command: str, parts: Iterable[str]) -> str:
    """RESULTS.md: a title, a note on the corpus, the command that made it, and parts (Markdown), which become paragraphs."""
    return "\n\n".join(part.strip() for part in (f"# {title}", note, f"Made by `{command}`.", *parts)) + "\n"
