"""Sounds of any number and length at one rate, in a few files: written once, memory-mapped by every training.

folder/00000.f16    the samples of some sounds, one after the other, float16
folder/00000.json   {"names": [what the sounds came from], "lengths": [the samples of each sound]}, written last: what
                    has none was never finished

Half precision has 11 bits for loud and quiet samples alike: the error is 70 dB below each.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from pyspeech.errors import UserError
from pyspeech.files import atomic_path, write_json

FILE_BYTES = 1 << 28  # a file is closed when it has so many: what a kill can lose
QUIETEST, LOUDEST = 2.0**-8, 2.0**8  # peaks outside are brought to 0.5 to 1


def write_sounds(
    folder: Path | str, names: Sequence[str], read: Callable[[str], Iterable[np.ndarray]], file_bytes: int = FILE_BYTES
) -> None:
    """Write the sounds read(name) of each name, arrays (n,) float, in their order; empty ones are left out.

    Where an earlier call with the same names was killed, this one goes on after its last whole file. Very loud and very
    quiet sounds are scaled, by a power of two.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    number = position = 0
    while position < len(names):
        written = _written(folder, number)
        if not written or written != list(names[position : position + len(written)]):
            written = _write_file(folder, number, names[position:], read, file_bytes)
        number, position = number + 1, position + len(written)
    for path in folder.glob("[0-9]*.*"):  # of a call with other names
        if int(path.stem) >= number:
            path.unlink()


def _written(folder, number):
    """The names that a whole file of an earlier call has."""
    content = _index(folder, number)
    samples = folder / f"{number:05d}.f16"
    if content and samples.exists() and samples.stat().st_size == 2 * sum(content["lengths"]):
        return content["names"]
    return []


def _index(folder, number):
    path = folder / f"{number:05d}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _write_file(folder, number, names, read, file_bytes):
    """One file and its index; the names that are in it."""
    index, lengths, count = folder / f"{number:05d}.json", [], 0
    index.unlink(missing_ok=True)
    with atomic_path(folder / f"{number:05d}.f16") as temporary, open(temporary, "wb") as stream:
        for count, name in enumerate(names, start=1):  # noqa: B007
            for sound in filter(len, read(name)):
                stream.write(_half(sound).tobytes())
                lengths.append(len(sound))
            if stream.tell() >= file_bytes:
                break
    written = list(names[:count])
    write_json(index, {"names": written, "lengths": lengths})
    return written


def _half(sound):
    peak = float(np.abs(sound).max())
    if peak and not QUIETEST <= peak <= LOUDEST:
        sound = np.ldexp(sound, -math.frexp(peak)[1])
    return np.asarray(sound).astype("<f2")


class SoundStore(Sequence):
    """Store of sounds that `write_sounds` wrote into `folder`: store[i] is (n,) float16, memory-mapped."""

    def __init__(self, folder: Path | str) -> None:
        """UserError where a file of it is missing or not whole."""
        self._sounds = []
        for path in sorted(Path(folder).glob("*.json")):
            lengths = json.loads(path.read_text(encoding="utf-8"))["lengths"]
            samples = path.with_suffix(".f16")
            size = samples.stat().st_size if samples.exists() else 0
            if size != 2 * sum(lengths):
                raise UserError(f"{samples}: {size} bytes, expected {2 * sum(lengths)}; run the stage that writes it again")
            if lengths:
                self._sounds += np.split(np.memmap(samples, "<f2", "r").view(np.ndarray), np.cumsum(lengths[:-1]))

    def __len__(self) -> int:
        return len(self._sounds)

    def __getitem__(self, index):
        return self._sounds[index]

    def samples(self) -> int:
        """Number of samples of all sounds together."""
        return sum(map(len, self._sounds))
