"""The utterances of a manifest as columns: a million take less than a gigabyte, and are there in seconds.

    utterances = Utterances.read("corpus/train.jsonl.gz", speeds=[0.9, 1.1])
    utterances.durations[row]       # of one row; a row is an utterance, or its copy at another speed
    utterances[row]                 # the Lhotse cut, made when it is asked for

What is kept of an utterance is its line of the manifest, its duration and its language. Copy s of utterance u is row
s * (number of utterances) + u: those as they are come first, then all of them at the first of `speeds`, and so on.
"""

from __future__ import annotations

import gzip
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyspeech.audio.moved import relocated
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from lhotse.cut import Cut


def read_lines(path: Path | str) -> Iterator[bytes]:
    """The lines of a manifest (.jsonl.gz), one at a time; none where there is no such file."""
    if Path(path).exists():
        with gzip.open(path) as stream:
            yield from stream


def supervision_fields(line: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the cut, its one supervision) of a line of a manifest, as dicts; UserError where there is none or more."""
    cut = json.loads(line)
    if len(cut.get("supervisions", ())) != 1 or "duration" not in cut:
        raise UserError(f"{cut.get('id')}: expected one utterance of a recording, with its text, in each cut")
    return cut, cut["supervisions"][0]


class Utterances:
    """len(utterances): the number of rows; utterances[row]: its Lhotse cut.

    speeds: of the copies, as Lhotse makes them (Ko et al. 2015): pitch and tempo change together. folder: of the manifest, for
    audio that was moved with it.
    codes: the languages, sorted; languages (N,) int16: of each row, an index into them; durations (N,) float64: seconds.
    """

    def __init__(self, lines: Iterable[bytes], speeds: Sequence[float] = (), folder: Path | str = "") -> None:
        blob, ends, durations, rates, languages, numbers = bytearray(), array("q"), array("d"), array("q"), array("h"), {}
        for line in lines:
            cut, supervision = supervision_fields(line)
            blob += line
            ends.append(len(blob))
            durations.append(cut["duration"])
            rates.append(cut["recording"]["sampling_rate"])
            languages.append(numbers.setdefault(supervision.get("language") or "", len(numbers)))
        self.speeds, self.folder = tuple(speeds), folder
        self.codes = sorted(numbers)
        order = np.array([self.codes.index(code) for code in numbers], dtype=np.int16)
        self._blob, self._ends = bytes(blob), np.array(ends, dtype=np.int64)
        copies = [np.array(durations), *(_perturbed(np.array(durations), np.array(rates), speed) for speed in speeds)]
        self.durations = np.concatenate(copies)
        self.languages = np.tile(order[np.array(languages, dtype=np.int16)], len(copies))

    @classmethod
    def read(cls, path: Path | str, speeds: Sequence[float] = ()) -> Utterances:
        """Read the utterances of a manifest (.jsonl.gz); none where there is no such file."""
        return cls(read_lines(path), speeds, Path(path).parent)

    @classmethod
    def of(cls, cuts: Iterable[Cut], speeds: Sequence[float] = ()) -> Utterances:
        """Make the utterances of cuts."""
        return cls((json.dumps(cut.to_dict(), ensure_ascii=False).encode() for cut in cuts), speeds)

    def __len__(self) -> int:
        return len(self.durations)

    def __getitem__(self, row: int) -> Cut:
        from lhotse.serialization import deserialize_item

        copy, number = divmod(int(row), len(self._ends))
        cut = deserialize_item(relocated(self._fields(number), self.folder))
        return cut.perturb_speed(self.speeds[copy - 1]) if copy else cut

    def names(self, rows: Iterable[int]) -> list[str]:
        """The ids of some rows; Lhotse's names for copies."""
        return [self._name(*divmod(int(row), len(self._ends))) for row in rows]

    def _name(self, copy, number):
        return self._fields(number)["id"] + (f"_sp{self.speeds[copy - 1]}" if copy else "")

    def rows_of(self, language: str) -> np.ndarray:
        """The rows (n,) of a language."""
        return np.flatnonzero(self.languages == self.codes.index(language)) if language in self.codes else np.zeros(0, int)

    @property
    def originals(self) -> int:
        """The number of rows that are no copies: the first ones."""
        return len(self._ends)

    def _fields(self, number):
        return json.loads(self._blob[self._ends[number - 1] if number else 0 : self._ends[number]])


def _perturbed(durations, rates, speed):
    """Durations (N,) of copies at a speed: whole samples, rounded as Lhotse rounds them."""
    samples = np.round(np.round(durations * rates) / speed, 8)
    return (np.floor(samples + 0.5) if speed >= 1 else np.ceil(samples - 0.5)) / rates
