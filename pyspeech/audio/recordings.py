"""Naming what is to be processed: audio files, folders, Kaldi wav.scp tables, and lhotse recording or cut manifests."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.audio.io import count_channels, find_audio, stream_audio
from pyspeech.audio.lhotse_audio import LhotseAudio
from pyspeech.audio.moved import found_again, relocated
from pyspeech.audio.rxfilenames import file_of, is_command
from pyspeech.errors import UserError
from pyspeech.files import text_lines

if TYPE_CHECKING:
    import numpy as np

    from pyspeech.audio.raw import RawFormat

TABLE_SUFFIXES = (".scp", ".jsonl", ".jsonl.gz")


@dataclass(frozen=True)
class Recording:
    """A stretch of audio with a name: `path` as `pyspeech.audio.io.stream_audio` takes it, and what of it to use."""

    name: str
    path: str | LhotseAudio
    start: float = 0.0  # seconds
    duration: float | None = None  # seconds; None: to the end
    channel: int | None = None  # counted from 0; None: the mean of all


def find_recordings(paths: Iterable[Path | str]) -> list[Recording]:
    """List the recordings that paths stand for, in order.

    A path is an audio file ("-": standard input), a folder (searched as `find_audio` does), a Kaldi table (*.scp; lines
    `name path`, `name command |` or `name x.ark:offset`) or a lhotse manifest of recordings or cuts (*.jsonl,
    *.jsonl.gz). A file's name is its stem; where stems are the same in several folders, as much of the folder as tells
    them apart is put before (`a/1.wav`, `b/1.wav`: `a_1`, `b_1`). UserError for what is not there or not understood.
    """
    recordings, files = [], []
    for path in paths:
        if str(path).lower().endswith(TABLE_SUFFIXES) and Path(path).is_file():
            read = _read_scp if str(path).lower().endswith(".scp") else _read_lhotse
            found = list(read(Path(path)))
            if not found:
                raise UserError(f"{path}: lists no recordings")
            recordings += found
        else:
            found = find_audio([path])
            files += found
            recordings += found
    files = list(dict.fromkeys(files))
    names = {path: named[0] for path, named in zip(files, names_of(_name_parts(files)), strict=True)}
    listed = [Recording(names[item], str(item)) if isinstance(item, Path) else item for item in recordings]
    listed = list(dict.fromkeys(listed))
    _check_unique(listed)
    return listed


def each_channel(recordings: Iterable[Recording], suffix: Callable[[int], str]) -> list[Recording]:
    """The recordings with each channel by itself, named with suffix(channel); those that have one already, and those that
    cannot be read, as they are."""
    found = []
    for recording in recordings:
        try:
            count = count_channels(recording.path) if recording.channel is None else 1
        except UserError:  # said when it is its turn
            count = 1
        every = [replace(recording, name=recording.name + suffix(one), channel=one) for one in range(count)]
        found += every if count > 1 else [recording]
    return found


def stream_recording(
    recording: Recording,
    sampling_rate: int,
    channel: int | None = None,
    block_seconds: float = 10.0,
    progress: Callable[[float], object] | None = None,
    raw: RawFormat | None = None,
) -> Iterator[np.ndarray]:
    """Yield the blocks of a Recording, as `stream_audio` does; channel: None takes the recording's own choice.

    progress: a function that is called with the seconds read so far, after each block. raw: as of `stream_audio`.
    """
    channel, samples = recording.channel if channel is None else channel, 0
    part = recording.start, recording.duration
    for block in stream_audio(recording.path, sampling_rate, channel, block_seconds, *part, raw):
        samples += len(block)
        if progress is not None:
            progress(samples / sampling_rate)
        yield block


def recording_length(recording: Recording) -> float:
    """Return the seconds of a Recording, to a tenth of a millisecond; it is read, since headers may be wrong."""
    if recording.duration is not None:
        return recording.duration
    return sum(map(len, stream_recording(recording, 16000))) / 16000


def names_of(parts: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Name files by just as many folders as tell them apart.

    parts: for each file (folder, ..., folder, stem). Returns for each its name, and then longer ones that have one more
    folder each: ("a_1", "x_a_1") of x/a/1 beside x/b/1.
    """
    parts = [tuple(one) for one in parts]
    depths, depth, unnamed, taken = [0] * len(parts), 1, list(range(len(parts))), Counter()
    while unnamed:
        candidates = {place: "_".join(parts[place][-depth:]) for place in unnamed}
        counts = Counter(candidates.values()) + taken
        named = [place for place, name in candidates.items() if counts[name] == 1 or depth >= len(parts[place])]
        for place in named:
            depths[place] = depth
        taken.update(candidates[place] for place in named)
        depth, unnamed = depth + 1, [place for place in unnamed if depths[place] == 0]
    return [
        tuple("_".join(one[-length:]) for length in range(depth, max(depth, len(one)) + 1))
        for one, depth in zip(parts, depths, strict=True)
    ]


def path_parts(path: Path) -> tuple[str, ...]:
    """The folders from the root down to a file, and its name."""
    return path.absolute().parts[1:]


def _name_parts(files):
    """(folder, ..., folder, stem) of each; x.wav and x.flac side by side keep their endings."""
    stems = Counter((path.absolute().parent, path.stem) for path in files)
    for path in files:
        alone = stems[path.absolute().parent, path.stem] == 1
        last = path.stem if alone else path.name.replace(".", "_")
        yield ("stdin",) if str(path) == "-" else (*path_parts(path)[:-1], last)


def _check_unique(recordings):
    for name, count in Counter(recording.name for recording in recordings).items():
        if count > 1:
            paths = [recording.path for recording in recordings if recording.name == name]
            raise UserError(f"two recordings are named '{name}': {paths[0]} and {paths[1]}; give them in two runs")


def _read_scp(path):
    """Yield the recordings of a Kaldi table; relative paths are taken from the current folder, or else the table's."""
    for number, line in enumerate(text_lines(path), start=1):
        fields = line.split(maxsplit=1)
        if len(fields) == 1:
            raise UserError(f"{path}, line {number}: '{line.strip()}' has no audio; expected `name path`")
        if fields:
            yield Recording(fields[0], _located(fields[1].strip(), path))


def _read_lhotse(path):
    """Yield the recordings, or cuts from one recording, of a lhotse manifest (JSON lines)."""
    for number, line in enumerate(text_lines(path), start=1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            recording = entry.get("recording", entry)
            sources, name = recording.get("sources"), str(entry.get("id", ""))
        except (ValueError, AttributeError):
            raise UserError(f"{where}: not an entry of a lhotse manifest") from None
        if not sources or not name or entry.get("type", "MonoCut") == "MixedCut":
            raise UserError(
                f"{where}: neither a recording nor a cut of one recording; mixed and padded cuts must be saved as audio first"
            )
        if not _are_sources(sources):
            raise UserError(
                f"{where}: recording '{recording.get('id')}' does not say where its audio is; save it as audio first"
            )
        part = (
            _seconds(entry.get("start", 0.0), "start", where),
            _seconds(entry.get("duration"), "duration", where) if "recording" in entry else None,
        )
        kind = sources[0]["type"] if len(sources) == 1 and not recording.get("transforms") else "several"
        channel = entry.get("channel") if "recording" in entry else None
        if kind == "file" and not is_command(sources[0]["source"]):  # a file of such a name lhotse reads
            yield Recording(
                name, found_again(sources[0]["source"], path.parent), *part, channel if isinstance(channel, int) else None
            )
        elif kind == "command":
            yield Recording(name, sources[0]["source"] + " |", *part, channel if isinstance(channel, int) else None)
        else:
            yield Recording(name, LhotseAudio(f"{where}, {name}", json.dumps(relocated(entry, path.parent))))


def _are_sources(value):
    return isinstance(value, list) and all(
        isinstance(one, dict) and isinstance(one.get("type"), str) and isinstance(one.get("source"), str) for one in value
    )


def _seconds(value, name, where):
    if not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise UserError(f"{where}: {name} is {json.dumps(value)}; expected a number of seconds, 0 or more")
    return float(value)


def _located(text, table):
    """A path as a table gives it: where it does not exist from here, it is tried in the table's folder."""
    beside = str(table.parent / text)
    if is_command(text) or Path(file_of(text)).exists() or not Path(file_of(beside)).exists():
        return text
    return beside


def one_word(name: str) -> str:
    """Return a recording's name for formats whose columns are separated by spaces: white space becomes an underscore."""
    return re.sub(r"\s+", "_", name)


def check_words(recordings: Iterable[Recording], format: str) -> None:
    """See to it that recordings keep different names in such a format; UserError with both where they do not."""
    words = {}
    for recording in recordings:
        other = words.setdefault(one_word(recording.name), recording)
        if other is not recording:
            raise UserError(
                f"{recording.path}: would have the name '{one_word(recording.name)}' in --format {format}, and so would "
                f"{other.path}; rename one, or choose a format that keeps spaces"
            )


# A file for each recording, in the folder of a tool's -o.


def check_output(folder: Path | str, recordings: Sequence[Recording], option: str = "-o") -> None:
    """Make the folder, and see to it that each recording has its own file there; UserError, of an option, where that cannot
    be."""
    ((stem, count),) = Counter(map(file_stem, recordings)).most_common(1)
    if count > 1:
        raise UserError(f"{option} {folder}: {count} recordings would be written to '{stem}'; give them in separate runs")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{option} {folder}: cannot make this folder: {error.strerror}") from None


def file_stem(recording: Recording) -> str:
    """Stem of a recording's file name."""
    return recording.name.replace("/", "_")
