"""Check a ZeroSpeech 2020 submission (track 2019: units and resynthesis) before sending it.

FOLDER holds metadata.yaml and 2019/{metadata.yaml,english,surprise}; pyspeech/units/submission.py has the
rules. Each problem is a line `file: problem`; the exit status is 1 if there is one.
"""

from __future__ import annotations

from pyspeech.commands.arguments import tool_parser
from pyspeech.errors import UserError


def main(arguments=None):
    """Returns the exit status: 0 where the submission is right, 1 otherwise."""
    options = parser().parse_args(arguments)
    from pyspeech.units.submission import check_submission, missing_languages, printable

    folder = printable(options.folder)
    expected = None
    if options.corpus:
        from pyspeech.units.challenge import expected_files

        expected = expected_files(options.corpus, options.language)
    elif options.language:
        raise UserError(f"--language {options.language}: needs --corpus")
    problems = check_submission(options.folder, expected)
    for path, problem in problems:
        print(f"{path}: {problem}")
    if problems:
        print(f"{folder}: {len(problems)} problem{'s' * (len(problems) > 1)}")
    else:
        missing = " and ".join(missing_languages(options.folder))
        print(
            f"{folder}: nothing wrong"
            + ("" if expected else "; whether every test utterance is there was not checked (--corpus DIR checks that)")
            + (f"; the challenge wants the language {missing} too (utils/merge_submissions.py)" if missing else "")
        )
    return 1 if problems else 0


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="the unpacked submission")
    parser.add_argument(
        "--corpus",
        metavar="DIR",
        help="the corpus, in the challenge's layout: also check that the submission has exactly "
        "its test utterances and those to synthesise",
    )
    parser.add_argument("--language", metavar="NAME", help="with --corpus: check only this language (default: all)")
    return parser
