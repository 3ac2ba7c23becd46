"""Problems of a corpus, listed in problems.txt and shown: a few leave files out, more stop the preparation."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from pyspeech.errors import UserError
from pyspeech.files import atomic_write

TOLERATED, TOLERATED_SHARE = 10, 0.05
SHOWN = 20


def printable(path: Path | str) -> str:
    """A path, or text with one in it, whose bytes that are not UTF-8 are written as \\xe9; halves of characters as \\ud800."""
    try:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return os.fspath(path).encode("utf-8", "backslashreplace").decode("utf-8")


def list_problems(
    folder: Path | str, problems: Sequence[tuple[Path | str, str]], listing: str = "problems.txt"
) -> tuple[Path, str]:
    """Write [(file or utterance, what is wrong), ...] to folder/<listing>, a line each; no such file for none.

    Returns (path of the list, what of it a message shows: the first 20 lines).
    """
    path = Path(folder) / listing
    if not problems:
        path.unlink(missing_ok=True)
        return path, ""
    lines = [printable(f"{place}: {problem}") for place, problem in problems]
    with atomic_write(path) as stream:
        stream.write("\n".join(lines) + "\n")
    more = f"\n  ... all in {path}" if len(lines) > SHOWN else ""
    return path, "\n".join("  " + line for line in lines[:SHOWN]) + more


def report_problems(
    name: str,
    folder: Path | str,
    problems: Sequence[tuple[Path | str, str]],
    total: int,
    skip_bad: bool,
    log: logging.Logger,
    what: str = "utterances",
    option: str = "skip_bad=true",
    listing: str = "problems.txt",
) -> None:
    """List the problems of a corpus of `total` utterances (or `what` it is of), called `name` in messages, in the log and
    `listing` of `folder`. option: what leaves any number of them out.

    UserError where they are more than isolated ones, at most 10 or 5 % of all, unless skip_bad.
    """
    path, shown = list_problems(folder, problems, listing)
    count = len(problems)
    if not problems:
        return
    if not (skip_bad or count <= TOLERATED and 2 * count <= total or count <= TOLERATED_SHARE * total):
        raise UserError(
            f"{name}: {count} of {total} {what} have problems (list: {path}); mend them, or {option} leaves them out\n{shown}"
        )
    log.warning("%s: left out %d of %d %s that have problems (list: %s)\n%s", name, count, total, what, path, shown)
