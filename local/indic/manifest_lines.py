"""One manifest as toolkits read it, to utterances: lhotse cuts, JSON lines of NeMo and AI4Bharat, tables with a header line."""

import csv
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.indic.languages import utterance_language
from local.indic.lengths import LengthLimit
from local.indic.mucs import SPLITS
from pyspeech.audio.moved import found_again
from pyspeech.audio.rxfilenames import is_extended
from pyspeech.data.audio_files import safe_name
from pyspeech.data.cut_files import LINES, WHOLE, cut_of, is_text, read_entries
from pyspeech.data.cuts import plain_file
from pyspeech.data.manifests import Segment, Utterance
from pyspeech.errors import UserError
from pyspeech.files import text_lines

if TYPE_CHECKING:
    from lhotse import SupervisionSegment
    from lhotse.cut import MonoCut

TABLES = {".tsv": "\t", ".csv": ","}
SUFFIXES = (*LINES, *WHOLE, *TABLES)
FIELDS = {  # what a line says, and what that is called: NeMo's name first
    "audio": ("audio_filepath", "audio", "path", "file", "wav"),
    "text": ("text", "sentence", "transcript", "txt"),
    "language": ("lang", "language"),
    "speaker": ("speaker", "speaker_id"),
    "id": ("id", "utt_id", "key"),
    "split": ("split",),
    "offset": ("offset",),
    "duration": ("duration",),
}
PROBED = 10  # entries that tell what a file is


@dataclass(frozen=True)
class Manifest:
    """A manifest with the split and the language that its name, or a folder's above it, says; cuts: whether it has lhotse's."""

    path: Path
    cuts: bool
    split: str | None = None
    language: str | None = None


@dataclass
class Found:
    """Contents of manifests: utterances, [(line, problem), ...], and the recordings to copy, {path of the copy: a cut}."""

    utterances: list[Utterance] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    copies: dict[str, Any] = field(default_factory=dict)
    silent: int = 0  # cuts without a supervision


def probe(path: Path) -> tuple[bool, bool] | None:
    """(whether a file has lhotse cuts, whether its lines say the split) of a manifest; None for another file."""
    entries = [entry for _, (_, entry) in zip(range(PROBED), _entries(path, []), strict=False) if isinstance(entry, dict)]
    if any({"recording", "supervisions"} <= entry.keys() or str(entry.get("type")).endswith("Cut") for entry in entries):
        return True, False
    if any(_first(entry, "audio") and _first(entry, "text") for entry in entries):
        return False, any(_first(entry, "split") for entry in entries)
    return None


def read_manifest(manifest: Manifest, languages: Sequence[str], copies: Path, limit: LengthLimit, found: Found) -> None:
    """Add the utterances and problems of a manifest to `found`.

    languages: one alone is that of utterances of which nothing says any. copies: folder for recordings that are no plain files.
    limit: cuts of longer utterances keep their word times. UserError for a file that cannot be read.
    """
    lines = []
    for where, entry in _entries(manifest.path, found.problems):
        try:
            if manifest.cuts:
                cut = cut_of(where, entry)
                found.silent += not cut.supervisions
                found.utterances += list(_of_cut(cut, manifest, languages, copies, limit, found.copies))
            else:
                lines.append(_of_line(entry, manifest, languages))
        except (ValueError, UserError) as error:
            found.problems.append((where, str(error).removeprefix(f"{where}: ")))
    found.utterances += _named(lines)


def _entries(path, problems) -> Iterator[tuple[str, Any]]:
    if path.suffix not in TABLES:
        yield from read_entries(path, problems)
        return
    quoting = csv.QUOTE_NONE if path.suffix == ".tsv" else csv.QUOTE_MINIMAL
    rows = csv.reader(text_lines(path), delimiter=TABLES[path.suffix], quoting=quoting)
    try:
        header = [column.strip().lower() for column in next(rows, [])]
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if len(row) == len(header):
                yield where, {name: value.strip() for name, value in zip(header, row, strict=True) if value.strip()}
            elif any(row):
                problems.append((where, f"{len(row)} columns; the header has {len(header)}"))
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read as a table ({error})") from None


def _first(entry, name):
    """The key by which an entry says something; None where it does not."""
    return next((key for key in FIELDS[name] if entry.get(key) is not None), None)


# Lines and tables


def _of_line(entry, manifest, languages):
    """The Utterance of a line; its id is "" where the line says none. ValueError for what is wrong."""
    if not isinstance(entry, dict):
        raise ValueError(f"it is {str(entry)[:60]!r}; expected an object with audio_filepath and text")
    said = {name: entry[key] for name in FIELDS if (key := _first(entry, name))}
    for name, expected in (("audio", "the path of an audio file"), ("text", "what is said"), ("language", "a code such as hi")):
        value = said.get(name, "hi" if name == "language" else None)
        if not is_text(value) or name != "text" and not value.strip():
            raise ValueError(f"{_first(entry, name) or FIELDS[name][0]} is {value!r}; expected {expected}")
    offset, duration = (_number(entry, said, name) for name in ("offset", "duration"))
    if offset is not None and not duration:
        raise ValueError(f"offset is {offset:g}, and duration {duration}; expected a number of seconds above 0")
    audio = located(said["audio"], manifest.path)
    return Utterance(
        id=str(said.get("id", "")).strip(),
        audio=audio,
        text=said.get("text", ""),
        language=_language(said.get("language"), manifest, languages),
        speaker=str(said["speaker"]) if "speaker" in said else None,
        split=_split(said.get("split"), manifest),
        segment=None if offset is None else Segment(Path(audio).stem, offset, offset + duration),  # pyright: ignore[reportOperatorIssue]
        stated=duration if offset is None else None,
    )


def _number(entry, said, name):
    """Seconds of a line, 0 or more; None where it says none."""
    if name not in said:
        return None
    value = said[name]
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        raise ValueError(f"{_first(entry, name)} is {value!r}; expected a number of seconds, 0 or more")
    return number


def _split(said, manifest):
    if said is None:
        return manifest.split or "train"
    split = SPLITS.get(str(said).strip().lower())
    if split is None:
        raise ValueError(f"split is {said!r}; expected train, dev or test")
    return split


def _named(utterances):
    """The utterances, those without an id called after their audio, with the folders below the common one, and their offset."""
    paths = [Path(one.audio).with_suffix("") for one in utterances if not one.id]
    common = os.path.commonpath([path.parent for path in paths]) if paths else ""
    for one in utterances:
        if one.id:
            yield one
            continue
        name = os.path.relpath(Path(one.audio).with_suffix(""), common).replace(os.sep, "-")
        if one.segment is None:
            yield replace(one, id=name)
        else:
            segment = replace(one.segment, recording=name)
            yield replace(one, id=f"{name}-{round(1000 * segment.start):07d}", segment=segment)


def _language(said, manifest, languages):
    language = utterance_language(said, manifest.language, languages)
    if language is None:
        key = "language" if manifest.cuts else "lang"
        raise ValueError(f"no language; expected {key} in it, a file or folder of that name, or languages=[hi]")
    return language


def located(name: str, manifest: Path) -> str:
    """The path of audio that a manifest names: a relative one is from the manifest's folder; moved audio is found again."""
    folders = (manifest.parent, manifest.resolve().parent)
    there = [str(folder / name) for folder in folders if (folder / name).exists()]
    again = there[0] if there else found_again(name, manifest.parent)
    return again if os.path.exists(again) else str(manifest.parent / name)


# Cuts


def _of_cut(cut: "MonoCut", manifest, languages, copies, limit, copied) -> Iterator[Utterance]:
    """The Utterances of a cut; its recording is added to `copied` where it is no file that can be read as it is."""
    recording = cut.recording
    assert recording is not None
    if not cut.supervisions:
        return
    audio = _audio(cut, manifest, copies, copied)
    for one in cut.supervisions:
        start, end = max(cut.start + one.start, 0.0), min(cut.start + one.start + one.duration, recording.duration)
        whole = start == 0 and round(end * recording.sampling_rate) >= recording.num_samples
        yield Utterance(
            id=cut.id if len(cut.supervisions) == 1 else one.id,
            audio=audio,
            text=one.text or "",
            language=_language(one.language, manifest, languages),
            speaker=one.speaker,
            split=manifest.split or "train",
            custom=one.custom or None,
            gender=one.gender,
            segment=None if whole else Segment(recording.id, start, end),
            stated=recording.duration if whole else None,
            words=word_times(one, cut.start) if limit.cut and one.duration > limit.seconds else None,
        )


def _audio(cut, manifest, copies, copied):
    """The path of a cut's recording: its file, or what is to be a copy of it."""
    for source in cut.recording.sources:
        if source.type == "file":
            source.source = located(source.source, manifest.path)
    path = plain_file(cut)
    if path is not None and not is_extended(path) and cut.recording.num_channels == 1:
        return path
    source = json.dumps([cut.recording.to_dict(), cut.channel], sort_keys=True)
    target = copies / f"{safe_name(cut.recording.id)}.{hashlib.md5(source.encode()).hexdigest()[:8]}.wav"
    copied.setdefault(str(target), cut)
    return str(target)


def word_times(supervision: "SupervisionSegment", offset: float) -> tuple[tuple[str, float, float], ...] | None:
    """((word, start, end), ...) of a supervision's alignment, seconds in the recording; None where it has none.

    offset: seconds by which the times of the alignment are late, those of its cut.
    """
    items = (supervision.alignment or {}).get("word") or ()
    words = tuple((one.symbol, offset + one.start, offset + one.start + one.duration) for one in items if one.symbol.strip())
    return words or None
