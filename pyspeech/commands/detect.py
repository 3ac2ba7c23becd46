"""Detect speech in recordings.

INPUT is an audio file ("-": standard input), a folder (searched recursively), a Kaldi table (*.scp) or a lhotse
manifest of recordings or cuts (*.jsonl, *.jsonl.gz). Any sampling rate and length. Segments go to standard output,
or with -o into files; messages and a summary go to standard error.

With --stream, segments are printed as soon as they end; standard input is a WAV stream, or with --raw samples without a
header. A network gives the same segments as offline, with a delay of some seconds, which is printed; --system causal decides
within 0.3 s. The statistical system adapts to the last minute only and is slightly less accurate.

examples:
  utils/detect_speech.py call.wav
  utils/detect_speech.py --point words interview.wav
  utils/detect_speech.py -o labels --format audacity recordings/
  utils/detect_speech.py --system seg_rnn --min-silence 0.3 --pad 0.1 wav.scp
  utils/detect_speech.py --max-speech 20 --cut parts/ --jobs 4 recordings/
  arecord -f S16_LE -r 16000 -c 1 -t wav - | utils/detect_speech.py --stream -
  sox call.wav -t raw -r 8000 -e mu-law -c 1 - | utils/detect_speech.py --stream --raw --encoding mulaw --rate 8000 -
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import os
import sys
import time
from pathlib import Path

from pyspeech.commands.arguments import add_device, add_inputs, add_raw, channel_of, raw_format, tool_parser, whole_number
from pyspeech.commands.detect_outputs import Done, channel_suffix, process, summary
from pyspeech.commands.terminal import process_each, set_up_messages, shown_name, stop_at_interrupt
from pyspeech.errors import UserError
from pyspeech.files import format_of
from pyspeech.launch import ROOT
from pyspeech.model_file import MODEL_FILE, ONNX_FILE, find_model, newest_model
from pyspeech.sad.config import KIND, SECONDS
from pyspeech.sad.registry import NETWORKS

STATISTICAL = ("statistical", "statistical_plain")
BUNDLED = ("shipped", "causal")
SYSTEMS = (*BUNDLED, *STATISTICAL, *NETWORKS)
FORMATS = ("rttm", "fearless", "segments", "audacity", "json", "textgrid", "csv", "lhotse")
STREAMED = ("rttm", "segments", "audacity", "csv")  # a line a segment, which does not depend on the others
LIVE_BLOCK = 0.3  # seconds read at once, at most
EXPERIMENTS = Path(ROOT, "egs", KIND.recipe, "exp")


def parser():
    parser = tool_parser(__doc__)
    add_inputs(parser, every_channel=True)
    parser.add_argument(
        "--system",
        choices=SYSTEMS,
        help="shipped (default without --model): the bundled network; causal: the bundled network for --stream that decides "
        "within 0.3 s; statistical: no training; "
        "statistical_plain: as in the paper, with false alarms on switched noise; others: networks that you trained",
    )
    parser.add_argument(
        "--model",
        metavar="DIR",
        help="folder of a network trained by the recipe fearless, the model.pt in it, or an ONNX file "
        "from utils/export_onnx.py (default: the newest exp/*/models/SYSTEM of that recipe)",
    )
    parser.add_argument(
        "--point",
        metavar="NAME",
        help="operating point of an ONNX file; the bundled network has turns (default; pauses under 0.5 s filled) "
        "and words (no pauses filled)",
    )
    parser.add_argument("--format", choices=FORMATS, help="format of the segments (default: that of -o FILE, else rttm)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write one file per recording into DIR; for a single recording a file name (x.TextGrid) works too",
    )
    add_device(parser)
    parser.add_argument("--cut", metavar="DIR", help="write each segment into DIR, as NAME-START-END.wav (milliseconds)")
    parser.add_argument(
        "--jobs", metavar="N", type=whole_number, default=1, help="number of recordings processed in parallel (default: 1)"
    )
    parser.add_argument(
        "--threshold",
        metavar="X",
        type=float,
        help="score above which a frame is speech; higher: fewer false alarms, more misses (default: the system's)",
    )
    parser.add_argument(
        "--min-silence",
        metavar="S",
        type=seconds,
        help="fill pauses shorter than S seconds (default: the operating point's, or 0)",
    )
    parser.add_argument(
        "--min-speech",
        metavar="S",
        type=seconds,
        help="then drop speech shorter than S seconds (default: the operating point's, or 0)",
    )
    parser.add_argument(
        "--pad",
        metavar="S",
        type=seconds,
        help="then add S seconds before and after each segment (default: the operating point's, or 0)",
    )
    parser.add_argument("--pad-before", metavar="S", type=seconds, help="add S seconds before each segment (default: --pad)")
    parser.add_argument("--pad-after", metavar="S", type=seconds, help="add S seconds after each segment (default: --pad)")
    parser.add_argument(
        "--max-speech",
        metavar="S",
        type=seconds,
        help="then cut segments longer than S seconds, dropping the frame with the lowest score (default: 0, no limit)",
    )
    parser.add_argument(
        "--peak",
        metavar="X",
        type=float,
        help="hysteresis: drop speech that never scores above X (default: the operating point's; 0 with --threshold)",
    )
    parser.add_argument(
        "--scores",
        action="store_true",
        help="write the score of each frame (10 ms in the statistical system, 20 ms in the mini profile's networks) "
        "into the json, or with other formats into a separate file, which needs -o DIR",
    )
    parser.add_argument(
        "--score-format",
        choices=("npy", "csv"),
        help="format of --scores: NAME.npy (float32, default) or NAME.scores.csv (start,score)",
    )
    parser.add_argument(
        "--stream", action="store_true", help="print segments while audio arrives (rttm, segments, audacity, csv)"
    )
    add_raw(parser)
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
    check_options(options)
    if options.stream:
        check_stream(options)

    status = set_up_messages()
    from pyspeech.audio.recordings import check_words, each_channel, find_recordings
    from pyspeech.sad.formats import WITH_SPACES_BETWEEN

    recordings = find_recordings(options.inputs)
    if options.channel == "all":
        check_read_again("--channel all", recordings)
        recordings = each_channel(recordings, channel_suffix)
    settle_format(options, len(recordings) == 1)
    if options.format in WITH_SPACES_BETWEEN:
        check_words(recordings, options.format)
    if options.stream:
        if len(recordings) > 1:
            raise UserError(f"--stream: {len(recordings)} recordings; expected one, such as - for standard input")
        return process_each(recordings, lambda recording, _: stream(recording, options, status), status, "processed")
    check_places(options, recordings)
    from pyspeech.sad.detector import load_detector

    detect = load_detector(*how(options), device=options.device, **tidying(options))
    done = Done(count=0)
    with contextlib.closing(outcomes(recordings, detect, options)) as found:

        def work(recording, shown):
            outcome = next(found)
            if isinstance(outcome, Exception):
                raise outcome
            status.clear()
            show(outcome.text, options, done.count == 0)
            for name in ("audio", "speech", "computing", "count"):
                setattr(done, name, getattr(done, name) + getattr(outcome, name))

        return process_each(recordings, work, status, "processed", lambda: summary(done))


def check_options(options):
    raw_format(options)
    if options.scores and not options.output and options.format != "json":
        raise UserError("--scores: the scores need a place; add -o DIR or --format json")
    if options.score_format and not options.scores:
        raise UserError(f"--score-format {options.score_format}: add --scores")
    if options.system is None and not options.model:
        options.system = "shipped"
    if options.model and options.system in BUNDLED:
        raise UserError(f"--model: the bundled network has its own; leave --system out, or choose one of {', '.join(NETWORKS)}")
    for option in ("model", "point", "peak"):
        if getattr(options, option) is not None and options.system in STATISTICAL:
            raise UserError(
                f"--{option}: the statistical system has none; choose a network with --system: {', '.join(NETWORKS)}"
            )


def check_places(options, recordings):
    """Check that outputs have a place, and that inputs read twice can be read twice."""
    from pyspeech.audio.recordings import check_output

    if options.single and len(recordings) > 1:
        raise UserError(f"-o {options.output}: a file for {len(recordings)} recordings; expected a folder, such as labels/")
    if options.output and not options.single:
        check_output(options.output, recordings)
    for option in ("plot", "cut"):
        if getattr(options, option):
            check_read_again(f"--{option}", recordings)
            check_output(getattr(options, option), recordings, f"--{option}")
    if options.plot:
        import matplotlib  # noqa: F401 (where it is missing, say so before the work)


def check_read_again(option, recordings):
    if any(str(recording.path) == "-" for recording in recordings):
        raise UserError(f"{option}: standard input cannot be read a second time; write it to a file first")


def settle_format(options, alone):
    """Decide if -o is a file for one recording (its ending names a format, and it is no folder), and settle the format.

    alone: whether there is one recording; then an ending of no format is likely a mistake.
    """
    from pyspeech.sad.formats import FORMATS

    endings, output = {name: ending for name, (_, ending) in FORMATS.items()}, options.output or "/"
    known = any(output.lower().endswith(ending.lower()) for ending in endings.values())
    folder = output.endswith("/") or Path(output).is_dir()
    options.single = known and not folder
    if alone and not known and not folder and Path(output).suffix:
        expected = ", ".join(dict.fromkeys(endings.values()))
        raise UserError(f"-o {output}: its ending names no format; expected one of {expected}, or a folder such as {output}/")
    options.format = options.format or (format_of(output, endings) if options.single else "rttm")


def show(text, options, first):
    """Text of a recording to the screen; the header of CSV with the first one alone."""
    if options.format == "csv" and not first:
        from pyspeech.sad.formats import CSV_HEADER

        text = text.removeprefix(CSV_HEADER)
    sys.stdout.write(text)
    sys.stdout.flush()


def outcomes(recordings, detect, options):
    """Yield what becomes of each recording in turn, a Done or the exception, by --jobs processes."""
    jobs, several = min(options.jobs, len(recordings)), len(recordings) > 1
    if jobs == 1:
        yield from (attempt(recording, detect, options, several) for recording in recordings)
        return
    from pyspeech.engine.process import CORES, stage_cores
    from pyspeech.engine.workers import in_processes

    cores, own = max(1, stage_cores() // jobs), []

    def work(number):
        if not own:  # a session of ONNX Runtime is for the process that opened it: each reads the file again
            os.environ[CORES] = str(cores)
            own.append(copy.deepcopy(detect))
        return number, attempt(recordings[number], own[0], options, several)

    waiting = {}
    with contextlib.closing(in_processes(work, range(len(recordings)), jobs)) as made:
        for number in range(len(recordings)):
            while number not in waiting:
                place, outcome = next(made)
                waiting[place] = outcome
            yield waiting.pop(number)


def attempt(recording, detect, options, several):
    """A Done, or the exception that ended it."""
    try:
        return process(recording, detect, options, several)
    except UserError as error:
        return UserError(str(error))  # of this class, which other processes can send
    except Exception as error:
        return error


def how(options):
    """The system, the model, the threshold and the operating point, as load_detector and load_stream take them."""
    return options.system, model_folder(options), options.threshold, options.point


def tidying(options):
    return {name: getattr(options, name) for name in (*SECONDS, "peak")}


def model_folder(options):
    """The folder or the ONNX file of the network to use; None for a system that needs none to be named."""
    if options.system in (*BUNDLED, *STATISTICAL):
        return None
    if not options.model:
        if not EXPERIMENTS.parents[1].is_dir():  # an installed package
            raise UserError(f"--system {options.system}: expected a trained network; give its folder with --model DIR")
        return newest_model(EXPERIMENTS, options.system, KIND)
    if options.model.endswith(".onnx"):
        return options.model
    return find_model(options.model, KIND, ((MODEL_FILE,), (ONNX_FILE,)))


def check_stream(options):
    given = [name for name in ("output", "scores", "plot", "cut") if getattr(options, name)]
    if given or options.jobs > 1 or options.channel == "all":
        raise UserError(
            "--stream: segments go to the screen alone; leave -o, --scores, --plot, --cut, --jobs, --channel all out"
        )
    if options.format not in (None, *STREAMED):
        raise UserError(f"--stream: --format {options.format} needs the whole recording; expected {', '.join(STREAMED)}")


def stream(recording, options, status):
    """Print the segments of one recording while it is read."""
    from pyspeech.sad.formats import render
    from pyspeech.sad.segments import total
    from pyspeech.sad.streaming import load_stream

    detector = load_stream(*how(options), device=options.device, **tidying(options))
    print(f"segments are printed up to {detector.delay:.1f} s after their end", file=sys.stderr)
    channel, done = channel_of(recording, options), Done()
    begin = time.perf_counter()

    def show_segments(segments):
        status.clear()
        text = render(options.format, shown_name(recording), segments, detector.seconds, channel=channel or 0)
        show(text, options, done.speech == 0)
        done.speech += total(segments)

    with stop_at_interrupt(recording.path == "-") as stopped:
        block_seconds = min(LIVE_BLOCK, detector.latency / 4)
        for block in read_live(recording, detector.sampling_rate, channel, raw_format(options), block_seconds):
            segments = detector.add(block)
            if len(segments):
                show_segments(segments)
            if stopped:
                break
    show_segments(detector.finish())
    done.audio, done.computing = detector.seconds, time.perf_counter() - begin
    print(summary(done), file=sys.stderr)


def read_live(recording, sampling_rate, channel, raw, seconds):
    """Blocks of mono samples at the detector's sampling rate, as soon as they are there."""
    from pyspeech.audio.live import stream_live
    from pyspeech.audio.recordings import stream_recording

    if recording.path == "-":
        return stream_live(sys.stdin.buffer, sampling_rate, raw, channel, seconds)  # pyright: ignore[reportArgumentType]
    return stream_recording(recording, sampling_rate, channel, seconds, raw=raw)
