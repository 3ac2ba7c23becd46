"""A text with the times of its words and symbols, as CTM, Praat TextGrid, JSON or subtitles.

ctm         `recording channel start duration word confidence`, times in seconds, a word a line
textgrid    Praat: the tiers words and symbols
json        one object in one line, see `_json`
srt, vtt    subtitles, as `pyspeech.asr.transcripts` has them
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.asr.transcripts import Transcript, render as render_transcript, word_record
from pyspeech.files import atomic_write, format_of
from pyspeech.text.textgrid import textgrid

if TYPE_CHECKING:
    from pyspeech.asr.hypotheses import Word

# format: ending of its file
FORMATS = {"ctm": ".ctm", "textgrid": ".TextGrid", "json": ".json", "srt": ".srt", "vtt": ".vtt"}


@dataclass
class Alignment:
    """A text that is said in a recording, with times.

    Attributes:
        name: Of the recording.
        text: As the model's normaliser writes it.
        language: Code of the language whose symbols it was aligned with; None where they fit several.
        words: Words with `text`, `start` and `end` in seconds, and `confidence`, 0 to 1.
        symbols: The symbols of the model, likewise.
        score: Natural log of the probability of this alignment.
        confidence: Geometric mean of the symbols' probabilities, 0 to 1; 0 for an empty text.
        duration: Seconds of the recording.
        channel: Of the recording, counted from 1.
    """

    name: str
    text: str
    language: str | None
    words: list[Word]
    symbols: list[Word]
    score: float
    confidence: float
    duration: float
    channel: int = 1

    def save(self, path: str | Path, format: str | None = None) -> None:
        """Write a file in UTF-8, whole or not at all.

        Args:
            path: File to write; its folder is made where it is missing.
            format: One of FORMATS; None takes the ending of `path`, such as .ctm or .TextGrid.

        Raises:
            UserError: for a format or an ending that is none of these.
        """
        format = format_of(path, FORMATS, format)
        with atomic_write(Path(path)) as stream:
            stream.write(render(format, self))


def render(format: str, alignment: Alignment, symbols: bool = False) -> str:
    """The text of an Alignment in a format of FORMATS; symbols: instead of words, in a ctm."""
    if format == "json":
        return _json(alignment)
    if format == "textgrid":
        return _textgrid(alignment)
    words = alignment.symbols if symbols and format == "ctm" else alignment.words
    return render_transcript(format, _transcript(alignment, words))


def _json(alignment):
    record = {
        "recording": alignment.name,
        "text": alignment.text,
        "language": alignment.language,
        "score": round(alignment.score, 4),
        "confidence": round(alignment.confidence, 4),
        "duration": round(alignment.duration, 3),
        "words": [word_record(word) for word in alignment.words],
        "symbols": [word_record(symbol, "symbol") for symbol in alignment.symbols],
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _textgrid(alignment):
    tiers = {"words": alignment.words, "symbols": alignment.symbols}
    rounded = {name: [(round(item.start, 4), round(item.end, 4), item.text) for item in items] for name, items in tiers.items()}
    return textgrid(rounded, round(alignment.duration, 4))


def _transcript(alignment, words):
    """The Transcript of one segment, for the writers of `pyspeech.asr.transcripts`."""
    from pyspeech.asr.recognizer import Recognition  # torch: --help answers at once

    text, seconds = alignment.text, alignment.duration
    segment = Recognition(text, alignment.language or "", alignment.confidence, words, [], 0.0, seconds, 1.0)
    return Transcript(alignment.name, [segment], seconds, alignment.channel)
