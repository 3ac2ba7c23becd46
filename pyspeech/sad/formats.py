"""Label files of speech activity detection: the two official formats of Fearless Steps, and what other tools read.

Official (NIST OpenSAD, as the Fearless Steps phase 2 scoring toolkit reads them), one `<recording>.txt` each,
tab-separated:

    reference    FS01_dev_001  0  0.0  6.25  NS  manual  X  X  X  X  X  X      12 columns; label S, NS, ... (below)
    hypothesis   X  X  X  SAD  X  0.00  6.35  non-speech  0.500000             9 columns; speech or non-speech

Both are contiguous: each line starts where the line before ends, a hypothesis at 0. The readers check every line and
name file, line and times. A reference may start late (that time is not scored).

Other outputs: RTTM, Kaldi `segments`, Audacity label track, JSON (one line), Praat TextGrid, CSV, lhotse supervisions
(JSON lines). `render` gives their text; pyspeech/sad/labels.py reads all of them.
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from pyspeech.audio.recordings import one_word
from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.sad.segments import clip, complement, union
from pyspeech.text.textgrid import textgrid

# Reference labels: RI is unintelligible speech; NT no transmission, RX button off, RS adjudicated as non-speech.
SPEECH_LABELS = ("S", "RI")
NONSPEECH_LABELS = ("NS", "NT", "RX", "RS")
UNSCORED_LABELS = ("nonScorable", "Mixed", "Uncertain")
# The columns up to the label are read, as by the official scorer; what follows (12 and 9 in all) is not used.
REFERENCE_COLUMNS, HYPOTHESIS_COLUMNS = 5, 8
REFERENCE, HYPOTHESIS = "reference label file", "hypothesis label file"
CSV_HEADER = "recording,start,end\n"


def read_reference(path: Path | str) -> list[tuple[float, float, str]]:
    """Read an official reference label file.

    Returns a list of (start, end, label): seconds as written, label as in the file. UserError for a file that is empty
    or not such a file, and for a gap, an overlap or a time that is no time, with file and line.
    """
    segments = reference_rows(_lines(path, REFERENCE))
    if not segments:
        raise UserError(f"{path}: the {REFERENCE} is empty; expected at least one line")
    return segments


def reference_rows(lines: Iterable[tuple[str, str]]) -> list[tuple[float, float, str]]:
    """Return what `read_reference` does for lines ("file, line 1", text) of such a file."""
    segments = []
    for where, line in lines:
        fields = _fields(where, line, REFERENCE_COLUMNS, REFERENCE)
        start, end, label = read_time(where, fields[2]), read_time(where, fields[3]), fields[4].strip()
        _check_order(where, start, end, segments[-1][1] if segments else None)
        if not label:
            raise UserError(f"{where}: the label (column 5) is empty; expected S or NS")
        segments.append((start, end, label))
    return segments


def read_hypothesis(path: Path | str) -> np.ndarray:
    """Read an official hypothesis label file.

    Returns the speech segments, float64 (n, 2) in seconds. An empty file means no speech. UserError for a gap, an
    overlap, a file that does not start at 0 or is no such file, with file, line and times.
    """
    return union([(start, end) for start, end, label in hypothesis_rows(_lines(path, HYPOTHESIS)) if label == "S"])


def hypothesis_rows(lines: Iterable[tuple[str, str]]) -> list[tuple[float, float, str]]:
    """Return (start, end, S or NS) of lines ("file, line 1", text) of an official hypothesis; as `read_hypothesis`."""
    rows, reached = [], 0.0
    for where, line in lines:
        fields = _fields(where, line, HYPOTHESIS_COLUMNS, HYPOTHESIS)
        start, end, label = read_time(where, fields[5]), read_time(where, fields[6]), fields[7].strip()
        _check_order(where, start, end, reached)
        if label not in ("speech", "non-speech", "nonspeech"):
            raise UserError(f"{where}: column 8 is '{label}'; expected speech or non-speech")
        rows.append((start, end, "S" if label == "speech" else "NS"))
        reached = end
    return rows


def _lines(path, what):
    """Yield ("path, line n", line) of a text file; blank lines are passed over."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file; expected a {what}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot read the {what}: {error.strerror}") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{path}, line {number}", line.rstrip("\r")


def _fields(where, line, columns, what):
    fields = line.split("\t")
    if len(fields) < columns:
        raise UserError(f"{where}: {len(fields)} tab-separated columns; a {what} has {columns} or more")
    return fields


def read_time(where: str, text: str | float) -> float:
    """Return a time as a file gives it, in seconds; UserError, which begins with `where`, for what is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UserError(f"{where}: '{text}' is not a time; expected seconds, 0 or more")
    return value


def _check_order(where, start, end, reached):
    """Times are compared as they are: the official scorer has no tolerance, and a real gap is a digit wide."""
    if end < start:
        raise UserError(f"{where}: the segment ends ({end:g} s) before it starts ({start:g} s)")
    if reached is not None and start > reached:
        raise UserError(
            f"{where}: gap from {_exact(reached)} to {_exact(start)} s; each segment must start where the "
            "last one ends" + (" (the first one at 0)" if reached == 0 else "")
        )
    if reached is not None and start < reached:
        raise UserError(f"{where}: overlap, starts at {_exact(start)} s but the segment before ends at {_exact(reached)} s")


def _exact(seconds):
    return repr(float(seconds))


def write_reference(path: Path | str, recording: str, speech: ArrayLike, duration: float) -> None:
    """Write an official reference label file: speech (n, 2) seconds, the rest of [0, duration] is NS; times to 1 ms.

    Replaces the file atomically. UserError where the recording has no length (a reference cannot be empty).
    """
    timeline = _timeline(speech, duration, decimals=3)
    if not timeline:
        raise UserError(f"{path}: recording '{recording}' has no length; a reference label file cannot be empty")
    with atomic_write(path) as stream:
        for start, end, is_speech in timeline:
            columns = [recording, "0", repr(start), repr(end), "S" if is_speech else "NS", "manual"] + ["X"] * 6
            stream.write("\t".join(columns) + "\n")


def write_hypothesis(path: Path | str, speech: ArrayLike, duration: float) -> None:
    """Write an official hypothesis label file: speech (n, 2) seconds, the rest of [0, duration] is non-speech.

    Times have two decimals, as the official ones; a border is rounded once, so that the file stays contiguous, and a
    segment that rounding leaves without length is dropped. Replaces the file atomically.
    """
    with atomic_write(path) as stream:
        stream.write(_fearless("", speech, duration))


def _timeline(speech, duration, decimals):
    """Return contiguous (start, end, is_speech) from 0 to `duration`, all times rounded to `decimals` digits."""
    duration = round(float(duration), decimals)
    speech = clip(union(speech).round(decimals), duration)
    parts = [(start, end, True) for start, end in speech.tolist()]
    parts += [(start, end, False) for start, end in complement(speech, duration).tolist()]
    return sorted(parts)


# Each of these returns the text of one recording. recording: its name; speech: (n, 2) seconds; duration: seconds.


def _fearless(recording, speech, duration):
    return "".join(
        f"X\tX\tX\tSAD\tX\t{start:.2f}\t{end:.2f}\t{'speech' if is_speech else 'non-speech'}\t0.500000\n"
        for start, end, is_speech in _timeline(speech, duration, decimals=2)
    )


def _rttm(recording, speech, duration, channel=0):
    start_of_line = f"SPEAKER {one_word(recording)} {channel + 1}"  # RTTM counts channels from 1
    return "".join(
        f"{start_of_line} {start:.3f} {end - start:.3f} <NA> <NA> speech <NA> <NA>\n" for start, end in _pairs(speech, duration)
    )


def _kaldi_segments(recording, speech, duration):
    # The name of a segment carries its times in milliseconds, zero-padded: the file is sorted, as Kaldi wants it.
    name = one_word(recording)
    return "".join(
        f"{name}-{round(start * 1000):09d}-{round(end * 1000):09d} {name} {start:.3f} {end:.3f}\n"
        for start, end in _pairs(speech, duration)
    )


def _audacity(recording, speech, duration):
    return "".join(f"{start:.3f}\t{end:.3f}\tspeech\n" for start, end in _pairs(speech, duration))


def _json(recording, speech, duration, frame_shift=None, scores=None, frame_offset=0.0):
    record = {"recording": recording, "duration": round(float(duration), 3), "speech": _pairs(speech, duration)}
    if scores is not None:
        scores = [round(float(score), 4) for score in scores]
        record.update(frame_shift=frame_shift, frame_offset=frame_offset, scores=scores)
    return json.dumps(record, ensure_ascii=False) + "\n"


def _csv(recording, speech, duration):
    quoted = '"' + recording.replace('"', '""') + '"' if re.search(r'[",\n\r]', recording) else recording
    rows = (f"{quoted},{start:.3f},{end:.3f}\n" for start, end in _pairs(speech, duration))
    return CSV_HEADER + "".join(rows)


def _textgrid(recording, speech, duration):
    intervals = _timeline(speech, duration, decimals=3)
    texts = [(start, end, "speech" if is_speech else "") for start, end, is_speech in intervals]
    return textgrid({"speech": texts}, intervals[-1][1] if intervals else 0.0)


def _lhotse(recording, speech, duration, channel=0):
    name = f"{recording}-{channel}" if channel else recording
    return "".join(
        json.dumps(
            {
                "id": f"{name}-{number:05d}",
                "recording_id": recording,
                "start": start,
                "duration": round(end - start, 3),
                "channel": channel,
            },
            ensure_ascii=False,
        )
        + "\n"
        for number, (start, end) in enumerate(_pairs(speech, duration))
    )


def _pairs(speech, duration):
    """Speech segments as lists [start, end], rounded to 1 ms and cut to the recording."""
    return [[start, end] for start, end, is_speech in _timeline(speech, duration, decimals=3) if is_speech]


# format: (the text of one recording, ending of its file)
FORMATS = {
    "rttm": (_rttm, ".rttm"),
    "fearless": (_fearless, ".txt"),
    "segments": (_kaldi_segments, ".segments"),
    "audacity": (_audacity, ".labels.txt"),
    "json": (_json, ".json"),
    "textgrid": (_textgrid, ".TextGrid"),
    "csv": (_csv, ".csv"),
    "lhotse": (_lhotse, ".jsonl"),
}
WITH_CHANNEL = ("rttm", "lhotse")
WITH_SPACES_BETWEEN = ("rttm", "segments")  # names of recordings have none there


def render(
    format: str,
    recording: str,
    speech: ArrayLike,
    duration: float,
    frame_shift: float | None = None,
    scores: Sequence[float] | np.ndarray | None = None,
    channel: int = 0,
    frame_offset: float = 0.0,
) -> str:
    """Return the text of one recording's speech segments in a format of FORMATS.

    recording: name (str). speech: (n, 2) seconds. duration: seconds. frame_shift, frame_offset (seconds) and scores
    (T,) are kept by "json" alone; giving scores with another format is a ValueError. channel: counted from 0, for the
    formats that tell it (rttm, lhotse).
    """
    to_text, _ = FORMATS[format]
    if scores is None:
        return to_text(recording, speech, duration, **({"channel": channel} if format in WITH_CHANNEL else {}))
    if format != "json":
        raise ValueError(f"format {format} has no place for frame scores")
    return _json(recording, speech, duration, frame_shift, scores, frame_offset)
