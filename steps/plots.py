"""What the plots of all recipes have in common: Matplotlib without a display, the same bytes from run to run."""
from pyspeech.files import atomic_path


def new_figure(width, height, columns=1):
    """A figure of so many inches and its axes, side by side where there are several columns."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, columns)


def save(figure, path):
    """Write a PNG, whole or not at all."""
    with atomic_path(path) as temporary:
        # A fixed Software entry keeps the bytes the same from run to run.
        figure.savefig(temporary, dpi=120, metadata={"Software": None})
