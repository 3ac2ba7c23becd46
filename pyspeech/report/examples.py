"""The parts of a page that the views of the tasks are made of, as plain data for templates/parts.html."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspeech.report.media import Media, excerpt


def section(
    id: str,
    title: str,
    text: Sequence[str] = (),
    key: Sequence[tuple[str, str]] = (),
    thresholds: Sequence[dict] = (),
    charts: Sequence[dict] = (),
    heat: Sequence[dict] = (),
    tables: Sequence[dict] = (),
    examples: Sequence[dict] = (),
    filters: Sequence[tuple] = (),
) -> dict[str, Any]:
    """Lay out a section of a page.

    Args:
        id: Its place in links, one word.
        title: Its heading.
        text: Paragraphs.
        key: (class, meaning) of the colours in lanes and words.
        thresholds: Of `threshold`.
        charts: Of `pyspeech.report.charts.line_chart`.
        heat: {"title", "header", "rows": [(label, [(text, share of the colour, 0 to 1, or None)])]}.
        tables: {"title", "header", "rows"}.
        examples: Of `example`.
        filters: (key of entries, label, values, the value at first or "") of the selects above the examples. Where the
            first values together would leave no example, later ones are left out.
    """
    filters = _leaving_some(filters, examples)
    return {**locals(), "template": "blocks.html"}


def _leaving_some(filters, examples):
    left, kept = [entry for each in examples for entry in each["entries"]], []
    for key, label, values, first in filters:
        some = [entry for entry in left if first in ("", entry.get(key))]
        kept.append((key, label, values, first if some else ""))
        left = some or left
    return kept


def example(
    title: str,
    entries: Sequence[dict[str, Any]],
    seconds: float = 0.0,
    offset: float = 0.0,
    picture: str | None = None,
    audio: Sequence[tuple[str, str | None]] = (),
    lanes: Sequence[dict] = (),
    words: Sequence[Sequence[dict]] = (),
) -> dict[str, Any]:
    """Lay out an example.

    Args:
        title: Its heading.
        entries: Why it is shown: {"rank": the worst first, "note": a line or "", key of a filter: value, ...}. It is shown
            where one of them has all chosen values.
        seconds: How long its picture is.
        offset: Where that begins in its recording, in seconds.
        picture: Of `Media.spectrogram`.
        audio: (label, of `Media.audio`); the first is what a click in the picture plays.
        lanes: Of `lane` and `curve`, below the picture.
        words: Tables, each of rows {"label", "words": [{"text", "kind"}]} of equal length.
    """
    sounds = [{"label": label, "path": path} for label, path in audio if path]
    return {**locals(), "audio": sounds, "entries": [{"note": "", **entry} for entry in entries]}


def heard(
    media: Media, path: Path | str, offset: float = 0.0, seconds: float | None = None
) -> tuple[str | None, str | None, float]:
    """(audio, picture, seconds) of a part of a file, in `media`; (None, None, seconds) where it cannot be read."""
    try:
        samples, rate = excerpt(path, offset, 1e5 if seconds is None else seconds)
    except (OSError, RuntimeError):  # the corpus may have been moved
        return None, None, seconds or 0.0
    return media.audio(samples, rate), media.spectrogram(samples, rate), len(samples) / rate


def lane(
    label: str, spans: Iterable[tuple[float, float, str, str]], offset: float, seconds: float, kind: str = ""
) -> dict[str, Any]:
    """A row of spans (start, end, class, text), seconds in the recording, within the part of it that a picture shows."""
    return {"label": label, "kind": kind, "points": [], "spans": list(_placed(spans, offset, seconds))}


def _placed(spans, offset, seconds):
    for start, end, kind, text in spans:
        left, right = max(start, offset), min(end, offset + seconds)
        if right > left or start == end and offset <= start <= offset + seconds:
            place, width = 100 * (left - offset) / seconds, 100 * (right - left) / seconds
            title = f"{text} {start:.2f} to {end:.2f} s".strip()
            yield {"left": round(place, 3), "width": round(width, 3), "kind": kind, "text": text, "title": title}


def curve(curves: Mapping[str, Sequence[tuple[float, float]]], offset: float, seconds: float) -> dict[str, Any]:
    """A row with lines: {label: [(seconds in the recording, value from 0 to 1)]}."""
    paths = []
    for points in curves.values():
        shown = [(t, v) for t, v in points if offset <= t <= offset + seconds]
        places = (f"{1000 * (t - offset) / seconds:.1f} {100 * (1 - min(max(v, 0), 1)):.1f}" for t, v in shown)
        paths.append("M" + "L".join(places) if shown else "")
    return {"label": list(curves), "kind": "curve", "points": paths, "spans": []}


def threshold(
    chart: dict, x: Sequence[float], rows: Mapping[str, Mapping[str, Sequence[float]]], start: float, unit: str = "system"
) -> dict[str, Any]:
    """A chart over x with a slider, and a table of the values there.

    rows: {label: {column: [value at each x]}}; start: the x that is shown first; unit: what the labels are.
    """
    first = min(range(len(x)), key=lambda index: abs(x[index] - start))
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    rounded = {
        label: {column: [round(float(value), 4) for value in values] for column, values in row.items()}
        for label, row in rows.items()
    }
    places = [round(float(value), 6) for value in x]
    shown = {"label": chart["x_label"], "unit": unit, "columns": columns, "start": first}
    return {"chart": chart, "x": places, "rows": rounded, **shown}
