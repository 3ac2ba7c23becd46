"""A picture of the scores over a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.report.plots import new_figure, save

if TYPE_CHECKING:
    from pyspeech.spoof.api import FakeScore


def draw_score(score: FakeScore, target: Path | str) -> None:
    """Write `target`, a PNG: the score of each part of a recording, and the threshold."""
    figure, axes = new_figure(12, 2.6)
    for start, end, value in score.segments:
        colour = "#2ca02c" if value >= score.threshold else "#d62728"
        axes.fill_between([start, end], score.threshold, value, color=colour, lw=0, alpha=0.7)
    axes.axhline(score.threshold, color="black", lw=0.8)
    axes.set(title=score.name, xlabel="seconds (genuine: green, fake: red)", ylabel="score")
    axes.set_xlim(0, max(score.duration, 1e-3))
    save(figure, target)
