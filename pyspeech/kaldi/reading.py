"""Reading a Kaldi data directory: its utterances one after the other, see pyspeech/kaldi/rules.py for its tables.

Beside Kaldi's tables there may be those that pyspeech/kaldi/writing.py adds, with JSON behind the id: utt2name, spk2name
and reco2name, what things were called before they were given ids that Kaldi takes, and utt2custom. As Kaldi says of data
without speakers, an utterance whose speaker is itself has none.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path

from pyspeech.errors import UserError
from pyspeech.kaldi.rules import check_data_dir, read_table

SHOWN = 20


@dataclass(frozen=True)
class KaldiUtterance:
    """One utterance of a data directory. audio: what wav.scp says of its recording; start, end: in seconds, None: all of
    the recording; gender: m or f; stated, recording_stated: seconds, by utt2dur and reco2dur; custom: a dict of other things;
    number: its line in the tables of utterances."""

    id: str
    recording: str
    audio: str
    speaker: str | None = None
    start: float | None = None
    end: float | None = None
    text: str | None = None
    language: str | None = None
    gender: str | None = None
    custom: dict | None = None
    stated: float | None = None
    recording_stated: float | None = None
    number: int = 0


def require_sound(folder: Path | str) -> None:
    """UserError with the first faults of a data directory, where it has any."""
    problems = list(islice(check_data_dir(folder), SHOWN + 1))
    if problems:
        more = "" if len(problems) <= SHOWN else "\n  ..."
        count = f"{len(problems)} faults" if not more else f"more than {SHOWN} faults"
        shown = "\n".join(f"  {problem}" for problem in problems[:SHOWN])
        raise UserError(f"{folder}: no sound Kaldi data directory, {count}\n{shown}{more}")


def read_data_dir(folder: Path | str) -> Iterator[KaldiUtterance]:
    """The utterances of a data directory that keeps the rules (`require_sound`), in the order of its tables.

    The tables are read side by side: memory holds recordings and speakers, no utterances. UserError for a table that
    has changed or that cannot be read.
    """
    folder = Path(folder)
    speakers, recordings = (dict(_json_lines(folder / name)) for name in ("spk2name", "reco2name"))
    genders, lengths = _mapping(folder / "spk2gender"), _mapping(folder / "reco2dur")
    name_of, custom_of = (_Beside(folder / name) for name in ("utt2name", "utt2custom"))
    values = (_values(folder / name) for name in ("text", "utt2lang", "utt2dur"))
    for line, place, text, language, seconds in zip(read_table(folder / "utt2spk"), _places(folder), *values, strict=False):
        recording, audio, start, end = place
        name = name_of(line.key) or line.key
        length = lengths.get(recording or line.key)
        yield KaldiUtterance(
            id=name,
            recording=name if recording is None else recordings.get(recording, recording),
            audio=audio,
            speaker=None if line.value == line.key else speakers.get(line.value, line.value),
            start=start,
            end=end,
            text=text,
            language=language,
            gender=genders.get(line.value),
            custom=custom_of(line.key),
            stated=None if seconds is None else float(seconds),
            recording_stated=None if length is None else float(length),
            number=line.number,
        )


def _places(folder):
    """(recording, its audio, start, end) of each utterance, in order; without segments, only the audio."""
    if not (folder / "segments").is_file():
        for line in read_table(folder / "wav.scp"):
            yield None, line.value, None, None
        return
    audio = _mapping(folder / "wav.scp")
    for line in read_table(folder / "segments"):
        recording, start, end = line.value.split()
        yield recording, audio[recording], float(start), float(end)


def _values(path):
    """What a table of utterances says of each; None, for ever, where there is no such table."""
    return (line.value for line in read_table(path)) if path.is_file() else repeat(None)


def _mapping(path):
    return {line.key: line.value for line in read_table(path)} if path.is_file() else {}


def _json_lines(path):
    """(id, value) of each line of a table of ours, whose values are JSON; nothing where there is no such table."""
    for line in read_table(path) if path.is_file() else ():
        try:
            yield line.key, json.loads(line.value)
        except ValueError:
            raise UserError(
                f"{path}, line {line.number}: '{line.value}' is no JSON; remove the file, or write it again"
            ) from None


class _Beside:
    """beside(id), for ids in order -> value of a table of ours or None. Kaldi's scripts, which take utterances out of a
    directory, do not know it: there may be more in it."""

    def __init__(self, path):
        self._lines = _json_lines(path)
        self._next = next(self._lines, None)

    def __call__(self, key):
        while self._next is not None and self._next[0] < key:
            self._next = next(self._lines, None)
        return self._next[1] if self._next is not None and self._next[0] == key else None
