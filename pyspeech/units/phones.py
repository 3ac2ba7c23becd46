"""Agreement of discrete units with phones: phone purity, cluster purity, mutual information (Hsu et al. 2021, HuBERT,
section 4.5).

Units and phones are counted together, frame by frame, n(u, p) of N frames, P(u, p) = n / N:

    phone purity      sum over units of max_p P(u, p): the share of frames whose phone is the commonest of their unit
    cluster purity    sum over phones of max_u P(u, p): the share of frames whose unit is the commonest of their phone
    PNMI              I(phone; unit) / H(phone): the share of what is to be known of the phone that the unit tells

Phone purity grows with the number of units and cluster purity falls: compare systems of as many. Frames outside the alignment
do not count.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from pyspeech.data.names import KnownNames
from pyspeech.errors import UserError
from pyspeech.units.features_files import Features, read_text

Segment = tuple[float, float, str]  # start and end in seconds, phone
FORMS = "expected `NAME START END PHONE` (seconds), CTM (`NAME CHANNEL START DURATION PHONE`), or an .item file"
LEAST_COVERED, MOST_COVERED = 0.8, 2.0  # seconds of units a second of alignment; recordings go on behind the last phone
MOST_DISTINCT = 0.5  # units a frame
log = logging.getLogger(__name__)


def read_alignment(path: Path | str) -> dict[str, list[Segment]]:
    """Read {utterance: its phones in order of time} of a file with a line for each phone, in one of FORMS.

    Raises:
        UserError: with the line, for other lines, and for phones of an utterance that overlap.
    """
    if Path(path).suffix == ".item":
        from pyspeech.units.items import read_items

        rows = [(item.file, item.onset, item.offset, item.phone) for item in read_items(path)]
    else:
        lines = enumerate(read_text(path).split("\n"), 1)
        rows = [_row(f"{path}, line {number}", line.split()) for number, line in lines if line.strip() and line[0] != "#"]
    found = {}
    for name, start, end, phone in sorted(set(rows)):
        segments = found.setdefault(name, [])
        if segments and start < segments[-1][1] - 1e-6:
            _, until, before = segments[-1]
            raise UserError(f"{path}: {name}: {before} until {until:g} s, {phone} from {start:g} s; expected no overlap")
        segments.append((start, end, phone))
    if not found:
        raise UserError(f"{path}: no phones; {FORMS}")
    return found


def _row(where, fields):
    try:
        if len(fields) == 4:
            name, start, end, phone = fields[0], float(fields[1]), float(fields[2]), fields[3]
        else:
            name, start, phone = fields[0], float(fields[2]), fields[4]
            end = start + float(fields[3])
    except (ValueError, IndexError):
        raise UserError(f"{where}: '{' '.join(fields)[:80]}'; {FORMS}") from None
    if not 0 <= start <= end < math.inf:
        raise UserError(f"{where}: from {start:g} s to {end:g} s; expected 0 <= start <= end")
    return name, start, end, phone


def count_together(
    features: Callable[[str], Features],
    names: Sequence[str],
    alignment: Mapping[str, Sequence[Segment]],
    frame_rate: float | None,
) -> tuple[list[str], list[str], np.ndarray]:
    """Count units and phones together.

    Args:
        features: Units of an utterance by name, such as `open_features` gives: codes, or vectors of which each distinct one
            is a unit.
        names: Names of the utterances.
        alignment: Of `read_alignment`.
        frame_rate: Units a second, the first at half of one; None takes the times of the files.

    Returns:
        (names of units, names of phones, counts (units, phones) int64), both in order.

    Raises:
        UserError: where no utterance has phones, or no frame is in one, or there are no times.
    """
    aligned, counts, frames, used, seconds = KnownNames(alignment), Counter(), 0, 0, 0.0
    for name in names:
        found = aligned.find(name)
        if found is None:
            continue
        values, times, source = features(name)
        if times is None:
            if frame_rate is None:
                raise UserError(f"{source}: no times of its units; give their rate (--frame-rate, units a second)")
            times = (np.arange(len(values)) + 0.5) / frame_rate
        phones = _phones_at(times, alignment[found])
        counts.update((unit, phone) for unit, phone in zip(_unit_names(values), phones, strict=True) if phone is not None)
        frames, used, seconds = frames + len(values), used + 1, seconds + alignment[found][-1][1]
    if not counts:
        raise UserError(
            f"no unit is in a phone: {used} of {len(names)} utterances are in the alignment; expected the same names"
        )
    inside = sum(counts.values())
    if used < len(names) or inside < frames / 2:
        log.warning(
            "%d of %d utterances are in the alignment, and %.0f %% of their units in a phone",
            used,
            len(names),
            100 * inside / frames,
        )
    if frame_rate is not None and not LEAST_COVERED <= frames / frame_rate / seconds <= MOST_COVERED:
        log.warning(
            "%.1f s of units, but %.1f s of alignment: at %g units a second; check --frame-rate",
            frames / frame_rate,
            seconds,
            frame_rate,
        )
    units = sorted({unit for unit, _ in counts}, key=lambda unit: (len(unit), unit))
    if len(units) > MOST_DISTINCT * inside:
        log.warning("nearly every frame is a unit of its own; expected codes, or one of a few vectors, not features")
    phones = sorted({phone for _, phone in counts})
    return units, phones, np.array([[counts[unit, phone] for phone in phones] for unit in units])


def _phones_at(times, segments):
    """The phone at each of the times, None where there is none."""
    starts = np.array([start for start, _, _ in segments])
    places = np.searchsorted(starts, times, side="right") - 1
    return [
        segments[place][2] if place >= 0 and time < segments[place][1] else None
        for place, time in zip(places.tolist(), times.tolist(), strict=True)
    ]


def _unit_names(values):
    """What the units of an utterance (N, D) are called: codes by their number, one-hot vectors by the place of the 1."""
    if values.shape[1] == 1:
        return [f"{value:g}" for value in values[:, 0]]
    if ((values == 0) | (values == 1)).all() and (values.sum(axis=1) == 1).all():
        return [str(place) for place in values.argmax(axis=1)]
    return [" ".join(f"{value:.9g}" for value in row) for row in values]


def figures(counts: np.ndarray) -> dict[str, float]:
    """Return phone_purity, cluster_purity and pnmi (0 to 1; pnmi 1 where there is one phone), and the entropies in bits.

    counts: (units, phones), whole numbers, at least one above 0.
    """
    shares = np.asarray(counts, dtype=np.float64) / np.sum(counts)
    of_units, of_phones = shares.sum(axis=1), shares.sum(axis=0)
    unit_entropy, phone_entropy, joint = map(_entropy, (of_units, of_phones, shares.reshape(-1)))
    information = max(0.0, unit_entropy + phone_entropy - joint)
    return {
        "phone_purity": float(shares.max(axis=1).sum()),
        "cluster_purity": float(shares.max(axis=0).sum()),
        "pnmi": information / phone_entropy if phone_entropy else 1.0,
        "information": information,
        "unit_entropy": unit_entropy,
        "phone_entropy": phone_entropy,
    }


def _entropy(shares):
    shares = shares[shares > 0]
    return 0.0 - float((shares * np.log2(shares)).sum())
