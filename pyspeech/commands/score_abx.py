"""Score features by ABX error: how often a phone token is nearer to another phone, within and across speakers.

FEATURES is a folder, searched recursively, with one file per recording: NAME.npy or NAME.pt (frames, dim), or codes (frames,),
NAME.npz (`features`, and optionally `times` in seconds), NAME.txt (one vector per line, or codes in one line), NAME.jsonl
(from utils/encode_units.py); or one file: a Kaldi table of matrices (.scp, .ark), or lines `NAME 12 12 7 3` of codes (.txt).
Codes are compared as one-hot vectors.

FILE has a header and lines `file onset offset phone phone-before phone-after speaker`, or is a compiled task of ABXpy (.abx),
such as ZeroSpeech distributes. All triplets count; see pyspeech/units/abx.py for the rules.
"""

from __future__ import annotations

import math
import os

from pyspeech.commands.arguments import new_file, tool_parser
from pyspeech.errors import UserError
from pyspeech.files import write_json


def main(arguments=None):
    options = parser().parse_args(arguments)
    if options.jobs < 1 or options.frame_rate is not None and not 0 < options.frame_rate < math.inf:
        raise UserError(f"--jobs {options.jobs} --frame-rate {options.frame_rate}; expected finite numbers above 0")
    # The work is in many small products of matrices: processes help there, threads do not.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from pyspeech.units.abx import MODES, load_frames, score_modes
    from pyspeech.units.abx_task import read_item_file
    from pyspeech.units.items import in_any_context

    items = read_item_file(options.items)
    if options.context == "any":
        items = in_any_context(items)
    frames = load_frames(items, options.features, options.frame_rate)
    result = {"distance": options.distance, "rule": options.rule, "context": options.context, "items": len(items)}
    modes = MODES if options.mode == "both" else (options.mode,)
    for mode, error, cells in score_modes(items, frames, options.distance, modes, options.rule, options.jobs):
        result[mode] = {"error": error, "cells": cells}
        if cells:
            print(
                f"{mode}: {error:.2f} % error, {options.distance}, {options.rule} averages, {cells} cells, {len(items)} items",
                flush=True,
            )
    if not any(result[mode]["cells"] for mode in modes):
        raise UserError(f"{options.items}: nothing to compare {' or '.join(modes)} speakers")
    if options.json:
        write_json(options.json, result)


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("--items", metavar="FILE", required=True, help="phone tokens (.item, or a compiled task, .abx)")
    parser.add_argument("--features", metavar="FEATURES", required=True, help="folder of files, or x.scp, x.ark, x.txt")
    parser.add_argument(
        "--distance",
        choices=("cosine", "kl", "levenshtein"),
        default="cosine",
        help="cosine; kl: for probabilities; levenshtein: edit distance of codes (default: cosine)",
    )
    parser.add_argument(
        "--frame-rate",
        metavar="HZ",
        type=float,
        help="frames per second, the first centred at half a frame (default: the times in the files)",
    )
    parser.add_argument(
        "--mode",
        choices=("across", "within", "both"),
        default="both",
        help="X spoken by another speaker than A and B (across), or by the same one (within) (default: both)",
    )
    parser.add_argument(
        "--context",
        choices=("same", "any"),
        default="same",
        help="compare A, B and X between the same neighbouring phones, or any (default: same)",
    )
    parser.add_argument(
        "--rule",
        choices=("zerospeech2020", "joint"),
        default="zerospeech2020",
        help="order of averaging: as in ZeroSpeech 2020, or joint over contexts and speakers of X, as in "
        "Libri-light and fastabx (default: zerospeech2020)",
    )
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="number of processes (default: 1)")
    parser.add_argument(
        "--json", metavar="FILE", type=new_file, help="also write the figures, with all digits, to FILE; null without triplets"
    )
    return parser
