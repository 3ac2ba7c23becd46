"""ASVspoof 2021 (Liu et al. 2023), logical access, deepfake and physical access: test sets alone, to Lhotse manifests.

https://zenodo.org/records/4837263 (LA), 4835108 (DF) and 4834716 (PA), keys at https://www.asvspoof.org/index2021.html;
16 kHz mono FLAC, English:

    ASVspoof2021_DF_eval/flac/DF_E_2000011.flac       also in several folders, as the four parts of DF unpack
    keys/DF/CM/trial_metadata.txt                     in this folder or the one above

What counts in publications is the subset "eval" of a key; "progress" and "hidden" are left out, which a line says. There is
nothing to train with. The codec is the `condition`, the kind of vocoder that the key of DF has the `family`. Checks, and
the eval.jsonl.gz that is written, are those of local/add2022/manifests.py.
"""

import logging
import os
import re
from collections import Counter
from pathlib import Path

from local.add2022.manifests import pair, write_sets
from pyspeech.audio.io import find_files
from pyspeech.data.audio_checks import AUDIO_SUFFIXES
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.spoof.formats import utterance_name
from pyspeech.spoof.label_files import read_labels

KEY = re.compile(r"trial_metadata\.txt", re.IGNORECASE)
NAME = re.compile(r"(LA|DF|PA)_E_\d+$")
EXPECTED = "ASVspoof2021_DF_eval/flac/*.flac and keys/DF/CM/trial_metadata.txt, or LA or PA"
DEPTH = 4  # folders below which no key is looked for


def prepare(
    corpus: str | Path,
    out: str | Path,
    log: logging.Logger,
    *,
    test: bool = False,
    skip_bad: bool = False,
    parts: Parts | None = None,
) -> dict[str, dict[str, int]]:
    """Check the corpus and write eval.jsonl.gz into `out`; see local/add2022/manifests.py.

    corpus: the folder of LA, DF or PA. Utterances with problems as in `local.add2022.add2022.prepare`.
    Returns {"eval": {"genuine": n, "fake": n}}. UserError in one line for a corpus that cannot be used, and without `test`.
    """
    folder = Path(corpus)
    if not test:
        raise UserError(f"corpus={folder}: ASVspoof 2021 has no training set; expected another corpus, and test.NAME={folder}")
    if not folder.is_dir():
        raise UserError(f"corpus={folder}: no such folder; expected one with {EXPECTED}")
    audio = find_files(folder, AUDIO_SUFFIXES)
    tracks = sorted({name[1] for name in map(NAME.match, (path.stem for path in audio)) if name})
    if len(tracks) != 1:
        found = f"audio of {' and '.join(tracks)}" if tracks else "no audio"
        raise UserError(f"corpus={folder}: {found}; expected the folder of one track, with {EXPECTED}")
    key = _key_of(folder, tracks[0])
    every = read_labels(key)
    wanted = {name: label for name, label in every.items() if label.subset == "eval"}
    others = Counter(label.subset for label in every.values() if label.subset != "eval")
    told = ", ".join(f"{count} of {subset}" for subset, count in sorted(others.items()))
    log.info("%s: %d utterances of the subset eval; left out: %s", key, len(wanted), told or "none")
    left_out = every.keys() - wanted.keys()
    audio = [path for path in audio if utterance_name(path.name) not in left_out]
    utterances, problems = pair("eval", audio, key, "en", wanted)
    return write_sets({"eval": utterances}, out, log, f"corpus={folder}", skip_bad, problems, parts, needed="eval")


def _key_of(folder, track):
    keys = [path for path in find_near(folder, KEY) if path.parent.name.upper() != "ASV"]
    found = [path for path in keys if re.search(rf"\s{track}_E_", _first_line(path))]
    if len(found) != 1:
        what = f"{len(found)} keys of {track}, {found[0]} and {found[1]}" if found else f"no key of {track} in it or beside it"
        raise UserError(f"corpus={folder}: {what}; expected keys/{track}/CM/trial_metadata.txt")
    return found[0]


def _first_line(path):
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.readline()


def find_near(folder: Path, name: re.Pattern) -> list[Path]:
    """The files of a name in a folder, or where it has none in the folder above; folders of audio are passed over."""
    folder = folder.resolve()
    return _search(folder, name) or _search(folder.parent, name)


def _search(folder, name):
    found = []
    for place, folders, files in os.walk(folder, followlinks=True):
        deep = len(Path(place).relative_to(folder).parts) >= DEPTH
        folders[:] = [] if deep else sorted(one for one in folders if not one.lower().startswith(("flac", "wav", ".")))
        found += [Path(place) / file for file in sorted(files) if name.fullmatch(file)]
    return found
