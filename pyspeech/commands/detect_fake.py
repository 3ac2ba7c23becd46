"""Tell genuine from fake speech, with the bundled detector or one that you trained.

INPUT is an audio file ("-": standard input), a folder (searched recursively), a Kaldi table (*.scp) or a lhotse
manifest of recordings or cuts (*.jsonl, *.jsonl.gz). Any sampling rate and length.

The score is the log-likelihood ratio (natural logarithm) of genuine against fake speech: higher means genuine, 0 is neutral.
In recordings longer than a window (10 s in the bundled detector) it is the mean over windows. A score of at least the
threshold counts as genuine, and P(genuine) is then 0.5 or more. The default is the detector's own threshold: in a detector
that the recipe add2022 trained, that of the equal error rate on its dev set; --prior or --threshold sets another.
Calibration and threshold come from the kinds of fakes in training: unseen engines, microphones and languages cause errors.
--calibrate fits both to labelled recordings of your own.
pyspeech/spoof/shipped/README.md has error rates of the bundled detector.

Recordings with less than 0.5 s of sound or without speech are refused. Scores of less than 2 s are adjusted for that.

examples:
  utils/detect_fake.py message.ogg
  utils/detect_fake.py recordings/ --format csv -o found.csv
  utils/detect_fake.py message.ogg --model exp/mini/models/NAME/SEED
  utils/detect_fake.py interview.wav --segments --plot plots/              # which parts are fake
  utils/detect_fake.py own/ --calibrate own/labels.txt -o detector/        # then: --model detector/
  utils/detect_fake.py eval/ --model DIR --force --format scores -o scores.txt     # for utils/score_eer.py
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import logging
import math
import sys
from functools import partial
from pathlib import Path

import pyspeech
from pyspeech.commands.arguments import add_device, add_inputs, tool_parser
from pyspeech.commands.terminal import as_text, process_each, set_up_messages, shown_name
from pyspeech.errors import UserError
from pyspeech.model_file import find_model
from pyspeech.spoof.config import KIND

FORMATS = ("text", "json", "csv", "scores")
WINDOW = 2.0  # seconds, where parts of recordings are asked for
CARD = Path(pyspeech.__file__).parent / "spoof" / "shipped" / "README.md"


def parser():
    parser = tool_parser(__doc__)
    add_inputs(parser)
    parser.add_argument(
        "--model",
        metavar="DIR",
        help="folder of a model.pt, made by the recipe add2022 (exp/NAME/models/SYSTEM/SEED) or by "
        "--calibrate (default: the bundled detector)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="text, json (with the score of each window), csv, or scores (lines `recording score`); default: by the ending "
        "of -o, or text",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to FILE (default: standard output); with --calibrate a folder"
    )
    add_device(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--prior",
        metavar="P",
        type=probability,
        help="expected share of genuine recordings, 0 to 1; moves threshold and P(genuine) (default: the detector's threshold)",
    )
    group.add_argument(
        "--threshold", metavar="X", type=float, help="call scores of at least X genuine (default: the detector's threshold)"
    )
    parser.add_argument(
        "--segments",
        action="store_true",
        help="also score parts of a recording, in windows of 2 s, or of the detector's shortest (3.07 s in the bundled one); "
        "its own score is then their mean; json has the parts as `segments`",
    )
    parser.add_argument(
        "--window", metavar="S", type=float, help="length of a window in seconds; shorter windows find shorter fakes"
    )
    parser.add_argument("--plot", metavar="DIR", help="plot the scores of the parts, as of --segments: DIR/NAME.png")
    parser.add_argument(
        "--force", action="store_true", help="also judge short recordings and those without speech, by raw scores"
    )
    parser.add_argument(
        "--calibrate",
        metavar="LABELS",
        help="fit calibration and threshold to the recordings and their LABELS (lines FILE genuine|fake, or another format of "
        "utils/score_eer.py), at least five of each, "
        "and write them beside the model, or with a copy of it to the folder -o",
    )
    return parser


def probability(text):
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0 and below 1")
    return value


def main(arguments=None):
    """Returns the exit status: 0, or 1 where a recording could not be judged."""
    options = parser().parse_args(arguments)
    options.format = options.format or format_for(options.output, bool(options.calibrate))
    if options.segments and options.format == "scores":
        raise UserError("--segments: --format scores has one score for each recording; expected text, csv or json")
    status = set_up_messages()
    from pyspeech.audio.recordings import check_output, find_recordings

    recordings = find_recordings(options.inputs)
    if options.calibrate:
        from pyspeech.commands.calibrate_fake import calibrate

        return calibrate(options, recordings, status, partial(judge, options=options))
    if options.plot:
        import matplotlib  # noqa: F401 (where it is missing, say so before the work)

        check_output(options.plot, recordings, "--plot")
    detector, notes = load(options), collections.Counter()
    with output(options) as stream:
        writer = Writer(options, stream)

        def work(recording, shown):
            found = judge(recording, detector, options)
            status.clear()
            writer.write(found)
            notes.update(found.notes)
            if options.plot:
                from pyspeech.audio.recordings import file_stem
                from pyspeech.spoof.picture import draw_score

                draw_score(found, Path(options.plot, file_stem(recording) + ".png"))

        failed = process_each(recordings, work, status, "judged")
        if failed == 130:
            raise KeyboardInterrupt  # a file of some of them would look like that of all
        writer.finish()
    say_notes(notes, options.force)
    return failed


def format_for(output, calibrates):
    """The format of what is written to `output`, by its ending; text to standard output, and where -o is a folder."""
    from pyspeech.files import format_of
    from pyspeech.spoof.api import FORMATS

    return format_of(output, FORMATS) if output and not calibrates else "text"


def say_notes(notes, force):
    """Warn about recordings whose scores need care, once for all of them."""
    from pyspeech.spoof.heard import CERTAIN, NARROW, SHORT

    if notes[SHORT]:
        logging.warning(
            "%s with under %g s of sound: scores of short ones are less certain%s",
            counted(notes[SHORT]),
            CERTAIN,
            "" if force else ", and are adjusted for that",
        )
    if notes[NARROW]:
        logging.warning(
            "%s with nothing above 4 kHz, as over the telephone: the detector errs more often there", counted(notes[NARROW])
        )


def counted(number):
    return f"{number} recording{'s' * (number != 1)}"


def load(options):
    """The FakeDetector of --model, or the bundled one."""
    from pyspeech.model_file import MODEL_FILE, ONNX_FILE
    from pyspeech.spoof.api import FakeDetector
    from pyspeech.spoof.calibration import Calibration

    if options.threshold is not None and not math.isfinite(options.threshold):
        raise UserError(f"--threshold {options.threshold}: expected a finite number")
    layouts = ((MODEL_FILE,), (ONNX_FILE,))
    folder = find_model(options.model, KIND, layouts) if options.model else None
    found = FakeDetector(folder, threshold=options.threshold, prior=options.prior, force=options.force, device=options.device)
    if not options.model:
        logging.warning(
            "accuracy of the bundled detector is limited: compare scores of recordings made alike, and do not trust a single "
            "decision; figures: %s",
            CARD,
        )
    if found.detector.calibration == Calibration():
        logging.warning("%s: not calibrated, for its corpus had no dev set: probabilities are the network's own word", folder)
    if options.window is None and not options.segments and not options.plot:
        return found
    return found.with_window(max(WINDOW, found.shortest_window) if options.window is None else options.window)


@contextlib.contextmanager
def output(options):
    """The stream that the results go to; a file is replaced when all of them are there."""
    if not options.output:
        yield sys.stdout
        return
    from pyspeech.files import atomic_write

    with atomic_write(options.output) as stream:
        yield stream


def judge(recording, detector, options):
    """The FakeScore of a recording."""
    from dataclasses import replace

    from pyspeech.audio.recordings import stream_recording

    blocks = stream_recording(recording, detector.sampling_rate, options.channel)
    found = detector.score_blocks(blocks, str(recording.path))
    return replace(found, name=shown_name(recording), path=as_text(str(recording.path)))


class Writer:
    """Scores to a stream, each as soon as it is there, but for JSON, which is one list."""

    def __init__(self, options, stream):
        self.options, self.stream, self.rows = options, stream, []
        if options.format == "csv":
            from pyspeech.spoof import api, segments

            self.stream.write(api.csv_line(segments.HEADER if options.segments else api.HEADER))

    def write(self, score):
        from pyspeech.spoof import api, segments

        row, format, parts = score.as_dict(), self.options.format, self.options.segments
        if format == "json":
            self.rows.append({**row, "segments": segments.segment_rows(score)} if parts else row)
        elif format == "csv" and parts:
            self.stream.write("".join(api.csv_line(part.values()) for part in segments.segment_rows(score)))
        else:
            self.stream.write(api.line_of(row, format) + (segments.as_text(score) if parts else ""))
            self.stream.flush()

    def finish(self):
        if self.options.format == "json":
            json.dump(self.rows, self.stream, indent=1, ensure_ascii=False)
            self.stream.write("\n")
