"""Score speech activity detection: the official detection cost function (DCF) with precision, recall and F1.

References and hypotheses are each a file or a folder, searched recursively: labels of Fearless Steps, RTTM, Audacity,
TextGrid, CSV, Kaldi segments, lhotse supervisions, or JSON from utils/detect_speech.py. A recording is named as in
detection: the file's stem, with as many folders before it as make it unique. Every reference needs a hypothesis.
The overall DCF is the official one: the unweighted mean over recordings, each rounded to 5 decimals. All other overall
figures are computed from the summed times of all recordings.

examples:
  utils/score_sad.py --reference labels/ --hypothesis found/
  utils/score_sad.py --reference call.TextGrid --hypothesis call.rttm --collar 0
  utils/score_sad.py --reference all.rttm --hypothesis found/ --uem all.uem
"""

from __future__ import annotations

import sys

from pyspeech.commands.arguments import add_json, tool_parser
from pyspeech.files import write_json
from pyspeech.report.tables import aligned, decimals

COLUMNS = [
    ("DCF", "dcf", 5),
    ("Pmiss", "p_miss", 5),
    ("Pfa", "p_fa", 5),
    ("P", "precision", 4),
    ("R", "recall", 4),
    ("F1", "f1", 4),
    ("missed s", "miss_s", 2),
    ("false s", "fa_s", 2),
    ("speech s", "speech_s", 2),
    ("non-speech s", "nonspeech_s", 2),
]


def main(arguments=None):
    options = parser().parse_args(arguments)
    from pyspeech.sad.scoring import score_files

    result = score_files(options.reference, options.hypothesis, options.collar, options.uem, options.audio)
    if options.json:
        write_json(options.json, result)
    for line in result["warnings"]:
        print(f"warning: {line}", file=sys.stderr)
    print(table(result))


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("--reference", metavar="PATH", required=True, help="label file or folder of the references")
    parser.add_argument("--hypothesis", metavar="PATH", required=True, help="label file or folder of the hypotheses")
    parser.add_argument(
        "--collar",
        metavar="S",
        type=float,
        default=0.5,
        help="unscored seconds before and after speech (default: 0.5, the official collar)",
    )
    parser.add_argument("--uem", metavar="FILE", help="score only the regions in this UEM file")
    parser.add_argument(
        "--audio",
        metavar="INPUT",
        help="recordings whose length neither labels nor --uem give: audio file, folder, *.scp, *.jsonl",
    )
    add_json(parser)
    return parser


def table(result):
    """Return the result of `score_files` as text: a line for each recording, one for all, and what they mean."""
    rows = [["recording"] + [title for title, _, _ in COLUMNS]]
    for name, score in [*result["files"].items(), ("overall", result["overall"])]:
        rows.append([name] + [decimals(score[key], f".{digits}f") for _, key, digits in COLUMNS])
    lines = aligned(rows)
    count = sum(score["dcf"] is not None for score in result["files"].values())
    note = (
        f"collar {result['collar']:g} s; overall DCF: mean of {count} recording{'s' if count > 1 else ''}; "
        "the other overall figures: over the summed times"
    )
    return "\n".join([*lines[:-1], lines[1], lines[-1], note])
