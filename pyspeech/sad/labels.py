"""Speech labels of recordings, from a file or a folder of them in any format of pyspeech/sad/label_files.py.

    labels = read_labels("corpus/labels")          # {recording: Labels}
    labels["call"].speech                          # (n, 2) seconds

Names follow the rule for audio files (pyspeech/audio/recordings.py). A label file of one recording stands for the
recording of its own name; RTTM, segments, tables and JSON name recordings themselves, and may hold several.

Labels that people write (Audacity, TextGrid, tables): s and speech are speech; ns, non-speech, silence, noise and the
like are not. If none of the labels read at once is s or speech, every other text (words, speakers) is speech too;
otherwise such time is not scored.
"""

from __future__ import annotations

import logging
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyspeech.audio.io import FFMPEG_SUFFIXES, SNDFILE_SUFFIXES, find_files
from pyspeech.audio.recordings import Recording, names_of, one_word, path_parts
from pyspeech.commands.terminal import some
from pyspeech.errors import UserError
from pyspeech.sad.formats import FORMATS, SPEECH_LABELS
from pyspeech.sad.label_files import MARKED, NONSPEECH, SPEECH, UNSCORED, FileLabels, NotLabelsError, read_file
from pyspeech.sad.segments import union

ENDINGS = sorted({".lab", ".tsv", ".jsonl.gz", *(ending.lower() for _, ending in FORMATS.values())}, key=len, reverse=True)
KALDI_NAME = "segments"  # in a data directory, without an ending
# Without case, brackets and hyphens.
SPEECH_WORDS = {"s", "speech", "voice", "ri"}
NONSPEECH_WORDS = {"ns", "nonspeech", "nospeech", "sil", "silence", "sp", "pause", "noise", "music", "nt", "rx", "rs"}
UNSCORED_WORDS = {"nonscorable", "noscore", "mixed", "uncertain"}
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Labels:
    """Labels of one recording.

    Attributes:
        rows: (start, end, label): seconds; S, NS, ... (pyspeech/sad/formats.py) or, for time that is not scored, other text.
        path: The file that says it.
        length: Seconds of the recording, where the file tells it.
        whole: Whether the rows cover the recording without gaps; otherwise what they leave is non-speech.
        names: The recording's name, then longer ones with more of the folders before it.
    """

    rows: list[tuple[float, float, str]]
    path: Path
    length: float | None
    whole: bool
    names: tuple[str, ...]

    @property
    def speech(self) -> np.ndarray:
        """The speech, float64 (n, 2): seconds, sorted, disjoint."""
        return union([(start, end) for start, end, label in self.rows if label in SPEECH_LABELS])


def read_labels(
    path: Path | str, warn: Callable[[str], object] = log.warning, problems: dict[str, str] | None = None
) -> dict[str, Labels]:
    """Read the labels of a file, or of all label files in a folder and below.

    Args:
        path: A label file, or a folder: files with an ending of ENDINGS and Kaldi's `segments` are read.
        warn: Called with a line for what is passed over in a folder, and for labels whose meaning is a guess.
        problems: {file: what is wrong with it}, to be filled; without it the first damaged file is a UserError.

    Returns:
        {recording: Labels}, sorted by name. Channels of a recording are joined.

    Raises:
        UserError: where nothing is there, a file is damaged or not of a known format, or two files name one recording.
    """
    files = _label_files(Path(path))
    read = {}
    for file in files:
        try:
            read[file] = read_file(file)
        except NotLabelsError as error:
            if [file] == files:
                raise
            warn(f"{error}; left out")
        except UserError as error:
            if problems is None:
                raise
            problems[str(file)] = str(error)
    _settle(path, read, warn)
    return _named(read)


def _label_files(path):
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"{path}: no such file or folder; expected speech labels")
    suffixes = {ending[ending.rindex(".") :] for ending in ENDINGS} | {""}
    files = [file for file in find_files(path, suffixes) if _ending(file) or file.name == KALDI_NAME]
    if not files:
        raise UserError(f"{path}: no label files in this folder or below, such as *.rttm, *.TextGrid or *.txt")
    return files


def label_stem(path: Path) -> str:
    """Return the name of a label file without its ending."""
    return path.name[: -len(_ending(path))] if _ending(path) else path.stem


def _ending(path):
    return next((ending for ending in ENDINGS if path.name.lower().endswith(ending)), "")


def _settle(path, read, warn):
    """Replace labels that people wrote by S, NS and nonScorable, in place; see the top of this module."""
    everything = [labels for found in read.values() for labels in found.values()]
    written = {label for labels in everything if labels.free for _, _, label in labels.rows} - {MARKED, NONSPEECH}
    if written and written <= {"0", "1"}:
        meaning = {"1": SPEECH, "0": NONSPEECH}
    else:
        meaning = {label: _meaning(label) for label in written}
    named = SPEECH in meaning.values()
    guessed = sorted(label for label, known in meaning.items() if known is None)
    if guessed and not named:
        warn(f"{path}: labels such as {some(guessed, 3)} are taken for speech")
    for label in guessed:
        meaning[label] = label if named else SPEECH
    meaning.update({MARKED: SPEECH, NONSPEECH: NONSPEECH})
    for labels in everything:
        known = meaning if labels.free else _official(labels)
        labels.rows = [(start, end, known[label]) for start, end, label in labels.rows]


def _meaning(label):
    word = re.sub(r"[\W_]+", "", label.lower())
    for words, kind in ((SPEECH_WORDS, SPEECH), (NONSPEECH_WORDS, NONSPEECH), (UNSCORED_WORDS, UNSCORED)):
        if word in words:
            return kind
    return None


def _official(labels):
    """{label: itself}, but S for speech and NS for non-speech, in any case."""
    plain = {"s": SPEECH, "speech": SPEECH, "ns": NONSPEECH, "non-speech": NONSPEECH, "nonspeech": NONSPEECH}
    return {label: plain.get(label.lower(), label) for _, _, label in labels.rows}


def _named(read):
    """{recording: Labels} of {file: {name as written: FileLabels}}."""
    own, told = {}, {}  # whose name is the file's; the file tells it
    for file, found in read.items():
        for name, labels in (found or {None: FileLabels()}).items():
            if name is None or word(name) == word(label_stem(file)):
                own[file] = labels
            else:
                told.setdefault(name, []).append((file, labels))
    files = list(own)
    found = [(names, file, own[file]) for names, file in zip(names_of(map(_parts, files)), files, strict=True)]
    for names, entries in zip(names_of(map(_told_parts, told)), told.values(), strict=True):
        found += [(names, *entry) for entry in entries]
    result = {}
    for names, file, labels in found:
        name = plain(names[0])
        if name in result:
            raise UserError(f"{file}: same recording as {result[name].path.name}, '{name}'; one of the two must go")
        result[name] = Labels(labels.rows, file, labels.length, labels.whole, names)
    return dict(sorted(result.items()))


def _parts(file):
    return tuple(map(plain, (*path_parts(file)[:-1], label_stem(file))))


def _told_parts(name):
    """The folders and the stem where a table names an audio file; else the name."""
    path = Path(name)
    audio = path.suffix.lower() in SNDFILE_SUFFIXES + FFMPEG_SUFFIXES
    return tuple(part for part in path.parent.parts if part not in ("/", "..")) + (path.stem,) if audio else (name,)


def pair(wanted: Mapping[str, Sequence[str]], offered: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Find the same recordings on two sides: {name: (name, longer names)} each.

    Names are the same in any Unicode form; then with white space as underscores, which RTTM and segments have; then
    where a longer name is the other's. Returns {wanted name: offered name}, without those that have no partner.
    """
    pairs: dict[str, str] = {}
    for keys in (_as_they_are, _as_words, _with_folders):
        taken, index = set(pairs.values()), defaultdict(set)
        for name in offered.keys() - taken:
            for key in keys(name, offered[name]):
                index[key].add(name)
        for name in wanted.keys() - pairs.keys():
            candidates = {other for key in keys(name, wanted[name]) for other in index[key]}
            if len(candidates) == 1:
                pairs[name] = candidates.pop()
    return pairs


def _as_they_are(name, names):
    return {plain(name)}


def _as_words(name, names):
    return {word(name)}


def _with_folders(name, names):
    return {word(longer) for longer in (name, *names)}


def labels_of(recordings: Sequence[Recording], labels: Mapping[str, Labels]) -> dict[str, Labels]:
    """Return {name of a recording: its Labels} for those that have some."""
    names = {recording.name: (recording.name, *_longer(recording)) for recording in recordings}
    pairs = pair(names, {name: found.names for name, found in labels.items()})
    return {name: labels[pairs[name]] for name in names if name in pairs}


def _longer(recording):
    """Names of an audio file with more of its folders than its name has."""
    path = Path(recording.path)
    (names,) = names_of([(*path_parts(path)[:-1], path.stem)])
    return names[names.index(recording.name) + 1 :] if recording.name in names else ()


def plain(name: str) -> str:
    """A name as text in the composed form, whatever bytes a file's name has."""
    return unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace"))


def word(name: str) -> str:
    """A name as formats have it whose columns are separated by spaces."""
    return one_word(plain(name))
