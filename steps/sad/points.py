"""The operating points of the bundled detector: how the scores of one network become turns, or words; and what it
finds on recordings that nothing was chosen on. `exp` is the engine's Experiment."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.files import write_json
from pyspeech.report.tables import markdown_table, percent, report_text
from steps.sad.bundled import trained
from steps.sad.corpus import scored_sets
from steps.sad.detect import blocks, read_references, read_scores
from steps.sad.pitches import pitch_section, read_pitches

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.engine.run import Experiment
    from pyspeech.sad.config import OperatingPoint

# A point's folder of labels, and the kinds of recordings that it is chosen on.
LABELS = {"turns": ("turns", ("radio", "quiet", "real")), "words": ("reference", ("close", "quiet", "real"))}
TURN_SILENCE = 0.5  # seconds: what a turn is, so nothing to choose
# What is tried for the options of an OperatingPoint, one after the other, twice; threshold and peak together.
CHOICES = {
    "turns": {"smoothing": ("none", "median", "hmm"), "min_speech": (0.0, 0.1, 0.2, 0.3), "pad": (0.0, 0.02, 0.04, 0.06, 0.1)},
    "words": {
        "smoothing": ("none", "hmm"),
        "min_silence": (0.0, 0.06, 0.1, 0.14),
        "min_speech": (0.0, 0.06, 0.1, 0.14),
        "pad": (0.0, 0.02, 0.04),
    },
}
AT_ONCE = {"smoothing": ("none",), "min_speech": (0.0,)}  # of a causal network: with more, its streams would wait
THRESHOLDS = [round(0.04 * step, 2) for step in range(1, 25)]
# No higher ones: on real recordings, which are not like dev, a network is less sure, and whole utterances miss a peak near 1.
PEAKS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7)


def kind_of(cut: Cut) -> str:
    """radio, close or quiet of the simulated recordings, ami of the clips, real of a user's folders."""
    return cut.id.split("_")[0]


def choose_points(exp: Experiment, conf: Any) -> None:
    """Tune threshold, smoothing and shortest lengths of the operating points on dev.

    points.json: {"turns", "words": OperatingPoint with the lowest DCF on dev, of those that call no more than the share
    `quiet_limit` of its recordings without speech speech}.
    """
    from pyspeech.sad.config import OperatingPoint
    from pyspeech.sad.registry import NETWORKS

    cuts, limit = load_cuts(exp.dir / "corpus", "dev"), conf.quiet_limit
    instead = AT_ONCE if NETWORKS[conf.network.temporal].causal else {}
    points = {}
    for name, (labels, kinds) in LABELS.items():
        chosen = [cut for cut in cuts if kind_of(cut) in kinds]
        material = list(zip(chosen, *_material(exp, conf.network.temporal, "dev", labels, chosen), strict=True))
        start = OperatingPoint(min_silence=TURN_SILENCE if name == "turns" else 0.0)
        points[name], (excess, dcf) = _search(
            start, {**CHOICES[name], **instead}, lambda point: _cost(point, material, conf.features, limit)
        )
        exp.log.info("%s: %s, dev DCF %.2f %%", name, points[name], 100 * dcf)
        if excess:
            exp.log.warning(
                "%s: %.2f %% of dev without speech called speech; no point has less than quiet_limit, %.2f %%",
                name,
                100 * (limit + excess),
                100 * limit,
            )
    write_json(exp.dir / "points.json", {name: asdict(point) for name, point in points.items()})


def export(exp: Experiment, conf: Any) -> None:
    """Export the network and its operating points as one ONNX file.

    models/detector/model.onnx: the network with its operating points.
    """
    from pyspeech.sad.checkpoint import load_model
    from pyspeech.sad.onnx_export import export_onnx

    model, target = load_model(exp.dir / trained(conf)), exp.dir / "models/detector/model.onnx"
    export_onnx(model, target, read_points(exp), f"Made by {exp.command}.")


def read_points(exp: Experiment) -> dict[str, OperatingPoint]:
    """Read {name: OperatingPoint} of points.json."""
    from pyspeech.sad.config import OperatingPoint

    read = json.loads((exp.dir / "points.json").read_text())
    return {name: OperatingPoint(**point) for name, point in read.items()}


def _material(exp, system, name, labels, cuts):
    """(reference rows, frame scores of a network) of each cut of a set."""
    references = read_references(exp.dir / "corpus" / labels / name, cuts)
    return references, [read_scores(exp.dir / "frame_scores" / system / name, cut) for cut in cuts]


def _search(point, choices, cost):
    """The OperatingPoint with the lowest cost(point), and that: each step in turn takes what is best, twice over."""
    levels = [{"threshold": threshold, "peak": peak} for threshold in THRESHOLDS for peak in PEAKS if not 0 < peak <= threshold]
    steps = [levels, *([{option: value} for value in values] for option, values in choices.items())]
    best = cost(point)
    for step in [*steps, *steps]:
        for changes in step:
            trial = replace(point, **changes)
            found = cost(trial)
            if found < best:
                point, best = trial, found
    return point, best


def _cost(point, material, stft, quiet_limit):
    """By how much the share of recordings without speech that is called speech exceeds the limit; the mean DCF of all."""
    scores = _score(point, material, stft)
    quiet = [score["p_fa"] for score, (cut, _, _) in zip(scores, material, strict=True) if kind_of(cut) == "quiet"]
    called = sum(quiet) / len(quiet) if quiet else 0.0
    return max(0.0, called - quiet_limit), sum(score["dcf"] for score in scores) / len(scores)


def _score(point, material, stft):
    """score_pair's dict of each (cut, reference rows, frame scores), without collar."""
    from pyspeech.sad.scoring import score_pair
    from pyspeech.sad.smoothing import find_speech

    return [
        score_pair(reference, find_speech(scores, point, stft.frame_shift, cut.duration, stft.frame_offset), 0.0)
        for cut, reference, scores in material
    ]


def report(exp: Experiment, conf: Any) -> None:
    """Tables, with the statistical system for comparison.

    results.json and RESULTS.md: both points on every kind of recording of dev and eval, and the statistical system.
    """
    from pyspeech.sad.scoring import overall, score_pair

    points, results = read_points(exp), {}
    for name in scored_sets(exp.dir / "corpus"):
        cuts = load_cuts(exp.dir / "corpus", name)
        for kind in sorted({kind_of(cut) for cut in cuts}):
            some = [cut for cut in cuts if kind_of(cut) == kind]
            decided = _statistical(some)
            for point in points:
                labels = "reference" if kind == "ami" else LABELS[point][0]
                material = list(zip(some, *_material(exp, conf.network.temporal, name, labels, some), strict=True))
                statistical = [
                    score_pair(reference, speech, 0.0) for (_, reference, _), speech in zip(material, decided, strict=True)
                ]
                scores = {"shipped": _score(points[point], material, conf.features), "statistical": statistical}
                for system, each in scores.items():
                    found = overall(each)
                    row = {key: found[key] for key in ("dcf", "p_miss", "p_fa")}
                    results.setdefault(point, {}).setdefault(f"{name} {kind}", {})[system] = row
    pitches = read_pitches(exp.dir / "corpus")
    exp.publish(
        {"pitch": pitches, "points": {name: asdict(point) for name, point in points.items()}, "results": results},
        report_text(
            "The speech detector of pyspeech",
            NOTE,
            exp.command,
            [part for point, rows in results.items() for part in (f"## Scored as {point}", _table(rows))]
            + pitch_section(pitches),
        ),
    )


NOTE = (
    "Simulated recordings (radio, close speech, quiet: nobody speaks) of people, music and noises that training has not "
    "heard, and AMI clips, real meetings labelled by hand by turns. DCF without collar; weights and operating points "
    "come from dev."
)


def _table(rows):
    header = ["set", *(f"{system} {what}" for system in ("bundled", "statistical") for what in ("DCF", "Pmiss", "Pfa"))]
    return markdown_table(
        header,
        [
            [name, *(percent(found[system][key]) for system in ("shipped", "statistical") for key in ("dcf", "p_miss", "p_fa"))]
            for name, found in rows.items()
        ],
    )


def _statistical(cuts):
    """Speech segments of each cut by the statistical system."""
    from pyspeech.sad.config import StatisticalConfig
    from pyspeech.sad.segments import frames_to_segments
    from pyspeech.sad.statistical import detect_stream

    config = StatisticalConfig()
    return [
        frames_to_segments(detect_stream(blocks(cut), config, 0.0).decisions, config.frame_shift, cut.duration) for cut in cuts
    ]
