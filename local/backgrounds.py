"""Noise and music to be mixed with speech, from Debian packages, divided among the sets of a corpus.

Noise: sounds of animals, vehicles and instruments (tuxpaint-stamps-default; 0.2 to 15 s, each begins again until the
speech ends). Music: that of a game, 22.05 kHz (fillets-ng-data, 15 pieces, 24 minutes). Every piece belongs to one of
train, adapt and eval, so that what an augmented training set has heard is not in the others.
"""

import re

from local import voices
from local.splits import share_of
from pyspeech.download import fetch_debian
from pyspeech.unpack import unpack

PARTS = (("train", 0.4), ("adapt", 0.7), ("eval", 1.0))  # and the upper edge of its share
SPOKEN = re.compile(r"_[a-z]{2}(_[a-zA-Z]{2})?$|_desc")  # names of letters and numbers, and descriptions


def backgrounds(part):
    """{"noise": [path, ...], "music": [path, ...]} of train, adapt or eval; downloaded where not in the cache."""
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
        "noise": sorted(path for path in noise if part_of(path.name) == part),
        "music": sorted(path for path in music.rglob("*.ogg") if part_of(path.name) == part),
    }


def part_of(name):
    """train, adapt or eval, by the name of a piece."""
    share = share_of(name)
    return next(part for part, edge in PARTS if share < edge)
