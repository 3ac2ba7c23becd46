"""Lhotse manifests, one way for all corpora: a CutSet for each set, of whole utterances or of streams with speech segments.

The same corpus gives the same bytes: the time of day is in none.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.files import atomic_write, is_temporary

if TYPE_CHECKING:
    import numpy as np
    from lhotse import Recording


@dataclass(frozen=True)
class Segment:
    """Part of a recording that is an utterance: start and end in seconds."""

    recording: str
    start: float
    end: float


@dataclass(frozen=True)
class Utterance:
    """One transcribed audio file, or a segment of it. id: unique in its corpus; text: as the corpus has it; split: train,
    dev or test; custom: what else its supervision says, a dict; stated: seconds that the corpus says it has; words: ((word,
    start, end), ...) in seconds of the audio file, where they are known and needed."""

    id: str
    audio: str
    text: str
    language: str
    speaker: str | None = None
    split: str = "train"
    custom: dict | None = field(default=None, hash=False)
    gender: str | None = None
    segment: Segment | None = None
    stated: float | None = None
    words: tuple[tuple[str, float, float], ...] | None = None


def clear(out: Path | str, sets: Iterable[str], *folders: str, keep: Collection[Path] = ()) -> None:
    """Remove what an earlier preparation left in `out`: the manifests of some sets first, and then what is in some folders,
    but for the paths `keep`, which are going to be made, or have been by one that was killed."""
    for name in sets:
        (Path(out) / f"{name}.jsonl.gz").unlink(missing_ok=True)
    keep = set(keep)
    for folder in folders:
        if not keep:
            shutil.rmtree(Path(out) / folder, ignore_errors=True)
        for path in (Path(out) / folder).rglob("*"):
            if path not in keep and not path.is_dir() and not is_temporary(path.name):
                path.unlink()


def clear_split(out: Path | str, split: str, keep: Collection[Path] = ()) -> None:
    """Remove what an earlier preparation with other settings left of a split of streams: manifest, audio, label files."""
    clear(out, [split], f"audio/{split}", f"reference/{split}", keep=keep)


def write_manifest(path: Path, rows: Collection[tuple[Utterance, str, dict[str, Any]]]) -> None:
    """Write utterances, rows (Utterance, path of its audio, its properties: rate in Hz, duration in seconds); none for no
    rows. A cut each, with one supervision."""
    if rows:
        _write_cuts(path, (_cut(*row) for row in rows))
    else:
        path.unlink(missing_ok=True)


def _cut(utterance, audio, properties):
    """What lhotse's MonoCut.to_dict() gives, without the objects, which would take most of the time of a large corpus."""
    frames = round(properties["duration"] * properties["rate"])
    recording = {
        "id": utterance.segment.recording if utterance.segment else utterance.id,
        "sources": [{"type": "file", "channels": [0], "source": audio}],
        "sampling_rate": properties["rate"],
        "num_samples": frames,
        "duration": frames / properties["rate"],
        "channel_ids": [0],
    }
    length = {"duration": _seconds(length_of(utterance, recording["duration"]), properties["rate"]), "channel": 0}
    said = {name: getattr(utterance, name) for name in ("text", "language", "speaker", "gender", "custom")}
    supervision = {
        "id": utterance.id,
        "recording_id": recording["id"],
        "start": 0.0,
        **length,
        **{name: value for name, value in said.items() if value is not None},
    }
    start = utterance.segment.start if utterance.segment else 0.0
    return {
        "id": utterance.id,
        "start": start,
        **length,
        "supervisions": [supervision],
        "recording": recording,
        "type": "MonoCut",
    }


def length_of(utterance: Utterance, duration: float) -> float:
    """Seconds of an utterance in an audio file of `duration` seconds; a segment ends where its file does, at the latest."""
    if utterance.segment is None:
        return duration
    return round(min(utterance.segment.end, duration) - utterance.segment.start, 9)  # 6.0 - 5.9 is less than 0.1


def _seconds(value, rate):
    """A difference of times in seconds without what rounding added: whole samples where it is some, else nanoseconds."""
    samples = round(value * rate) / rate
    return samples if abs(samples - value) < 1e-9 else round(value, 9)


def write_split(out: Path | str, split: str, streams: Iterable[tuple[Recording, np.ndarray | None, float | None]]) -> None:
    """Write `out/<split>.jsonl.gz`: a CutSet, one cut a stream, one supervision a speech segment.

    streams: list of (lhotse Recording, speech (n, 2) in seconds or None where there are no labels, end in seconds of
    what is labelled or None for all of it). The supervisions carry no text; a stream without labels has none and says
    `labelled: False` among its custom fields.
    """
    from lhotse import MonoCut, SupervisionSegment

    cuts = []
    for recording, speech, end in streams:
        supervisions = [
            SupervisionSegment(
                id=f"{recording.id}-{index:05d}",
                recording_id=recording.id,
                channel=0,
                start=round(float(first), 6),
                duration=round(float(last - first), 6),
            )
            for index, (first, last) in enumerate(speech if speech is not None else ())  # pyright: ignore[reportGeneralTypeIssues]
        ]
        duration = recording.duration if end is None else min(end, recording.duration)
        cuts.append(
            MonoCut(
                id=recording.id,
                start=0.0,
                duration=duration,
                channel=0,
                recording=recording,
                supervisions=supervisions,
                custom={"labelled": speech is not None},
            )
        )
    _write_cuts(Path(out) / f"{split}.jsonl.gz", (cut.to_dict() for cut in cuts))


def _write_cuts(path, cuts):
    with atomic_write(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
        for cut in cuts:
            stream.write((json.dumps(cut, ensure_ascii=False) + "\n").encode("utf-8"))


def load_cuts(corpus: Path | str, name: str) -> list[Any]:
    """Return the cuts of <name>.jsonl.gz in a folder as a list, empty where there is no such file."""
    from lhotse.serialization import deserialize_item

    from pyspeech.audio.moved import relocated
    from pyspeech.data.utterances import read_lines

    path = Path(corpus) / f"{name}.jsonl.gz"
    return [deserialize_item(relocated(json.loads(line), path.parent)) for line in read_lines(path)]
