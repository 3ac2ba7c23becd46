"""Audio of manifests that were moved with it. Manifests name files absolutely, so that they are read from any folder and by any
program; what lies below the manifest is found there again when an experiment has got another place.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def found_again(name: str, folder: Path | str) -> str:
    """The path of a file that a manifest in `folder` names: as it is, where it is there; else relative to the folder, or what
    of the path, two names at least, is below the folder; and as it is where none is."""
    if os.path.exists(name):
        return name
    parts = Path(name).parts
    first = 1 if os.path.isabs(name) else 0
    for start in range(first, max(first + 1, len(parts) - 1)):
        candidate = Path(folder).joinpath(*parts[start:])
        if candidate.exists():
            return str(candidate)
    return name


def relocated(entry: dict[str, Any], folder: Path | str) -> dict[str, Any]:
    """A cut or a recording of a manifest in `folder`, as a dict, with its files where they are (in place)."""
    for source in (entry.get("recording") or entry).get("sources") or ():
        if source.get("type") == "file" and isinstance(source.get("source"), str):
            source["source"] = found_again(source["source"], folder)
    return entry
