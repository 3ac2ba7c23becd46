"""People who speak in games: more voices for local/add2022/mini.py, of Debian packages.

    hedgewars-*  exclamations of hedgehogs, one volunteer a voice, 44.1 kHz Ogg Vorbis, half a second to two (GFDL 1.3);
                 joined to utterances by local/add2022/words.py. Left out are Robot and Default_uk, which are not as they were
                 spoken.
    bass-en      lines of Beneath a Steel Sky
    drascula-en  lines of Drascula: The Vampire Strikes Back
    queen-en     lines of Flight of the Amazon Queen, as MP3 of 16 kbit/s

The lines are those of many actors, of the 1990s, 8 bits at 11,025 Hz; the games may be given away, with their licences. Of a
game's lines every n-th is taken, and of these those of at least SHORTEST seconds. Who says a line the files do not tell.
"""

import io
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from local.add2022.rnc import is_packed, unpack_rnc
from local.voices import debian_packages, matching
from pyspeech.errors import UserError
from pyspeech.fetch.download import fetch_debian
from pyspeech.fetch.unpack import made_once, unpack

PACKAGES = {
    **debian_packages(
        "hedgewars", "1.0.2-6", {"hedgewars-data": "722225903a72604403e6e0026e40e9a6953f47a74d94efc5f55504bc05bb4761"}
    ),
    **debian_packages(
        "beneath-a-steel-sky",
        "0.0372-8",
        {"beneath-a-steel-sky": "e2a25c880220c26a4dfd42904b878cc655afa1c72895f9c932befbd078622934"},
    ),
    **debian_packages(
        "drascula", "1.0+ds4-2", {"drascula": "ed4af8e2d41ad446e2f3b73533daa1804e2f13f62f596c0b02b8dc39544f22b4"}
    ),
    **debian_packages(
        "flight-of-the-amazon-queen",
        "1.0.0-9",
        {"flight-of-the-amazon-queen": "40c08fd258d6fe95c46c1eaf5e9137f84ba330657995a281bd887c94a560a0f1"},
    ),
}
# voice -> name of its folder
HEDGEWARS = {
    **{
        f"hedgewars-en-{name}": name
        for name in ("British", "Classic", "Default", "HillBilly", "Mobster", "Pirate", "Russian", "Singer", "Surfer")
    },
    **{f"hedgewars-{language}": f"Default_{language}" for language in ("es", "pl", "ru")},
    "hedgewars-pl-Russian": "Russian_pl",
}
SOUNDS = "usr/share/games/hedgewars/Data/Sounds/voices"
RATE = 11025
SHORTEST = 1.5  # seconds of a line
LINES = 400  # of a game that are looked at, about


def fetch_shouts(names: Collection[str]) -> dict[str, tuple[Path, list[Path]]]:
    """{voice: (folder, sorted paths of its clips)} of some of HEDGEWARS, downloaded where they are not in the cache: 145 MB."""
    if not names:
        return {}
    folder = unpack(*_archive("hedgewars-data"), [f"{SOUNDS}/*.ogg"])  # pyright: ignore[reportCallIssue]
    return {name: (folder, matching(folder, f"{SOUNDS}/{HEDGEWARS[name]}/*.ogg")) for name in names}


def fetch_lines(names: Iterable[str]) -> dict[str, dict[str, list[Path]]]:
    """{voice: {voice: sorted paths of lines}} of some of LINES_OF, decoded in the cache once: FLAC (127 MB to download)."""
    return {name: {name: _lines_once(name, *LINES_OF[name])} for name in names}


def _archive(package):
    return fetch_debian([PACKAGES[package]]).values()


def _lines_once(voice, package, patterns, read):
    import soundfile

    folder = unpack(*_archive(package), patterns)  # pyright: ignore[reportCallIssue]

    def write(target):
        for name, samples in read([path for pattern in patterns for path in matching(folder, pattern)]):
            if len(samples) >= SHORTEST * RATE:
                soundfile.write(str(target / f"{name}.flac"), samples, RATE, subtype="PCM_16")

    return sorted(made_once(folder / f"lines-{voice}", write).glob("*.flac"))


def every_nth(lines: Sequence[Any]) -> Sequence[Any]:
    """About LINES of the lines, from all over the game."""
    return lines[:: max(1, len(lines) // LINES)]


def as_samples(data: bytes) -> np.ndarray:
    """Bytes of 8 bits a sample, 128 for none -> (N,) float64."""
    return (np.frombuffer(data, np.uint8).astype(np.float64) - 128.0) / 128.0


# Readers of a game's files: [paths] -> [(name of a line, (N,) at RATE), ...]


def read_files(paths: Sequence[Path]) -> list[tuple[str, np.ndarray]]:
    """Drascula: a file a line, samples alone."""
    return [(path.stem, as_samples(path.read_bytes())) for path in every_nth(paths)]


def read_sky(paths: Sequence[Path]) -> list[tuple[str, np.ndarray]]:
    """Beneath a Steel Sky: sky.dnr says how many files sky.dsk holds (4 bytes), and of each its number (2), where it begins (3,
    counted in 16 bytes where the highest bit is set) and its size (3, of which the highest two bits are flags). Lines are those
    numbered from 50,000 to 59,999; behind a header of 22 bytes they are packed."""
    index, data = Path(paths[0]).read_bytes(), Path(paths[1]).read_bytes()
    found = []
    for start in range(4, 4 + 8 * int.from_bytes(index[:4], "little"), 8):
        number, place, size = (int.from_bytes(index[start + a : start + b], "little") for a, b in ((0, 2), (2, 5), (5, 8)))
        place, size = (place & 0x7FFFFF) << 4 if place >> 23 else place, size & 0x3FFFFF
        line = data[place + 22 : place + size]
        if 50000 <= number < 60000 and is_packed(line):
            found.append((str(number), line))
    return [(name, as_samples(_unpacked(name, line))) for name, line in every_nth(found)]


def _unpacked(name, line):
    try:
        return unpack_rnc(line)
    except ValueError as error:
        raise UserError(f"line {name} of Beneath a Steel Sky: {error}; remove its folder in the cache") from None


def read_queen(paths: Sequence[Path]) -> list[tuple[str, np.ndarray]]:
    """Flight of the Amazon Queen: queen.1c begins with QTBL, 9 bytes more, how many files it holds (2), and of each its name
    (12), a byte, where it begins and its size (4 each, as all numbers high byte first). Lines are those named *.SB."""
    import soundfile

    data = Path(paths[0]).read_bytes()
    found = []
    for start in range(15, 15 + 21 * int.from_bytes(data[13:15], "big"), 21):
        name = data[start : start + 12].rstrip(b"\0").decode("ascii", errors="replace")
        place, size = (int.from_bytes(data[start + a : start + a + 4], "big") for a in (13, 17))
        if name.endswith(".SB"):
            found.append((name, data[place : place + size]))
    return [(name, soundfile.read(io.BytesIO(line))[0]) for name, line in every_nth(found)]


# voice -> package, patterns of its files, their reader
LINES_OF = {
    "bass-en": (
        "beneath-a-steel-sky",
        ["*/scummvm/beneath-a-steel-sky/sky.dnr", "*/scummvm/beneath-a-steel-sky/sky.dsk"],
        read_sky,
    ),
    "drascula-en": ("drascula", ["*/scummvm/drascula/en/*.ALS"], read_files),
    "queen-en": ("flight-of-the-amazon-queen", ["*/scummvm/flight-of-the-amazon-queen/queen.1c"], read_queen),
}
