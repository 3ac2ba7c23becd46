"""Plots beside the tables of Tjandra et al. 2020: ABX against bitrate, how often codes are used, a sentence."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.report.plots import new_figure, save
from pyspeech.units.usage import count_codes
from steps.units.tables import TABLES

if TYPE_CHECKING:
    import numpy as np
    from lhotse.cut import Cut

    from pyspeech.features.config import StftConfig
    from pyspeech.units.checkpoint import Bundle

SIZES = "TrfVQVAE, K"  # the families of systems that a line goes through, in the order of their number of codes
FAMILIES = {
    SIZES: ("C0", "o", "-"),
    "regularised": ("C2", "^", ""),
    "log-Mel": ("C4", "v", ""),
    "Conv VQVAE, K": ("C1", "s", "-"),
    "k-means, K": ("C3", "D", "-"),
}
NEAR = 5.0  # the paper's systems are drawn where their ABX errors, in %, come so near to ours
DEEPEST = 70.0  # dB below a picture's loudest
PICTURED = (1.5, 4.0)  # seconds: an utterance so long is shown, where there is one


def family_of(system: str) -> str:
    """One of FAMILIES."""
    for start, family in (("kmeans", "k-means, K"), ("conv", "Conv VQVAE, K")):
        if system.startswith(start):
            return family
    return SIZES if "_" not in system else "log-Mel" if system.endswith("logmel") else "regularised"


def trade_off_points(scores: Mapping[str, Any], mode: str) -> dict[str, list[tuple[int, float, float, float | None]]]:
    """{family: [(codes, bit/s, ABX in %, its standard deviation over the seeds or None), ...]}, few codes first.

    scores: as for steps.units.tables; mode: "within" or "across". Systems without that ABX, or bitrate, are left out.
    """
    points = {}
    for system, entries in scores.items():
        if has_abx(entries, mode) and entries[0]["bitrate"] is not None:
            abx = [entry["abx"][mode] for entry in entries]
            points.setdefault(family_of(system), []).append(
                (
                    entries[0]["codes"],
                    statistics.mean(entry["bitrate"] for entry in entries),
                    statistics.mean(abx),
                    statistics.stdev(abx) if len(abx) > 1 else None,
                )
            )
    return {family: sorted(points[family], key=lambda point: point[:3]) for family in FAMILIES if family in points}


def has_abx(entries: Sequence[Mapping[str, Any]], mode: str) -> bool:
    return bool(entries[0]["abx"]) and entries[0]["abx"][mode] is not None


def paper_points(points: Mapping[str, Sequence[tuple[int, float, float, float | None]]]) -> list[tuple[float, float]]:
    """[(bit/s, ABX across in %), ...] of the paper's systems that are near `points`, which trade_off_points gave."""
    figures = sorted({(bitrate, abx) for models in TABLES.values() for _, abx, bitrate in models.values() if abx})
    ours = [abx for family in points.values() for _, _, abx, _ in family]
    return [point for point in figures if min(ours) - NEAR <= point[1] <= max(ours) + NEAR] if ours else []


def plot_trade_off(scores: Mapping[str, Any], path: Path | str) -> bool:
    """ABX across and within speakers against the bitrate. Returns whether there was anything to draw."""
    if not any(trade_off_points(scores, mode) for mode in ("across", "within")):
        return False
    figure, axes = new_figure(11, 4.4, columns=2)
    for axis, mode in zip(axes, ("across", "within"), strict=True):
        points = trade_off_points(scores, mode)
        for family, found in points.items():
            colour, marker, line = FAMILIES[family]
            _, bitrates, abx, deviations = zip(*found, strict=True)
            axis.errorbar(
                bitrates,
                abx,
                [deviation or 0.0 for deviation in deviations],
                color=colour,
                marker=marker,
                linestyle=line,
                markersize=5,
                linewidth=1,
                label=family,
            )
            for codes, *point, _ in found if line else ():
                axis.annotate(codes, point, xytext=(4, 4), textcoords="offset points", fontsize=7, color=colour)
        for place, point in enumerate(paper_points(points) if mode == "across" else ()):
            axis.plot(*point, "x", color="0.6", markersize=5, label=None if place else "paper, English")
        if "mfcc" in scores and has_abx(scores["mfcc"], mode):
            axis.axhline(scores["mfcc"][0]["abx"][mode], color="k", linestyle="--", linewidth=1, label="MFCC")
        axis.set(xlabel="bitrate / bit/s", ylabel=f"ABX {mode} speakers / %")
        axis.grid(alpha=0.3)
    labelled = axes[0] if trade_off_points(scores, "across") else axes[1]
    figure.legend(*labelled.get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    save(figure, path)
    return True


def code_shares(folder: Path) -> list[float]:
    """Shares of the codes in use, the most frequent first. folder: of units, an array file an utterance."""
    counts = count_codes(folder)
    total = sum(counts.values())
    return [count / total for count in sorted(counts.values(), reverse=True)]


def plot_code_usage(shares: Mapping[str, Sequence[float]], path: Path | str) -> None:
    """Rank and share of every code, doubly logarithmic. shares: {system: code_shares of it}."""
    import numpy as np

    figure, axis = new_figure(7, 4)
    for system, found in shares.items():
        perplexity = np.exp(-np.sum(found * np.log(found)))
        axis.plot(
            range(1, len(found) + 1),
            100 * np.array(found),
            marker=".",
            markersize=3,
            linewidth=1,
            label=f"{system}: {len(found)} codes, perplexity {perplexity:.0f}",
        )
    axis.set(xlabel="rank of the code", ylabel="share of all / %", xscale="log", yscale="log")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    save(figure, path)


def draw_sentence(
    folder: Path, vqvae: Bundle, cuts: Sequence[Cut], names: Mapping[tuple[str, str], str], path: Path | str
) -> None:
    """The picture of one of `cuts`, spoken by at most two voices.

    folder: of what is spoken; vqvae: a pyspeech.units.checkpoint.Bundle; names: {(utterance, voice): file in it}.
    """
    from pyspeech.audio.io import read_audio
    from pyspeech.data.cuts import read_samples
    from pyspeech.units.encoding import code_times, encode

    low, high = PICTURED
    cut = min(cuts, key=lambda cut: (not low <= cut.duration <= high, cut.id))
    rate = vqvae.features.sampling_rate
    samples = read_samples(cut, rate)
    codes, _ = encode(vqvae, samples)
    starts, ends = code_times(vqvae, len(codes), len(samples))
    spoken = sorted((voice, name) for (utterance, voice), name in names.items() if utterance == cut.id)
    voices = {voice: read_audio(folder / name, rate)[0] for voice, name in spoken[:2]}
    plot_sentence(cut.id, samples, runs_of(codes.tolist(), starts, ends), voices, vqvae.features.magnitudes, path)


def plot_sentence(
    name: str,
    original: np.ndarray,
    codes: Iterable[tuple[int, float, float]],
    spoken: Mapping[str, np.ndarray],
    config: StftConfig,
    path: Path | str,
) -> None:
    """An utterance: spectrogram, its codes over time, spectrograms of what is spoken from them.

    original: samples; codes: [(code, start, end), ...] in seconds, repeats in one; spoken: {voice: samples}; config:
    StftConfig of the spectrograms, which all have the level of their own loudest at the top.
    """
    heights = [3, 1, *[3] * len(spoken)]
    figure, axes = new_figure(11, 0.7 * sum(heights) + 0.3, rows=len(heights), heights=heights)
    seconds = len(original) / config.sampling_rate
    _spectrogram(axes[0], original, config, name)
    for code, start, end in codes:
        axes[1].axvspan(start, end, color=f"C{code % 10}", alpha=0.55, linewidth=0)
        axes[1].text((start + end) / 2, 0.5, code, rotation=90, ha="center", va="center", fontsize=6)
    axes[1].set(ylim=(0, 1), yticks=[], ylabel="codes")
    for axis, (voice, samples) in zip(axes[2:], spoken.items(), strict=False):
        _spectrogram(axis, samples, config, f"spoken by {voice}")
    for axis in axes:
        axis.set_xlim(0, seconds)
        axis.tick_params(labelbottom=axis is axes[-1])
    axes[-1].set_xlabel("time / s")
    save(figure, path)


def runs_of(codes: Iterable[int], starts: Iterable[float], ends: Iterable[float]) -> list[tuple[int, float, float]]:
    """[(code, start, end), ...] with repeats of a code in one; starts, ends: times of each."""
    runs = []
    for code, start, end in zip(codes, starts, ends, strict=True):
        if runs and runs[-1][0] == code:
            runs[-1] = (code, runs[-1][1], end)
        else:
            runs.append((code, start, end))
    return runs


def _spectrogram(axis, samples, config, title):
    import numpy as np
    import torch

    from pyspeech.features.stft import MagnitudeStft

    magnitudes = MagnitudeStft(config)(torch.as_tensor(np.asarray(samples, np.float32))[None])[0].numpy()
    level = 20 * np.log10(magnitudes.T + 1e-10)
    extent = [0, len(magnitudes) * config.frame_shift, 0, config.sampling_rate / 2000]
    axis.imshow(level, origin="lower", aspect="auto", extent=extent, vmin=level.max() - DEEPEST, vmax=level.max(), cmap="magma")
    axis.set_ylabel("kHz")
    axis.set_title(title, fontsize=9)
