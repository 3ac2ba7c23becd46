"""Find the times of the words and symbols of a given text in a recording (forced alignment).

INPUT is an audio file, a folder (searched recursively), a Kaldi table (*.scp), a lhotse manifest of recordings or cuts
(*.jsonl, *.jsonl.gz), or "-": standard input. The times are those of the most probable path through a trained
transducer. It puts a symbol out when it has heard it, so times are a little later than the sounds.

examples:
  utils/align.py call.wav --say "नमस्ते दुनिया" --model exp/mini/models/multi_softmax_lid
  utils/align.py recordings/ --text text --model DIR --format textgrid -o aligned
  utils/align.py call.wav --text call.trn --model DIR --format ctm --symbols
"""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import replace
from pathlib import Path

from pyspeech.asr.aligned import FORMATS, render
from pyspeech.asr.config import KIND, language_among
from pyspeech.asr.transcripts import check_alone
from pyspeech.commands.arguments import add_device, add_inputs, add_transducer, channel_of, tool_parser
from pyspeech.commands.terminal import process_each, set_up_messages, shown_name, some, speed
from pyspeech.errors import UserError
from pyspeech.model_file import find_model

FASTEST = 30  # symbols a second, more than anybody says


def parser():
    parser = tool_parser(__doc__)
    add_inputs(parser)
    add_transducer(parser)
    text = parser.add_mutually_exclusive_group(required=True)
    text.add_argument("--say", metavar="TEXT", help="the text of a single recording")
    text.add_argument(
        "--text",
        metavar="FILE",
        help="texts by name of recording: Kaldi text, trn, stm, json or folder, as utils/score_wer.py reads",
    )
    parser.add_argument(
        "--language",
        metavar="CODE",
        default="auto",
        help="hi-IN or hi; auto (default): the one that fits the text and the audio",
    )
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        default="ctm",
        help="ctm (default), textgrid (words and symbols, for Praat), json (both), srt or vtt (subtitles)",
    )
    parser.add_argument("--symbols", action="store_true", help="ctm: a line for each symbol instead of each word")
    parser.add_argument("-o", "--output", metavar="DIR", help="write one file per recording into DIR")
    add_device(parser)
    return parser


def main(arguments=None):
    """Returns the exit status: 0, or 1 where a recording could not be aligned."""
    options = parser().parse_intermixed_args(arguments)
    if options.symbols and options.format != "ctm":
        raise UserError(f"--symbols: is for --format ctm; textgrid and json have words and symbols, {options.format} is given")
    status = set_up_messages()
    from pyspeech.audio.recordings import check_output, check_words, find_recordings

    recordings = find_recordings(options.inputs)
    if options.format == "ctm":
        check_words(recordings, options.format)
    if options.output:
        check_output(options.output, recordings)
    else:
        check_alone(options.format, len(recordings))
    work = Work(options, status, *read_texts(options, recordings))
    return process_each(recordings, work.process, status, "aligned", work.summary)


def read_texts(options, recordings):
    """{name of a recording: its text}, and whether braces hold alternatives; UserError where none is of these recordings."""
    names = [shown_name(recording) for recording in recordings]
    if options.say is not None:
        if not options.say.strip():
            raise UserError("--say: no text; expected what is said in the recording")
        if len(recordings) > 1:
            raise UserError(f"--say: is the text of one recording, not of {len(recordings)}; give a file of texts as --text")
        return {names[0]: options.say}, False
    from pyspeech.text.matching import matched
    from pyspeech.text.transcript_files import Said, Transcripts, read_transcripts

    wanted = Transcripts(Path(), {name: Said("") for name in names})
    given = read_transcripts(options.text)
    given = replace(given, segments=[segment for segment in given.segments if segment.scored])  # the others have no text
    found = {name: said.text for name, said in matched(wanted, given)[1].items()}
    if found.keys().isdisjoint(names):
        raise UserError(f"{options.text}: no text of {some(names)}; has {some(list(found)) or 'no text at all'}")
    more = len(found.keys() - set(names))
    if more:
        logging.warning("%s: texts of no recording given: %d", options.text, more)
    return found, given.marked


class Work:
    """Recordings to aligned texts, and what the summary says."""

    def __init__(self, options, status, texts, marked):
        folder = find_model(options.model, KIND)
        from pyspeech.asr.api import load_bundle

        self.options, self.status, self.texts, self.marked = options, status, texts, marked
        self.bundle = load_bundle(folder, options.device)
        languages = self.bundle.model.languages
        self.language = None if options.language == "auto" else language_among(options.language, languages)
        self.audio = self.computing = 0.0  # seconds
        self.words = 0

    def process(self, recording, shown):
        name = shown_name(recording)
        if name not in self.texts:
            raise UserError(f"{name}: no text in {self.options.text}")
        if self.marked and "{" in self.texts[name].split():
            raise UserError(
                f"{self.options.text}: {name}: has alternatives in braces; expected what is said: leave one of them alone"
            )
        alignment = self.align(recording, name)
        alignment.channel = (channel_of(recording, self.options) or 0) + 1
        text = render(self.options.format, alignment, self.options.symbols)
        self.status.clear()
        if self.options.output:
            from pyspeech.audio.recordings import file_stem
            from pyspeech.files import atomic_write

            with atomic_write(Path(self.options.output, file_stem(recording) + FORMATS[self.options.format])) as stream:
                stream.write(text)
        else:
            sys.stdout.write(text)
            sys.stdout.flush()

    def align(self, recording, name):
        import numpy as np

        from pyspeech.asr.alignment import align
        from pyspeech.audio.recordings import stream_recording

        blocks = list(stream_recording(recording, self.bundle.fbank.sampling_rate, self.options.channel))
        samples = np.concatenate([np.zeros(0, np.float32), *blocks])
        begin = time.perf_counter()
        alignment = align(self.bundle, samples, self.texts[name], self.language, name)
        self.computing += time.perf_counter() - begin
        self.audio += alignment.duration
        self.words += len(alignment.words)
        if len(alignment.symbols) > FASTEST * max(alignment.duration, 1.0):
            count = f"{len(alignment.symbols)} symbols in {alignment.duration:.2f} s of audio"
            logging.warning("%s: %s: is the text that of this recording?", name, count)
        return alignment

    def summary(self):
        return f"{self.words} word{'s' * (self.words != 1)} in {self.audio:.2f} s of audio; {speed(self.audio, self.computing)}"
