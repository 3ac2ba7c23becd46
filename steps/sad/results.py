"""The last stage of a SAD recipe: its tables and figures; `exp` is the engine's Experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from steps.sad import tables
from steps.sad.corpus import scored_sets
from steps.sad.figures import draw_thresholds, plot_grid
from steps.sad.options import cells
from steps.sad.pitches import read_pitches
from steps.sad.systems import FIXED, TUNED, votes_of
from steps.systems import read_scores

if TYPE_CHECKING:
    from pyspeech.engine.run import Experiment


def report(exp: Experiment, conf: Any) -> None:
    """Tables and figures.

    results.json, RESULTS.md and figures/ in the experiment folder.
    """
    corpus = exp.dir / "corpus"
    described, speeds = describe_corpus(corpus, conf), json.loads((exp.dir / "speed.json").read_text())
    votes = votes_of(conf.systems)
    scores = read_scores(exp.dir / "scores", sorted([*TUNED, *FIXED, *conf.systems, *votes]))
    sweeps = read_scores(exp.dir / "sweeps", sorted([*TUNED, *conf.systems, *votes[1:]]))
    grid = json.loads((exp.dir / "grid.json").read_text()) if cells(conf) else []
    draw_thresholds(
        {system: sweeps[system] for system in conf.systems}, scores, conf.collars[0], exp.dir / "figures" / "thresholds.png"
    )
    if grid:
        plot_grid(grid, scores["cnn"]["dev"], conf.features.frame_shift, exp.dir / "figures" / "grid.png")
    points = {
        system: {
            smoothing: {collar: {key: found[key] for key in ("threshold", "best_dcf")} for collar, found in by_collar.items()}
            for smoothing, by_collar in by_smoothing.items()
        }
        for system, by_smoothing in sweeps.items()
    }
    exp.publish(
        {"corpus": described, "scores": scores, "operating_points": points, "grid": grid},
        tables.report(
            tables.with_best_webrtc(scores),
            scored_sets(corpus),
            conf.collars,
            speeds,
            grid,
            conf.features.frame_shift,
            described,
            exp.command,
        ),
    )


def describe_corpus(corpus: Path, conf: Any) -> dict[str, Any]:
    """Describe the corpus of the figures.

    Returns:
        {"name", "simulated": True where all of it is, set: {"streams", "minutes", "simulated": number of simulated streams,
        "speech": share of the time, None without labels, "real": number of streams of the folders `real`, where there are some,
        "pitch": of `pitch_statistics`, where voices were simulated}}.
    """
    described = {"name": "mini" if conf.corpus == "mini" else Path(conf.corpus).name, "simulated": conf.corpus == "mini"}
    pitches = read_pitches(corpus)
    for name in ["train", *scored_sets(corpus)]:
        cuts = load_cuts(corpus, name)
        seconds = sum(cut.duration for cut in cuts)
        speech = sum(segment.duration for cut in cuts for segment in cut.supervisions)
        described[name] = {
            "streams": len(cuts),
            "simulated": sum(cut.id.startswith("sim_") for cut in cuts),
            "minutes": round(seconds / 60, 2),
            "speech": round(speech / seconds, 4) if any(cut.labelled for cut in cuts) else None,
            **({"real": real} if (real := sum(cut.id.startswith("real_") for cut in cuts)) else {}),
            **({"pitch": pitches[name]} if name in pitches else {}),
        }
    return described
