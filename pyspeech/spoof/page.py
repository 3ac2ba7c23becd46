"""Report page of fake audio detection: distributions of the scores with a threshold, DET curves, error rates by
engine, and the fakes that pass and the people who are called fake."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyspeech.errors import UserError
from pyspeech.report.charts import line_chart
from pyspeech.report.examples import curve, example, section, threshold
from pyspeech.report.media import excerpt
from pyspeech.report.sources import Source, read_sources

if TYPE_CHECKING:
    from pyspeech.report.experiment import Experiment
    from pyspeech.report.media import Media

WORST = 4  # fakes that pass, and people who are called fake, of each system and set
MOST = 60  # examples
BINS, STEPS = 40, 201  # of a histogram, of its slider
KINDS = ("fake that passes", "genuine called fake")
FALSE_ALARMS = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the table beside DET curves
TICKS = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99)
log = logging.getLogger(__name__)


@dataclass
class Scored:
    """The scores of one system, with its first seed, on one set: (n,) of genuine and (m,) of fake utterances, and by id."""

    system: str  # its name in the tables
    set: str
    genuine: np.ndarray
    fake: np.ndarray
    scores: dict[str, float]
    model: Path


def view(experiment: Experiment, media: Media) -> list[dict[str, Any]]:
    """The sections of an experiment; see pyspeech.report.page."""
    folder = experiment.folder
    sets = _sets(folder)
    scored = list(_scored(experiment, sets))
    if not scored:
        return []
    thresholds = _thresholds(scored)
    text = "Log-likelihood ratios, first seed: genuine from the threshold on. The slider begins at that of the EER on dev."
    return [
        section("scores", "Scores", [text], thresholds=[_histogram(scored, *each) for each in thresholds.items()]),
        section("det", "DET curves", charts=_det_charts(scored)),
        section("engines", "EER by engine", ["EER in %, the mean over the seeds."], heat=list(_engines(experiment))),
        _errors(experiment, media, scored, sets, thresholds),
    ]


def _sets(folder):
    """{set: {id: its Source}} of the sets of the corpus, and of corpora to test on alone."""
    places = {path.name.split(".")[0]: (path.parent, path.name.split(".")[0]) for path in folder.glob("corpus/*.jsonl.gz")}
    places.update({path.parent.name: (path.parent, "eval") for path in folder.glob("tests/*/eval.jsonl.gz")})
    return {name: {source.id: source for source in read_sources(*place)} for name, place in places.items() if name != "train"}


def _scored(experiment, sets):
    from pyspeech.spoof.score_files import read_scores

    folder = experiment.folder
    for system in sorted(path for path in (folder / "scores").glob("*") if path.is_dir()):
        seeds = sorted(path for path in system.glob("*") if path.is_dir())
        for path in sorted(seeds[0].glob("*.txt")) if seeds else ():
            scores = {id: score for id, score in read_scores(path).items() if id in sets.get(path.stem, {})}
            labels = {id: sets[path.stem][id].supervision.get("text") for id in scores}
            genuine, fake = (np.array([scores[id] for id in scores if labels[id] == kind]) for kind in ("genuine", "fake"))
            if len(genuine) and len(fake):
                model = folder / "models" / system.name / seeds[0].name
                yield Scored(experiment.called(system.name), path.stem, genuine, fake, scores, model)


def _thresholds(scored):
    """{system: the threshold of equal error rates on dev; 0 without dev, as scores are log-likelihood ratios}"""
    from pyspeech.spoof.scoring import equal_error_rate

    found = {each.system: 0.0 for each in scored}
    found.update({each.system: equal_error_rate(each.genuine, each.fake)[1] for each in scored if each.set == "dev"})
    return found


def _histogram(scored, system, start):
    """The panel of a system: shares of genuine and fake utterances by score, of the last of its sets; rates of all of them."""
    own = [each for each in scored if each.system == system]
    shown = next((each for each in own if each.set == "eval"), own[-1])
    low, high = (float(edge) for edge in np.quantile(np.concatenate([shown.genuine, shown.fake]), [0, 1]))
    edges = np.linspace(low, max(high, low + 1e-6), BINS + 1)
    lines = {}
    for kind in ("genuine", "fake"):
        counts = np.histogram(getattr(shown, kind), edges)[0]
        shares = 100 * counts / counts.sum()
        lines[f"{shown.set}, {kind}"] = list(zip(edges.tolist(), [*shares.tolist(), float(shares[-1])], strict=True))
    chart = line_chart(f"{system}: scores of {shown.set}", lines, "threshold", "utterances / %", step=True)
    x = np.linspace(chart["limits"][0], chart["limits"][1], STEPS)
    rows = {
        each.set: {
            "genuine called fake / %": 100 * np.searchsorted(np.sort(each.genuine), x) / len(each.genuine),
            "fakes that pass / %": 100 - 100 * np.searchsorted(np.sort(each.fake), x) / len(each.fake),
        }
        for each in own
    }
    return threshold(chart, x.tolist(), rows, start, "set")


def _det_charts(scored):
    from scipy.special import ndtri

    from pyspeech.report.det_plot import det_line

    ticks = [(float(ndtri(tick)), f"{100 * tick:g}") for tick in TICKS]
    charts = []
    for name in dict.fromkeys(each.set for each in scored):
        lines, rows = {}, []
        for each in (one for one in scored if one.set == name):
            false_alarms, misses = det_line(each.genuine, each.fake)
            step = max(1, len(misses) // 300)
            points = zip(ndtri(false_alarms)[::step].tolist(), ndtri(misses)[::step].tolist(), strict=True)
            lines[each.system] = list(points)
            at = [float(misses[false_alarms <= rate].min(initial=1.0)) for rate in FALSE_ALARMS]
            rows.append([each.system, *(f"{100 * miss:.1f}" for miss in at)])
        header = ["genuine called fake / %, at fakes that pass of", *(f"{100 * rate:g} %" for rate in FALSE_ALARMS)]
        charts.append(
            line_chart(
                name,
                lines,
                "fakes that pass / %",
                "genuine called fake / %",
                x_ticks=ticks,
                y_ticks=ticks,
                x_limits=(ticks[0][0], ticks[-1][0]),
                y_limits=(ticks[0][0], ticks[-1][0]),
                table={"header": header, "rows": rows},
                note=f"Rates below {100 * TICKS[0]:g} % and above {100 * TICKS[-1]:g} % lie on the border.",
            )
        )
    return charts


def _engines(experiment):
    """A table for each set: engines by systems."""
    paths = sorted((experiment.folder / "scores").glob("*.json"))
    systems = {experiment.called(path.stem): json.loads(path.read_text(encoding="utf-8"))["sets"] for path in paths}
    for name in dict.fromkeys(name for sets in systems.values() for name in sets):
        by_system = {system: sets[name]["attacks"] for system, sets in systems.items() if name in sets}
        rows = []
        for engine in sorted({engine for attacks in by_system.values() for engine in attacks}):
            means = [np.mean(attacks[engine]) if engine in attacks else None for attacks in by_system.values()]
            cells = [("–", None) if mean is None else (f"{100 * mean:.1f}", min(1.0, 2 * float(mean))) for mean in means]
            rows.append((engine, cells))
        yield {"title": name, "header": ["engine", *by_system], "rows": rows}


def _errors(experiment, media, scored, sets, thresholds):
    found: dict[tuple[str, str], list[tuple[Scored, dict]]] = {}
    for each in scored:
        for entry_id, entry in _worst(each, sets[each.set], thresholds[each.system]):
            found.setdefault((each.set, entry_id), []).append((each, entry))
    chosen = sorted(found.items(), key=lambda item: -max(entry["rank"] for _, entry in item[1]))[:MOST]
    detectors = _Detectors()
    examples = [_example(media, sets[name][id], of_systems, detectors) for (name, id), of_systems in chosen]
    names = list(dict.fromkeys(each.set for each in scored))
    engines = sorted({entry["engine"] for _, of_systems in chosen for _, entry in of_systems})
    filters = [
        ("system", "system", list(thresholds), ""),
        ("kind", "error", KINDS, KINDS[0]),
        ("set", "set", names, "eval" if "eval" in names else ""),
        ("engine", "engine", engines, ""),
    ]
    text = [
        "What lies farthest on the wrong side of the threshold of the EER on dev, of each system and set.",
        "Curves: the probability of genuine speech in each window, at even odds, where a recording has several.",
    ]
    return section("errors", "Fakes that pass, people called fake", text, examples=examples, filters=filters)


def _worst(scored, sources, least):
    """(id, entry) of the utterances that are farthest on the wrong side of a threshold."""
    for kind, name, sign in zip(("fake", "genuine"), KINDS, (1, -1), strict=True):
        beyond = {
            id: sign * (score - least) for id, score in scored.scores.items() if sources[id].supervision.get("text") == kind
        }
        wrong = sorted((id for id in beyond if beyond[id] >= 0), key=lambda id: -beyond[id])[:WORST]
        for id in wrong:
            custom = sources[id].supervision.get("custom") or {}
            note = f"{scored.system}: {name}, score {scored.scores[id]:+.2f}, genuine from {least:+.2f} on"
            about = {"system": scored.system, "set": scored.set, "kind": name, "engine": custom.get("attack", "-")}
            yield id, {**about, "rank": round(float(beyond[id]), 4), "note": note}


def _example(media, source: Source, of_systems, detectors):
    supervision = source.supervision
    custom = supervision.get("custom") or {}
    told = [supervision.get("text"), custom.get("attack"), custom.get("condition"), supervision.get("language")]
    title = ", ".join([source.id, *(str(each) for each in told if each and each != "-")])
    entries = [entry for _, entry in of_systems]
    try:
        samples, rate = excerpt(source.path, source.start, source.seconds)
    except (OSError, RuntimeError):  # the corpus may have been moved
        return example(title, entries)
    seconds = len(samples) / rate
    curves = {each.system: points for each, _ in of_systems if (points := detectors.over_time(each.model, samples, rate))}
    lanes = [curve(curves, 0.0, seconds)] if curves else []
    audio, picture = media.audio(samples, rate), media.spectrogram(samples, rate)
    return example(title, entries, seconds, 0.0, picture, [("", audio)], lanes)


class _Detectors:
    """The models of an experiment, each loaded once; None for one that is not there any more."""

    def __init__(self):
        self._loaded = {}

    def over_time(self, model, samples, rate):
        """[(seconds, probability of genuine speech)], empty for a recording of one window."""
        from pyspeech.spoof.api import FakeDetector

        try:
            if model not in self._loaded:
                self._loaded[model] = None
                self._loaded[model] = FakeDetector(model, force=True, own_calibration=False, device="cpu", threshold=0.0)
            detector = self._loaded[model]
            segments = detector.score(samples, rate).segments if detector else []
        except UserError as error:
            log.warning("no scores over time: %s", error)
            return []
        likely = [(time, 0.5 * (1 + np.tanh(0.5 * score))) for *ends, score in segments for time in ends]
        return likely if len(segments) > 1 else []
