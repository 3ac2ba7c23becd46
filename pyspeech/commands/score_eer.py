"""Score a detector of fake audio: equal error rate (EER) with 95 % interval, Cllr and min t-DCF, by attack and condition.

SCORES has lines `utterance score`; a higher score means more likely genuine. LABELS is a label file of ADD2022 (`FILE
genuine|fake`), a protocol of ASVspoof 2019 or 2021 (`SPEAKER UTTERANCE - ATTACK bonafide|spoof`), or a lhotse manifest
of cuts (*.jsonl, *.jsonl.gz; text genuine or fake). An audio file's ending is no part of an utterance's name, and
folders are none where no name of SCORES has them as LABELS has.

Cllr is meant for calibrated scores (log-likelihood ratios); the EER takes scores of any kind.

examples:
  utils/detect_fake.py eval/ --model DIR --format scores -o scores.txt
  utils/score_eer.py --scores scores.txt --labels eval_label.txt --det det.png
  utils/score_eer.py --scores scores.txt --labels ASVspoof2019.LA.cm.eval.trl.txt --asv-scores asv_scores.txt
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspeech.commands.arguments import add_json, seed, tool_parser, whole_number
from pyspeech.commands.terminal import some
from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.report.tables import aligned, bracketed, percent


def main(arguments=None):
    options = parser().parse_args(arguments)
    from pyspeech.spoof.formats import match_scores, read_asv_scores, read_labels, read_scores
    from pyspeech.spoof.scoring import asv_rates, score_set

    scores, labels = match_scores(read_scores(options.scores), read_labels(options.labels), options.scores)
    labels = matched(labels, scores, options)
    asv = asv_rates(read_asv_scores(options.asv_scores)) if options.asv_scores else None
    result = score_set(labels, scores, options.resample == "speaker", asv, options.draws, options.seed)
    print(report(result, options))
    if options.json:
        write_json(options.json, result)
    if options.det:
        from pyspeech.report.det_plot import plot_det

        genuine, fake = ([scores[name] for name in labels if labels[name].genuine is kind] for kind in (True, False))
        plot_det({Path(options.scores).name: (genuine, fake)}, options.det)
    if result["eer"] > 0.5:
        print(
            f"warning: {options.scores}: an EER above 50 % means that higher scores go with fake speech; they look "
            "inverted, and higher has to mean genuine",
            file=sys.stderr,
        )


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("--scores", metavar="FILE", required=True, help="lines `utterance score`; higher is genuine")
    parser.add_argument("--labels", metavar="FILE", required=True, help="what is genuine and what is fake")
    parser.add_argument(
        "--asv-scores",
        metavar="FILE",
        help="scores of speaker verification (`source "
        "target|nontarget|spoof score`): print the min t-DCF of ASVspoof 2019 as well",
    )
    parser.add_argument(
        "--partial",
        action="store_true",
        help="score what there are scores of, and name the rest; without this, missing scores are an error",
    )
    parser.add_argument(
        "--resample",
        choices=("utterance", "speaker"),
        default="utterance",
        help="what the bootstrap of the intervals draws (default: utterance)",
    )
    parser.add_argument("--draws", metavar="N", type=whole_number, default=1000, help="of the bootstrap (default: 1000)")
    parser.add_argument("--seed", metavar="N", type=seed, default=0, help="of the bootstrap (default: 0)")
    add_json(parser)
    parser.add_argument("--det", metavar="PNG", type=png, help="plot false alarms against misses")
    return parser


def png(text):
    if not text.lower().endswith(".png"):
        raise argparse.ArgumentTypeError(f"{text} is not the name of a PNG file, such as det.png")
    return text


def matched(labels, scores, options):
    """The labels of the utterances that have a score; UserError where they should all have one."""
    missing = [name for name in labels if name not in scores]
    extra = [name for name in scores if name not in labels]
    if len(missing) == len(labels):
        raise UserError(
            f"{options.scores}: none of its {len(scores)} utterances ({some(extra, 2)}) is in "
            f"{options.labels} ({some(missing, 2)}); expected the same names"
        )
    text = f"{options.scores}: no score for {len(missing)} of {len(labels)} utterances: {some(missing)}"
    if missing and not options.partial:
        raise UserError(f"{text}; score them too, or leave them out with --partial")
    if missing:
        print(f"warning: {text}", file=sys.stderr)
    if extra:
        print(f"warning: {options.scores}: {len(extra)} without label, not scored: {some(extra)}", file=sys.stderr)
    return {name: label for name, label in labels.items() if name in scores}


def report(result, options):
    """The figures of `score_set` as text."""
    rows = [("all", result)]
    rows += [(f"attack {name}", entry) for name, entry in result["attacks"].items()]
    rows += [(f"condition {name}", entry) for name, entry in result["conditions"].items()]
    cells = [("", "genuine", "fake", "EER %", "[low, high]"), *(row(*entry) for entry in rows)]
    lines = aligned(cells)
    lines.append(
        f"[ ]: 95 % interval, bootstrap over {options.resample}s; an attack is scored against all genuine ones"
        if result["attacks"]
        else f"[ ]: 95 % interval, bootstrap over {options.resample}s"
    )
    figures = [f"threshold at the EER {result['threshold']:.4g}", f"Cllr {result['cllr']:.4f} bit"]
    if "min_tdcf" in result:
        figures.append(f"min t-DCF {result['min_tdcf']:.4f}")
    return "\n".join([*lines, ", ".join(figures)])


def row(name, entry):
    known = entry["eer"] is not None
    return name, entry["genuine"], entry["fake"], percent(entry["eer"]), bracketed(entry["interval"], 2) if known else None
