"""Bitrate of discovered units, and the list of files it is computed from.

    B = (N / D) H,   H = -sum_s p(s) log2 p(s)

after Dunbar et al. 2019, "The Zero Resource Speech Challenge 2019: TTS without T", section 3: N is the number of lines
(vectors) of all files scored, D their duration in seconds, s a distinct vector and p(s) its share of the N lines. A
vector counts each time it is there, repeats included, and vectors are the same where all their numbers are. So a system
of K codes at a fixed rate has at most rate * log2(K): 175 bit/s for 128 codes at 25 Hz, the system of Tjandra et al.
2020.

The list of files to score is the challenge's bitrate_filelist: a name a line, of a features file (its ending may be
there or not), and in the challenge's own lists the duration in seconds behind it.
"""

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.errors import UserError
from pyspeech.units.features_files import SUFFIXES, read_text

LISTED_SUFFIXES = {*SUFFIXES, ".wav", ".flac"}


def measure(sequences: Iterable[tuple[ArrayLike, float]]) -> dict[str, float]:
    """The bitrate and what it is made of.

    sequences: iterable of (rows, seconds), an utterance each: rows (N,) or (N, dim), finite numbers; seconds > 0.
    Returns {"bitrate": bit/s, "lines": N, "seconds": D, "entropy": H in bits, "symbols": number of distinct rows,
    "ceiling": bit/s that as many symbols would have at the same rate, each as often}. UserError without utterances, for
    durations that are not positive, numbers that are not finite, and dimensions that differ.
    """
    counts, durations, dimension = Counter(), [], None
    for number, (rows, seconds) in enumerate(sequences, 1):
        rows = _checked(rows, f"utterance {number}")
        if not 0 < seconds < math.inf:
            raise UserError(f"utterance {number}: a duration of {seconds:g} s; expected more than 0")
        dimension = rows.shape[1] if dimension is None else dimension
        if rows.shape[1] != dimension:
            raise UserError(f"utterance {number}: {rows.shape[1]} numbers a row; expected {dimension}, as before it")
        counts.update(row.tobytes() for row in rows)
        durations.append(seconds)
    if not durations:
        raise UserError("no utterances to compute a bitrate from; expected at least one")
    lines, seconds = sum(counts.values()), math.fsum(durations)
    entropy = _entropy(counts.values(), lines)
    return {
        "bitrate": lines * entropy / seconds,
        "lines": lines,
        "seconds": seconds,
        "entropy": entropy,
        "symbols": len(counts),
        "ceiling": lines * math.log2(max(1, len(counts))) / seconds,
    }


def _checked(rows, where):
    """rows as (N, dim) float64, -0 as 0, so that equal rows have equal bytes."""
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows.reshape(len(rows), -1 if rows.size else 1) if rows.ndim < 2 else rows
    if rows.ndim != 2:
        raise UserError(f"{where}: an array of shape {rows.shape}; expected one vector a frame")
    if not np.isfinite(rows).all():
        raise UserError(f"{where}: numbers that are not finite; expected finite ones")
    return np.ascontiguousarray(rows + 0.0)


def _entropy(counts, total):
    # In the order of size, so that the order of the files leaves no trace in the last digit.
    return 0.0 - math.fsum(count / total * math.log2(count / total) for count in sorted(counts))


# The list


def read_filelist(path: Path | str) -> list[tuple[str, float | None]]:
    """[(name, seconds or None), ...] of a bitrate_filelist, in order; a name is without folders and ending.

    UserError for an empty list, a name that is there twice, a duration that is not above 0, and a file that is not text.
    """
    entries = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        name, seconds = _entry(line.strip())
        if name in entries:
            raise UserError(f"{path}, line {number}: {name} is there twice; expected each file once")
        if seconds is not None and not 0 < seconds < math.inf:
            raise UserError(f"{path}, line {number}: a duration of {seconds:g} s; expected more than 0")
        entries[name] = seconds
    if not entries:
        raise UserError(f"{path}: lists no files; expected a name a line")
    return list(entries.items())


def _entry(line):
    """(name, seconds or None): a number behind the name is its duration."""
    fields = line.rsplit(maxsplit=1)
    try:
        return listed_name(fields[0]), float(fields[1])
    except (IndexError, ValueError):
        return listed_name(line), None


def listed_name(text: str) -> str:
    """The utterance that a list's entry stands for: english/test/S002_01.txt is S002_01."""
    name = PurePosixPath(text.replace("\\", "/")).name
    stem, dot, suffix = name.rpartition(".")
    return stem if dot + suffix.lower() in LISTED_SUFFIXES and stem else name
