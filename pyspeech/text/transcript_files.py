"""Transcripts of utterances or recordings from files of every format that recognisers and scorers write.

    text        Kaldi: `utterance-id words...`; where half of the lines or more have a tab, ids end there and may have blanks
                (as utils/transcribe.py prints)
    trn         NIST: `words... (utterance-id)`
    stm         NIST: `recording channel speaker start end [<labels>] words...`
    ctm         NIST: `recording channel start duration word [confidence]`; `<ALT_BEGIN>`, `<ALT>`, `<ALT_END>` for words
    json        lines of utils/transcribe.py --format json; with --stream, several of a recording
    nemo        lines of JSON with audio_filepath and text, as NeMo's manifests; ids are the files' names without their endings
    manifest    lhotse supervisions or cuts (.jsonl, .jsonl.gz, .json, .yaml), ids of the supervisions
    folder      what utils/transcribe.py -o writes: a .txt, .json, .ctm, .trn or .stm for each recording

Endings decide (a last .filt is none), and without a known one the content. Formats are described in the documentation of NIST's
SCTK (infmts).
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from pyspeech.errors import UserError

MANIFESTS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".yaml", ".yaml.gz")
WRITTEN = (".txt", ".json", ".ctm", ".trn", ".stm")  # by transcribe -o, one for each recording
NOT_SCORED = ("ignore_time_segment_in_scoring", "inter_segment_gap")
_TRN = re.compile(r"(?:^|.*\s)\(((?:[^()\s]|\([^()\s]*\))+)\)\s*")  # ids may have parentheses in pairs
_NBEST = re.compile(r"(\d+\.\d+)\t-?(?:\d+\.\d+|inf)\t(.*)")  # a line of transcribe --nbest: start, score, words
_ALTERNATIVES = {"<ALT_BEGIN>": "{", "<ALT>": "/", "<ALT_END>": "}"}  # marks of a ctm, as trn and stm have them


@dataclass(frozen=True)
class Said:
    """Transcript of an utterance: its text, and language and speaker if known."""

    text: str
    language: str | None = None
    speaker: str | None = None


@dataclass(frozen=True)
class Segment:
    """A line of an stm: times in seconds."""

    recording: str
    channel: str
    start: float
    end: float
    said: Said

    @property
    def id(self) -> str:
        return f"{self.recording}-{self.channel}-{self.start:.2f}-{self.end:.2f}"

    @property
    def scored(self) -> bool:
        return self.said.text.lower() not in NOT_SCORED


@dataclass
class Transcripts:
    """A file of transcripts.

    Attributes:
        path: The file.
        texts: {utterance or recording: Said}.
        segments: Those of an stm, in order; `texts` then has theirs that are scored.
        words: {recording: [(channel or None, middle in seconds, word), ...]} of a ctm or of our json, in order of time. A
            word may be alternatives, with NIST's marks.
        marked: Whether texts may have NIST's marks: { a / b / @ } are alternatives, (a) is optional.
    """

    path: Path
    texts: dict[str, Said]
    segments: list[Segment] = field(default_factory=list)
    words: dict[str, list[tuple[str | None, float, str]]] = field(default_factory=dict)
    marked: bool = False


def read_transcripts(path: Path | str) -> Transcripts:
    """Read a file or folder of any of the formats above.

    UserError for a file that is missing, damaged or empty, and for an utterance that is there twice.
    """
    path = Path(path)
    found = _read_folder(path) if path.is_dir() else _read_file(path)
    if not found.texts:
        raise UserError(f"{path}: no utterances; expected lines `utterance-id words...`, trn, stm, ctm or supervisions")
    return found


def _read_file(path):
    name = path.name.lower().removesuffix(".filt")  # of Kaldi's scoring scripts
    if name.endswith(MANIFESTS):
        read = None if name.endswith(".gz") or not path.is_file() else _reader_of_json(_lines(path))
        return read(path, _lines(path)) if read else read_manifest(path)
    lines = list(_lines(path))
    for ending, read in READERS.items():
        if name.endswith(ending):
            return read(path, lines)
    if read := _reader_of_json(lines):
        return read(path, lines)
    looks = next((ending for ending, looks in LOOKS.items() if lines and all(map(looks, _plain(lines)))), None)
    if looks and (looks != ".trn" or _all_differ(lines)):
        return READERS[looks](path, lines)
    return Transcripts(path, {name: Said(text) for name, text in _columns(path, lines).items()})


def _read_folder(folder):
    """The files of a folder, one for each recording; their own names where the format has none."""
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in WRITTEN and not file.name.startswith("."))
    endings = sorted({file.suffix.lower() for file in files})
    if len(endings) != 1:
        found = f"{' and '.join(endings)} files" if endings else "no transcripts"
        raise UserError(f"{folder}: {found}; expected one kind of {', '.join(WRITTEN)}, one for each recording")
    result = Transcripts(folder, {})
    for file in files:
        if endings[0] == ".txt":
            read = Transcripts(file, {file.stem: Said(" ".join(_best_readings([line for _, line in _lines(file)])))})
        else:
            read = _read_file(file)
        read.texts = read.texts or {file.stem: Said("")}
        for mine, new in ((result.texts, read.texts), (result.words, read.words)):
            for name, value in new.items():
                _add(mine, file, name, value)
        result.segments += read.segments
        result.marked |= read.marked
    return result


def _best_readings(lines):
    """Texts of the lines of a file of transcribe -o; of alternatives (--nbest) the first of each segment, which is the best."""
    best = {}
    for line in lines:
        match = _NBEST.fullmatch(line)
        if match is None:
            return [line.strip() for line in lines]
        best.setdefault(match[1], match[2])
    return list(best.values())


def read_columns(path: Path | str) -> dict[str, str]:
    """Return {name: the rest} of the lines of a UTF-8 text file, as Kaldi's text, utt2spk and utt2lang are.

    The name ends at the first tab where half of the lines or more have one, else at the first blank.
    """
    return _columns(path, _lines(path))


def _lines(path):
    """Yield ("path:1", line) of a text file in UTF-8, without blank lines."""
    try:
        with open(path, encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield f"{path}:{number}", line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 ({error.reason}); expected a text file in UTF-8 or a lhotse manifest "
            f"named {', '.join(MANIFESTS)}"
        ) from error


def _plain(lines):
    """The lines that are no comments of NIST's formats."""
    return [line for _, line in lines if not line.startswith(";;")]


def _columns(path, lines):
    found, lines = {}, [(where, line.strip()) for where, line in lines]
    names = [line.partition("\t")[0].strip() for _, line in lines if "\t" in line]
    tabs = 2 * len(names) >= len(lines)
    blanks = tabs and any(len(name.split()) > 1 for name in names)  # in names, so that a line without a tab is one
    hint = "; if it is of a stream or --nbest, score what transcribe writes with -o or --format json" if tabs else ""
    for where, line in lines:
        parts = [part.strip() for part in line.split("\t" if tabs and ("\t" in line or blanks) else None, maxsplit=1)]
        _add(found, where, parts[0], parts[1] if len(parts) == 2 else "", hint)
    return found


def _add(found, where, name, value, hint=""):
    if name in found:
        raise UserError(f"{where}: {name} is there twice; expected each utterance once{hint}")
    found[name] = value


# What a line of a format looks like; times have a decimal point, words that are digits have none.


def _looks_like_trn(line):
    return _TRN.fullmatch(line) is not None


def _all_differ(lines):
    names = [_TRN.fullmatch(line)[1] for line in _plain(lines)]  # pyright: ignore[reportOptionalSubscript]
    return len(set(names)) == len(names)


def _looks_like_stm(line):
    fields = line.split()
    return len(fields) >= 5 and _is_time(fields[3]) and _is_time(fields[4])


def _looks_like_ctm(line):
    fields = line.split()
    timed = len(fields) > 3 and _is_time(fields[2]) and _is_time(fields[3])
    return len(fields) in (5, 6) and (timed or fields[4] in _ALTERNATIVES) and not _looks_like_stm(line)


def _is_time(text):
    return re.fullmatch(r"\d+\.\d+", text) is not None


def _reader_of_json(lines):
    """What reads the lines, if the first is JSON of utils/transcribe.py or of NeMo; else None."""
    first = next(iter(lines), ("", ""))[1]
    try:
        keys = json.loads(first).keys() if first.lstrip().startswith("{") else set()
    except ValueError:
        return None
    if {"recording", "segments"} <= keys:
        return _read_json
    return _read_nemo if "audio_filepath" in keys else None


# Each of these reads [("path:1", line), ...].


def _read_trn(path, lines):
    found = {}
    for where, line in lines:
        if line.startswith(";;"):
            continue
        match = _TRN.fullmatch(line)
        if match is None:
            raise UserError(f"{where}: does not end with (utterance-id); expected trn")
        _add(found, where, match[1], Said(line[: match.start(1) - 1].strip()))
    return Transcripts(path, found, marked=True)


def _read_stm(path, lines):
    segments = []
    for where, line in lines:
        if line.startswith(";;"):
            continue
        fields = line.split(maxsplit=5)
        if len(fields) < 5:
            raise UserError(f"{where}: {len(fields)} columns; expected stm: recording channel speaker start end words...")
        start, end = (_seconds(where, fields[place]) for place in (3, 4))
        if end < start:
            raise UserError(f"{where}: its end, {end:g} s, is before its start, {start:g} s")
        text = re.sub(r"^<[^>]*>\s*", "", fields[5]) if len(fields) == 6 else ""
        segments.append(Segment(fields[0], _channel(fields[1]), start, end, Said(text.strip(), speaker=fields[2])))
    segments.sort(key=lambda segment: (segment.recording, segment.channel, segment.start))
    found = {}
    for segment in segments:
        if segment.scored:
            _add(found, path, segment.id, segment.said)
    return Transcripts(path, found, segments, marked=True)


def _read_ctm(path, lines):
    words, begun = defaultdict(list), {}  # begun: {recording: what its alternatives are so far}
    marked = False
    for where, line in lines:
        if line.startswith(";;"):
            continue
        fields = line.split()
        if len(fields) < 5:
            raise UserError(f"{where}: {len(fields)} columns; expected ctm: recording channel start duration word")
        name, channel, word = fields[0], _channel(fields[1]), fields[4]
        if mark := _ALTERNATIVES.get(word):
            if (mark == "{") == (name in begun):
                raise UserError(f"{where}: {word} out of order; expected <ALT_BEGIN>, <ALT> and <ALT_END> in turn")
            marked, timed = True, (channel, 0.0, mark)
        else:
            start, duration = (_seconds(where, fields[place]) for place in (2, 3))
            if duration < 0:
                raise UserError(f"{where}: a duration of {duration:g} s; expected 0 or more")
            timed = (channel, start + duration / 2, word)
        if mark or name in begun:
            begun.setdefault(name, []).append(timed)
        else:
            words[name].append(timed)
        if mark == "}":
            words[name].append(_as_one(begun.pop(name)))
    if begun:
        raise UserError(f"{path}: {next(iter(begun))}: <ALT_BEGIN> without <ALT_END>")
    words = {name: sorted(said, key=lambda word: word[1]) for name, said in words.items()}
    texts = {name: Said(" ".join(word for _, _, word in said)) for name, said in words.items()}
    return Transcripts(path, texts, words=words, marked=marked)


def _as_one(alternatives):
    """Words and marks of alternatives as one word, `{ a / b c }`, at the time of the first."""
    first = next((timed for timed in alternatives if timed[2] not in _ALTERNATIVES.values()), alternatives[0])
    return first[0], first[1], " ".join(word for *_, word in alternatives)


def _read_json(path, lines):
    found, words, ends = {}, defaultdict(list), {}
    for where, line in lines:
        try:
            entry = json.loads(line)
            name, segments, said = entry["recording"], entry["segments"], Said(entry["text"], entry["language"])
            heard = [word for segment in segments for word in segment["words"]]
            words[name] += [(None, (word["start"] + word["end"]) / 2, word["word"]) for word in heard]
            start, end = _span(entry)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{where}: not a line of transcribe --format json ({type(error).__name__})") from None
        if name in found and ends[name] <= start:
            found[name] = Said(f"{found[name].text} {said.text}".strip(), _common(found[name].language, said.language))
        else:
            _add(found, where, name, said)
        ends[name] = end
    return Transcripts(path, found, words=dict(words))


def _read_nemo(path, lines):
    found = {}
    for where, line in lines:
        try:
            entry = json.loads(line)
            name, said = Path(entry["audio_filepath"]).stem, Said(entry["text"].strip(), entry.get("lang"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{where}: expected JSON with audio_filepath and text ({type(error).__name__})") from None
        _add(found, where, name, said)
    return Transcripts(path, found)


def _span(entry):
    """(start, end) of a line of a stream, which is one segment of a recording; else (-inf, inf): nothing joins it."""
    if len(entry["segments"]) == 1 and "end" in entry["segments"][0]:
        start, end = entry["segments"][0]["start"], entry["segments"][0]["end"]
        if abs(end - start - entry["duration"]) < 0.002:  # both are rounded
            return start, end
    return -math.inf, math.inf


def _common(one, other):
    return one if one == other else None


def _seconds(where, text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise UserError(f"{where}: '{text}' is not a time; expected seconds")
    return seconds


def _channel(text):
    """1 and A are the same."""
    return chr(ord("A") + int(text) - 1) if re.fullmatch(r"[1-9]", text) else text.upper()


READERS = {".trn": _read_trn, ".stm": _read_stm, ".ctm": _read_ctm}
LOOKS = {".stm": _looks_like_stm, ".ctm": _looks_like_ctm, ".trn": _looks_like_trn}


def read_manifest(path: Path | str) -> Transcripts:
    """Read transcripts from a lhotse manifest of supervisions or cuts; see `read_transcripts`."""
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; expected a Kaldi text file or a lhotse manifest")
    from lhotse.supervision import SupervisionSegment

    found = {}
    for item in _manifest_items(path):
        for supervision in [item] if isinstance(item, SupervisionSegment) else getattr(item, "supervisions", [None]):
            if supervision is None:
                raise UserError(f"{path}: a manifest of {type(item).__name__}; expected supervisions or cuts")
            if supervision.text is None:
                raise UserError(f'{path}: supervision {supervision.id} has no text; expected "" where nothing was said')
            _add(found, path, supervision.id, Said(supervision.text, supervision.language, supervision.speaker))
    return Transcripts(Path(path), found)


def _manifest_items(path):
    """Yield what a lhotse manifest holds. lhotse has an exception of its own for each way in which a file is broken."""
    from lhotse import load_manifest

    try:
        yield from load_manifest(path)
    except Exception as error:
        raise UserError(
            f"{path}: not a whole lhotse manifest ({type(error).__name__}: {str(error).splitlines()[0]}); write it again"
        ) from error
