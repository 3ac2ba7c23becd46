"""Write the report page of an experiment: results, examples to look at and listen to, training curves, what ran.

The page is EXP/report/index.html, which opens in any browser, without a network. With several experiments it has them side
by side.

examples:
  utils/report.py exp/mini
  utils/report.py exp/mini exp/other --out compared/
"""

from __future__ import annotations

from pathlib import Path

from pyspeech.commands.arguments import tool_parser
from pyspeech.errors import naming_extras
from pyspeech.report.page import write_page


def main(arguments=None):
    options = parser().parse_args(arguments)
    several = len(options.experiments) > 1
    out = options.out or Path(options.experiments[0]) / ("compared" if several else "report")
    with naming_extras():
        print(write_page(options.experiments, out))


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("experiments", metavar="EXP", nargs="+", help="experiment folder, as a recipe has made it")
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the page (default: EXP/report, of several EXP/compared in the first)"
    )
    return parser
