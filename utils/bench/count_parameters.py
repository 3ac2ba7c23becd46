#!/usr/bin/env python3
"""Numbers of parameters of the transducers at the paper's sizes: Joshi et al. 2021, Table 6, ours beside theirs.

Vocabularies are those of the paper's Table 1. The paper gives the LSTM layers (6 and 2 of 1024 units, 640 inputs); the
rest is what reproduces its figures, see pyspeech/asr/. Outputs that only the pruned loss uses are not counted.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()


from pyspeech.asr.config import TransducerConfig, parameter_count
from pyspeech.commands.arguments import new_file, tool_parser
from pyspeech.commands.terminal import exit_after
from pyspeech.errors import UserError
from pyspeech.files import write_json
from steps.asr.tables import PAPER_TABLE_1, PAPER_TABLE_6, SHORT

PAPER = {SHORT[model]: millions for model, millions in PAPER_TABLE_6.items()}
STRUCTURES = {
    "Mono.": {"structure": "monolingual"},
    "Vanilla": {"structure": "vanilla"},
    "Onehot": {"structure": "onehot"},
    "MS": {},
    "MS LSP": {"lsp": True},
    "MS LID": {"lid": True},
}


def main(arguments=None):
    options = parser().parse_args(arguments)
    if options.union < 2:
        raise UserError(f"--union {options.union}: expected the blank and at least one symbol")
    rows = table(options.union)
    if options.json:
        write_json(options.json, rows)
    print("model      ours    paper   difference  (millions of parameters)")
    for row in rows:
        figures = f"{row['model']:8}  {row['ours']:7.2f}  {row['paper']:6.2f}  {row['difference']:+9.4f}"
        print(f"{figures}   {row['note']}".rstrip())


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument(
        "--union",
        metavar="V",
        type=int,
        default=union_size(),
        help="symbols of vanilla and one-hot (default: %(default)s, all of Table 1 with one blank)",
    )
    parser.add_argument("--json", metavar="FILE", type=new_file, help="write the table, with all digits, to FILE as well")
    return parser


def union_size():
    """Symbols of all languages, the blank once: their graphemes are distinct (the paper's section 5)."""
    return sum(PAPER_TABLE_1.values()) - len(PAPER_TABLE_1) + 1


def table(union):
    """Table 6 as a list of {"model", "parameters" (a number), "ours", "paper", "difference" (millions), "note"}."""
    rows = []
    for model, paper in PAPER.items():
        parameters = count(model, union)
        rows.append(
            {
                "model": model,
                "parameters": parameters,
                "ours": parameters / 1e6,
                "paper": paper,
                "difference": parameters / 1e6 - paper,
                "note": note(model, union),
            }
        )
    return rows


def count(model, union):
    """Parameters of a model of Table 6, vanilla and one-hot over `union` symbols."""
    if model == "Mono.":
        vocabularies = {"en-IN": PAPER_TABLE_1["en-IN"]}
    elif model in ("Vanilla", "Onehot"):
        vocabularies = dict.fromkeys(PAPER_TABLE_1, union)
    else:
        vocabularies = PAPER_TABLE_1
    return parameter_count(TransducerConfig(**STRUCTURES[model]), vocabularies)


def note(model, union):
    """What the figure rests on where the paper's text does not say it, and why it is another."""
    if model == "Mono.":
        return f"of the language with {PAPER_TABLE_1['en-IN']} symbols"
    if model == "MS LID":
        return "LID with hidden layers of 1000 and 500, which the paper does not give: one choice of several that fit"
    if model not in ("Vanilla", "Onehot"):
        return ""
    row = count(model, union + 1) - count(model, union)  # parameters of a symbol
    needed = union + (PAPER[model] * 1e6 - count(model, union)) / row
    half = 0.005 * 1e6 / row  # what the paper's figure is rounded by
    if abs(needed - union) <= half:
        return f"with a union of {union} symbols"
    here = "" if union == union_size() else f", here {union}"
    return (
        f"the paper's figure needs a union of {needed - half:.0f} to {needed + half:.0f} symbols; its text "
        f"(graphemes distinct between languages) and Table 1 give {union_size()}{here}"
    )


if __name__ == "__main__":
    exit_after(main)
