"""Setting of early stopping that a development set chooses, from the entries of early_stopping.json; no numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def setting(entry: dict[str, Any]) -> tuple[float, float]:
    """(tau in frames, threshold) of an entry, infinity for None."""
    tau, threshold = (math.inf if entry[name] is None else entry[name] for name in ("tau_frames", "threshold"))
    return tau, threshold


def cheapest_setting(early_stopping: Sequence[dict[str, Any]], points: float = 0.01) -> tuple[dict, dict] | None:
    """The entry with the lowest T_avg on dev of those whose WER there is at most `points` above that without early
    stopping; and the entry without. None where nothing was decoded on dev."""
    entries = [entry for entry in early_stopping if entry.get("dev") and entry["dev"]["words"]]
    without = [entry for entry in entries if math.inf in setting(entry)]
    if not without:
        return None
    most = _word_error_rate(without[0]) + points
    close = [entry for entry in entries if _word_error_rate(entry) <= most]
    return min(close, key=lambda entry: entry["dev"]["t_avg"]), without[0]


def _word_error_rate(entry):
    return entry["dev"]["errors"] / entry["dev"]["words"]
