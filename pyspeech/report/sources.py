"""The utterances and streams of a manifest as plain rows: a page needs neither lhotse nor torch."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Source:
    """A cut of a manifest: part of an audio file from `start` on, `seconds` long; supervision: the first, as a dict."""

    id: str
    recording: str
    path: Path
    start: float
    seconds: float
    supervision: dict[str, Any]


def read_sources(corpus: Path | str, name: str) -> list[Source]:
    """Read `corpus`/<name>.jsonl.gz; empty where there is none."""
    path = Path(corpus) / f"{name}.jsonl.gz"
    if not path.is_file():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [_source(json.loads(line), Path(corpus)) for line in stream]


def _source(cut, corpus):
    supervisions = cut.get("supervisions") or [{}]
    audio = Path(cut["recording"]["sources"][0]["source"])
    return Source(cut["id"], cut["recording"]["id"], _found(audio, corpus), cut["start"], cut["duration"], supervisions[0])


def _found(audio, corpus):
    """An audio file that the manifest places in the folder of the corpus is looked for there where the folder has moved."""
    parts = audio.parts
    if corpus.name in parts and not audio.exists():
        inside = corpus.joinpath(*parts[len(parts) - parts[::-1].index(corpus.name) :])
        return inside if inside.exists() else audio
    return audio
