"""Folders of recordings with speech labels, as a user has them, for training, dev or eval of egs/fearless and egs/detector.

A folder has audio and labels of any format of pyspeech/sad/labels.py, beside each other or in folders below; names pair them.
Where labels mark speech alone, what they leave out is non-speech up to the end of the audio; other labels are not scored.

Written are, as of the other corpora, <set>.jsonl.gz, reference/<set>/*.txt, and turns/<set>/*.txt with pauses of less than
half a second as speech; recordings are real_<folder>_<name>. Audio that is no single-channel WAV or FLAC is copied at 8 kHz.
"""

import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from local.fearless.fearless_steps import LOUDEST_STREAM, OVERRUN, RATE, is_copied, make_copies, write_rows
from pyspeech.audio.recordings import find_recordings
from pyspeech.commands.terminal import some
from pyspeech.data.audio_checks import check_audio
from pyspeech.data.manifests import clear, clear_split, write_split
from pyspeech.data.problems import report_problems
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.sad.formats import SPEECH_LABELS
from pyspeech.sad.labels import label_stem, labels_of, read_labels
from pyspeech.sad.segments import total, union
from pyspeech.sad.timelines import lay_out

USES = ("train", "dev", "eval")
TURN_GAP = 0.5  # seconds: a shorter pause is part of a turn


def prepare(
    folders: Sequence[str],
    uses: Sequence[str],
    out: str | Path,
    log: logging.Logger,
    *,
    skip_bad: bool = False,
    parts: Parts | None = None,
) -> list[str]:
    """Check the folders and write their sets into `out`.

    folders: whose names differ. uses: one of USES for all of them, or one for each; those for eval are a set each,
    eval_<folder>. skip_bad: leave out what has a problem, instead of stopping where that is more than some files. Returns the
    names of the sets. UserError for a folder without audio or labels, and for files with problems, which it names.
    """
    out, sets = Path(out).resolve(), {}
    for folder, use in zip(folders, list(uses) * (len(folders) if len(uses) == 1 else 1), strict=True):
        name = re.sub(r"\W+", "_", Path(folder).resolve().name)
        rows = _check(Path(folder), f"real_{name}", out, log, skip_bad)
        sets.setdefault(f"eval_{name}" if use == "eval" else use, []).extend(rows)
    for name, rows in sets.items():
        _write(out, name, rows, log, parts)
    return list(sets)


def _check(folder, prefix, out, log, skip_bad):
    """[(name, audio path, its properties, label rows)] of the recordings of a folder that can be used."""
    if not folder.is_dir():
        raise UserError(f"real={folder}: no such folder; expected one of audio with speech labels")
    recordings, problems, good = find_recordings([folder]), {}, []
    labels = read_labels(folder, log.warning, problems)
    found = labels_of(recordings, labels)
    unread = [label_stem(Path(path)) for path in problems]
    problems = list(problems.items())
    if unheard := sorted(labels.keys() - {name for name, one in labels.items() if one in found.values()}):
        log.warning("%s: labels without audio: %s", folder, some(unheard))
    for recording in recordings:
        stem = Path(recording.path).stem
        if recording.name not in found and stem in unread:
            unread.remove(stem)  # its label file is among the problems; another recording of that name has none
            continue
        try:
            properties = check_audio(recording.path, LOUDEST_STREAM)
            rows = _rows(recording, found.get(recording.name), properties["duration"])
        except UserError as error:
            problems.append((recording.path, str(error).removeprefix(f"{recording.path}: ")))
            continue
        good.append((f"{prefix}_{recording.name}", Path(recording.path), properties, rows))
    report_problems(f"real={folder}", out / prefix, problems, len(recordings), skip_bad, log, "recordings")
    if not good:
        raise UserError(f"real={folder}: no recording with labels; expected audio files and labels of the same names")
    return good


def _rows(recording, labels, duration):
    """Contiguous label rows of a recording of `duration` seconds."""
    if labels is None:
        raise UserError(f"{recording.path}: no labels of that name")
    last = max((end for _, end, _ in labels.rows), default=0.0)
    if last > duration + OVERRUN:
        raise UserError(
            f"{recording.path}: its labels in {labels.path} run to {last:.2f} s, the audio ends at {duration:.2f} s"
        )
    return lay_out(labels, duration)


def turns_of(rows: Iterable[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Label rows (start, end, label) with non-speech of less than TURN_GAP between speech as speech."""
    found = list(rows)
    for index in range(1, len(found) - 1):
        start, end, label = found[index]
        around = {found[index - 1][2], found[index + 1][2]}
        if label == "NS" and end - start < TURN_GAP and around <= set(SPEECH_LABELS):
            found[index] = (start, end, "S")
    return found


def _write(out, split, rows, log, parts):
    """Manifest, references and copies of a set."""
    from lhotse import Recording

    copies = {name: out / "audio" / split / f"{name}.wav" for name, _, properties, _ in rows if is_copied(properties)}
    clear_split(out, split, keep=list(copies.values()))
    clear(out, [], f"turns/{split}")
    copied = {name: (path, copies[name]) for name, path, _, _ in rows if name in copies}
    make_copies(f"copies of real {split}", copied, log, parts)
    streams, seconds, spoken = [], 0.0, 0.0
    for name, path, properties, labels in rows:
        recording = Recording.from_file(copies.get(name, path).resolve(), recording_id=name)
        speech = union([(start, end) for start, end, label in labels if label in SPEECH_LABELS])
        write_rows(out / "reference" / split / f"{name}.txt", name, labels)
        write_rows(out / "turns" / split / f"{name}.txt", name, turns_of(labels))
        streams.append((recording.resample(RATE) if recording.sampling_rate != RATE else recording, speech, labels[-1][1]))
        seconds, spoken = seconds + properties["duration"], spoken + total(speech)
    write_split(out, split, streams)
    log.info("%s: %d real recordings, %.1f minutes, %.1f %% speech", split, len(rows), seconds / 60, 100 * spoken / seconds)
