"""A training that has learnt next to nothing says so in one line, in the log and in RESULTS.md.

Every measure here is an error that something which has not listened reaches too. What is no better than that, or not by
more than chance explains, is worth no comparison: it wants more data, more steps, or gentler augmentation.
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspeech.report.tables import percent

# {measure: (its name, the error as a fraction, who makes it)}
MEASURES = {
    "eer": ("EER", 0.5, "a coin"),
    "dcf": ("DCF", 0.25, "calling everything speech"),
    "wer": ("WER", 1.0, "an empty text"),
    "abx": ("ABX error", 0.5, "a coin"),
}
NEAR = 0.9  # of that error, where there is no interval
COLLAPSED = 2  # codes


def chance_note(
    system: str, measure: str, value: float | None, where: str, interval: Sequence[float] | None = None
) -> str | None:
    """One line where a system's error is about that of having learnt nothing, else None, as for a value of None.

    measure: of MEASURES; value: its error on the set `where`, a fraction; interval: its (low, high), which says what is
    near; without one, what is less than a tenth better.
    """
    name, chance, who = MEASURES[measure]
    if value is None or (interval[1] if interval else value / NEAR) < chance:
        return None
    limits = f" (95 % interval {percent(interval[0], 1)} to {percent(interval[1], 1)})" if interval else ""
    return (
        f"{system} ended near chance: {name} {percent(value, 1)} %{limits} on {where}, and {who} makes {percent(chance, 0)} %"
    )


def collapse_note(system: str, used: float | None, codes: int, where: str) -> str | None:
    """The same for a codebook of which at most COLLAPSED codes are in use; used: their number or perplexity, or None."""
    if used is None or used > COLLAPSED:
        return None
    return f"{system} ended near chance: {used:.3g} of {codes} codes in use on {where}, so the units say nothing"


def warn_of_training(
    log: logging.Logger, system: str, folder: Path, where: str = "dev", measure: str | None = None, codes: int | None = None
) -> None:
    """Warn of a training in `folder` that ended near chance: by the metric `measure` of its result on the set `where`, or by
    the last perplexity of a codebook of `codes`; nothing where it has no such metric."""
    from pyspeech.compat import load_checkpoint

    result = load_checkpoint(folder / "best.pt")
    perplexities = [point["train/perplexity"] for point in result["history"] if "train/perplexity" in point]
    warn(
        log,
        [
            chance_note(system, measure, result["metrics"].get(measure), where) if measure else None,
            collapse_note(system, (perplexities or [None])[-1], codes, "train") if codes else None,
        ],
    )


def warn(log: logging.Logger, notes: Iterable[str | None]) -> None:
    """Each note that is one as a warning."""
    for note in filter(None, notes):
        log.warning("%s", note)


def chance_section(notes: Iterable[str | None]) -> list[str]:
    """The parts of RESULTS.md for some notes: none where all are None."""
    found = [note for note in notes if note]
    return ["## Ended near chance", "\n".join(f"- {note}." for note in found)] if found else []
