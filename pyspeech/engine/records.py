"""Records of stages in an experiment folder: stages/<name>.json once finished and <name>.attempt.json once begun; of an
unfinished stage also <name>.parts, kept by pyspeech.engine.parts, and <name>.shard<i>of<n>.json for each share of the parts
that a cluster job has made.

Both hold the facts that decide whether the stage is up to date: its declared version, the options that it declared
with their values, and the fingerprints of its inputs; a finished record adds those of its outputs and what it cost.
A record is removed before its stage starts and written (whole, or not at all) after it has succeeded.
"""

import contextlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspeech.engine.config import show
from pyspeech.engine.parts import Share
from pyspeech.files import read_late, write_json

FACTS = ("version", "config", "inputs")  # of a record: what decides whether a stage is up to date


def shard_name(stage: str, share: Share | None) -> str:
    """Name a stage, or of a share of its parts, in names of files."""
    return f"{stage}.shard{share.index}of{share.count}" if share else stage


class Records:
    """The records below one experiment folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder) / "stages"

    def finished(self, stage: str) -> dict[str, Any] | None:
        """Read the record of a finished stage, or None; one that was cut short or does not parse counts as none."""
        record = self._read(f"{stage}.json")
        return record if record and _are_fingerprints(record.get("outputs")) else None

    def attempt(self, stage: str) -> dict[str, Any] | None:
        """Read what an unfinished attempt started from, or None."""
        return self._read(f"{stage}.attempt.json")

    def begin(self, stage: str, facts: Mapping[str, Any]) -> None:
        write_json(self.folder / f"{stage}.attempt.json", facts)

    def finish(self, stage: str, record: Mapping[str, Any]) -> None:
        write_json(self.folder / f"{stage}.json", record)
        self._remove(f"{stage}.attempt.json")
        with contextlib.suppress(OSError):  # what is left, as a lost node still writes there, goes when the stage begins anew
            self._remove_parts(stage)

    def forget_finished(self, stage: str) -> None:
        self._remove(f"{stage}.json")

    def forget(self, stage: str) -> None:
        """Remove all records of a stage."""
        self._remove(f"{stage}.json")
        self._remove(f"{stage}.attempt.json")
        self._remove_parts(stage)

    def parts(self, stage: str) -> Path:
        """Locate the folder of what an unfinished attempt has made in parts."""
        return self.folder / f"{stage}.parts"

    def finish_share(self, stage: str, share: Share, record: Mapping[str, Any]) -> None:
        write_json(self.folder / f"{shard_name(stage, share)}.json", record)

    def missing_shares(self, stage: str, count: int) -> list[Share]:
        """List the shares of the present attempt that are not made yet; all where there is no attempt."""
        attempt = self.attempt(stage)
        shares = [Share(index, count) for index in range(count)]
        found = [(share, self._read(f"{shard_name(stage, share)}.json")) for share in shares]
        return [share for share, record in found if not attempt or not record or facts_of(record) != facts_of(attempt)]

    def _remove_parts(self, stage):
        for shard in self.folder.glob(f"{stage}.shard*of*.json"):
            shard.unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.parts(stage))

    def _remove(self, name):
        with contextlib.suppress(FileNotFoundError):
            (self.folder / name).unlink()

    def _read(self, name):
        try:
            record = json.loads(read_late(self.folder / name))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        whole = (
            isinstance(record, dict)
            and "version" in record
            and isinstance(record.get("config"), dict)
            and _are_fingerprints(record.get("inputs"))
        )
        return record if whole else None


def facts_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Select what decides whether a record, or an attempt, holds for the present stage."""
    return {key: record[key] for key in FACTS if key in record}


def _are_fingerprints(value):
    """Whether `value` is what Artifacts.fingerprints gives."""
    return isinstance(value, dict) and all(
        isinstance(seen, dict) and isinstance(seen.get("size"), int) and isinstance(seen.get("stamp"), str) and "hash" in seen
        for seen in value.values()
    )


def config_changes(
    recorded: Mapping[str, Any], declared: Mapping[str, Any], options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> list[str]:
    """["train.lr 0.001 -> 0.5", ...] between the recorded {key: value} and that which the stage declares now.

    options, defaults: {key: value} of the whole configuration as it is, and without profile and overrides; defaults also of
    options that are no longer there.
    A program that gains or loses an option must not make every finished stage stale: an option that the record or the
    program does not know is no change while it has its default, and neither is one that the stage has ceased to declare.
    """

    def has_default(key, value):
        return key in defaults and json.dumps(defaults[key]) == json.dumps(value)

    changes = []
    for key in dict.fromkeys([*recorded, *declared]):
        if key not in declared:
            if key not in options and not has_default(key, recorded[key]):
                changes.append(f"{key} {show(recorded[key])} -> no longer there")
        elif key not in recorded:
            if not has_default(key, declared[key]):
                changes.append(f"{key} is new: {show(declared[key])}")
        elif json.dumps(recorded[key]) != json.dumps(declared[key]):  # as text: NaN equals itself
            changes.append(f"{key} {show(recorded[key])} -> {show(declared[key])}")
    return changes
