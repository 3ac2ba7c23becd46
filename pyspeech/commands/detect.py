"""Detect speech in recordings.

INPUT is an audio file ("-": standard input), a folder (searched with all below it), a Kaldi table (*.scp) or a lhotse
manifest of recordings or cuts (*.jsonl, *.jsonl.gz). Any sampling rate and length. Segments go to standard output,
or with -o into one file per recording; messages and a summary go to standard error.

With --stream, segments are printed as soon as they end. Standard input may be raw 16-bit samples (signed, little-endian,
one channel) at --rate, or a WAV stream. A network gives the same segments as offline, with a delay of some seconds, which
is printed. The statistical system adapts to the last minute only and is slightly less accurate.

examples:
  utils/detect_speech.py call.wav
  utils/detect_speech.py --point words interview.wav
  utils/detect_speech.py -o labels --format audacity recordings/
  utils/detect_speech.py --system seg_rnn --min-silence 0.3 --pad 0.1 wav.scp
  arecord -f S16_LE -r 16000 -c 1 -t raw - | utils/detect_speech.py --stream -
  sox call.wav -t raw -r 8000 -e signed -b 16 -c 1 - | utils/detect_speech.py --stream --rate 8000 -
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from pyspeech.commands.arguments import add_inputs, tool_parser, whole_number
from pyspeech.commands.terminal import process_each, set_up_messages, shown_name, speed, stop_at_interrupt
from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.launch import ROOT
from pyspeech.model_file import MODEL_FILE, ONNX_FILE, find_model, newest_model
from pyspeech.sad.config import KIND
from pyspeech.sad.registry import NETWORKS

STATISTICAL = ("statistical", "statistical_plain")
SYSTEMS = ("shipped", *STATISTICAL, *NETWORKS)
FORMATS = ("rttm", "fearless", "segments", "audacity", "json", "textgrid", "csv", "lhotse")
STREAMED = ("rttm", "segments", "audacity", "csv")  # a line a segment, which does not depend on the others
LIVE_BLOCK = 0.3  # seconds read at once
EXPERIMENTS = Path(ROOT, "egs", KIND.recipe, "exp")
NAMELESS = ("fearless", "audacity", "textgrid")  # formats whose text does not name the recording


def parser():
    parser = tool_parser(__doc__)
    add_inputs(parser)
    parser.add_argument(
        "--system",
        choices=SYSTEMS,
        help="shipped (default without --model): the bundled network; statistical: no model "
        "needed; statistical_plain: as in the paper, with false alarms on switched noise; others: networks that you trained",
    )
    parser.add_argument(
        "--model",
        metavar="DIR",
        help="folder of a trained network, as the recipe fearless leaves it, "
        "the model.pt in it, or an ONNX file of utils/export_onnx.py (default: the newest one in "
        "exp/*/models/SYSTEM of that recipe)",
    )
    parser.add_argument(
        "--point",
        metavar="NAME",
        help="operating point of an ONNX file; the bundled network has turns "
        "(default: fill pauses under 0.5 s) and words (fill none)",
    )
    parser.add_argument("--format", choices=FORMATS, default="rttm", help="format of the segments (default: rttm)")
    parser.add_argument("-o", "--output", metavar="DIR", help="write one file for each recording into DIR")
    parser.add_argument(
        "--threshold",
        metavar="X",
        type=float,
        help="score above which a frame is speech; higher: fewer false alarms, more misses (default: the system's)",
    )
    parser.add_argument(
        "--min-silence", metavar="S", type=seconds, help="fill shorter pauses (default: the operating point's; 0 without one)"
    )
    parser.add_argument(
        "--min-speech",
        metavar="S",
        type=seconds,
        help="then drop shorter speech segments (default: the operating point's; 0 without one)",
    )
    parser.add_argument(
        "--pad",
        metavar="S",
        type=seconds,
        help="then add S seconds before and after each segment (default: the operating point's; 0 without one)",
    )
    parser.add_argument(
        "--scores",
        action="store_true",
        help="write the score of each frame (10 ms in the statistical "
        "system, 20 ms in networks of the mini profile): within the text with --format json, "
        "else as DIR/NAME.npy (float32), which needs -o DIR",
    )
    parser.add_argument(
        "--stream", action="store_true", help="print segments while audio arrives (rttm, segments, audacity, csv)"
    )
    parser.add_argument(
        "--rate",
        metavar="HZ",
        type=whole_number,
        default=16000,
        help="sampling rate of raw samples on standard input, with --stream (default: 16000)",
    )
    parser.add_argument(
        "--plot", metavar="DIR", help="plot spectrogram, speech and scores of the first ten minutes: DIR/NAME.png"
    )
    return parser


def seconds(text):
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds, 0 or more")
    return value


def main(arguments=None):
    """Returns the exit status: 0, or 1 where a recording could not be processed."""
    options = parser().parse_args(arguments)
    if options.scores and not options.output and options.format != "json":
        raise UserError("--scores: the scores need a place; add -o DIR or --format json")
    if options.system is None and not options.model:
        options.system = "shipped"
    if options.model and options.system == "shipped":
        raise UserError(f"--model: the shipped system has its own; leave --system out, or choose one of {', '.join(NETWORKS)}")
    for option in ("model", "point"):
        if getattr(options, option) and options.system in STATISTICAL:
            raise UserError(
                f"--{option}: the statistical system has none; choose a network with --system: {', '.join(NETWORKS)}"
            )

    if options.stream:
        check_stream(options)

    status = set_up_messages()
    from pyspeech.audio.recordings import check_output, check_words, find_recordings
    from pyspeech.sad.formats import WITH_SPACES_BETWEEN

    recordings = find_recordings(options.inputs)
    if options.format in WITH_SPACES_BETWEEN:
        check_words(recordings, options.format)
    if options.stream:
        if len(recordings) > 1:
            raise UserError(f"--stream: {len(recordings)} recordings; expected one, such as - for standard input")
        return process_each(recordings, lambda recording, _: stream(recording, options, status), status, "processed")
    if options.output:
        check_output(options.output, recordings)
    if options.plot:
        if any(str(recording.path) == "-" for recording in recordings):
            raise UserError("--plot: standard input cannot be read a second time; write it to a file first")
        check_output(options.plot, recordings, "--plot")
        import matplotlib  # noqa: F401 (where it is missing, say so before the work)
    from pyspeech.sad.detector import load_detector

    detect = load_detector(*how(options), **tidying(options))

    totals = {"recordings": 0, "audio": 0.0, "speech": 0.0, "computing": 0.0}

    def work(recording, shown):
        process(recording, detect, options, totals, len(recordings) > 1, status)

    return process_each(recordings, work, status, "processed", lambda: summary(totals))


def how(options):
    """The system, the model, the threshold and the operating point, as load_detector and load_stream take them."""
    return options.system, model_folder(options), options.threshold, options.point


def tidying(options):
    return {name: getattr(options, name) for name in ("min_silence", "min_speech", "pad")}


def model_folder(options):
    """The folder or the ONNX file of the network to use; None for a system that needs none to be named."""
    if options.system in ("shipped", *STATISTICAL):
        return None
    if not options.model:
        if not EXPERIMENTS.parents[1].is_dir():  # an installed package
            raise UserError(f"--system {options.system}: expected a trained network; give its folder with --model DIR")
        return newest_model(EXPERIMENTS, options.system, KIND)
    if options.model.endswith(".onnx"):
        return options.model
    return find_model(options.model, KIND, ((MODEL_FILE,), (ONNX_FILE,)))


def process(recording, detect, options, totals, several, status):
    """Detect and output one recording; add to the totals."""
    from pyspeech.sad.segments import total

    begin = time.perf_counter()
    channel = recording.channel if options.channel is None else options.channel
    found = detect(recording.path, channel, recording.start, recording.duration)
    status.clear()
    output(recording, found, channel or 0, options, several, first=totals["recordings"] == 0)
    if options.plot:
        draw(recording, found, channel, options.plot)
    totals["recordings"] += 1
    totals["audio"] += found.duration
    totals["speech"] += total(found.segments)
    totals["computing"] += time.perf_counter() - begin


def output(recording, found, channel, options, several, first):
    """Write the segments of one recording to its file, or to the screen."""
    from pyspeech.audio.recordings import file_stem
    from pyspeech.sad.formats import CSV_HEADER, FORMATS as WRITERS, render

    scores = found.scores if options.scores and options.format == "json" else None
    content = (found.segments, found.duration, found.frame_shift, scores, channel, found.frame_offset)
    name = shown_name(recording)
    text = render(options.format, name, *content)
    if options.output:
        stem = file_stem(recording)
        with atomic_write(Path(options.output, stem + WRITERS[options.format][1])) as stream:
            stream.write(text)
        if options.scores and scores is None:
            save_scores(Path(options.output, stem + ".npy"), found.scores)
        return
    if options.format == "csv" and not first:
        text = text[len(CSV_HEADER) :]
    if options.format in NAMELESS and several:
        text = f"# {name}\n{text}"
    sys.stdout.write(text)
    sys.stdout.flush()


def draw(recording, found, channel, folder):
    from pyspeech.audio.recordings import file_stem
    from pyspeech.sad.picture import draw_found

    target = Path(folder, file_stem(recording) + ".png")
    draw_found(recording.path, found, target, channel, recording.start, shown_name(recording))


def save_scores(path, scores):
    import numpy as np

    with atomic_write(path, "wb") as stream:
        np.save(stream, scores.astype(np.float32))


def check_stream(options):
    if options.output or options.scores or options.plot:
        raise UserError("--stream: segments go to the screen alone; leave -o, --scores and --plot out")
    if options.format not in STREAMED:
        raise UserError(f"--stream: --format {options.format} needs the whole recording; expected {', '.join(STREAMED)}")


def stream(recording, options, status):
    """Print the segments of one recording while it is read."""
    from pyspeech.sad.formats import CSV_HEADER, render
    from pyspeech.sad.segments import total
    from pyspeech.sad.streaming import load_stream

    detector = load_stream(*how(options), **tidying(options))
    print(f"segments are printed up to {detector.delay:.1f} s after their end", file=sys.stderr)
    channel = recording.channel if options.channel is None else options.channel
    begin, speech = time.perf_counter(), 0.0

    def show(segments):
        nonlocal speech
        status.clear()
        text = render(options.format, shown_name(recording), segments, detector.seconds, channel=channel or 0)
        sys.stdout.write(text[len(CSV_HEADER) :] if options.format == "csv" and speech else text)
        sys.stdout.flush()
        speech += total(segments)

    with stop_at_interrupt(recording.path == "-") as stopped:
        for block in read_live(recording, detector.sampling_rate, channel, options.rate):
            segments = detector.add(block)
            if len(segments):
                show(segments)
            if stopped:
                break
    show(detector.finish())
    totals = {"recordings": 1, "audio": detector.seconds, "speech": speech, "computing": time.perf_counter() - begin}
    print(summary(totals), file=sys.stderr)


def read_live(recording, sampling_rate, channel, raw_rate):
    """Blocks of mono samples at the detector's sampling rate, as soon as they are there."""
    from pyspeech.audio.io import stream_audio
    from pyspeech.audio.live import is_file, stream_live

    if recording.path == "-" and not is_file(sys.stdin.buffer, live=True):  # pyright: ignore[reportArgumentType]
        return stream_live(sys.stdin.buffer, sampling_rate, raw_rate, channel, LIVE_BLOCK)  # pyright: ignore[reportArgumentType]
    return stream_audio(recording.path, sampling_rate, channel, LIVE_BLOCK, recording.start, recording.duration)


def summary(totals):
    count = totals["recordings"]
    return (
        f"{count} recording{'s' if count > 1 else ''}: {totals['audio']:.2f} s of audio, {totals['speech']:.2f} s "
        f"({totals['speech'] / max(totals['audio'], 1e-9):.1%}) speech; {speed(totals['audio'], totals['computing'], 5)}"
    )
