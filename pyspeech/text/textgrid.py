"""Interval tiers as Praat's TextGrid, in its long text form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def textgrid(tiers: Mapping[str, Iterable[tuple[float, float, str]]], end: float) -> str:
    """Text of a TextGrid from 0 to `end` seconds.

    Args:
        tiers: {name: (start, end, text) of intervals in order of time that do not overlap}, in seconds; what is between
            them becomes intervals without text.
        end: Seconds; at least the end of the last interval.
    """
    lines = [
        'File type = "ooTextFile"',
        'Object class = "TextGrid"',
        "",
        "xmin = 0",
        f"xmax = {end}",
        "tiers? <exists>",
        f"size = {len(tiers)}",
        "item []:",
    ]
    for number, (name, intervals) in enumerate(tiers.items(), 1):
        lines += _tier(number, name, list(_without_gaps(intervals, end)), end)
    return "\n".join(lines) + "\n"


def _without_gaps(intervals, end):
    last = 0.0
    for start, stop, text in intervals:
        if start > last:
            yield last, start, ""
        yield start, stop, text
        last = stop
    if last < end:
        yield last, end, ""


def _tier(number, name, intervals, end):
    yield f"    item [{number}]:"
    yield '        class = "IntervalTier"'
    yield f"        name = {_quoted(name)}"
    yield "        xmin = 0"
    yield f"        xmax = {end}"
    yield f"        intervals: size = {len(intervals)}"
    for place, (start, stop, text) in enumerate(intervals, 1):
        yield f"        intervals [{place}]:"
        yield f"            xmin = {start}"
        yield f"            xmax = {stop}"
        yield f"            text = {_quoted(text)}"


def _quoted(text):
    return '"' + text.replace('"', '""') + '"'
