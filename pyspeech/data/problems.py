"""Problems of a corpus, listed in problems.txt and shown: a few leave files out, more stop the preparation."""

import os
from pathlib import Path

from pyspeech.errors import UserError
from pyspeech.files import atomic_write

TOLERATED, TOLERATED_SHARE = 10, 0.05
SHOWN = 20


def printable(path):
    """A path, or text with one in it, whose bytes that are not UTF-8 are written as \\xe9."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def list_problems(folder, problems, listing="problems.txt"):
    """Write [(file or utterance, what is wrong), ...] to folder/<listing>, a line each; no such file for none.

    Returns (path of the list, what of it a message shows: the first 20 lines).
    """
    listing = Path(folder) / listing
    if not problems:
        listing.unlink(missing_ok=True)
        return listing, ""
    lines = [printable(f"{place}: {problem}") for place, problem in problems]
    with atomic_write(listing) as stream:
        stream.write("\n".join(lines) + "\n")
    more = f"\n  ... all in {listing}" if len(lines) > SHOWN else ""
    return listing, "\n".join("  " + line for line in lines[:SHOWN]) + more


def report_problems(
    name, folder, problems, total, skip_bad, log, what="utterances", option="skip_bad=true", listing="problems.txt"
):
    """List the problems of a corpus of `total` utterances (or `what` it is of), called `name` in messages, in the log and
    `listing` of `folder`. option: what leaves any number of them out.

    UserError where they are more than isolated ones, at most 10 or 5 % of all, unless skip_bad.
    """
    listing, shown = list_problems(folder, problems, listing)
    count = len(problems)
    if not problems:
        return
    if not (skip_bad or count <= TOLERATED and 2 * count <= total or count <= TOLERATED_SHARE * total):
        raise UserError(
            f"{name}: {count} of {total} {what} have problems (list: {listing}); mend them, or "
            f"{option} leaves them out\n{shown}"
        )
    log.warning("%s: left out %d of %d %s that have problems (list: %s)\n%s", name, count, total, what, listing, shown)
