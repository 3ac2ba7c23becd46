#!/usr/bin/env python3
"""Find the speech in audio files.

INPUT is an audio file ("-": standard input), a folder (searched with all below it), a Kaldi table (*.scp) or a lhotse
manifest of recordings or cuts (*.jsonl, *.jsonl.gz). Any sampling rate and length. The segments go to the screen, or
with -o into one file for each recording; messages and a summary go to standard error.

examples:
  utils/detect_speech.py call.wav
  utils/detect_speech.py -o labels --format audacity recordings/
  utils/detect_speech.py --system seg_rnn --min-silence 0.3 --pad 0.1 wav.scp
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pyspeech.launch import ensure_environment

ensure_environment()

import argparse
import time

from pyspeech.arguments import add_inputs, tool_parser
from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.model_file import find_model, newest_model
from pyspeech.terminal import exit_after, process_each, set_up_messages, shown_name, speed

SYSTEMS = ("statistical", "cnn", "rnn", "seg_rnn")
FORMATS = ("rttm", "fearless", "segments", "audacity", "json", "textgrid", "csv", "lhotse")
EXPERIMENTS = Path(__file__).resolve().parents[1] / "egs" / "fearless" / "exp"
NAMELESS = ("fearless", "audacity", "textgrid")     # formats whose text does not name the recording


def parser():
    parser = tool_parser(__doc__)
    add_inputs(parser)
    parser.add_argument("--system", choices=SYSTEMS, default="statistical",
                        help="statistical (default) needs no model; the networks do")
    parser.add_argument("--model", metavar="DIR", help="folder of a trained network, as egs/fearless/run.py leaves it, "
                        "or the model.pt in it (default: the newest one in egs/fearless/exp/*/models/SYSTEM)")
    parser.add_argument("--format", choices=FORMATS, default="rttm", help="of the segments (default: rttm)")
    parser.add_argument("-o", "--output", metavar="DIR", help="write one file for each recording into DIR")
    parser.add_argument("--threshold", metavar="X", type=float,
                        help="speech is what scores more than X; higher finds less (default: the system's own)")
    parser.add_argument("--min-silence", metavar="S", type=seconds, default=0.0,
                        help="fill shorter pauses (default: 0)")
    parser.add_argument("--min-speech", metavar="S", type=seconds, default=0.0,
                        help="then drop shorter speech segments (default: 0)")
    parser.add_argument("--pad", metavar="S", type=seconds, default=0.0,
                        help="then add S seconds before and after each segment (default: 0)")
    parser.add_argument("--scores", action="store_true", help="keep the score of every frame (10 ms of the statistical "
                        "system; a network's own, 20 ms of those of the mini profile): in the text with --format json, "
                        "otherwise as DIR/NAME.npy (float32), which needs -o DIR")
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
    if options.model and options.system == "statistical":
        raise UserError("--model: the statistical system has none; choose a network with --system cnn, rnn or seg_rnn")

    status = set_up_messages()
    from pyspeech.audio.recordings import check_output, find_recordings
    recordings = find_recordings(options.inputs)
    if options.output:
        check_output(options.output, recordings)
    from pyspeech.sad.detector import load_detector
    detect = load_detector(options.system, model_folder(options), options.threshold)

    totals = {"recordings": 0, "audio": 0.0, "speech": 0.0, "computing": 0.0}

    def work(recording, shown):
        process(recording, detect, options, totals, len(recordings) > 1, status)

    return process_each(recordings, work, status, "processed", lambda: summary(totals))


def model_folder(options):
    """The folder of the network to use; None for the statistical system."""
    if options.system == "statistical":
        return None
    kind = "SAD network"
    return find_model(options.model, kind) if options.model else newest_model(EXPERIMENTS, options.system, kind)


def process(recording, detect, options, totals, several, status):
    """Detect, post-process and output one recording; add to the totals."""
    from pyspeech.sad.segments import tidy, total
    begin = time.perf_counter()
    channel = recording.channel if options.channel is None else options.channel
    found = detect(recording.path, channel, recording.start, recording.duration)
    speech = tidy(found.speech, found.duration, options.min_speech, options.min_silence, options.pad)
    status.clear()
    output(recording, speech, found, channel or 0, options, several, first=totals["recordings"] == 0)
    totals["recordings"] += 1
    totals["audio"] += found.duration
    totals["speech"] += total(speech)
    totals["computing"] += time.perf_counter() - begin


def output(recording, speech, found, channel, options, several, first):
    """Write the segments of one recording to its file, or to the screen."""
    from pyspeech.audio.recordings import file_stem
    from pyspeech.sad.formats import CSV_HEADER, FORMATS as WRITERS, render
    scores = found.scores if options.scores and options.format == "json" else None
    content = (speech, found.duration, found.frame_shift, scores, channel, found.frame_offset)
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
        text = text[len(CSV_HEADER):]
    if options.format in NAMELESS and several:
        text = f"# {name}\n{text}"
    sys.stdout.write(text)
    sys.stdout.flush()


def save_scores(path, scores):
    import numpy as np
    with atomic_write(path, "wb") as stream:
        np.save(stream, scores.astype(np.float32))


def summary(totals):
    count = totals["recordings"]
    return (f"{count} recording{'s' if count > 1 else ''}: {totals['audio']:.2f} s of audio, {totals['speech']:.2f} s "
            f"({totals['speech'] / max(totals['audio'], 1e-9):.1%}) speech; {speed(totals['audio'], totals['computing'], 5)}")


if __name__ == "__main__":
    exit_after(main)
