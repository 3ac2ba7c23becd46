"""Score discrete units against phones: phone purity, cluster purity and PNMI, and the table of units against phones.

UNITS are codes or vectors: a folder with one file per utterance, a Kaldi table (.scp, .ark), or one file with lines
`NAME 12 12 7 3` (.txt) or records of utils/encode_units.py (.jsonl). FILE has the phones: lines `NAME START END PHONE` in
seconds, CTM (`NAME CHANNEL START DURATION PHONE`), or the items of an ABX test (.item). Phone purity rises with the number of
units and cluster purity falls: compare only systems with equally many. pyspeech/units/phones.py has the definitions.

examples:
  utils/encode_units.py recordings/ --model DIR --format text > units.txt
  utils/score_units.py --units units.txt --alignment phones.ctm --frame-rate 25 --table table.csv
"""

from __future__ import annotations

import argparse
import csv
import io

from pyspeech.commands.arguments import add_json, length, new_file, tool_parser
from pyspeech.commands.terminal import set_up_messages
from pyspeech.files import atomic_write, write_json
from pyspeech.report.tables import aligned, percent


def main(arguments=None):
    options = parser().parse_args(arguments)
    set_up_messages()
    from pyspeech.units.features_files import open_features
    from pyspeech.units.phones import count_together, figures, read_alignment

    units = open_features(options.units)
    counted = count_together(units, units.names, read_alignment(options.alignment), options.frame_rate)
    result = {"units": len(counted[0]), "phones": len(counted[1]), "frames": int(counted[2].sum()), **figures(counted[2])}
    print(report(result, *counted))
    if options.table:
        with atomic_write(options.table) as stream:
            stream.write(csv_text(*counted))
    if options.json:
        write_json(options.json, result)


def parser() -> argparse.ArgumentParser:
    parser = tool_parser(__doc__)
    parser.add_argument("--units", metavar="UNITS", required=True, help="folder of files, or x.txt, x.jsonl, x.scp, x.ark")
    parser.add_argument("--alignment", metavar="FILE", required=True, help="phones and their times")
    parser.add_argument(
        "--frame-rate",
        metavar="HZ",
        type=length,
        help="units per second, the first centred at half a unit (default: the times in the files)",
    )
    parser.add_argument("--table", metavar="CSV", type=new_file, help="write the counts of each unit in each phone")
    add_json(parser)
    return parser


def report(result, units, phones, counts, most=3):
    """The figures as text, and for each phone its commonest units."""
    lines = [
        f"phone purity {percent(result['phone_purity'])} %, cluster purity {percent(result['cluster_purity'])} %, "
        f"PNMI {result['pnmi']:.4f} ({result['information']:.3f} of {result['phone_entropy']:.3f} bit)",
        f"{result['units']} units, {result['phones']} phones, {result['frames']} frames",
        "",
    ]
    rows = [("phone", "frames", "commonest units, % of its frames")]
    for place in counts.sum(axis=0).argsort(kind="stable")[::-1]:
        column = counts[:, place]
        commonest = column.argsort(kind="stable")[::-1][:most]
        named = [(units[unit][:12], column[unit] / column.sum()) for unit in commonest if column[unit]]
        shares = ", ".join(f"{unit} {percent(share, 0)}" for unit, share in named)
        rows.append((phones[place], str(column.sum()), shares))
    return "\n".join([*lines, *aligned(rows)])


def csv_text(units, phones, counts):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["unit", *phones])
    writer.writerows([unit, *row] for unit, row in zip(units, counts.tolist(), strict=True))
    return text.getvalue()
