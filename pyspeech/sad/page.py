"""Report page of speech activity detection: thresholds, and the worst misses and false alarms to look at and
listen to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyspeech.report.charts import line_chart
from pyspeech.report.examples import curve, example, heard, lane, section, threshold
from pyspeech.report.sources import read_sources
from pyspeech.sad.scoring import covers

if TYPE_CHECKING:
    from pyspeech.report.experiment import Experiment
    from pyspeech.report.media import Media

WORST = 4  # misses, and false alarms, of each system that are shown
SECONDS, MOST_SECONDS = 12.0, 30.0  # of a picture; of one with a longer error
MOST_FILES = 9000  # of hypotheses, in which errors are looked for
KINDS = ("missed speech", "false alarm")
COLOURS = [("reference", "speech of the reference"), ("hit", "found"), ("miss", "missed"), ("false", "false alarm")]


def view(experiment: Experiment, media: Media) -> list[dict[str, Any]]:
    """The sections of an experiment; see pyspeech.report.page."""
    folder = experiment.folder
    sections, collar = [], _collar(folder)
    if panels := list(_thresholds(experiment, collar)):
        text = f"Figures of dev at every threshold, collar {collar} s. The slider begins where the best system has its own."
        sections.append(section("thresholds", "Thresholds", [text], thresholds=panels))
    systems = _systems(folder / "hypotheses", collar)
    streams, total = _streams(folder, MOST_FILES // max(1, len(systems)))
    if streams and systems:
        sections.append(_errors(experiment, media, streams, systems, float(collar), total))
    return sections


def _collar(folder):
    """The smallest collar that thresholds were tuned for, as folders are named by it."""
    found = {path.name.removeprefix("collar_") for path in (folder / "hypotheses").glob("*/collar_*")}
    return min(found, key=float, default="0")


def _systems(hypotheses, collar):
    """{system: the folder of its hypotheses}, those with scores first."""
    found = {}
    for path in sorted(hypotheses.glob("*")):
        found[path.name] = path / f"collar_{collar}" if (path / f"collar_{collar}").is_dir() else path
    scored = [name for name in found if (hypotheses.parent / "frame_scores" / name).is_dir()]
    return {name: found[name] for name in dict.fromkeys([*scored, *found])}


def _thresholds(experiment, collar):
    """A panel for the systems of each list of thresholds."""
    groups = {}
    for path in sorted((experiment.folder / "sweeps").glob("*.json")):
        for smoothing, by_collar in json.loads(path.read_text(encoding="utf-8")).items():
            sweep = by_collar.get(collar, {})
            label = experiment.names.get(f"{path.stem} + {smoothing}") or experiment.names.get(path.stem)
            if "thresholds" in sweep:  # a majority has none
                groups.setdefault(tuple(sweep["thresholds"]), {})[label or f"{path.stem} + {smoothing}"] = sweep
    for x, sweeps in groups.items():
        rows = {label: _columns(sweep) for label, sweep in sweeps.items()}
        lines = {label: list(zip(x, row["DCF / %"], strict=True)) for label, row in rows.items()}
        best = min(sweeps.values(), key=lambda sweep: sweep["best_dcf"])
        lowest = min(min(row["DCF / %"]) for row in rows.values())
        title = f"DCF on dev by the threshold of {_listed(rows)}"
        top = max(5, 5 * lowest)
        chart = line_chart(title, lines, "threshold", "DCF / %", (0, top), note=_cut_off(rows, top))
        yield threshold(chart, x, rows, best["threshold"])


def _cut_off(rows, top):
    """A note on the curves that leave the chart."""
    beyond = [label for label, row in rows.items() if max(row["DCF / %"]) > 1.001 * top]
    return f"Cut off at {top:.3g} %: {_listed(beyond)}. The slider shows all values." if beyond else ""


def _listed(names):
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _columns(sweep):
    """Older experiments have the DCF alone."""
    named = {"DCF / %": "dcf", "Pmiss / %": "p_miss", "Pfa / %": "p_fa"}
    return {column: [100 * value for value in sweep[key]] for column, key in named.items() if key in sweep}


def _streams(folder, most):
    """([(set, cut, its reference)], how many there are) of the scored sets; the first of each where there are over `most`."""
    from pyspeech.sad.formats import read_reference

    sets = sorted(path.name for path in (folder / "corpus" / "reference").glob("*") if path.name != "train")
    sets = [name for name in sets if (folder / "corpus" / f"{name}.jsonl.gz").is_file()]
    found, total = [], 0
    for name in sets:
        cuts = read_sources(folder / "corpus", name)
        total += len(cuts)
        for cut in cuts[: most // len(sets)]:
            path = folder / "corpus" / "reference" / name / f"{cut.recording}.txt"
            if path.is_file():
                found.append((name, cut, read_reference(path)))
    return found, total


def _errors(experiment, media, streams, systems, collar, total):
    decided, called, worst = _decisions(streams, systems, collar), experiment.called, []
    for system in systems:
        for kind, key in zip(KINDS, ("miss", "false"), strict=True):
            spans = [(end - start, number, start, end) for number, each in decided[system].items() for start, end in each[key]]
            worst += [(seconds, called(system), kind, *place) for seconds, *place in sorted(spans, reverse=True)[:WORST]]
    scores = _Scores(experiment)
    windows = _windows(worst, [cut.seconds for _, cut, _ in streams])
    examples = [
        _example(media, streams[number], [(called(name), decided[name].get(number)) for name in systems], scores, *window)
        for number, *window in windows
    ]
    text = [f"The {WORST} longest misses and false alarms of each system, collar {collar:g} s, with all systems' decisions."]
    if len(streams) < total:
        text.append(f"Looked for in {len(streams)} of {total} recordings.")
    filters = [
        ("system", "system", list(map(called, systems)), ""),
        ("kind", "error", KINDS, KINDS[0]),
        ("set", "set", sorted({name for name, _, _ in streams}), ""),
    ]
    return section("errors", "Misses and false alarms", text, COLOURS, examples=examples, filters=filters)


def _decisions(streams, systems, collar):
    """{system: {number of a stream: {"hit", "miss", "false", "other": segments (n, 2)}}} in seconds."""
    from pyspeech.sad.formats import read_hypothesis
    from pyspeech.sad.scoring import scored_time

    found = {system: {} for system in systems}
    for number, (name, cut, reference) in enumerate(streams):
        speech, nonspeech = scored_time(reference, collar)
        for system, folder in systems.items():
            path = Path(folder) / name / f"{cut.recording}.txt"
            if path.is_file():
                called = read_hypothesis(path)
                found[system][number] = {
                    "called": called,
                    "hit": _both(called, speech),
                    "miss": _without(speech, called),
                    "false": _both(called, nonspeech),
                }
    return found


def _both(left, right):
    """The time in both of two lists of segments, (n, 2) each sorted and disjoint."""
    edges = np.unique(np.concatenate([left.ravel(), right.ravel()]))
    return _kept(edges, covers(left, edges) & covers(right, edges))


def _without(left, right):
    """The time in the first, and not in the second."""
    edges = np.unique(np.concatenate([left.ravel(), right.ravel()]))
    return _kept(edges, covers(left, edges) & ~covers(right, edges))


def _kept(edges, inside):
    """The pieces between edges (k,) that are inside, neighbours joined."""
    changes = np.diff(np.concatenate([[0], inside[:-1].astype(int), [0]])) if len(edges) else np.zeros(0)
    return np.stack([edges[changes == 1], edges[changes == -1]], axis=1)


def _windows(worst, durations):
    """[(number of a stream, start, seconds, its entries)]: of errors near each other, one."""
    found = []
    for seconds, system, kind, number, start, end in sorted(worst, key=lambda each: -each[0]):
        entry = {"system": system, "kind": kind, "rank": round(seconds, 3)}
        entry["note"] = f"{system}: {seconds:.2f} s {kind} at {start:.2f} s"
        for other, first, length, entries in found:
            if other == number and first <= start and min(end, start + SECONDS / 2) <= first + length:
                entries.append(entry)
                break
        else:
            length = min(max(SECONDS, min(end - start + 4, MOST_SECONDS)), durations[number])
            first = start - 2 if end - start > length - 4 else (start + end - length) / 2
            found.append((number, round(max(0.0, min(first, durations[number] - length)), 2), length, [entry]))
    return found


def _example(media, stream, decisions, scores, start, seconds, entries):
    name, cut, reference = stream
    audio, picture, _ = heard(media, cut.path, start, seconds)
    spoken = [(first, last, "", "") for first, last, label in reference if label in ("S", "RI")]
    lanes = [lane("reference", spoken, start, seconds, "reference")]
    curves = scores.of(name, cut, start, seconds)
    if curves:
        lanes.append(curve(curves, start, seconds))
    for system, found in decisions:
        if found:
            spans = [(*each, kind, "") for kind in ("called", "hit", "miss", "false") for each in found[kind].tolist()]
            lanes.append(lane(system, spans, start, seconds))
    for entry in entries:
        entry["set"] = name
    return example(f"{cut.recording}, {name}, from {start:.2f} s", entries, seconds, start, picture, [("", audio)], lanes)


class _Scores:
    """What networks said of every frame, from frame_scores/<system>/<set>/<recording>.npy."""

    def __init__(self, experiment):
        import yaml

        from pyspeech.sad.config import StftConfig

        options = (yaml.safe_load(experiment.configuration) or {}).get("features") or {}
        known = {key: value for key, value in options.items() if key in StftConfig.__dataclass_fields__}
        config = StftConfig(**known)
        self.folder, self.called = Path(experiment.folder) / "frame_scores", experiment.called
        self.shift, self.offset = config.frame_shift, config.frame_offset

    def of(self, name, cut, start, seconds):
        """{system: [(time, score)]} of a part of a stream."""
        found = {}
        for system in sorted(path.name for path in self.folder.glob("*")):
            path = self.folder / system / name / f"{cut.recording}.npy"
            if path.is_file():
                scores = np.load(path, mmap_mode="r")
                first, last = (int((time - self.offset) / self.shift) for time in (start, start + seconds))
                part = range(max(0, first), min(len(scores), last + 1), max(1, int(0.02 / self.shift)))
                found[self.called(system)] = [
                    (self.offset + (index + 0.5) * self.shift, float(scores[index])) for index in part
                ]
        return found
