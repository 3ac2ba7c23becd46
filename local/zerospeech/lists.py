"""The lists of ZeroSpeech 2019 (local/zerospeech/zerospeech2019.py): bitrate_filelist, synthesis.txt, .item and .abx files;
and a file of phones, which no release has.

Each is read from the corpus and written, of the usable test utterances, into the folder of the manifests. Everywhere
`found` is the Language, `out` the folder, `test` {utterance: duration in seconds}.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.units.abx_task import read_task
from pyspeech.units.bitrate import listed_name, read_filelist
from pyspeech.units.challenge import Language, read_lines, read_synthesis, utterance_name
from pyspeech.units.items import COLUMNS, column_order

ITEM_HEADER = "#file onset offset #phone prev-phone next-phone speaker"


def write_bitrate_filelist(found: Language, out: Path, test: Mapping[str, float], log: logging.Logger) -> None:
    path, listed = found.rows(
        "bitrate_filelist*", lambda path: [(utterance_name(name), seconds) for name, seconds in read_filelist(path)], test
    )
    if path:
        _remark_absent(path, listed, test, log)
    else:
        listed = [(name, None) for name in sorted(test)]
        log.info("no bitrate_filelist of these test utterances: the bitrate will be that of all %d", len(listed))
    with atomic_write(out / "bitrate_filelist") as stream:
        stream.writelines(f"{name}\n" if seconds is None else f"{name} {seconds}\n" for name, seconds in listed if name in test)


def write_synthesis(found: Language, out: Path, test: Mapping[str, float], voices: set[str], log: logging.Logger) -> None:
    target = out / "synthesis.txt"
    path, pairs = found.rows("synthesis.txt", lambda path: read_synthesis(path, voices), test)
    if not path:
        target.unlink(missing_ok=True)
        log.info("no synthesis.txt of these test utterances: nothing says which of them to synthesise")
        return
    _remark_absent(path, pairs, test, log)
    for name, voice in pairs:
        if name in test and voice not in voices:
            raise UserError(
                f"{path}: {name} is to be spoken by {voice}, of whom there is no usable recording; "
                f"expected one of {', '.join(sorted(voices))}"
            )
    with atomic_write(target) as stream:
        stream.writelines(f"{name} {voice}\n" for name, voice in pairs if name in test)


def write_items(found: Language, out: Path, test: Mapping[str, float], log: logging.Logger) -> int:
    """Write abx.item and return its number of lines: those of test utterances of the .item file that has the most, or,
    where none has any, of the compiled task that has the most."""
    target = out / "abx.item"
    rows, source = _most_items(found, "*.item", read_items, test)
    if not rows:
        rows, other = _most_items(found, "*.abx", read_task_rows, test)
        source = other or source
    if not rows:
        target.unlink(missing_ok=True)
        log.warning(
            "%s: no .item or .abx file with test utterances%s; there will be no ABX. Where one is added: --force "
            "--stage prepare --stop-stage prepare, then the rest",
            found.folder,
            f" ({source} names none)" if source else "",
        )
        return 0
    log.info("ABX items: %d of %s", len(rows), source)
    with atomic_write(target) as stream:
        stream.writelines(" ".join(row) + "\n" for row in [ITEM_HEADER.split(), *rows])
    return len(rows)


def write_alignment(found: Language, out: Path, test: Mapping[str, float], log: logging.Logger) -> None:
    """Write alignment.ctm, the phones of the test utterances, where the corpus has alignment*.ctm."""
    from pyspeech.units.phones import read_alignment

    def read(path):
        phones = ((_listed(name), segments) for name, segments in read_alignment(path).items())
        return [(name, *one) for name, segments in phones for one in segments]

    target = out / "alignment.ctm"
    path, rows = found.rows("alignment*.ctm", read, test)
    if not path:
        target.unlink(missing_ok=True)
        return
    rows = [row for row in rows if row[0] in test]
    log.info("phones: %d of %s", len(rows), path)
    with atomic_write(target) as stream:
        stream.writelines(f"{name} 1 {start!r} {end - start!r} {phone}\n" for name, start, end, phone in rows)


def _most_items(found, pattern, read, test):
    """(rows, path) of the file with the most rows; ([], None) where there is no file."""
    return max(((read(path, test), path) for path in found.named(pattern)), key=lambda pair: len(pair[0]), default=([], None))


def read_task_rows(path: Path | str, test: Mapping[str, float]) -> list[list[str]]:
    """As `read_items`, of a compiled ABX task; items that are whole files end with them."""
    rows = []
    for item in read_task(path, wanted=lambda name: _listed(name) in test):
        name = _listed(item.file)
        if name in test:
            _check_onset(path, item.onset, name, test)
            times = (repr(item.onset), repr(min(item.offset, max(test[name], item.onset))))
            rows.append([name, *times, item.phone, *item.context, item.speaker])
    return rows


def read_items(path: Path, test: Mapping[str, float]) -> list[list[str]]:
    """Lines of an .item file, [file, onset, offset, phone, previous, next, speaker], of the test utterances.

    test: {utterance: duration in seconds}. UserError for other lines, and for an onset behind the end of the audio.
    """
    rows = []
    order = range(len(COLUMNS))
    for number, line in enumerate(read_lines(path), 1):
        if number == 1 and line.startswith("#"):
            order, count = column_order(path, line)
            if count != len(COLUMNS):
                raise UserError(f"{path}:1: {count} columns; expected `{ITEM_HEADER}`, in any order")
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.rsplit(maxsplit=6)
        if order[0] == 0 and len(fields) == len(COLUMNS):  # a name may hold spaces where it is first
            fields = [fields[place] for place in order]
        elif len(line.split()) == len(COLUMNS):
            fields = [line.split()[place] for place in order]
        try:
            onset, offset = float(fields[1]), float(fields[2])
        except (IndexError, ValueError):
            onset, offset = 0.0, -1.0
        if len(fields) != 7 or not 0 <= onset <= offset < float("inf"):
            raise UserError(f"{path}, line {number}: '{line.strip()}'; expected `{ITEM_HEADER}`, times in seconds")
        name = _listed(fields[0])
        if name in test:
            _check_onset(f"{path}, line {number}", onset, name, test)
            rows.append([name, *fields[1:]])
    return rows


def _listed(text):
    return utterance_name(listed_name(text.strip()))


def _check_onset(place, onset, name, test):
    if onset > test[name]:
        raise UserError(
            f"{place}: an item begins at {onset:g} s, but {name} ends at {test[name]:g} s; "
            "expected times in seconds from the beginning of the file"
        )


def _remark_absent(path, rows, test, log):
    absent = [row[0] for row in rows if row[0] not in test]
    if absent:
        log.warning(
            "%s: %d of %d utterances are not among the usable test utterances, left out (%s, ...)",
            path,
            len(absent),
            len(rows),
            absent[0],
        )
