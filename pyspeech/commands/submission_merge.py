"""Merge ZeroSpeech 2020 submissions of one language each, e.g. of two runs of a recipe.

Each FOLDER is a submission that utils/validate_submission.py accepts. OUT is a new folder with all languages. The
metadata must agree except for the description. The challenge expects english and surprise in one submission.
"""

from __future__ import annotations

from pyspeech.commands.arguments import tool_parser


def main(arguments=None):
    options = parser().parse_args(arguments)
    from pyspeech.units.submission import missing_languages, printable
    from pyspeech.units.submission_merge import merge_submissions

    merge_submissions(options.folders, options.output)
    missing = missing_languages(options.output)
    print(
        f"{printable(options.output)}: nothing wrong"
        + (f"; the challenge wants the language {' and '.join(missing)} too" if missing else ", both languages")
    )


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("folders", metavar="FOLDER", nargs="+", help="a submission")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="folder to create")
    return parser
