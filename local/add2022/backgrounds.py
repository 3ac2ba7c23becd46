"""Noise, music and rooms to be mixed with speech: from folders of the user's, such as MUSAN and RIRS_NOISES, or from
Debian packages, divided among the sets of a corpus.

Folders: all audio in them and below, of any rate and length.

    musan/{noise,music,speech}/*/*.wav                    MUSAN (https://www.openslr.org/17): 6, 42 and 60 h, 16 kHz
    RIRS_NOISES/pointsource_noises/*.wav                  (https://www.openslr.org/28), 843 noises
    RIRS_NOISES/simulated_rirs/*/*/*.wav                  60,000 impulse responses of simulated rooms
    RIRS_NOISES/real_rirs_isotropic_noises/*.wav          measured ones of 1 to 8 channels, and noises beside them

Of a folder that is the whole of one of these, the part is taken that is asked for; a file that is called noise is no
room. Of an impulse response of several channels the first is taken, for their mean is that of no place in the room.

Packages:

Noise: sounds of animals, vehicles and instruments (tuxpaint-stamps-default; 0.2 to 15 s, each begins again until the
speech ends). Music: that of a game, 22.05 kHz (fillets-ng-data, 15 pieces, 24 minutes). `more_backgrounds` has
instruments, drums and loops (sonic-pi-samples), machines, explosions and music of a game (colobot-common-sounds), ringtones and
notifications (lomiri-sounds) and music of another game (singularity-music). Every piece belongs to one of
train, adapt and eval, so that what an augmented training set has heard is not in the others.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from local import voices
from local.splits import share_of
from pyspeech.audio.io import find_files, read_audio, stream_audio
from pyspeech.data.audio_checks import AUDIO_SUFFIXES, SHORTEST, check_file
from pyspeech.fetch.download import fetch_debian
from pyspeech.fetch.unpack import unpack

PARTS = (("train", 0.4), ("adapt", 0.7), ("eval", 1.0))  # and the upper edge of its share
KINDS = {"noise": ("noise", "pointsource_noises"), "music": ("music",), "rooms": ()}  # and their parts of the corpora
NOISE_FILE = re.compile(r"(?<![a-z])noise", re.IGNORECASE)
LONGEST_ROOM = 10.0  # seconds: of no room that speech would be understood in
LONGEST_SOUND = 600.0  # seconds; a longer recording is several
MORE = {
    "sonic-pi-samples": {"noise": "usr/share/sonic-pi/samples/*.flac"},
    "lomiri-sounds": {
        "music": "usr/share/sounds/lomiri/ringtones/*.ogg",
        "noise": "usr/share/sounds/lomiri/notifications/*.ogg",
    },
    "colobot-common-sounds": {"noise": "usr/share/games/colobot/sounds/*.wav", "music": "usr/share/games/colobot/music/*.ogg"},
    "singularity-music": {"music": "usr/share/games/singularity/music/*.ogg"},
}
# Voices among these sounds, for who wants none: silero-vad takes most of each for speech (the Hebrew letters of a toy, a
# ghost), or the spectrogram shows cries (sound070).
VOICES = ("dreydl-gimmel", "dreydl-hay", "dreydl-nun", "dreydl-shin", "ghost", "sound070")
SPOKEN = re.compile(r"_[a-z]{2}(_[a-zA-Z]{2})?$|_desc")  # names of letters and numbers, and descriptions


def find_sounds(folder: Path | str, kind: str) -> tuple[Path, list[Path]]:
    """(the folder, or its part that has this kind; sorted paths of the audio files in it and below). kind: of KINDS."""
    folder = Path(folder)
    folder = next((folder / name for name in KINDS[kind] if (folder / name).is_dir()), folder)
    paths = find_files(folder, AUDIO_SUFFIXES)
    return folder, [path for path in paths if not (kind == "rooms" and NOISE_FILE.search(path.stem))]


def check_sound(path: Path | str, kind: str) -> tuple[dict[str, Any] | None, str | None]:
    """As `check_file`, of a file of a kind of KINDS."""
    if kind != "rooms":
        return check_file(path, shortest=SHORTEST)
    properties, problem = check_file(path, shortest=0.0)
    if properties and properties["duration"] > LONGEST_ROOM:
        return None, f"{properties['duration']:.1f} s long; expected an impulse response, of at most {LONGEST_ROOM:g} s"
    return properties, problem


def read_sounds(path: Path | str, kind: str, rate: int) -> Iterator[np.ndarray]:
    """Yield the sounds of a file at `rate` Hz, (n,) float32: one, or several of a recording of more than ten minutes."""
    if kind == "rooms":
        yield read_audio(path, rate, channel=0)[0]
        return
    blocks = []
    for block in stream_audio(path, rate):
        blocks.append(block)
        if sum(map(len, blocks)) >= LONGEST_SOUND * rate:
            yield np.concatenate(blocks)
            blocks = []
    if blocks:
        yield np.concatenate(blocks)


def backgrounds(part: str, edges: Sequence[tuple[str, float]] = PARTS) -> dict[str, list[Path]]:
    """{"noise": [path, ...], "music": [path, ...]} of train, adapt or eval, by `part_of`; downloaded where not in the cache."""
    stamps = voices.PACKAGES["tuxpaint-stamps-default"]
    archives = fetch_debian([stamps, voices.FILLETS_DATA])
    sounds = unpack(archives[stamps.name], ["usr/share/tuxpaint/stamps/*.ogg"])
    music = unpack(archives[voices.FILLETS_DATA.name], ["usr/share/games/fillets-ng/music/*.ogg"])
    noise = [
        path
        for path in sounds.rglob("*.ogg")
        if not SPOKEN.search(path.stem) and not {"symbols", "space"} & set(path.relative_to(sounds).parts)
    ]
    return {
        "noise": sorted(path for path in noise if part_of(path.name, edges) == part),
        "music": sorted(path for path in music.rglob("*.ogg") if part_of(path.name, edges) == part),
    }


def more_backgrounds(part: str, edges: Sequence[tuple[str, float]] = PARTS) -> dict[str, list[Path]]:
    """The same of MORE packages, for who wants many kinds of sounds; downloaded where not in the cache (155 MB)."""
    archives, found = fetch_debian([voices.SOUNDS[name] for name in MORE]), {"noise": [], "music": []}
    for name, patterns in MORE.items():
        folder = unpack(archives[name], list(patterns.values()))
        for kind, pattern in patterns.items():
            found[kind] += sorted(path for path in folder.glob(pattern) if part_of(path.name, edges) == part)
    return found


def part_of(name: str, edges: Sequence[tuple[str, float]] = PARTS) -> str:
    """The part of a piece, by its name: the first whose edge is above the share that follows from this."""
    share = share_of(name)
    return next(part for part, edge in edges if share < edge)
