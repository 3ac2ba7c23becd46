"""Equal error rate over the segments of recordings that are fake in part (Zhang et al. 2021, PartialSpoof).

Time is cut into units of one length; a unit is fake where any of it is, and its score is that of the detector in its middle.
"""

from __future__ import annotations

import csv
import math
import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyspeech.errors import UserError
from pyspeech.spoof.formats import KEYS, utterance_name

Part = tuple[float, float, float]  # start and end in seconds; a score, or 1 for genuine and 0 for fake
UNIT = 0.16  # seconds
LEAST = 1e-6  # seconds; less is rounding


def score_segments(
    scores: Mapping[str, Sequence[Part]],
    labels: Mapping[str, Sequence[Part]],
    unit: float = UNIT,
    draws: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Figures of labelled recordings that have scores.

    Returns:
        {"genuine", "fake": numbers of units, "recordings", "eer": a fraction, "interval": [low, high] of 95 %, for other
        recordings, "threshold"}

    Raises:
        UserError: where there are no units of one class.
    """
    from pyspeech.spoof.scoring import eer_interval, equal_error_rate

    found, names = ([], []), ([], [])
    for name, parts in labels.items():
        for values, kind in zip(units_of(scores[name], parts, unit), (0, 1), strict=True):
            found[kind].extend(values)
            names[kind].extend([name] * len(values))
    if not all(found):
        raise UserError(f"{len(found[0])} genuine and {len(found[1])} fake units; expected some of both")
    eer, threshold = equal_error_rate(*found)
    interval = eer_interval(*found, names, draws, seed)
    counts = {"genuine": len(found[0]), "fake": len(found[1]), "recordings": len(labels)}
    return {**counts, "eer": float(eer), "interval": list(interval), "threshold": threshold, "unit": unit}


def units_of(scores: Sequence[Part], labels: Sequence[Part], unit: float) -> tuple[list[float], list[float]]:
    """Scores of the (genuine, fake) units of a recording; a unit in no labelled part is none."""
    count = math.ceil(max(end for _, end, _ in labels) / unit - LEAST)
    begins = unit * np.arange(count)
    labelled, fake = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    for start, end, genuine in labels:
        inside = (begins + LEAST < end) & (begins + unit - LEAST > start)
        labelled |= inside
        if not genuine:
            fake |= inside
    starts, ends, values = np.array(sorted(scores)).T
    middles = begins + unit / 2
    before = np.maximum(np.searchsorted(starts, middles, side="right") - 1, 0)
    after = np.minimum(before + 1, len(starts) - 1)
    nearer = (middles > ends[before]) & (starts[after] - middles < middles - ends[before])  # where nothing was scored
    found = values[np.where(nearer, after, before)]
    return found[labelled & ~fake].tolist(), found[labelled & fake].tolist()


def read_segment_scores(path: Path | str) -> dict[str, list[Part]]:
    """{recording: parts} of a file that `utils/detect_fake.py --segments --format csv` wrote."""
    found = {}
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            for number, row in enumerate(csv.DictReader(stream), start=2):
                part = tuple(float(row[name]) for name in ("start", "end", "score"))
                if not all(map(math.isfinite, part)) or part[0] >= part[1]:
                    raise UserError(f"{path}, line {number}: {part}; expected finite numbers, and an end after its start")
                found.setdefault(utterance_name(row["recording"]), []).append(part)
    except OSError as error:
        raise UserError(f"{path}: cannot read the scores: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: no scores of segments ({error}); expected columns recording, start, end, score") from None
    if not found:
        raise UserError(f"{path}: no scores; expected what detect_fake --segments --format csv writes")
    return found


def read_segment_labels(path: Path | str) -> dict[str, list[Part]]:
    """{recording: parts} of labels, told apart by their looks:

    FILE START END genuine|fake                a line for each part (also bonafide|spoof)
    FILE 0.00-0.73-T/0.73-1.00-F ...           ADD 2023 track 2: T genuine, F fake
    *_0.16.npy                                 PartialSpoof: {utterance: "0" (fake) or "1" of each unit of 0.16 s}
    """
    if str(path).endswith(".npy"):
        return _read_units(Path(path))
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot read the labels: {getattr(error, 'strerror', None) or 'not text'}") from None
    found = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            name, parts = _parse(line.split(), f"{path}, line {number}")
            found.setdefault(utterance_name(name), []).extend(parts)
    if not found:
        raise UserError(f"{path}: no labels; expected lines `FILE START END genuine|fake`")
    return found


def _parse(fields, where):
    try:
        if len(fields) > 3 and fields[-1] in KEYS:
            parts = [(float(fields[-3]), float(fields[-2]), float(KEYS[fields[-1]] == "genuine"))]
            name = " ".join(fields[:-3])
        else:
            name, parts = fields[0], [_parse_part(part) for part in fields[1].split("/")]
    except (ValueError, KeyError, IndexError):
        parts = []
    if not parts or not all(0 <= start < end < math.inf for start, end, _ in parts):
        raise UserError(
            f"{where}: '{' '.join(fields)[:120]}'; expected `FILE START END genuine|fake` or `FILE 0.0-0.7-T/0.7-1.0-F`"
        )
    return name, parts


def _parse_part(text):
    start, end, kind = text.split("-")
    return float(start), float(end), {"T": 1.0, "F": 0.0}[kind]


class _Arrays(pickle.Unpickler):
    """A pickle of arrays and plain values alone: others could run what they like."""

    def find_class(self, module, name):
        known = {"_reconstruct", "ndarray", "dtype", "scalar"}
        if module.split(".")[0] == "numpy" and name in known:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"holds {module}.{name}")


def _read_units(path):
    resolution = re.search(r"(\d*\.\d+|\d+)\.npy$", path.name)
    try:
        if resolution is None or float(resolution[1]) <= 0:
            raise ValueError("its name does not end with the seconds of a unit, such as _0.16.npy")
        with open(path, "rb") as stream:
            version = np.lib.format.read_magic(stream)
            getattr(np.lib.format, f"read_array_header_{version[0]}_{version[1]}")(stream)
            content = _Arrays(stream).load().item()
        unit = float(resolution[1])
        return {
            utterance_name(str(name)): [
                (index * unit, (index + 1) * unit, float(int(label) == 1)) for index, label in enumerate(kinds)
            ]
            for name, kinds in content.items()
        }
    except OSError as error:
        raise UserError(f"{path}: cannot read the labels: {error.strerror}") from None
    except Exception as error:  # pickle raises nearly every kind
        raise UserError(f"{path}: no labels of PartialSpoof ({type(error).__name__}: {error})") from None
