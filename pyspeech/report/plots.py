"""Common settings of all plots: Matplotlib without a display, identical bytes from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(
    width: float, height: float, columns: int = 1, rows: int = 1, heights: Sequence[float] | None = None
) -> tuple[Figure, Any]:
    """A figure of so many inches and its axes, side by side or above each other where there are several.

    heights: of the rows, relative to each other.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, height_ratios=heights)


def save(figure: Figure, path: Path | str) -> None:
    """Write a PNG, whole or not at all."""
    with atomic_path(path) as temporary:
        # A fixed Software entry keeps the bytes the same from run to run.
        figure.savefig(temporary, dpi=120, metadata={"Software": None})
