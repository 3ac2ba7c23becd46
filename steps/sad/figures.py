"""Figures 2, 3 and 6 of Heitkaemper et al. 2020 from our own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.report.plots import new_figure, save
from steps.sad.detect import SAMPLING_RATE, cut_path

if TYPE_CHECKING:
    import numpy as np

    from pyspeech.sad.config import StatisticalConfig
    from pyspeech.sad.statistical import Detection

EXCERPT_SECONDS = 20.0


def draw_statistical(corpus: Path, config: StatisticalConfig, figures: Path) -> None:
    """Figures 2 and 3, of the first stream of dev, into the folder `figures`. config: StatisticalConfig."""
    from pyspeech.audio.io import read_audio
    from pyspeech.sad.statistical import detect

    cut = load_cuts(corpus, "dev")[0]
    samples, rate = read_audio(cut_path(cut), SAMPLING_RATE)
    start = _busiest(cut, EXCERPT_SECONDS)
    excerpt = samples[int(start * rate) : int((start + EXCERPT_SECONDS) * rate)]
    plot_denoising(*_spectrograms(excerpt, config), config.frame_shift, rate, figures / "denoising.png", start)
    found = detect(samples, rate, config)
    if found.noise is not None:
        plot_histogram(found, figures / "histogram.png")


def draw_thresholds(sweeps: Mapping[str, Any], scores: Mapping[str, Any], collar: float, path: Path | str) -> None:
    """Figure 6. sweeps, scores: {system: as in sweeps/<system>.json and scores/<system>.json}; collar: seconds."""
    key = f"{collar:g}"
    curves = {
        f"{system} + {smoothing}": (sweep[key]["thresholds"], sweep[key]["dcf"])
        for system, by_smoothing in sweeps.items()
        for smoothing, sweep in by_smoothing.items()
    }
    plot_thresholds(curves, path, {"statistical SAD": scores["statistical"]["dev"][key]["dcf"]}, f"collar {key} s")


def _spectrograms(samples, config):
    """Power spectra (T, F) of an excerpt, and after denoising, high-pass and linear prediction."""
    import numpy as np

    from pyspeech.sad.stat_energies import band_filters, denoise, power_spectra, predictor_gain

    filters = band_filters(config)
    power, muted = power_spectra(samples, np.hanning(config.n_fft + 1)[:-1].astype(np.float32), config)
    processed = denoise(power, muted, config)
    return power, processed * filters["passed"] * predictor_gain(processed, filters)[:, None]


def _busiest(cut, seconds):
    """Start of the stretch of `seconds` with the most speech, in seconds, on a grid of 1 s."""

    def speech(start):
        return sum(max(0.0, min(part.end, start + seconds) - max(part.start, start)) for part in cut.supervisions)

    return float(max(range(max(1, int(cut.duration - seconds))), key=speech))


def plot_denoising(
    noisy: np.ndarray, processed: np.ndarray, frame_shift: float, sampling_rate: int, path: Path | str, start: float = 0.0
) -> None:
    """Figure 2: power spectrograms (T, F) before and after denoising, high-pass and LPC."""
    import numpy as np

    figure, axes = new_figure(10, 3.2, columns=2)
    top = 10 * np.log10(noisy.max() + 1e-20)
    extent = [start, start + len(noisy) * frame_shift, 0, sampling_rate / 2000]
    for axis, power, title in zip(axes, (noisy, processed), ("input", "processed"), strict=True):
        level = 10 * np.log10(power.T + 1e-20)
        image = axis.imshow(level, origin="lower", aspect="auto", extent=extent, vmin=top - 80, vmax=top, cmap="magma")
        axis.set(title=title, xlabel="time / s", ylabel="frequency / kHz")
    figure.colorbar(image, ax=axes, label="level / dB")
    save(figure, path)


def plot_histogram(found: Detection, path: Path | str) -> None:
    """Figure 3: histogram of the log CSBE with the two mixtures and the thresholds. found: a Detection with mixtures."""
    import numpy as np

    from pyspeech.sad import gmm

    figure, axis = new_figure(6, 3.6)
    axis.hist(found.level, bins=120, density=True, color="0.8", label="frames")
    grid = np.linspace(found.level.min(), found.level.max(), 500)
    for mixture, threshold, kind, colour, label in (
        (found.noise, found.noise_threshold, found.level < found.noise_threshold, "C0", "noise"),
        (found.speech, found.speech_threshold, found.level > found.speech_threshold, "C1", "speech"),
    ):
        axis.plot(grid, kind.mean() * np.exp(gmm.log_likelihood(mixture, grid)), colour, label=f"{label} GMM")  # pyright: ignore[reportArgumentType]
        axis.axvline(threshold.mean(), color=colour, linestyle=":", label=f"{label} threshold (mean)")
    # Logarithmic, for the quietest level stands for much of the noise and would dwarf all else.
    axis.set(xlabel="log CSBE / dB", ylabel="density", yscale="log", ylim=(1e-4, None))
    axis.legend()
    save(figure, path)


def plot_thresholds(
    sweeps: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    path: Path | str,
    horizontal: Mapping[str, float] | None = None,
    title: str | None = None,
) -> None:
    """Figure 6: DCF on dev against the decision threshold. `sweeps`: {label: (thresholds, dcf as a fraction)}."""
    figure, axis = new_figure(6, 3.6)
    for label, (thresholds, dcf) in sweeps.items():
        axis.plot(thresholds, [100 * value for value in dcf], label=label)
    for label, value in (horizontal or {}).items():
        axis.axhline(100 * value, color="k", linestyle="--", label=label)
    lowest = min(min(dcf) for _, dcf in sweeps.values())
    axis.set(xlabel="threshold α", ylabel="DCF on dev / %", ylim=(0, max(5, 500 * lowest)), title=title)
    axis.legend()
    axis.grid(alpha=0.3)
    save(figure, path)


def plot_grid(
    grid: Sequence[dict[str, Any]], cnn: Mapping[str, dict[str, float]], frame_shift: float, path: Path | str
) -> None:
    """Figure 7: DCF on dev of the segment RNN against its shift, a line for each length, a panel for each collar, and that
    of CNN + HMM. grid: grid.json; cnn: {collar: its scores on dev}; frame_shift: seconds."""
    figure, axes = new_figure(5.5 * len(cnn), 3.6, columns=len(cnn))
    for axis, (collar, scores) in zip([axes] if len(cnn) == 1 else axes, cnn.items(), strict=True):
        for length in sorted({row["length"] for row in grid}):
            cells = sorted((row["shift"], row["dcf"][collar]) for row in grid if row["length"] == length)
            axis.plot(
                [1000 * frame_shift * shift for shift, _ in cells],
                [100 * dcf for _, dcf in cells],
                "o-",
                label=f"L = {1000 * frame_shift * length:g} ms",
            )
        axis.axhline(100 * scores["dcf"], color="r", linestyle="--", label="CNN + HMM")
        axis.set(xlabel="shift S / ms", ylabel="DCF on dev / %", title=f"collar {collar} s")
        axis.legend()
        axis.grid(alpha=0.3)
    save(figure, path)
