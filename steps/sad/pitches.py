"""The pitch of a corpus's voices, as its preparation measured it (local/pitches.py), in a recipe's results."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspeech.report.tables import markdown_table, percent


def read_pitches(corpus: Path | str) -> dict[str, Any]:
    """{set: statistics} of the corpus in a folder; {} of one whose voices nobody measured."""
    path = Path(corpus) / "pitch.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def pitch_section(statistics: Mapping[str, Any]) -> list[str]:
    """Parts of RESULTS.md: a row of percentiles for each set; none where there are no statistics."""
    from local.pitches import HIGH, LOW, PERCENTILES

    if not statistics:
        return []
    header = ["set", "clips", *(f"{place} %" for place in PERCENTILES), f"below {LOW:g} Hz, %", f"above {HIGH:g} Hz, %"]
    rows = [
        [
            name,
            found["clips"],
            *(f"{value:.0f}" for value in found["percentiles"]),
            percent(found["low"], 1),
            percent(found["high"], 1),
        ]
        for name, found in statistics.items()
    ]
    return ["## Pitch of the simulated voices: percentiles in Hz of the medians of clips", markdown_table(header, rows)]
