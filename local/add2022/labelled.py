"""Any labelled corpus: a list of files with their labels, or folders that are named after labels, to Lhotse manifests.

A list is a TSV or CSV file (*.tsv, *.csv, UTF-8) with a header line. `corpus` is the list, the folder that it lies in, or a
folder whose sub-folders have one each, which then are the pages of their files. Columns in any order; others are passed over:

    path        audio file, absolute or from the list's folder; also called file or filename
    label       genuine, bonafide, bona-fide or real; fake or spoof; in any case. Empty in a test set whose labels are not known
    system      what made a fake
    family      systems that have much in common, such as HiFi-GAN
    speaker     who speaks
    language    code such as en
    original    the genuine file that a fake was made of or stands beside: its path, its name, or what its own `original` says
    split       train, dev, adapt or eval (also validation, test ...), for all files or for none
    page        source of a file: a web page, a release, a recording session

In-the-Wild (Müller et al. 2022) has such a list, meta.csv: `file,speaker,label`. Without a list, the nearest folder above a
file that is named after a label gives it, and one named after a set the set:

    genuine|bonafide|bona-fide|real/**/*.wav     fake|spoof/<system>/**/*.wav     also WaveFake's generated_audio/<system>/*.wav

beside LJSpeech-1.1 and jsut_ver1.1. Folders above several pairs of these are pages. A fake named like a genuine file, and
_gen or _generated, is a copy of it, where that is so of all fakes.

Sets that are not told are drawn (local/add2022/draw_sets.py). check.json has what the files alone say about the classes, over
pages and within them (local/add2022/shortcuts.py). An utterance's id is its file's name without folders, or with
them where several have the same. Checks and manifests: local/add2022/manifests.py.
"""

import csv
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from local.add2022.draw_sets import draw_sets
from local.add2022.manifests import SETS, write_sets
from local.add2022.shortcuts import check_corpus
from local.splits import SPLIT_WORDS
from pyspeech.audio.io import find_files
from pyspeech.data.audio_checks import AUDIO_SUFFIXES, NOT_UTF8
from pyspeech.data.manifests import Utterance
from pyspeech.data.problems import printable
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.spoof.formats import UNKNOWN, utterance_name

SUFFIXES = {".tsv": "\t", ".csv": ",;\t"}  # of lists, and what may part their columns
COLUMNS = ("path", "label", "system", "family", "speaker", "language", "original", "split", "page")
ALIASES = {"file": "path", "filename": "path"}
LABELS = {"genuine": "genuine", "bonafide": "genuine", "real": "genuine", "fake": "fake", "spoof": "fake"}
FOLDERS = {**LABELS, "generatedaudio": "fake", "ljspeech": "genuine", "jsutver": "genuine"}  # the last three: WaveFake
SPLITS = {**SPLIT_WORDS, "validation": "dev", "valid": "dev", "val": "dev", "testing": "eval", "adapt": "adapt"}
MEASURED = 2000  # utterances of a class and set that check.json is of
COPY = re.compile(r"_gen(erated)?$")
EXPECTED = "a TSV or CSV file with columns path and label, or folders named genuine or real and fake or spoof"


@dataclass(frozen=True)
class File:
    """A line of a list: where it is, "list.tsv:7"; the audio file; its path from the corpus's folder, with /; and its columns,
    "" for what is not known."""

    place: str
    audio: Path
    name: str
    path: str
    label: str
    system: str = ""
    family: str = ""
    speaker: str = ""
    language: str = ""
    original: str = ""
    split: str = ""
    page: str = ""


def prepare(
    corpus: str | Path,
    out: str | Path,
    log: logging.Logger,
    *,
    split_by: str = "auto",
    test: bool = False,
    skip_bad: bool = False,
    parts: Parts | None = None,
) -> dict[str, dict[str, int]]:
    """Check the corpus and write <set>.jsonl.gz (train, dev, adapt, eval) into `out`; see local/add2022/manifests.py.

    Args:
        corpus: A list or a folder, see above.
        split_by: How sets are drawn where none are told, see local/add2022/draw_sets.py.
        test: Whether only eval is wanted: all files where no sets are told.

    Returns:
        {set: {"genuine": n, "fake": n, "unlabelled": n}}.

    Raises:
        UserError: In one line, for a corpus that cannot be used.
    """
    name = f"corpus={corpus}"
    files, problems = find_utterances(Path(corpus), log)
    utterances = as_utterances(files)
    if not any(one.split for one in files):
        utterances = [replace(one, split="eval") for one in utterances] if test else draw_sets(utterances, split_by, name, log)
    sets = {part: [one for one in utterances if one.split == part] for part in (("eval",) if test else SETS)}
    counts = write_sets(sets, out, log, name, skip_bad, problems, parts, None, "eval" if test else "train")
    if not test:
        check_corpus(Path(out).resolve(), log, parts=parts, most=MEASURED)
    return counts


def find_utterances(corpus: Path, log: logging.Logger) -> tuple[list[File], list[tuple[str, str]]]:
    """([File, ...], [(place, what is wrong), ...]) of a corpus; UserError where it is neither lists nor folders."""
    lists = find_lists(corpus)
    if lists:
        log.info("corpus=%s: reading %s", corpus, ", ".join(str(path) for path in lists[:3]) + " ..." * (len(lists) > 3))
        base = corpus if corpus.is_dir() else corpus.parent
        files = [one for path in lists for one in read_list(path, base)]
    else:
        files = read_folders(corpus, log)
    return _once(files)


def _once(files):
    """(files, each of them and each name once, problems: the others)."""
    first, problems = {}, []
    for one in files:
        other = first.setdefault(utterance_name(one.name), one)
        if printable(one.audio) != str(one.audio):
            problems.append((printable(one.audio), NOT_UTF8))
        elif other.audio == one.audio and other is not one:
            problems.append((one.place, f"{one.audio} is there twice, first in {other.place}"))
        elif other is not one:
            problems.append((one.place, f"same name as {other.audio}; one of the two must go"))
        else:
            continue
        if other is one:
            del first[utterance_name(one.name)]
    return list(first.values()), problems


# Lists


def find_lists(corpus: Path) -> list[Path]:
    """The lists of a corpus: itself, the one in it, or one in each of its folders; [] for none."""
    if corpus.is_file():
        if columns_of(corpus) is None:
            raise UserError(f"corpus={corpus}: no list of labelled files; expected {EXPECTED}")
        return [corpus]
    if not corpus.is_dir():
        raise UserError(f"corpus={corpus}: no such file or folder; expected {EXPECTED}")
    with os.scandir(corpus) as entries:
        folders = sorted(corpus / entry.name for entry in entries if entry.is_dir())
    own = _list_in(corpus)
    return [own] if own else [path for path in map(_list_in, folders) if path]


def _list_in(folder):
    paths = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in SUFFIXES and columns_of(path)]
    if len(paths) > 1:
        raise UserError(f"corpus={folder}: {len(paths)} lists, {paths[0].name} and {paths[1].name}; name one, or leave one")
    return paths[0] if paths else None


def columns_of(path: Path) -> list[str] | None:
    """The columns of a list by their names above; None for a file that is no list."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            line = stream.readline(1 << 16)
    except (OSError, UnicodeDecodeError):
        return None
    columns = _named(line, _delimiter(path, line))
    return columns if {"path", "label"} <= set(columns) else None


def _named(line, delimiter):
    columns = [column.strip().lower() for column in next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter), [])]
    return [ALIASES.get(column, column) for column in columns]


def _delimiter(path, line):
    return max(SUFFIXES.get(path.suffix.lower(), "\t,;"), key=line.count)


def read_list(path: Path, base: Path) -> Iterable[File]:
    """The files of a list; UserError, with the line, for one that is no use.

    base: the corpus's folder; where the list lies in a folder of it, that is the page of files without one.
    """
    columns, page = columns_of(path), path.parent.name if path.parent != base else ""
    if columns is None:
        raise UserError(f"{path}: no columns path and label; expected a header line with them")
    double = [column for column, count in Counter(columns).items() if count > 1 and column in COLUMNS]
    if double:
        raise UserError(f"{path}: two columns {double[0]}; leave one")
    with open(path, encoding="utf-8-sig", newline="") as stream:
        delimiter = _delimiter(path, stream.readline())
        quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
        try:
            yield from _rows(csv.reader(stream, delimiter=delimiter, quoting=quoting), path, base, columns, page)
        except UnicodeDecodeError:
            raise UserError(f"{path}: not UTF-8; expected a text file in it") from None
        except csv.Error as error:
            raise UserError(f"{path}: cannot be read as a table ({error}); expected {EXPECTED}") from None


def _rows(reader, path, base, columns, page):
    for values in reader:
        place = f"{path}:{reader.line_num + 1}"  # below the header
        if not any(value.strip() for value in values):
            continue
        if len(values) != len(columns):
            raise UserError(f"{place}: {len(values)} columns; the header has {len(columns)}")
        row = {column: value.strip() for column, value in zip(columns, values, strict=True) if column in COLUMNS}
        row = {column: "" if value == UNKNOWN else value for column, value in row.items()}
        if not row["path"]:
            raise UserError(f"{place}: no path; expected an audio file, from {path.parent}")
        row["split"] = _set(place, row.get("split", ""))
        row["label"] = _label(place, row)
        row["page"] = row.get("page") or page
        audio = path.parent / row["path"]
        name = PurePosixPath(audio.relative_to(base)) if audio.is_relative_to(base) else PurePosixPath(audio)
        yield File(place, audio, str(name), **row)


def _label(place, row):
    label = LABELS.get(_letters(row["label"]))
    if label is None and (row["label"] or row["split"] != "eval"):
        raise UserError(f"{place}: label '{row['label']}'; expected genuine, bonafide, real, fake or spoof")
    return label or ""


def _set(place, text):
    if text and text.lower() not in SPLITS:
        raise UserError(f"{place}: split '{text}'; expected train, dev, adapt or eval")
    return SPLITS[text.lower()] if text else ""


def _letters(text):
    return re.sub(r"[^a-z]", "", text.lower())


# Folders


def read_folders(corpus: Path, log: logging.Logger) -> list[File]:
    """The audio files that lie in a folder named after a label; UserError where they are not of both kinds."""
    paths = find_files(corpus, AUDIO_SUFFIXES)
    found = [_file(path, path.relative_to(corpus).parts) for path in paths]
    files = [one for one in found if one]
    missing = {"genuine", "fake"} - {one.label for one in files}
    if missing:
        raise UserError(f"corpus={corpus}: no audio in a folder of {' or '.join(sorted(missing))} files; expected {EXPECTED}")
    if len(files) < len(paths):
        log.warning("corpus=%s: %d audio files in no folder named after a label are left out", corpus, len(paths) - len(files))
    if len({one.page for one in files}) < 2:  # that is none
        files = [replace(one, page="") for one in files]
    return _with_originals(files)


def has_folders(corpus: Path) -> bool:
    """Return True where a folder in `corpus`, at any depth, is named after a label."""
    return any(_letters(folder) in FOLDERS for _, folders, _ in os.walk(corpus) for folder in folders)


def _file(path, parts):
    """The File of the path with the folders `parts` from the corpus's on; None where none is named after a label."""
    folders = parts[:-1]
    depth = next((depth for depth in reversed(range(len(folders))) if _letters(folders[depth]) in FOLDERS), None)
    if depth is None:
        return None
    label = FOLDERS[_letters(folders[depth])]
    sets = [SPLITS[name.lower()] for name in folders if name.lower() in SPLITS]
    name, below = "/".join(parts), folders[depth + 1 : depth + 2]
    return File(
        place=str(path),
        audio=path,
        name=name,
        path=name,
        label=label,
        system="".join(below) if label == "fake" else "",
        split=sets[-1] if sets else "",
        page="/".join(folder for folder in folders[:depth] if folder.lower() not in SPLITS),
    )


def _with_originals(files):
    """The same files, with the genuine one of the same name as the original of every fake, or of none."""
    genuine = Counter(utterance_name(one.audio.name) for one in files if one.label == "genuine")
    names = [COPY.sub("", utterance_name(one.audio.name)) for one in files]
    if not all(genuine[name] == 1 for one, name in zip(files, names, strict=True) if one.label == "fake"):
        return files
    return [replace(one, original=name) for one, name in zip(files, names, strict=True)]


# Utterances


def as_utterances(files: list[File]) -> list[Utterance]:
    """An Utterance of each file; UserError where some have a split and others have none."""
    without = [one for one in files if not one.split]
    if without and len(without) < len(files):
        raise UserError(f"{without[0].place}: no split, while others have one; expected one for all files or for none")
    count = Counter(utterance_name(one.audio.name) for one in files)
    ids = [utterance_name(one.audio.name if count[utterance_name(one.audio.name)] == 1 else one.name) for one in files]
    originals = _originals(files, ids) if any(one.original for one in files) else {}
    return [_utterance(one, name, originals) for one, name in zip(files, ids, strict=True)]


def _originals(files, ids):
    """{what may stand in `original`: id of a genuine file}; a path counts before a name, and a name before an `original`."""
    found = {}
    for said in (lambda one: one.original, lambda one: utterance_name(one.audio.name), lambda one: one.path):
        found.update((said(one), name) for one, name in zip(files, ids, strict=True) if one.label == "genuine")
    return found


def _utterance(one, name, originals):
    fake = one.label == "fake"
    custom = {"attack": (fake and one.system) or UNKNOWN, "condition": UNKNOWN}
    if fake and one.family:
        custom["family"] = one.family
    if one.page:
        custom["page"] = one.page
    if originals and not fake:
        custom["original"] = name
    elif one.original:
        custom["original"] = originals.get(one.original) or originals.get(utterance_name(one.original)) or one.original
    text = one.label or None
    return Utterance(name, str(one.audio), text, one.language or "und", one.speaker or UNKNOWN, one.split, custom)  # pyright: ignore[reportArgumentType]
