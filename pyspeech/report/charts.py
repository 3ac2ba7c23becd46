"""Line charts and histograms as plain data: where lines and ticks lie in a frame of WIDTH x HEIGHT, for the templates to draw.

Every chart has the table of its values beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 600, 260
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 10, 36
TABLE_ROWS = 12  # of a table beside a chart: of longer curves at equal distances
TICKS = 6  # of an axis, at most, and one

Points = Sequence[tuple[float, float]]


def line_chart(
    title: str,
    lines: Mapping[str, Points],
    x_label: str,
    y_label: str,
    y_limits: tuple[float, float] | None = None,
    x_ticks: Sequence[tuple[float, str]] | None = None,
    y_ticks: Sequence[tuple[float, str]] | None = None,
    step: bool = False,
    x_limits: tuple[float, float] | None = None,
    table: dict[str, Any] | None = None,
    note: str = "",
) -> dict[str, Any]:
    """Lay a chart out.

    Args:
        title: Above it.
        lines: {label: [(x, y)]}; empty ones are left out, and values that are not finite.
        x_label: Name and unit of the axis.
        y_label: Likewise.
        y_limits: What is shown; values beyond lie on the border, which `note` should say.
        x_ticks: [(place, text)]; by default round numbers.
        y_ticks: Likewise.
        step: Draw steps, as of a histogram: (left border of a bin, its value).
        x_limits: As y_limits; by default all that the lines cover.
        table: {"header", "rows"} beside the chart; by default the values of its lines.
        note: A line below the chart.

    Returns:
        {"title", "width", "height", "lines": [{"label", "colour", "path"}], "x_ticks", "y_ticks", "table", "note", ...}
    """
    drawn = {label: [p for p in points if all(map(math.isfinite, p))] for label, points in lines.items()}
    drawn = {label: points for label, points in drawn.items() if points}
    low, high = x_limits or _limits([x for points in drawn.values() for x, _ in points])
    bottom, top = y_limits or _limits([y for points in drawn.values() for _, y in points])

    def place(x, y):
        across = LEFT + (min(max(x, low), high) - low) / (high - low) * (WIDTH - LEFT - RIGHT)
        up = HEIGHT - BOTTOM - (min(max(y, bottom), top) - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM)
        return round(across, 1), round(up, 1)

    x_ticks = x_ticks if x_ticks is not None else [(tick, f"{tick:g}") for tick in round_numbers(low, high)]
    y_ticks = y_ticks if y_ticks is not None else [(tick, f"{tick:g}") for tick in round_numbers(bottom, top)]
    return {
        "title": title,
        "width": WIDTH,
        "height": HEIGHT,
        "frame": [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM],
        "limits": [low, high],
        "x_label": x_label,
        "y_label": y_label,
        "lines": [
            {"label": label, "colour": number % 8, "dash": number // 8, "path": _path([place(*p) for p in points], step)}
            for number, (label, points) in enumerate(drawn.items())
        ],
        "x_ticks": [(place(tick, bottom)[0], text) for tick, text in x_ticks],
        "y_ticks": [(place(low, tick)[1], text) for tick, text in y_ticks],
        "table": table or _table(drawn, x_label),
        "note": note,
    }


def _path(places, step):
    parts, last = [], None
    for x, y in places:
        if step and last is not None:
            parts.append(f"H{x:g}")
        parts.append(("L" if parts else "M") + f"{x:g} {y:g}")
        last = y
    return "".join(parts)


def _limits(values):
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
    return low, high


def round_numbers(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two numbers, at most TICKS + 1 of them."""
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    distance = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / distance - 1e-9), math.floor(high / distance + 1e-9)
    return [round(number * distance, 12) for number in range(first, last + 1)]


def _table(lines, x_label):
    """Rows of x and of each line's value there, None where it has none."""
    places = sorted({x for points in lines.values() for x, _ in points})
    if len(places) > TABLE_ROWS:
        places = [places[round(index * (len(places) - 1) / (TABLE_ROWS - 1))] for index in range(TABLE_ROWS)]
    by_line = [dict(points) for points in lines.values()]
    rows = [[f"{x:.6g}", *(f"{line[x]:.4g}" if x in line else None for line in by_line)] for x in places]
    return {"header": [x_label, *lines], "rows": rows}
