"""The pitch of a simulated corpus's voices: pitch.json, {set: statistics}, measured on the clean clips as they are said."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pyspeech.files import write_json

PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
LOW, HIGH = 105.0, 350.0  # Hz: below and above lies what the packages' own voices hardly have


def pitch_statistics(pitches: Iterable[float]) -> dict[str, Any] | None:
    """Statistics of the median pitches of clips, in Hz; None where there are none.

    Clips without a pitch (nan), whispers among them, do not count.

    Returns:
        {"clips": their number, "percentiles": Hz, at PERCENTILES, "low" and "high": the shares below LOW and above HIGH}.
    """
    found = np.asarray(pitches, np.float64)
    found = found[np.isfinite(found)]
    if not len(found):
        return None
    return {
        "clips": len(found),
        "percentiles": np.percentile(found, PERCENTILES).round(1).tolist(),
        "low": round(float(np.mean(found < LOW)), 4),
        "high": round(float(np.mean(found > HIGH)), 4),
    }


def write_pitches(out: Path, log: logging.Logger, pitches: Mapping[str, Iterable[float]]) -> None:
    """Write `out`/pitch.json and a log line for each set. pitches: {set: median pitches of its clips, Hz}."""
    statistics = {name: found for name, some in pitches.items() if (found := pitch_statistics(some))}
    for name, found in statistics.items():
        log.info(
            "%s: pitch of %d clips, percentiles %s: %s Hz; %.0f %% below %g Hz, %.0f %% above %g Hz",
            name,
            found["clips"],
            ", ".join(map(str, PERCENTILES)),
            ", ".join(f"{value:.0f}" for value in found["percentiles"]),
            100 * found["low"],
            LOW,
            100 * found["high"],
            HIGH,
        )
    write_json(out / "pitch.json", statistics)
