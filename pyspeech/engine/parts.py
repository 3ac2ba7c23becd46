"""Work in parts that are kept until the whole is done: what was killed goes on at the parts that are missing.

    folder/<kind>/<part>.json    {"inputs": digest, "result": what the part gave, "seconds": it took, "host": it ran on}

A part is whole or not there: its files are written first, then its record, each in one piece, and a record counts only
for the very same inputs. Which parts there are follows from the work alone, never from the number of processes, and so
does what is made of them. A stage finds its Parts in `exp.parts`; their folder goes when the stage has finished.

Jobs of a cluster take a share of the parts each (`Share`); the stage that runs after them finds all there, and makes the
whole of it.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pyspeech.engine.process import stage_cores
from pyspeech.engine.workers import in_processes
from pyspeech.files import atomic_write, from_json, to_json

Item = TypeVar("Item")


class Share(NamedTuple):
    """Share of the parts: those whose number is `index` modulo `count`."""

    index: int
    count: int


class ShareDone(Exception):
    """The share of the parts that this process was to make is there; others make the rest."""


class Parts(NamedTuple):
    """Folder of the parts, and the share of them to make; with a share, `in_parts` makes no others and then raises
    ShareDone."""

    folder: Path
    share: Share | None = None


def in_parts(
    parts: Parts | None,
    kind: str,
    work: Callable[[Item], Any],
    items: Mapping[str, Item],
    jobs: int | None = None,
    inputs: Callable[[Item], object] = lambda item: item,
    files: Callable[[Item], Iterable[Path]] = lambda item: (),
    log: logging.Logger | None = None,
) -> dict[str, Any]:
    """Return {name: work(item)} of `items`, {name: item}, in their order; those that were kept are not made again.

    Args:
        parts: Where they are kept, the `parts` of a stage's Experiment; None: nowhere.
        kind: What these parts are, unlike others of the same stage.
        work: Gives what JSON can hold, and arrays; it comes back as JSON has it, with lists for tuples.
        items: By the name of the part.
        jobs: Processes, which are forked; 1, or for one part: this process; None: one for each core of the stage.
        inputs: inputs(item) is what the part depends on, told by its repr, beside the options and inputs of its stage.
        files: files(item) are the paths that the part writes: where one is missing, the part is made again.
        log: Is told after each tenth.
    """
    from tqdm import tqdm

    folder, share = parts or (None, None)
    names = list(items)[share.index :: share.count] if share else list(items)
    jobs = min(jobs or stage_cores(), len(names))

    def make(name):
        return name, *_kept_or_made(folder and folder / kind / f"{name}.json", work, items[name], inputs, files)

    found, kept = {}, 0
    made = map(make, names) if jobs <= 1 else in_processes(make, names, jobs)
    for done, (name, result, was_there) in enumerate(tqdm(made, kind, len(names), unit="part", disable=None), start=1):
        found[name] = result
        kept += was_there
        if log and done * 10 // len(names) > (done - 1) * 10 // len(names) and not was_there:
            log.info("%s: %d of %d parts%s", kind, done, len(names), f", {kept} of them from before" * bool(kept))
    if share:
        raise ShareDone
    return {name: found[name] for name in names}


def _kept_or_made(path, work, item, inputs, files):
    """(result, whether it was there)"""
    if path is None:
        return from_json(to_json(work(item))), False
    digest, record = fingerprint(inputs(item)), _read(path)
    if record.get("inputs") == digest and all(file.exists() for file in files(item)):
        return record["result"], True
    begun = time.monotonic()
    result = from_json(to_json(work(item)))
    seconds = round(time.monotonic() - begun, 3)
    with atomic_write(path) as stream:
        stream.write(to_json({"inputs": digest, "result": result, "seconds": seconds, "host": socket.gethostname()}))
    return result, False


def _read(path):
    try:
        record = from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) and "result" in record else {}


def fingerprint(value: object) -> str:
    """A digest of what a value is, as its repr says it; a name for a part that has no other."""
    return hashlib.blake2b(repr(value).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def file_state(path: Path | str) -> tuple[int, int] | None:
    """(bytes, time of the last change) of a file, as an input of a part; None where it is missing."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
