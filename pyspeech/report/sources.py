"""The utterances and streams of a manifest as plain rows: a page needs neither lhotse nor torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspeech.audio.moved import found_again
from pyspeech.data.utterances import read_lines


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
    return [_source(json.loads(line), corpus) for line in read_lines(Path(corpus) / f"{name}.jsonl.gz")]


def _source(cut, corpus):
    supervisions = cut.get("supervisions") or [{}]
    audio = Path(found_again(cut["recording"]["sources"][0]["source"], corpus))
    return Source(cut["id"], cut["recording"]["id"], audio, cut["start"], cut["duration"], supervisions[0])
