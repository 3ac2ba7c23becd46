"""Plots beside the tables of Joshi et al. 2021: the trade-off of Table 7, confused languages, word error rates."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspeech.report.plots import new_figure, save
from steps.asr.tables import (
    MODELS,
    RULES,
    average_error_rate,
    confusion_matrix,
    in_order,
    languages_of,
    setting,
    word_error_rate,
)

MARKERS = "osD^vPX*<>"


def plot_trade_off(early_stopping: Sequence[dict[str, Any]], path: Path | str, frame_ms: float) -> None:
    """WER and LID accuracy against T_avg: a colour for each rule, a marker for each tau, a line through its thresholds.

    early_stopping: the list of steps.asr.tables. Dotted: without early stopping, where that is among them.
    """
    figure, axes = new_figure(11, 4.4, columns=2)
    stopping = [entry for entry in early_stopping if math.inf not in setting(entry)]
    rules = in_order({entry["rule"] for entry in stopping}, RULES)
    taus = sorted({setting(entry)[0] for entry in stopping})
    for axis, value, label in (
        (axes[0], word_error_rate, "WER / %"),
        (axes[1], lambda entry: entry["lid_accuracy"], "LID accuracy / %"),
    ):
        for colour, rule in enumerate(rules):
            for marker, tau in zip(MARKERS * len(taus), taus, strict=False):
                points = sorted(
                    (entry["threshold"], entry["t_avg"], 100 * value(entry))  # pyright: ignore[reportOperatorIssue]
                    for entry in stopping
                    if entry["rule"] == rule and setting(entry)[0] == tau
                )
                axis.plot(
                    [point[1] for point in points],
                    [point[2] for point in points],
                    color=f"C{colour}",
                    marker=marker,
                    markersize=5,
                    linewidth=1,
                    alpha=0.8,
                )
        for entry in [entry for entry in early_stopping if math.inf in setting(entry)][:1]:
            axis.axhline(100 * value(entry), color="k", linestyle=":", linewidth=1)  # pyright: ignore[reportOperatorIssue]
            axis.plot(entry["t_avg"], 100 * value(entry), "k*", markersize=10)  # pyright: ignore[reportOperatorIssue]
        axis.set(xlabel="T_avg / active decoders", ylabel=label)
        axis.grid(alpha=0.3)
    _legend(figure, rules, taus, frame_ms)
    save(figure, path)


def _legend(figure, rules, taus, frame_ms):
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=f"C{colour}", label=RULES.get(rule, rule)) for colour, rule in enumerate(rules)]
    handles += [
        Line2D([], [], color="0.4", linestyle="", marker=marker, label=f"tau {tau:g} ({tau * frame_ms:g} ms)")
        for marker, tau in zip(MARKERS * len(taus), taus, strict=False)
    ]
    handles.append(Line2D([], [], color="k", linestyle=":", marker="*", label="no early stopping"))
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)


def plot_confusion(confusion: Mapping[str, Mapping[str, int]], path: Path | str, title: str = "predicted languages") -> None:
    """Heat map: rows the languages spoken, columns those predicted, in % of the row with the number of utterances."""
    import numpy as np

    spoken, predicted, counts = confusion_matrix(confusion)
    counts = np.array(counts)
    share = 100 * counts / counts.sum(axis=1, keepdims=True)
    figure, axis = new_figure(2.2 + 0.9 * len(predicted), 1.6 + 0.7 * len(spoken))
    image = axis.imshow(share, cmap="Blues", vmin=0, vmax=100)
    for (row, column), value in np.ndenumerate(share):
        axis.text(
            column,
            row,
            f"{value:.1f}\n({counts[row, column]})",
            ha="center",
            va="center",
            fontsize=8,
            color="w" if value > 60 else "k",
        )
    axis.set(
        xticks=range(len(predicted)),
        xticklabels=predicted,
        yticks=range(len(spoken)),
        yticklabels=spoken,
        xlabel="predicted",
        ylabel="spoken",
        title=title,
    )
    figure.colorbar(image, ax=axis, label="utterances / %")
    save(figure, path)


def plot_wer(results: Mapping[str, Any], path: Path | str) -> None:
    """Bars: WER in % by language and on average, a colour for each model; whiskers are the 95 % intervals."""
    languages = languages_of(results)
    models = in_order(results["models"], MODELS)
    figure, axis = new_figure(max(6, 1.5 + 0.28 * len(models) * (len(languages) + 1)), 4)
    width = 0.85 / max(1, len(models))
    for place, model in enumerate(models):
        scores = results["models"][model]
        entries = [
            (x, word_error_rate(scores["languages"].get(code)), scores["languages"].get(code, {}).get("ci"))
            for x, code in enumerate(languages)
        ]
        average = average_error_rate(scores, languages)
        entries.append((len(languages), average, scores.get("average", {}).get("ci")))
        _bars(
            axis,
            [entry for entry in entries if entry[1] is not None],
            (place - (len(models) - 1) / 2) * width,
            width,
            f"C{place}",
            MODELS.get(model, model),
        )
    axis.set(xticks=range(len(languages) + 1), xticklabels=[*languages, "Avg."], ylabel="WER / %")
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    figure.legend(loc="outside right upper", fontsize=8)
    save(figure, path)


def _bars(axis, entries, offset, width, colour, label):
    axis.bar([x + offset for x, _, _ in entries], [100 * rate for _, rate, _ in entries], width, color=colour, label=label)
    for x, _, interval in entries:
        if interval:
            axis.plot([x + offset] * 2, [100 * value for value in interval], color="k", linewidth=1)
