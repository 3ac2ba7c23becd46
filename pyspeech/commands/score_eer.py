"""Score a detector of fake audio: EER with 95 % interval, DCF, Cllr and min t-DCF, by subset, attack, family and condition.

SCORES has lines `utterance score`, or named columns (CSV, TSV or JSON, as written by utils/detect_fake.py); a higher score
means more likely genuine. Score files of ASVspoof's and NII's scripts are understood; --columns describes others.
LABELS is a label file of ADD2022 (`FILE genuine|fake`), a key of ASVspoof 2019, 2021 (LA, DF, PA) or 5, a table with a header
(e.g. `file,speaker,label`), or a lhotse manifest of cuts (*.jsonl, *.jsonl.gz; text genuine or fake). Utterances are named
without the ending of the audio file. If one side has more folders in its names, their ends are compared.

A key of ASVspoof 2021 has several subsets. Only eval is scored, as in the challenge, unless --subset names another.
Cllr and the actual DCF need calibrated scores (log-likelihood ratios); the other figures do not.

examples:
  utils/detect_fake.py eval/ --model DIR --format scores -o scores.txt
  utils/score_eer.py --scores scores.txt --labels eval_label.txt --det det.png
  utils/score_eer.py --scores scores.txt --labels ASVspoof2019.LA.cm.eval.trl.txt --asv-scores asv_scores.txt
  utils/score_eer.py --scores scores.txt --labels keys/LA/CM/trial_metadata.txt \\
      --asv-scores keys/LA/ASV/ASVTorch_Kaldi/score.txt --asv-key keys/LA/ASV/trial_metadata.txt
  utils/score_eer.py --scores logits.txt --columns name,fake,genuine --labels labels.csv
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspeech.commands.arguments import add_bootstrap, add_json, tool_parser
from pyspeech.commands.terminal import set_up_messages, some
from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.report.tables import aligned, bracketed, percent

TITLES = {"subsets": "subset", "attacks": "attack", "families": "family", "conditions": "condition"}
MAIN_SUBSET, ALL = "eval", "all"


def main(arguments=None):
    options = parser().parse_args(arguments)
    set_up_messages()
    from pyspeech.spoof.label_files import read_labels
    from pyspeech.spoof.score_files import match_scores, read_asv_scores, read_scores
    from pyspeech.spoof.scored_set import score_set
    from pyspeech.spoof.scoring import asv_rates

    if options.asv_key and not options.asv_scores:
        raise UserError(f"--asv-key {options.asv_key}: expected --asv-scores too")
    scores = read_scores(options.scores, options.columns)
    labels = read_labels(options.labels, scores, options.genuine)
    if options.genuine and not any(label.genuine for label in labels.values()):
        raise UserError(f"--genuine {options.genuine}: {options.labels} has no such label")
    scores = match_scores(scores, labels, options.scores)
    subset, labels = of_subset(labels, options)
    labels = matched(labels, scores, options)
    rates = asv_rates(read_asv_scores(options.asv_scores, options.asv_key, subset)) if options.asv_scores else None
    result = score_set(
        labels, scores, options.resample == "speaker", rates, options.draws, options.seed, progress="bootstrap, groups"
    )
    print(report(result, options, subset))
    if options.json:
        write_json(options.json, {**result, "subset": subset})
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


def of_subset(labels, options):
    """(the subset that is scored or None, its labels); a warning where several are pooled that nobody asked for."""
    from pyspeech.spoof.formats import UNKNOWN

    found = sorted({label.subset for label in labels.values()} - {UNKNOWN})
    wanted = options.subset or (MAIN_SUBSET if MAIN_SUBSET in found else ALL)
    if wanted == ALL:
        if len(found) > 1 and not options.subset:
            print(f"warning: {options.labels}: subsets {', '.join(found)} are pooled; --subset takes one", file=sys.stderr)
        return None, labels
    if wanted not in found:
        raise UserError(f"--subset {wanted}: {options.labels} has {', '.join(found) or 'no subsets'}; expected one, or {ALL}")
    return wanted, {name: label for name, label in labels.items() if label.subset == wanted}


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("--scores", metavar="FILE", required=True, help="lines `utterance score`; higher is genuine")
    parser.add_argument("--labels", metavar="FILE", required=True, help="labels of genuine and fake utterances")
    parser.add_argument(
        "--columns",
        metavar="NAMES",
        type=column_names,
        help="columns of SCORES: name, score, genuine, fake, or - for others; with two logits the score is genuine "
        "minus fake (default: detected)",
    )
    parser.add_argument(
        "--genuine",
        metavar="WORD",
        help="label of genuine speech; any other means fake (default: genuine, bonafide, real, human or 1)",
    )
    parser.add_argument(
        "--subset", metavar="NAME", help=f"subset of LABELS to score, or {ALL} (default: {MAIN_SUBSET} where there is one)"
    )
    parser.add_argument(
        "--asv-scores",
        metavar="FILE",
        help="speaker verification scores (`source target|nontarget|spoof score`): also print the min t-DCF",
    )
    parser.add_argument(
        "--asv-key", metavar="FILE", help="key of these scores, for lines `speaker utterance score` (ASVspoof 2021)"
    )
    parser.add_argument(
        "--partial",
        action="store_true",
        help="score only utterances with scores, and name the others; otherwise missing scores are an error",
    )
    add_bootstrap(parser)
    add_json(parser)
    parser.add_argument("--det", metavar="PNG", type=png, help="plot misses against false alarms (DET curve)")
    return parser


def png(text):
    if not text.lower().endswith(".png"):
        raise argparse.ArgumentTypeError(f"{text} is not the name of a PNG file, such as det.png")
    return text


def column_names(text):
    from pyspeech.spoof.score_files import COLUMNS

    names = text.replace(",", " ").split()
    if unknown := [name for name in names if name not in COLUMNS]:
        raise argparse.ArgumentTypeError(f"'{unknown[0]}' is not one of {', '.join(COLUMNS)}")
    return names


def matched(labels, scores, options):
    """The labels of the utterances that have a score; UserError where they should all have one."""
    missing = [name for name in labels if name not in scores]
    extra = [name for name in scores if name not in labels]
    if len(missing) == len(labels):
        raise UserError(
            f"{options.scores}: none of its {len(scores)} utterances ({some(extra, 2)}) is in "
            f"{options.labels} ({some(missing, 2)}); expected the same names, and folders where names repeat"
        )
    text = f"{options.scores}: no score for {len(missing)} of {len(labels)} utterances: {some(missing)}"
    if missing and not options.partial:
        raise UserError(f"{text}; score them too, or leave them out with --partial")
    if missing:
        print(f"warning: {text}", file=sys.stderr)
    if extra:
        print(f"warning: {options.scores}: {len(extra)} without label, not scored: {some(extra)}", file=sys.stderr)
    return {name: label for name, label in labels.items() if name in scores}


def report(result, options, subset=None):
    """The figures of `score_set` as text."""
    rows = [("all" if subset is None else f"subset {subset}", result)]
    for group, title in TITLES.items():
        if group != "subsets" or subset is None and len(result[group]) > 1:
            rows += [(f"{title} {name}", entry) for name, entry in result[group].items()]
    lines = aligned([("", "genuine", "fake", "EER %", "[low, high]"), *(row(*entry) for entry in rows)])
    against = "; an attack or a family is scored against all genuine ones" if result["attacks"] or result["families"] else ""
    lines.append(f"[ ]: 95 % interval, bootstrap over {options.resample}s{against}")
    figures = [f"threshold at the EER {result['threshold']:.4g}", f"Cllr {result['cllr']:.4f} bit"]
    figures += [f"min DCF {result['min_dcf']:.4f}", f"actual DCF {result['act_dcf']:.4f}"]
    if "min_tdcf" in result:
        figures.append(f"min t-DCF {result['min_tdcf']:.4f} (2019), {result['min_tdcf_2021']:.4f} (2021)")
    return "\n".join([*lines, ", ".join(figures)])


def row(name, entry):
    known = entry["eer"] is not None
    return name, entry["genuine"], entry["fake"], percent(entry["eer"]), bracketed(entry["interval"], 2) if known else None
