"""Writing the tables of a Kaldi data directory such that they keep the rules of pyspeech/kaldi/rules.py.

Ids stay where they keep the rules as they are. Else an utterance becomes SPEAKER-NAME, in which the speaker has no
character up to "-" in the order of bytes: then the order of utterances is that of their speakers, which Kaldi wants. What
white space or such characters change gets a digest of the original, so that no two become one. An utterance without a
speaker is its own, as Kaldi has it. What was changed stands in utt2name, spk2name and reco2name, which Kaldi passes over
and pyspeech/kaldi/reading.py undoes. lhotse.kaldi writes neither spk2utt nor spk2gender, takes ids with spaces as they
are, and puts "None" where a speaker or a text is missing.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.kaldi.reading import KaldiUtterance
from pyspeech.kaldi.rules import FORBIDDEN, TABLES

log = logging.getLogger(__name__)
NAMES = ("utt2name", "spk2name", "reco2name", "utt2custom")  # tables of ours


def write_data_dir(folder: Path | str, utterances: Sequence[KaldiUtterance], durations: dict[str, float]) -> None:
    """Write the tables of a data directory into a folder, which is made where it is missing; utt2spk is the last of them.

    utterances: of different ids; their `audio` is what Kaldi shall read. durations: seconds of each recording, by its
    name. Tables of before are removed, but for those of features. There are no segments where each utterance is all of a
    recording of its own name. White space in texts becomes single spaces. Languages and genders are written where all have
    one. UserError for what no id and no text can be.
    """
    folder = Path(folder)
    ids = kaldi_ids([(one.id, one.speaker) for one in utterances])
    rows = sorted(zip(ids, utterances, strict=True), key=lambda row: row[0])
    for name in (*TABLES, *NAMES):
        if name not in ("feats.scp", "utt2num_frames"):
            (folder / name).unlink(missing_ok=True)
    _write_recordings(folder, rows, durations)
    _write_texts(folder, rows)
    _write_where_all(folder / "utt2lang", [(key, one.language) for (key, _), one in rows])
    _write_json(folder / "utt2name", [(key, one.id) for (key, _), one in rows if key != one.id])
    _write_json(folder / "utt2custom", [(key, one.custom) for (key, _), one in rows if one.custom])
    _write_speakers(folder, rows)


def kaldi_ids(names: Sequence[tuple[str, str | None]]) -> list[tuple[str, str]]:
    """[(utterance, speaker), ...] for Kaldi of each (utterance, speaker or None), see on top; UserError for a name twice."""
    if len({name for name, _ in names}) < len(names):
        twice = next(name for name, group in groupby(sorted(name for name, _ in names)) if len(list(group)) > 1)
        raise UserError(f"two utterances are named {twice}; expected different names")
    as_they_are = [(name, speaker or name) for name, speaker in names]
    if all(_is_plain(name) and _is_plain(speaker) for name, speaker in as_they_are) and _in_order(as_they_are):
        return as_they_are
    prefixed = [_prefixed(name, speaker, begun=True) for name, speaker in names]
    if len({name for name, _ in prefixed}) == len(names):
        return prefixed
    return [_prefixed(name, speaker, begun=False) for name, speaker in names]


def _in_order(ids):
    speakers = [speaker for _, speaker in sorted(ids)]
    return all(one <= two for one, two in zip(speakers, speakers[1:], strict=False))


def _prefixed(name, speaker, begun):
    """begun: a name that begins with its speaker stays."""
    if speaker is None:
        return _label(name), _label(name)
    label, name = _label(speaker), plain_name(name)
    return (name if begun and name.startswith(f"{label}-") else f"{label}-{name}"), label


def plain_name(name: str) -> str:
    """A name without white space and what cannot be printed; other ones for other names."""
    return _without(name, lambda character: character.isspace() or not character.isprintable())


def _is_plain(name):
    return plain_name(name) == name


def _label(name):
    """A name whose characters all come after "-" in the order of bytes."""
    return _without(name, lambda character: character <= "-" or character.isspace() or not character.isprintable())


def _without(name, odd):
    if name and not any(map(odd, name)):
        return name
    digest = hashlib.md5(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return "".join("_" if odd(character) else character for character in name) + f".{digest}"


# The tables


def _write(path: Path, lines: Iterable[tuple[str, str]]) -> None:
    with atomic_write(path) as stream:
        stream.writelines(f"{key} {value}".rstrip(" ") + "\n" for key, value in lines)


def _write_json(path, lines):
    if lines:
        _write(path, ((key, json.dumps(value, ensure_ascii=False)) for key, value in lines))


def _write_where_all(path, lines):
    """A table where each line has a value; said where only some have."""
    missing = sum(not value for _, value in lines)
    if not missing:
        _write(path, lines)
    elif missing < len(lines):
        log.warning("%s: not written, as %d of %d have none", path, missing, len(lines))


def _write_speakers(folder, rows):
    inverse, names, genders = [], [], []
    for speaker, group in groupby(sorted(rows, key=lambda row: row[0][::-1]), key=lambda row: row[0][1]):
        group = list(group)
        inverse.append((speaker, " ".join(key for (key, _), _ in group)))
        names += [(speaker, name) for name in {one.speaker for _, one in group} - {None, speaker}]
        said = {(one.gender or "")[:1].lower() for _, one in group}
        genders.append((speaker, said.pop() if len(said) == 1 and said <= {"m", "f"} else None))
    _write(folder / "spk2utt", inverse)
    _write_json(folder / "spk2name", names)
    _write_where_all(folder / "spk2gender", genders)
    _write(folder / "utt2spk", (ids for ids, _ in rows))


def _write_recordings(folder, rows, durations):
    spans = [_span(one, durations[one.recording]) for _, one in rows]
    _write(
        folder / "utt2dur",
        ((key, repr(round(end - start, 9))) for ((key, _), _), (start, end) in zip(rows, spans, strict=True)),
    )
    if all(one.start is None and one.recording == one.id for _, one in rows):
        recordings = [(key, one.recording, one.audio) for (key, _), one in rows]
    else:
        recordings = sorted({(plain_name(one.recording), one.recording, one.audio) for _, one in rows})
        twice = next((one[1] for one, two in zip(recordings, recordings[1:], strict=False) if one[0] == two[0]), None)
        if twice is not None:
            raise UserError(f"{twice}: two recordings have this name; expected one audio file of each name")
        _write_json(folder / "reco2name", [(key, name) for key, name, _ in recordings if key != name])
        _write(
            folder / "segments",
            (
                (key, f"{plain_name(one.recording)} {start!r} {end!r}")
                for ((key, _), one), (start, end) in zip(rows, spans, strict=True)
            ),
        )
    _write(folder / "wav.scp", ((key, audio) for key, _, audio in recordings))
    _write(folder / "reco2dur", ((key, repr(durations[name])) for key, name, _ in recordings))


def _span(utterance, duration):
    start, end = utterance.start or 0.0, duration if utterance.end is None else utterance.end
    if not 0 <= start < end:
        raise UserError(f"{utterance.id}: from {start} s to {end} s; expected an end after its start")
    return start, end


def _write_texts(folder, rows):
    lines = [(key, " ".join((one.text or "").split())) for (key, _), one in rows]
    none = next((one.id for _, one in rows if one.text is None), None)
    if none is not None and any(one.text for _, one in rows):
        raise UserError(f"{none}: no text, though others have one; expected text of all utterances or of none")
    if none is None:
        for (key, text), (_, one) in zip(lines, rows, strict=True):
            found = FORBIDDEN.search(f"{key} {text}")
            if found:
                raise UserError(f"{one.id}: its text has {found[0]}, a symbol of Kaldi's own; expected words")
        _write(folder / "text", lines)
