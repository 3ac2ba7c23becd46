"""The last stage of egs/zerospeech: its tables and pictures; `exp` is the engine's Experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspeech.engine.process import short_path
from steps.systems import read_scores
from steps.units import tables
from steps.units.figures import code_shares, plot_code_usage, plot_trade_off

if TYPE_CHECKING:
    from pyspeech.engine.run import Experiment

NOTES = {
    "mini": "Corpus mini: two Czech voices of a game, acted; items from an automatic alignment (local/zerospeech/mini.py)."
}


def report(exp: Experiment, conf: Any) -> None:
    """Tables of the paper, speech from units, pictures.

    results.json, RESULTS.md and figures/scores/ in the experiment folder.
    """
    scores = {
        name: [{key: value for key, value in entry.items() if key != "abx_by"} for entry in entries]
        for name, entries in read_scores(exp.dir / "scores").items()
        if name in conf.systems or name == "mfcc" or conf.kmeans and name.startswith("kmeans")
    }
    synthesis = json.loads((exp.dir / "synthesis.json").read_text(encoding="utf-8"))
    draw(exp, conf, scores)
    # Without what differs from run to run.
    measured = {name: value for name, value in synthesis.items() if name != "real_time"}
    note, model = NOTES.get(conf.corpus, f"Corpus {conf.corpus}."), short_path(exp.dir / "models" / "synthesis")
    exp.publish({"scores": scores, "synthesis": measured}, tables.report(scores, note, exp.command, synthesis, model))


def draw(exp: Experiment, conf: Any, scores: Mapping[str, Any]) -> None:
    """figures/scores/: abx_bitrate.png where there is ABX, code_usage.png."""
    figures = exp.dir / "figures" / "scores"
    plot_trade_off(scores, figures / "abx_bitrate.png")
    shown = dict.fromkeys(
        [
            conf.synthesis,
            *(name for name in conf.repeated if name in scores),
            *(name for name in scores if name.startswith("kmeans")),
        ]
    )
    shares = {name: code_shares(exp.dir / "units" / name / str(conf.seeds[0])) for name in shown}
    plot_code_usage({name: found for name, found in shares.items() if found}, figures / "code_usage.png")
