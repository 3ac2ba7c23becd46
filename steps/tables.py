"""Tables as Markdown that also reads well on a terminal."""


def markdown_table(header, rows):
    """`header`: list of str; `rows`: lists of cells (str, number or None, which prints as an en dash). Returns str.

    The first column is aligned left, the others right; every column is as wide as its widest cell.
    """
    cells = [[_text(cell) for cell in row] for row in [header, *rows]]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(header))]
    lines = [_line(row, widths) for row in cells]
    rule = "|" + "|".join("-" * (width + 2) if i == 0 else "-" * (width + 1) + ":" for i, width in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def percent(value, digits=2):
    """A fraction as a percentage without its sign; None stays None."""
    return None if value is None else f"{100 * value:.{digits}f}"


def _text(cell):
    return "–" if cell is None else str(cell)


def _line(row, widths):
    first, *rest = (text.ljust(width) if i == 0 else text.rjust(width) for i, (text, width) in enumerate(zip(row, widths)))
    return "| " + " | ".join([first, *rest]) + " |"
