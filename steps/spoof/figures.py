"""Figures 2 and 3 of Li et al. 2022 from our own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.report.plots import new_figure, save

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

COEFFICIENTS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
POINTS = 513  # of an envelope
BINS = 20  # of a histogram


def envelopes(
    samples: np.ndarray, coefficients: Sequence[float] = COEFFICIENTS, rate: int = 16000
) -> tuple[np.ndarray, dict[float, np.ndarray]]:
    """Spectral envelopes of a vowel under each coefficient: (frequencies in Hz (POINTS,), {coefficient: dB (POINTS,)}).

    samples: (N,) of the vowel, at least 20 ms. The envelope is that of linear prediction in the loudest frame of 20 ms,
    which tells formants apart where a mean of frames would not; 0 dB is the residual's level.
    """
    import numpy as np

    from pyspeech.errors import UserError
    from pyspeech.spoof import mcadams
    from pyspeech.spoof.roots import find_roots, multiply_out

    window, shift = mcadams.analysis_window(rate)
    samples = np.asarray(samples, dtype=np.float64)
    if len(samples) < len(window) or not samples.any():
        raise UserError(f"a vowel of {len(samples)} samples at {rate} Hz: expected at least {len(window)}, not all 0")
    frames = np.lib.stride_tricks.sliding_window_view(samples, len(window))[::shift] * window
    loudest = frames[np.argmax(np.sum(np.square(frames), axis=1))]
    poles = find_roots(mcadams.burg(loudest[:, None])[0])
    angles = np.linspace(0, np.pi, POINTS)
    levels = {}
    for coefficient in coefficients:
        predictor = multiply_out(mcadams.move_poles(poles, coefficient))[:, 0]
        response = np.exp(-1j * np.outer(angles, np.arange(len(predictor)))) @ predictor
        levels[coefficient] = -20 * np.log10(np.maximum(np.abs(response), 1e-12))
    return np.linspace(0, rate / 2, POINTS), levels


def plot_envelopes(frequencies: np.ndarray, levels: Mapping[float, np.ndarray], path: Path | str, title: str = "") -> None:
    """Figure 2: what `envelopes` returns; the envelope of coefficient 1, the speech itself, in solid black."""
    import math

    from matplotlib import colormaps

    figure, axis = new_figure(7, 4)
    for place, (coefficient, level) in enumerate(sorted(levels.items())):
        style = (
            {"color": "k", "zorder": 3}
            if coefficient == 1
            else {"color": colormaps["coolwarm"](place / max(1, len(levels) - 1)), "linestyle": "--"}
        )
        label = f"α = {coefficient:.1f}" + " (original)" * (coefficient == 1)
        axis.plot(frequencies / 1000, level, label=label, **style)
    axis.axvline(frequencies[-1] / math.pi / 1000, color="0.6", linestyle=":", linewidth=1)  # 1 rad stays where it is
    axis.set(xlabel="frequency / kHz", ylabel="level / dB", xlim=(0, frequencies[-1] / 1000))
    axis.set_title(title, fontsize=9)
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
    save(figure, path)


def histograms(genuine: ArrayLike, fake: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts of probabilities of being genuine: (edges (BINS + 1,), 0 to 1, of genuine (BINS,), of fake (BINS,))."""
    import numpy as np

    edges = np.linspace(0, 1, BINS + 1)
    # Rounding may leave a probability a little outside.
    return (edges, *(np.histogram(np.clip(values, 0, 1), edges)[0] for values in (genuine, fake)))  # pyright: ignore[reportReturnType]


def plot_histograms(systems: Mapping[str, tuple[ArrayLike, ArrayLike]], path: Path | str) -> None:
    """Figure 3: a panel each, on one scale. systems: {title: (probabilities of genuine, of fake)}, genuine is red."""
    figure, axes = new_figure(4.5 * len(systems), 3.6, columns=len(systems))
    counted = {title: histograms(*probabilities) for title, probabilities in systems.items()}
    top = max(max(genuine.max(), fake.max()) for _, genuine, fake in counted.values())
    for axis, (title, (edges, genuine, fake)) in zip([axes] if len(systems) == 1 else axes, counted.items(), strict=True):
        for values, colour, label in ((genuine, "red", "genuine"), (fake, "blue", "fake")):
            axis.stairs(values, edges, fill=True, color=colour, alpha=0.5, label=label)
        axis.set(title=title, xlabel="probability of genuine", ylabel="utterances", xlim=(0, 1), ylim=(0, 1.05 * max(1, top)))
        axis.legend()
    save(figure, path)
