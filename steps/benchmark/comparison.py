"""Results of the same work from several machines, or from one before and after: what differs, and by how much.

Results are plain data (JSON): {"machine": {...}, "lines": {name: line}}. A line has "work", {key: value} of all that
decides what is computed; "seconds" and "cpu_seconds", those of each repeat; "proof", numbers that the work came to;
"device"; "pressure". A line that failed has "problem" instead.

Repeats within a process tell less than they seem to: the same work in another process, or ten minutes later, is up to a fifth
slower or faster on a quiet virtual machine, which is more than its repeats differ. So lines are measured in several rounds
(`add_round`), and figures of two machines differ where the ranges of all repeats of all rounds do not meet. By chance those of
four rounds do not in three cases of a hundred (2 * 4! * 4! / 8!), of three rounds in ten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspeech.engine.config import show
from pyspeech.errors import UserError
from steps.benchmark.timing import spread

DISTURBED = 10.0  # percent of pressure above which a figure is disturbed
SAME, SAME_ACROSS = 1e-3, 0.1  # relative difference of proofs: on a kind of device; from a CPU to a GPU, where dropout
# draws other numbers and bf16 rounds
SHOWN = 3  # differences in a message
MOST = ("pressure", "host_gigabytes", "device_gigabytes")  # of these a line has the most of all rounds


class Difference(NamedTuple):
    """A line of two results. seconds: the medians; ratio: how many times as fast the second is, 1 for no difference;
    verdict, cpu_verdict: of the times on the clock, and of computing; note: what is to be known about it."""

    name: str
    seconds: tuple[float, float]
    ratio: float
    verdict: str
    cpu_verdict: str
    note: str


def add_round(line: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Mapping[str, Any]:
    """A line with what another round of it came to: all repeats, the most of pressure and memory, the mean share of waiting."""
    if line is None or "problem" in more:
        return more
    before = len(line["seconds"]) // len(more["seconds"])
    known = {key: [one[key] for one in (line, more) if one[key] is not None] for key in MOST}
    return {
        **line,
        "seconds": [*line["seconds"], *more["seconds"]],
        "cpu_seconds": [*line["cpu_seconds"], *more["cpu_seconds"]],
        "waiting": None if line["waiting"] is None else (before * line["waiting"] + more["waiting"]) / (before + 1),
        **{key: max(values, default=None) for key, values in known.items()},
    }


def compare(results: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[list[Difference], list[str]]:
    """The lines that two results share, and the names of those that one of them alone has, or that failed.

    names: of the two, for messages. UserError where lines of the same name did other work, or none is shared.
    """
    first, second = (result["lines"] for result in results)
    shared = [name for name in first if name in second and not any("problem" in lines[name] for lines in (first, second))]
    others = [name for name in dict.fromkeys([*first, *second]) if name not in shared]
    if not shared:
        raise UserError(f"{' and '.join(names)}: no line in common; expected two results of the same parts")
    for name in shared:
        changes = work_changes(first[name]["work"], second[name]["work"])
        if changes:
            more = f" and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
            raise UserError(
                f"{' and '.join(names)}: '{name}' is other work: {', '.join(changes[:SHOWN])}{more}; "
                "measure one of them again with the other's options"
            )
    return [_difference(name, first[name], second[name]) for name in shared], others


def work_changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """["train.lr 0.001 -> 0.5", ...]; what only one of them knows, as the program has gained or lost an option, is none."""
    return [
        f"{key} {show(first[key])} -> {show(second[key])}"
        for key in first
        if key in second and json.dumps(first[key], sort_keys=True) != json.dumps(second[key], sort_keys=True)
    ]


def is_disturbed(line: Mapping[str, Any]) -> bool:
    """Return True where other programs kept the machine busy."""
    return (line.get("pressure") or 0.0) > DISTURBED


def overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return True where the ranges of two lists of numbers meet."""
    return min(one) <= max(other) and min(other) <= max(one)


def farthest(numbers: Sequence[float], others: Sequence[float]) -> float:
    """The largest relative difference between numbers in the same places; infinite where there are not as many."""
    if len(numbers) != len(others):
        return float("inf")
    return max((abs(one - other) / max(abs(other), 1e-12) for one, other in zip(numbers, others, strict=True)), default=0.0)


def _difference(name, first, second):
    notes = []
    distance = farthest(first["proof"], second["proof"])
    if distance > (SAME if first["device"] == second["device"] else SAME_ACROSS):
        notes.append(f"not the same result: {distance:.1%} apart")
    disturbed = [which for which, line in (("first", first), ("second", second)) if is_disturbed(line)]
    if disturbed:
        notes.append(f"disturbed: {' and '.join(disturbed)}")
    medians = spread(first["seconds"])[0], spread(second["seconds"])[0]
    same = overlap(first["seconds"], second["seconds"])
    wall, computing = (_verdict(first[kind], second[kind]) for kind in ("seconds", "cpu_seconds"))
    return Difference(name, medians, 1.0 if same else medians[0] / medians[1], wall, computing, "; ".join(notes))


def _verdict(first, second):
    if overlap(first, second):
        return "no difference"
    return f"{spread(first)[0] / spread(second)[0]:.2f} x"
