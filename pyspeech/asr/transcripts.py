"""Transcripts of recordings as text, JSON, NIST's CTM, STM and TRN, or SubRip and WebVTT subtitles.

    text    a line for each segment; with nbest > 1 for each alternative: start (s), log probability, text
    json    one object in one line, see `_json`; of a stream on the screen, one for each segment
    ctm     `recording channel start duration word confidence`, times in seconds, a word a line
    stm     `recording channel unknown start end text`, a line for each segment
    trn     `text (recording)`
    srt     subtitles of one or two short lines, broken at pauses
    vtt     the same for web pages, as WebVTT

Times count from the start of the recording. `Transcript.save` writes a file, `render` gives its text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.errors import UserError
from pyspeech.files import atomic_write, format_of
from pyspeech.text.width import display_width

if TYPE_CHECKING:
    from pyspeech.asr.hypotheses import Word
    from pyspeech.asr.recognizer import Alternative, Recognition

LINE_WIDTH, LINES = 42, 2  # of a subtitle, as broadcasters have it
LONGEST, SHORTEST = 6.0, 1.0  # seconds that a subtitle is shown; it is shorter where the next one follows
PAUSE = 1.0  # seconds between words that always end a subtitle


@dataclass
class Transcript:
    """Transcript of a recording, or of one segment of a stream."""

    name: str
    segments: list[Recognition]  # utterances in order of time: text, language, words, nbest, start, seconds, ... of each
    duration: float  # seconds, with what is in no segment
    channel: int = 1  # of the recording, counted from 1

    @property
    def text(self) -> str:
        """Texts of the segments, joined by spaces; "" where nothing was said."""
        return " ".join(segment.text for segment in self.segments if segment.text)

    @property
    def words(self) -> list[Word]:
        """Words with `text`, `start` and `end` in seconds from the start of the recording, and `confidence`, 0 to 1."""
        return [word for segment in self.segments for word in segment.words]

    @property
    def nbest(self) -> list[list[Alternative]]:
        """N-best texts of each segment, best first: `text`, `score` (log probability), `confidence`."""
        return [segment.nbest for segment in self.segments]

    @property
    def confidence(self) -> float:
        """Mean over the time of the segments of their confidences, 0 to 1."""
        return self.mean(lambda segment: segment.confidence)

    @property
    def language(self) -> str | None:
        """Code of the language of most of the time; None where there is none."""
        heard = [segment for segment in self.segments if segment.text] or self.segments
        times = {}
        for segment in heard:
            times[segment.language] = times.get(segment.language, 0.0) + segment.seconds
        return max(times, key=times.__getitem__) if times else None

    def mean(self, value_of: Callable[[Recognition], float]) -> float:
        """Mean over the time of the segments of a value of each; 0 where they take no time."""
        seconds = sum(segment.seconds for segment in self.segments)
        return sum(value_of(segment) * segment.seconds for segment in self.segments) / max(seconds, 1e-9)

    def save(self, path: str | Path, format: str | None = None, nbest: int = 1) -> None:
        """Write the file that `pyspeech transcribe` writes for the recording, in UTF-8, whole or not at all.

        Args:
            path: File to write; its folder is made where it is missing.
            format: One of FORMATS; None takes the ending of `path`, such as .txt or .ctm.
            nbest: Alternatives of each segment, 1 or more, in text and json.

        Raises:
            UserError: for a format or an ending that is none of these, and for no alternative.
        """
        if nbest < 1:
            raise UserError(f"nbest={nbest}: expected 1 or more")
        format = format_of(path, FORMATS, format)
        with atomic_write(Path(path)) as stream:
            stream.write(render(format, self, nbest))


def render(format: str, transcript: Transcript, nbest: int = 1, first_subtitle: int = 1) -> str:
    """The text of a Transcript in a format of FORMATS, ending with a newline, or "" where there is nothing to write.

    nbest: alternatives of each segment, for text and json. first_subtitle: number of the first one, for srt and vtt; a
    header of vtt stands before number 1 alone, so that a stream may be rendered piece by piece.
    """
    if format == "srt":
        return _srt(transcript, first_subtitle)
    if format == "vtt":
        return _vtt(transcript, first_subtitle)
    if format in NIST:
        from pyspeech.audio.recordings import one_word  # numpy: --help answers at once

        return NIST[format](transcript, one_word(transcript.name))
    return (_json if format == "json" else _text)(transcript, nbest)


def check_alone(format: str, count: int) -> None:
    """Raise UserError where `count` recordings would follow each other in a format whose files are of one recording each."""
    if format in OF_ONE and count > 1:
        raise UserError(f"--format {format}: {count} recordings do not fit into one file; add -o DIR, for one of each")


def _text(transcript, nbest):
    if nbest == 1:
        return "".join(segment.text + "\n" for segment in transcript.segments if segment.text)
    return "".join(
        f"{segment.start:.2f}\t{item.score:.4f}\t{item.text}\n"
        for segment in transcript.segments
        for item in segment.nbest[:nbest]
    )


def _json(transcript, nbest):
    """The recording as a whole (means over time), then its segments with words and alternatives."""
    record = {
        "recording": transcript.name,
        "text": transcript.text,
        "language": transcript.language,
        "confidence": round(transcript.confidence, 4),
        "duration": round(transcript.duration, 3),
        "lid": _mean_posteriors(transcript),
        "t_avg": round(transcript.mean(lambda segment: segment.t_avg), 4),
        "segments": [_segment(segment, nbest) for segment in transcript.segments],
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _mean_posteriors(transcript):
    codes = transcript.segments[0].lid if transcript.segments else []
    return {code: round(transcript.mean(lambda segment: segment.lid[code]), 4) for code in codes}


def _segment(segment, nbest):
    return {
        "start": round(segment.start, 3),
        "end": round(segment.start + segment.seconds, 3),
        "text": segment.text,
        "language": segment.language,
        "confidence": round(segment.confidence, 4),
        "words": [word_record(word) for word in segment.words],
        "nbest": [
            {"text": item.text, "score": round(item.score, 4), "confidence": round(item.confidence, 4)}
            for item in segment.nbest[:nbest]
        ],
        "lid": {code: round(value, 4) for code, value in segment.lid.items()},
        "t_avg": round(segment.t_avg, 4),
    }


def word_record(word: Word, name: str = "word") -> dict[str, str | float]:
    """A Word as json has it, its text under `name`."""
    return {name: word.text, "start": round(word.start, 3), "end": round(word.end, 3), "confidence": round(word.confidence, 4)}


def _ctm(transcript, name):
    return "".join(
        f"{name} {transcript.channel} {word.start:.2f} {word.end - word.start:.2f} {word.text} {word.confidence:.4f}\n"
        for segment in transcript.segments
        for word in segment.words
    )


def _stm(transcript, name):
    return "".join(
        f"{name} {transcript.channel} unknown {segment.start:.2f} {segment.start + segment.seconds:.2f} {segment.text}\n"
        for segment in transcript.segments
        if segment.text
    )


def _trn(transcript, name):
    return f"{transcript.text} ({name})\n".lstrip()


def _srt(transcript, first):
    return "".join(
        f"{number}\n{_clock(start, ',')} --> {_clock(end, ',')}\n" + "\n".join(lines) + "\n\n"
        for number, (start, end, lines) in enumerate(_timed_lines(transcript), first)
    )


def _vtt(transcript, first):
    """WebVTT (W3C): a file without subtitles is its header alone."""
    cues = (
        f"{number}\n{_clock(start, '.')} --> {_clock(end, '.')}\n" + escape("\n".join(lines), quote=False) + "\n\n"
        for number, (start, end, lines) in enumerate(_timed_lines(transcript), first)
    )
    return ("WEBVTT\n\n" if first == 1 else "") + "".join(cues)


def _timed_lines(transcript):
    """(start, end, lines) of each subtitle; times in seconds."""
    subtitles = [(words, segment) for segment in transcript.segments for words in _subtitles(segment.words)]
    for number, (words, segment) in enumerate(subtitles):
        start, end = words[0].start, words[-1].end
        # A short one stays longer, until the next one or the end of what was heard.
        limit = segment.start + segment.seconds
        if number + 1 < len(subtitles):
            limit = min(limit, subtitles[number + 1][0][0].start)
        yield start, max(min(max(end, start + SHORTEST), limit), start + 0.001), _lines([word.text for word in words])


def _subtitles(words):
    """Words (of one segment) in groups that fit on the screen together: [[Word, ...], ...]."""
    groups = []
    for word in words:
        group = groups[-1] if groups else None
        if (
            group
            and word.start - group[-1].end < PAUSE
            and word.end - group[0].start <= LONGEST
            and len(_lines([item.text for item in group] + [word.text])) <= LINES
        ):
            group.append(word)
        else:
            groups.append([word])
    return groups


def _lines(texts):
    """Words as lines of LINE_WIDTH; a longer word has a line of its own."""
    lines = []
    for text in texts:
        if lines and display_width(lines[-1]) + 1 + display_width(text) <= LINE_WIDTH:
            lines[-1] += " " + text
        else:
            lines.append(text)
    return lines


def _clock(seconds, point):
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}{point}{rest % 1000:03d}"


# format: ending of its file
FORMATS = {"text": ".txt", "json": ".json", "ctm": ".ctm", "stm": ".stm", "trn": ".trn", "srt": ".srt", "vtt": ".vtt"}
OF_ONE = ("srt", "vtt", "textgrid")  # formats of transcripts and alignments whose files are of one recording
NIST = {"ctm": _ctm, "stm": _stm, "trn": _trn}  # names of recordings have no spaces there
