"""Tell genuine from fake speech in audio files, with the detector that comes along or one that egs/add2022/run.py trained.

INPUT is an audio file ("-": standard input), a folder (searched with all below it), a Kaldi table (*.scp) or a lhotse
manifest of recordings or cuts (*.jsonl, *.jsonl.gz). Any sampling rate and length.

The score is the log-likelihood ratio (natural logarithm) of genuine against fake speech, as in the recipe's score
files: higher means genuine, 0 speaks for neither. It is a mean over windows where a recording is longer than these, 10 s
with the detector that comes along.
What reaches the threshold counts as genuine; the threshold is that of equal error rates on the development set of the
detector. P(genuine) follows from the score, where a share of --prior of all recordings is genuine. Calibration and
threshold were found on the kinds of fakes that the detector was trained with: other kinds, other microphones and other
languages can fool it. How often, for the detector that comes along, says pyspeech/spoof/shipped/README.md.

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
import csv
import io
import json
import logging
import math
import sys

from pyspeech.commands.arguments import add_inputs, tool_parser
from pyspeech.commands.terminal import process_each, set_up_messages, shown_name
from pyspeech.errors import UserError
from pyspeech.model_file import find_model

FORMATS = ("text", "json", "csv", "scores")
SILENCE = 1e-4  # a recording whose samples lie this close together, of a full scale of -1 to 1, holds no speech
HEADER = ["recording", "decision", "p_genuine", "p_fake", "score", "threshold", "seconds"]


def parser():
    parser = tool_parser(__doc__)
    add_inputs(parser)
    parser.add_argument(
        "--model",
        metavar="DIR",
        help="folder of a model.pt that egs/add2022/run.py made: models/NAME/SEED "
        "in its experiment folder (default: the detector that comes along)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="text (default), json (a list, with the "
        "score of each window), csv, scores (lines `recording score`, as in the recipe's score files)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (default: the screen)")
    parser.add_argument(
        "--prior",
        metavar="P",
        type=probability,
        default=0.5,
        help="probability that a recording is genuine, before it is heard: for P(genuine) (default: 0.5)",
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

        def judge(recording, shown):
            result = result_of(recording, detector, options)
            status.clear()
            writer.write(result)

        failed = process_each(recordings, judge, status, "judged")
        if failed == 130:
            raise KeyboardInterrupt  # a file of some of them would look like that of all
        writer.finish()
    return failed


def load(options):
    """The Detector of --model, or that which comes along, on the GPU where there is one."""
    if options.threshold is not None and not math.isfinite(options.threshold):
        raise UserError(f"--threshold {options.threshold}: expected a finite number")
    from pyspeech.compat import default_device
    from pyspeech.spoof.calibration import Calibration
    from pyspeech.spoof.checkpoint import SHIPPED, load_model

    folder = find_model(options.model, "fake audio detector") if options.model else SHIPPED
    detector = load_model(folder, default_device())
    if not options.model:
        logging.warning(
            "by the detector that comes along, which is often wrong: compare scores of recordings made alike, and "
            "do not trust a single decision; figures: %s",
            SHIPPED / "README.md",
        )
    if detector.calibration == Calibration():
        logging.warning("%s: not calibrated, for its corpus had no dev set: probabilities are the network's own word", folder)
    return detector


@contextlib.contextmanager
def output(options):
    """The stream that the results go to; a file is replaced when all of them are there."""
    if not options.output:
        yield sys.stdout
        return
    from pyspeech.files import atomic_write

    with atomic_write(options.output) as stream:
        yield stream


def result_of(recording, detector, options):
    """What is found in a recording: a dict of HEADER's fields, and "windows": [start in seconds, score] of each."""
    from pyspeech.spoof.detector import score_blocks

    channel = recording.channel if options.channel is None else options.channel
    audio = watched(recording, detector, channel)
    starts, scores = score_blocks(detector, audio)
    if silent(audio):
        found = "its channels cancel (--channel takes one)" if cancels(recording, detector, channel) else "is silent"
        raise UserError(f"{recording.path}: {found}; there is no speech to judge")
    ratio = detector.calibration.log_likelihood_ratio
    score = float(ratio(scores.mean()))
    if not math.isfinite(score):  # powers of a spectrum that float32 cannot hold
        raise UserError(f"{recording.path}: has no finite score; its samples go up to {audio.peak:.3g}, expected -1 to 1")
    threshold = float(ratio(detector.threshold)) if options.threshold is None else options.threshold
    genuine = float(detector.calibration.probability(scores.mean(), options.prior))
    return {
        "recording": shown_name(recording),
        "decision": "genuine" if score >= threshold else "fake",
        "p_genuine": genuine,
        "p_fake": 1 - genuine,
        "score": score,
        "threshold": threshold,
        "seconds": audio.count / detector.sampling_rate,
        "windows": [[float(start), float(value)] for start, value in zip(starts, ratio(scores), strict=True)],
    }


def cancels(recording, detector, channel):
    """Whether a recording whose mix is silent has a first channel that is not."""
    if channel is not None or recording.path == "-":  # a pipe cannot be read again
        return False
    first = watched(recording, detector, 0)
    collections.deque(first, maxlen=0)
    return not silent(first)


def watched(recording, detector, channel):
    """The blocks of a recording at the detector's rate, and what is seen of them as they are read."""
    from pyspeech.audio.io import stream_audio
    from pyspeech.audio.level import Watched

    return Watched(
        stream_audio(recording.path, detector.sampling_rate, channel, start=recording.start, duration=recording.duration)
    )


def silent(audio):
    """Whether what has been read is, or nothing has."""
    return audio.highest - audio.lowest < SILENCE


class Writer:
    """Results to a stream, each as soon as it is there, but for JSON, which is one list."""

    def __init__(self, options, stream):
        self.format, self.stream, self.results = options.format, stream, []
        if self.format == "csv":
            self._csv(HEADER)

    def write(self, result):
        if self.format == "json":
            self.results.append(result)
        elif self.format == "csv":
            self._csv([round(value, 6) if isinstance(value, float) else value for value in map(result.get, HEADER)])
        elif self.format == "scores":
            self.stream.write(f"{result['recording']} {result['score']!r}\n")
        else:
            self.stream.write(
                "{recording}: {decision}, P(genuine) {p_genuine:.3f}, P(fake) {p_fake:.3f}, score "
                "{score:+.3f} (genuine from {threshold:+.3f} on), {seconds:.1f} s\n".format(**result)
            )
        self.stream.flush()

    def finish(self):
        if self.format == "json":
            json.dump(self.results, self.stream, indent=1, ensure_ascii=False)
            self.stream.write("\n")

    def _csv(self, cells):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        self.stream.write(line.getvalue())
