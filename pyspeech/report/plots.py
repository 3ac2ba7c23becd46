"""Common settings of all plots: Matplotlib without a display, identical bytes from run to run."""

from pyspeech.files import atomic_path


def new_figure(width, height, columns=1, rows=1, heights=None):
    """A figure of so many inches and its axes, side by side or above each other where there are several.

    heights: of the rows, relative to each other.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, height_ratios=heights)


def save(figure, path):
    """Write a PNG, whole or not at all."""
    with atomic_path(path) as temporary:
        # A fixed Software entry keeps the bytes the same from run to run.
        figure.savefig(temporary, dpi=120, metadata={"Software": None})
