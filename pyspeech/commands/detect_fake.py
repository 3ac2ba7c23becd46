"""Tell genuine from fake speech, with the bundled detector or one trained by egs/add2022/run.py.

INPUT is an audio file ("-": standard input), a folder (searched with all below it), a Kaldi table (*.scp) or a lhotse
manifest of recordings or cuts (*.jsonl, *.jsonl.gz). Any sampling rate and length.

The score is the log-likelihood ratio (natural logarithm) of genuine against fake speech: higher means genuine, 0 is neutral.
In recordings longer than a window (10 s in the bundled detector) it is the mean over windows. A score of at least the
threshold counts as genuine; the default is the threshold of the equal error rate on the detector's development set.
P(genuine) follows from the score and --prior. Calibration and threshold come from the kinds of fakes in training: unseen
engines, microphones and languages cause errors. pyspeech/spoof/shipped/README.md has error rates of the bundled detector.

examples:
  utils/detect_fake.py message.ogg
  utils/detect_fake.py recordings/ --format csv -o found.csv
  utils/detect_fake.py message.ogg --model egs/add2022/exp/mini/models/NAME/SEED
  utils/detect_fake.py eval/ --model DIR --format scores -o scores.txt     # for utils/score_eer.py
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import logging
import math
import sys
from pathlib import Path

import pyspeech
from pyspeech.commands.arguments import add_inputs, tool_parser
from pyspeech.commands.terminal import process_each, set_up_messages, shown_name
from pyspeech.errors import UserError
from pyspeech.model_file import find_model

FORMATS = ("text", "json", "csv", "scores")
CARD = Path(pyspeech.__file__).parent / "spoof" / "shipped" / "README.md"


def parser():
    parser = tool_parser(__doc__)
    add_inputs(parser)
    parser.add_argument(
        "--model",
        metavar="DIR",
        help="folder of a model.pt that egs/add2022/run.py made: models/NAME/SEED "
        "in its experiment folder (default: the bundled detector)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="text (default), json (a list, with the "
        "score of each window), csv, scores (lines `recording score`, as in the recipe's score files)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (default: standard output)")
    parser.add_argument(
        "--prior",
        metavar="P",
        type=probability,
        default=0.5,
        help="prior probability of a genuine recording, for P(genuine) (default: 0.5)",
    )
    parser.add_argument(
        "--threshold", metavar="X", type=float, help="a score of X or more counts as genuine (default: the detector's own)"
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
    status = set_up_messages()
    from pyspeech.audio.recordings import find_recordings

    recordings, detector = find_recordings(options.inputs), load(options)
    with output(options) as stream:
        writer = Writer(options, stream)

        def work(recording, shown):
            found = judge(recording, detector, options)
            status.clear()
            writer.write(found)

        failed = process_each(recordings, work, status, "judged")
        if failed == 130:
            raise KeyboardInterrupt  # a file of some of them would look like that of all
        writer.finish()
    return failed


def load(options):
    """The FakeDetector of --model, or the bundled one."""
    from pyspeech.spoof.api import FakeDetector
    from pyspeech.spoof.calibration import Calibration

    if options.threshold is not None and not math.isfinite(options.threshold):
        raise UserError(f"--threshold {options.threshold}: expected a finite number")
    folder = find_model(options.model, "fake audio detector") if options.model else None
    found = FakeDetector(folder, threshold=options.threshold)
    if not options.model:
        logging.warning(
            "accuracy of the bundled detector is limited: compare scores of recordings made alike, and do not trust a single "
            "decision; figures: %s",
            CARD,
        )
    if found.detector.calibration == Calibration():
        logging.warning("%s: not calibrated, for its corpus had no dev set: probabilities are the network's own word", folder)
    return found


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

    from pyspeech.spoof.api import SilentError

    channel = recording.channel if options.channel is None else options.channel
    try:
        found = detector.score_blocks(blocks_of(recording, detector, channel), str(recording.path))
    except SilentError:
        if channel is None and recording.path != "-" and not silent(recording, detector):  # a pipe cannot be read again
            raise UserError(
                f"{recording.path}: its channels cancel (--channel takes one); there is no speech to judge"
            ) from None
        raise
    return replace(found, name=shown_name(recording))


def silent(recording, detector):
    """Whether the first channel of a recording is."""
    from pyspeech.audio.level import Watched
    from pyspeech.spoof.api import SILENCE

    first = Watched(blocks_of(recording, detector, 0))
    collections.deque(first, maxlen=0)
    return first.highest - first.lowest < SILENCE


def blocks_of(recording, detector, channel):
    """The blocks of a recording at the detector's rate."""
    from pyspeech.audio.io import stream_audio

    return stream_audio(recording.path, detector.sampling_rate, channel, start=recording.start, duration=recording.duration)


class Writer:
    """Scores to a stream, each as soon as it is there, but for JSON, which is one list."""

    def __init__(self, options, stream):
        self.options, self.stream, self.scores = options, stream, []
        if options.format == "csv":
            self._write([])

    def write(self, score):
        if self.options.format == "json":
            self.scores.append(score)
        else:
            from pyspeech.spoof.api import line_of

            self.stream.write(line_of(score.as_dict(self.options.prior), self.options.format))
            self.stream.flush()

    def finish(self):
        if self.options.format == "json":
            self._write(self.scores)

    def _write(self, scores):
        from pyspeech.spoof.api import render

        self.stream.write(render(scores, self.options.format, self.options.prior))
