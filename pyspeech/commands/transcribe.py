"""Transcribe speech with a trained transducer.

INPUT is an audio file, a folder (searched recursively), a Kaldi table (*.scp), a lhotse manifest of recordings or
cuts (*.jsonl, *.jsonl.gz), or "-": standard input. Any format, sampling rate and length; --raw is for samples without a
header. The text goes to standard output, or with -o into one file per recording; messages and a summary go to standard error.

Recordings are cut into segments at pauses, and what holds no speech is left out, as the bundled speech detector finds it;
--no-vad recognises all audio, and recordings of up to 30 s as a whole. --stream has the detector for streams in front, and text
comes 0.3 s later; with --no-vad it cuts where the model hears nothing.

examples:
  utils/transcribe.py call.wav --model exp/mini/models/multi_softmax_lid
  utils/transcribe.py recordings/ --model DIR --language hi-IN --format srt -o subtitles
  utils/transcribe.py call.wav --model DIR --hotwords names.txt --lm hi-IN=hi.arpa
  arecord -f S16_LE -r 16000 -c 1 -t wav - | utils/transcribe.py - --model DIR --stream
  parec --format=s16le --rate=16000 --channels=1 | utils/transcribe.py - --model DIR --stream --raw
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from pathlib import Path

from pyspeech.asr.config import KIND, STOPPING_RULES, WHOLE, EarlyStopping, Endpointing, SearchConfig, language_among
from pyspeech.asr.transcripts import FORMATS, NIST, OF_ONE, Transcript, check_alone, render
from pyspeech.commands.arguments import (
    add_device,
    add_raw,
    add_transducer,
    channel_of,
    length,
    number,
    number_or_inf,
    raw_format,
    tool_parser,
    whole_number,
)
from pyspeech.commands.context import add_context, check_context, context_of
from pyspeech.commands.terminal import clock, process_all, say_errors, set_up_messages, shown_name, speed, stop_at_interrupt
from pyspeech.errors import UserError
from pyspeech.model_file import find_model

BATCH = 16  # short recordings that are recognised together
LIVE_BLOCK, FILE_BLOCK = 0.3, 10.0  # seconds read at once


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("inputs", metavar="INPUT", nargs="+", help="audio file, folder, *.scp, *.jsonl, *.jsonl.gz, -")
    add_transducer(parser)
    parser.add_argument(
        "--language",
        metavar="CODE",
        default="auto",
        help="hi-IN or hi; auto (default): by language identification, or by script if the model has one vocabulary for all",
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="recognise while audio arrives; print each segment as soon as it ends, and partial results on a terminal",
    )
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        default="text",
        help="text (default), json, ctm (words with times), stm (segments), trn, srt or vtt (subtitles)",
    )
    parser.add_argument(
        "--nbest",
        metavar="N",
        type=whole_number,
        default=1,
        help="give the N best texts of each segment, with start and log probability (text and json; default: 1)",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write one file per recording into DIR")
    parser.add_argument("--channel", metavar="N", type=int, help="use channel N, counted from 0 (default: mean of all)")
    add_raw(parser)
    add_device(parser)
    parser.add_argument(
        "--beam",
        metavar="N",
        type=whole_number,
        help="hypotheses kept; 1 is fastest (default, here and in the next three: as the recipe decoded; --nbest if more)",
    )
    parser.add_argument("--max-symbols", metavar="N", type=whole_number, help="symbols that one encoder frame may give")
    parser.add_argument(
        "--prune",
        metavar="X",
        type=number_or_inf,
        help="drop hypotheses whose log probability is X below the best one's; inf: none",
    )
    parser.add_argument(
        "--symbol-bonus",
        metavar="X",
        type=number,
        help="added to the log probability for each symbol, against deletions; --lm adds to these",
    )
    parser.add_argument(
        "--int8", action="store_true", help="compute with 8-bit integers on the CPU: faster, slightly less accurate"
    )
    parser.add_argument(
        "--min-silence",
        metavar="S",
        type=length,
        default=Endpointing.silence_after,
        help=f"seconds of pause that end a segment (default: {Endpointing.silence_after})",
    )
    parser.add_argument(
        "--no-vad", action="store_true", help="recognise all audio, not only what the bundled speech detector finds"
    )
    parser.add_argument(
        "--tau",
        metavar="N",
        type=number_or_inf,
        help="early stopping: after N encoder frames (30 ms each, 60 ms in the profiles mini and quick), switch off "
        "the decoders of unlikely languages (default with --threshold: 0)",
    )
    parser.add_argument(
        "--threshold",
        metavar="X",
        type=number_or_inf,
        help="early stopping: unlikely languages score more than X below the best (default with --tau: 0)",
    )
    parser.add_argument(
        "--rule", choices=STOPPING_RULES, help=f"early stopping: score of a language (default: {EarlyStopping.rule})"
    )
    add_context(parser)
    return parser


def main(arguments=None):
    """Returns the exit status: 0, or 1 where a recording could not be transcribed."""
    options = parser().parse_intermixed_args(arguments)
    check_options(options)
    status = set_up_messages()
    from pyspeech.audio.recordings import check_output, check_words, find_recordings

    recordings = find_recordings(options.inputs)
    if options.format in NIST:
        check_words(recordings, options.format)
    if options.output:
        check_output(options.output, recordings)
    else:
        check_alone(options.format, len(recordings))
    work = Work(load_recognizer(options), options, status, recordings)
    return process_all(len(recordings), work.process, status, "transcribed", work.summary)


def check_options(options):
    if options.stream and options.format == "trn" and not options.output:
        raise UserError("--stream: --format trn needs the whole recording; use -o DIR or another format")
    if options.nbest > 1 and options.format not in ("text", "json"):
        raise UserError(f"--nbest {options.nbest}: --format {options.format} has no place for it; use text or json")
    if options.beam and options.beam < options.nbest:
        raise UserError(
            f"--beam {options.beam}: a search that keeps {options.beam} hypotheses cannot give the "
            f"{options.nbest} best; expected at least {options.nbest}"
        )
    if options.int8 and options.device == "cuda":
        raise UserError("--int8: computes on the CPU; leave out one of --int8 and --device cuda")
    search_of(options, SearchConfig()).check()
    check_context(options)
    raw_format(options)
    if options.rule and options.tau is None and options.threshold is None:
        raise UserError(f"--rule {options.rule}: nothing is stopped early without --tau or --threshold; give one of them")
    if "-" in options.inputs and (sys.stdin is None or sys.stdin.isatty()):
        raise UserError("-: no audio on standard input; pipe audio into this command, as --help shows")


def search_of(options, search):
    """The SearchConfig `search` of a model with what the command line says otherwise."""
    beam = options.beam or max(search.beam, options.nbest)
    return search.changed(beam=beam, max_symbols=options.max_symbols, prune=options.prune, symbol_bonus=options.symbol_bonus)


def load_recognizer(options):
    """The Recognizer of --model, in int8 or on --device."""
    folder = find_model(options.model, KIND)
    from pyspeech.asr.api import Recognizer, load_bundle

    bundle, stopping = load_bundle(folder, options.device, options.int8), None
    if options.tau is not None or options.threshold is not None:
        stopping = EarlyStopping(options.rule or EarlyStopping.rule, options.tau or 0.0, options.threshold or 0.0)
    endpointing = Endpointing(silence_after=options.min_silence)
    language = language_of(options, bundle)
    context = context_of(options, bundle, language)
    return Recognizer(bundle, language, search_of(options, bundle.search), stopping, endpointing, context, not options.no_vad)


def language_of(options, bundle):
    """The language to recognise, None where the model tells; UserError where it does not, or has no such language."""
    model = bundle.model
    codes = ", ".join(model.languages)
    language = None if options.language == "auto" else language_among(options.language, model.languages)
    if language is None and len(model.languages) > 1 and model.num_heads > 1 and model.lid is None:
        raise UserError(f"--language auto: the model in {options.model} cannot tell languages apart; give one of {codes}")
    if options.tau is not None or options.threshold is not None:
        if language is not None or model.lid is None or len(model.languages) == 1:
            raise UserError(
                "--tau, --threshold: early stopping is for --language auto and a model with identification "
                f"of several languages, such as multi_softmax_lid; this one has {codes}"
            )
    return language


class Work:
    """Recordings to transcripts, one after the other: recognition, output, and what the summary says."""

    def __init__(self, recognizer, options, status, recordings):
        self.recognizer = recognizer
        self.options, self.status, self.recordings = options, status, recordings
        self.raw = raw_format(options)
        self.batch = []  # (Recording, samples) of short recordings
        self.taken, self.done, self.failed = 0, [], []
        self.audio = 0.0  # seconds
        self.languages = Counter()  # seconds of each

    def process(self, finished, failed):
        """Transcribe all recordings, and put those transcribed and the paths of those that fail into the two lists."""
        self.done, self.failed = finished, failed
        for recording in self.recordings:
            self.add(recording)
        self.finish_batch()

    def add(self, recording):
        self.taken += 1
        self.status.show(f"{self._count()}{shown_name(recording)}")
        with say_errors(recording.path, self.failed), stop_at_interrupt(recording.path == "-") as stopped:
            blocks = self._read(recording, stopped)
            if self.options.stream:
                self._stream(recording, blocks)
                return
            from pyspeech.asr.api import take

            samples, blocks = take(blocks, WHOLE * self.recognizer.sampling_rate)
            if samples is None:
                self.finish_batch()  # the order of the output is that of the input
                self._output(recording, *self._long(recording, blocks))
                return
            self.batch.append((recording, samples))
        if len(self.batch) == BATCH:
            self.finish_batch()

    def finish_batch(self):
        """Recognise and output the short recordings that wait."""
        batch, self.batch = self.batch, []
        if not batch:
            return
        try:
            results = self.recognizer.recognize_spoken([samples for _, samples in batch])
        except Exception:  # one at a time shows whose fault it is
            results = [None] * len(batch)
        for (recording, samples), segments in zip(batch, results, strict=True):
            with say_errors(recording.path, self.failed):
                if segments is None:
                    [segments] = self.recognizer.recognize_spoken([samples])
                self._output(recording, segments, len(samples) / self.recognizer.sampling_rate)

    def _long(self, recording, blocks):
        """(segments with a text, duration) of a recording of more than 30 s."""
        segments, duration = [], 0.0
        for found, duration in self.recognizer.long_segments(blocks):
            self.status.show(f"{self._count()}{shown_name(recording)} {clock(duration)}")
            segments += found
        return segments, duration

    def _read(self, recording, stopped):
        """Blocks of mono samples at the model's sampling rate."""
        options, rate = self.options, self.recognizer.sampling_rate
        channel = channel_of(recording, options)
        if recording.path == "-" and (options.stream or self.raw):
            from pyspeech.audio.live import stream_live

            blocks = stream_live(sys.stdin.buffer, rate, self.raw, channel, LIVE_BLOCK)  # pyright: ignore[reportArgumentType]
            return itertools.takewhile(lambda _: not stopped, blocks)
        from pyspeech.audio.io import stream_audio

        block = LIVE_BLOCK if options.stream else FILE_BLOCK
        return stream_audio(recording.path, rate, channel, block, recording.start, recording.duration, self.raw)

    def _stream(self, recording, blocks):
        """Recognise in segments; with --stream each goes to the screen as soon as it is over."""
        segments, subtitles, duration = [], 1, 0.0
        show_now = self.options.stream and not self.options.output
        for result, duration in self.recognizer.segments(blocks):
            if not result.final:
                self.status.show(f"{self._count()}{shown_name(recording)} {clock(duration)} {result.text}")
            elif result.text:
                segments.append(result)
                if show_now:
                    text = self._render(recording, segments[-1:], result.seconds, subtitles)
                    subtitles += text.count(" --> ")
                    self._print(recording, text)
                elif self.options.stream:
                    self.status.leave(result.text)
        if show_now:
            if not segments and self.options.format in OF_ONE:
                self._print(recording, self._render(recording, [], duration))  # its header
            self._count_in(recording, segments, duration)
        else:
            self._output(recording, segments, duration)

    def _output(self, recording, segments, duration):
        """Write a whole recording to its file, or to the screen."""
        text = self._render(recording, segments, duration)
        if self.options.output:
            from pyspeech.audio.recordings import file_stem
            from pyspeech.files import atomic_write

            with atomic_write(Path(self.options.output, file_stem(recording) + FORMATS[self.options.format])) as stream:
                stream.write(text)
        else:
            self._print(recording, text)
        self._count_in(recording, segments, duration)

    def _render(self, recording, segments, duration, first_subtitle=1):
        channel = (channel_of(recording, self.options) or 0) + 1
        transcript = Transcript(shown_name(recording), segments, duration, channel)
        return render(self.options.format, transcript, self.options.nbest, first_subtitle)

    def _print(self, recording, text):
        """To the screen; text, which does not name the recording, line by line behind its name."""
        if self.options.format == "text":
            lines = text.splitlines()
            if self.options.nbest == 1 and not self.options.stream:
                lines = [" ".join(lines)]
            text = "".join(f"{shown_name(recording)}\t{line}\n" for line in lines)
        self.status.clear()
        sys.stdout.write(text)
        sys.stdout.flush()

    def _count_in(self, recording, segments, duration):
        self.done.append(recording)
        self.audio += duration
        for segment in segments:
            if segment.text:
                self.languages[segment.language or "undetermined"] += segment.seconds

    def _count(self):
        return f"{self.taken}/{len(self.recordings)} " if len(self.recordings) > 1 else ""

    def summary(self):
        count = len(self.done)
        parts = ", ".join(f"{code} {time:.2f} s" for code, time in self.languages.most_common())
        return (
            f"{count} recording{'s' if count > 1 else ''}: {self.audio:.2f} s of audio ({parts or 'no words'}); "
            f"{speed(self.audio, self.recognizer.computing)}"
        )
