"""Manifests as people bring them, JSON lines or an array: each entry is checked before lhotse makes a cut of it, and named
where it is none."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.audio.moved import relocated
from pyspeech.errors import UserError
from pyspeech.files import text_lines

if TYPE_CHECKING:
    from lhotse.cut import MonoCut

LINES, WHOLE = (".jsonl", ".jsonl.gz"), (".json", ".json.gz")
UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # in a text file of UTF-8
LARGEST = 1e15  # number of seconds, samples or Hz
TOLERANCE = 0.5  # seconds by which a recording's number of samples may be other than its duration
TEXTS = ("text", "speaker", "language", "gender")  # of a supervision


def read_cuts(path: Path | str) -> Iterator[tuple[str, MonoCut]]:
    """The cuts of a manifest (JSON lines, or a JSON array) that lie in one recording and channel, each with what messages call
    it: its line, or number. Audio that was moved with the manifest is found. UserError for a file that cannot be read, and for
    the first entry that is no such cut.
    """
    if not str(path).endswith((*LINES, *WHOLE)):
        raise UserError(f"{path}: expected a lhotse manifest of cuts, *.jsonl or *.jsonl.gz")
    for where, entry in read_entries(path):
        yield where, cut_of(where, entry, Path(path).parent)


def read_entries(path: Path | str, problems: list[tuple[str, str]] | None = None) -> Iterator[tuple[str, Any]]:
    """The entries of a file of JSON lines, or of a JSON array, each with what messages call it: its line, or number.

    problems: gets (line, what is wrong) of lines that are not JSON; without it the first one is a UserError, as is a file that
    cannot be read.
    """
    path = Path(path)
    lines = text_lines(path)
    first = next(lines, "")
    lines = itertools.chain([first], lines)
    if not str(path).endswith(LINES) and (first.lstrip()[:1] == "[" or first.strip() in ("", "{")):
        for value in _parsed(str(path), "".join(lines), problems):
            for number, entry in enumerate(value if isinstance(value, list) else [value], 1):
                yield f"{path}, entry {number}", entry
        return
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        for entry in _parsed(where, line, problems) if line.strip() else ():
            yield where, entry


def _parsed(where, text, problems):
    """[the value of a JSON text]; [] for a problem."""
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        what = "not JSON; is the file cut off?"
        if problems is None:
            raise UserError(f"{where}: {what}") from None
        problems.append((where, what))
        return []


def cut_of(where: str, entry: Any, folder: Path | str | None = None) -> MonoCut:
    """The cut of an entry of a manifest; UserError, which begins with `where`, for what is none.

    folder: of the manifest, for audio that was moved with it.
    """
    from lhotse.serialization import deserialize_item

    _check(where, entry)
    try:
        return deserialize_item(entry if folder is None else relocated(entry, folder))
    except Exception as error:  # lhotse raises nearly every kind
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{where}: not a cut that lhotse reads ({type(error).__name__}: {reason})") from error


def copy_recording(cut: MonoCut, target: Path | str) -> None:
    """Write the recording that a cut lies in, its channel alone, as 16-bit WAV at the rate that the manifest says."""
    from lhotse.utils import fastcopy

    from pyspeech.data.audio_files import as_int16, write_audio
    from pyspeech.data.cuts import read_samples

    rate = cut.sampling_rate
    whole = fastcopy(cut, start=0.0, duration=cut.recording.duration, supervisions=[])  # pyright: ignore[reportOptionalMemberAccess]
    write_audio(target, as_int16(read_samples(whole, rate)), rate)


def _check(where, entry):
    """UserError for what lhotse would take, and fail on later, or misread."""

    def require(good, name, value, expected):
        if not good:
            raise UserError(f"{where}: {name} is {json.dumps(value, ensure_ascii=False)[:80]}; expected {expected}")

    require(isinstance(entry, dict), "it", entry, "a cut of a lhotse manifest")
    kind, recording = entry.get("type", "MonoCut"), entry.get("recording")
    if kind != "MonoCut" or not isinstance(recording, dict):
        name = f"'{entry.get('id')}' is " + (f"a {kind}" if kind != "MonoCut" else "no cut with a recording")
        raise UserError(f"{where}: {name}; expected cuts of one recording and channel: save others as audio first")
    require(_is_name(entry.get("id")), "id", entry.get("id"), "a name")
    require(_is_name(recording.get("id")), "recording.id", recording.get("id"), "a name")
    sources, channels = recording.get("sources"), recording.get("channel_ids") or [0]
    named = _is_list(sources, dict) and sources and all(isinstance(one.get("source"), str) for one in sources)
    require(named, "recording.sources", sources, "where the audio is")
    require(_is_seconds(entry.get("start")), "start", entry.get("start"), "seconds, 0 or more")
    for holder, name in ((entry, "duration"), (recording, "duration"), (recording, "sampling_rate")):
        value: Any = holder.get(name)
        require(_is_number(value) and value > 0, name, value, "a number above 0")
    channel: Any = entry.get("channel")
    count: Any = recording.get("num_samples")
    length = recording["sampling_rate"] * recording["duration"]
    good = _is_number(count) and count == int(count) > 0 and abs(count - length) <= TOLERANCE * recording["sampling_rate"]
    require(good, "num_samples", count, f"a whole number, about {length:.0f}, as duration and sampling_rate say")
    require(_is_list(channels, (int, float)), "recording.channel_ids", channels, "a list of numbers")
    require(channel in channels, "channel", channel, f"one of {', '.join(map(str, channels))}")
    require(_is_list(entry.get("supervisions"), dict), "supervisions", entry.get("supervisions"), "a list of supervisions")
    for one in entry["supervisions"]:
        _check_supervision(require, one)


def _check_supervision(require, one):
    require(_is_name(one.get("id")), "the id of a supervision", one.get("id"), "a name")
    name = f"supervision {one['id']}:"
    start, duration = one.get("start"), one.get("duration")
    require(_is_number(start), f"{name} start", start, "a number of seconds")
    require(_is_number(duration) and duration > 0, f"{name} duration", duration, "seconds, above 0")
    for field in TEXTS:
        require(one.get(field) is None or is_text(one[field]), f"{name} {field}", one.get(field), "text, or none")
    require(isinstance(one.get("custom"), (dict, type(None))), f"{name} custom", one.get("custom"), "an object, or none")


def is_text(value: Any) -> bool:
    """Whether a value of JSON is text; in strings that may be half of a character, or the character 0, which is none."""
    return isinstance(value, str) and not UNWRITABLE.search(value)


def _is_name(value: Any) -> bool:
    return is_text(value) and bool(value.strip())


def _is_list(value, kind):
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST  # not NaN


def _is_seconds(value):
    return _is_number(value) and value >= 0
