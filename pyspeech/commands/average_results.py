"""Average the figures of several runs of a recipe, e.g. of several random seeds: mean and standard deviation.

A figure is named by its place in results.json, e.g. scores/rnn/eval/0.5/dcf. Figures that some runs lack, and values
that are not numbers, are left out and counted.

examples:
  utils/average_results.py exp/mini/results.json exp/seed4[34]/results.json --only 'scores/*/eval/0/dcf'
"""

from __future__ import annotations

import fnmatch
import json
import statistics
import sys
from pathlib import Path

from pyspeech.commands.arguments import add_json, tool_parser
from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.report.tables import aligned


def figures(path):
    """{name: number} of a results.json; UserError where it is none."""
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected a results.json") from error
    except ValueError as error:
        raise UserError(f"{path}: no JSON ({error}); expected a results.json") from error
    return dict(_leaves(read, ()))


def _leaves(value, place):
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(part, (*place, str(key)))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield "/".join(place), value


def average(runs):
    """{name: {"mean", "deviation" (of a sample), "least", "most"}} of the figures that all runs, {name: number}, have."""
    return {
        name: {
            "mean": statistics.mean(values),
            "deviation": statistics.stdev(values),
            "least": min(values),
            "most": max(values),
        }
        for name, values in ((name, [run[name] for run in runs]) for name in runs[0] if all(name in run for run in runs))
    }


def main(arguments=None):
    parser = tool_parser(__doc__)
    parser.add_argument("results", metavar="FILE", nargs="+", help="results.json of two or more runs")
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        nargs="+",
        default=["*"],
        help="average only figures whose names match (shell wildcards; default: all)",
    )
    add_json(parser)
    options = parser.parse_args(arguments)
    if len(options.results) < 2:
        raise UserError(f"{options.results[0]}: one file; expected results.json of two runs or more")
    runs = [
        {
            name: value
            for name, value in figures(path).items()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in options.only)
        }
        for path in options.results
    ]
    found = average(runs)
    if not found:
        raise UserError(f"{', '.join(options.results)}: no figure common to all matches {' '.join(options.only)}")
    if options.json:
        write_json(options.json, found)
    print(
        *aligned(
            [
                ["figure", "mean", "deviation", "least", "most"],
                *([name, *(f"{value:.5g}" for value in of.values())] for name, of in found.items()),
            ]
        ),
        sep="\n",
    )
    others = len({name for run in runs for name in run}) - len(found)
    if others:
        print(f"{others} figures that not all of the {len(runs)} runs have are left out", file=sys.stderr)
