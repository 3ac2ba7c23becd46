"""Detection error tradeoff (DET) curves: false alarms against misses, both on the scale of a normal distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.report.plots import new_figure, save

if TYPE_CHECKING:
    import numpy as np

    Scores = Sequence[float] | np.ndarray

TICKS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99, 0.999)


def plot_det(systems: Mapping[str, tuple[Scores, Scores]], path: Path | str) -> None:
    """Write a PNG. systems: {label: (scores (n,) of genuine, scores (m,) of fake utterances)}."""
    from scipy.special import ndtri

    from pyspeech.spoof.scoring import equal_error_rate

    figure, axis = new_figure(5, 5)
    ends = []
    for label, (genuine, fake) in systems.items():
        false_alarms, misses = det_line(genuine, fake)
        axis.plot(ndtri(false_alarms), ndtri(misses), label=f"{label}, EER {equal_error_rate(genuine, fake)[0]:.2%}")
        ends.append(1 / max(len(genuine), len(fake)))
    low = max(TICKS[0], min(0.5 * min(ends), 0.01))
    axis.plot(ndtri([low, 1 - low]), ndtri([low, 1 - low]), color="0.8", linewidth=0.8)
    for set_ticks in (axis.set_xticks, axis.set_yticks):
        set_ticks(ndtri(TICKS), [f"{100 * tick:g}" for tick in TICKS])
    limits = ndtri([low, 1 - low])
    axis.set(xlabel="fake taken for genuine / %", ylabel="genuine taken for fake / %", xlim=limits, ylim=limits)
    axis.grid(alpha=0.3)
    axis.legend()
    save(figure, path)


def det_line(genuine: Scores, fake: Scores) -> tuple[np.ndarray, np.ndarray]:
    """(FAR, FRR), (K,) each. The axes have no place for 0 and 1: half an utterance stands for none."""
    import numpy as np

    from pyspeech.spoof.scoring import det_points

    _, false_alarms, misses = det_points(genuine, fake)
    return (
        np.clip(false_alarms, 0.5 / len(fake), 1 - 0.5 / len(fake)),
        np.clip(misses, 0.5 / len(genuine), 1 - 0.5 / len(genuine)),
    )
