"""Score a detector of fake audio on partially fake recordings: equal error rate over segments (PartialSpoof).

SCORES is the output of utils/detect_fake.py --segments --format csv. LABELS has a line `FILE START END genuine|fake` for each
part of a recording, in seconds, or is a label file of ADD 2023 track 2 (`FILE 0.00-0.73-T/0.73-1.00-F ...`) or PartialSpoof
(*_0.16.npy). Time is cut into units; a unit is fake if any part of it is. For labels of whole recordings, e.g. ADD 2022
track 2, use utils/score_eer.py.

examples:
  utils/detect_fake.py eval/ --segments --format csv --force -o segments.csv
  utils/score_segments.py --scores segments.csv --labels labels.txt
"""

from __future__ import annotations

import sys

from pyspeech.commands.arguments import add_bootstrap, add_json, length, tool_parser
from pyspeech.commands.terminal import some
from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.report.tables import bracketed, percent


def main(arguments=None):
    options = parser().parse_args(arguments)
    from pyspeech.spoof.segment_scoring import read_segment_labels, read_segment_scores, score_segments

    scores, labels = read_segment_scores(options.scores), read_segment_labels(options.labels)
    missing = [name for name in labels if name not in scores]
    if len(missing) == len(labels):
        raise UserError(f"{options.scores}: none of its recordings is in {options.labels}; expected the same names")
    if missing:
        text = f"{options.scores}: no scores for {len(missing)} of {len(labels)} recordings: {some(missing)}"
        if not options.partial:
            raise UserError(f"{text}; score them too, or leave them out with --partial")
        print(f"warning: {text}", file=sys.stderr)
    known = {name: parts for name, parts in labels.items() if name in scores}
    result = score_segments(scores, known, options.unit, options.draws, options.seed)
    print(
        f"{result['recordings']} recordings, {result['genuine']} genuine and {result['fake']} fake units of "
        f"{options.unit:g} s: EER {percent(result['eer'])} % {bracketed(result['interval'], 2)} (95 %, bootstrap over "
        f"recordings), threshold {result['threshold']:.4g}"
    )
    if options.json:
        write_json(options.json, result)


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument(
        "--scores", metavar="FILE", required=True, help="CSV written by utils/detect_fake.py --segments --format csv"
    )
    parser.add_argument("--labels", metavar="FILE", required=True, help="labels of genuine and fake parts")
    parser.add_argument("--unit", metavar="S", type=length, default=0.16, help="length of a unit in seconds (default: 0.16)")
    parser.add_argument("--partial", action="store_true", help="score only recordings with scores, and name the others")
    add_bootstrap(parser, units=False)
    add_json(parser)
    return parser
