"""Options of hotwords and language models, which commands that recognise speech share."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspeech.asr.config import HOTWORDS_SCORE, LM_WEIGHT, ContextWeights
from pyspeech.commands.arguments import length, number
from pyspeech.errors import UserError


def add_context(parser: argparse.ArgumentParser) -> None:
    """Add the options that `context_of` reads."""
    group = parser.add_argument_group("hotwords and language models (best with --beam 4 or more)")
    group.add_argument(
        "--hotwords", metavar="FILE", help="text file of phrases to prefer, one a line: phrase, or phrase, tab and its boost"
    )
    group.add_argument(
        "--hotwords-score",
        metavar="X",
        type=length,
        default=HOTWORDS_SCORE,
        help="bonus in log probability for each symbol of a phrase without a boost; given back if the match breaks off "
        f"(default: {HOTWORDS_SCORE})",
    )
    group.add_argument(
        "--lm",
        metavar="[CODE=]FILE",
        action="append",
        help="ARPA file of an n-gram model over the model's symbols, as utils/train_lm.py makes it; models over words are "
        "refused. CODE: its language, if the model has a vocabulary for each; repeat for several",
    )
    group.add_argument(
        "--lm-weight", metavar="X", type=number, default=LM_WEIGHT, help=f"weight of --lm (default: {LM_WEIGHT})"
    )
    group.add_argument(
        "--ilm-weight",
        metavar="X",
        type=number,
        default=0.0,
        help="with --lm: weight of the transducer's own language model, estimated without its encoder, which is "
        "subtracted (default: 0)",
    )


def check_context(options: argparse.Namespace) -> None:
    """UserError for options that do not fit each other, and for a file that is not there."""
    for option, value, needed in (
        ("--hotwords-score", options.hotwords_score != HOTWORDS_SCORE, "hotwords"),
        ("--lm-weight", options.lm_weight != LM_WEIGHT, "lm"),
        ("--ilm-weight", options.ilm_weight != 0, "lm"),
    ):
        if value and not getattr(options, needed):
            raise UserError(f"{option}: without effect; add --{needed} FILE, or leave it out")
    named = [("--lm", path) for path in _language_models(options).values()]
    for option, path in [("--hotwords", options.hotwords), *named]:
        if path is not None and not Path(path).is_file():
            raise UserError(f"{option} {path}: no such file")


def context_of(options, bundle, language):
    """The Context that the options give a model; language: code of the one that is recognised, None for all."""
    from pyspeech.asr.context import Context

    models = _language_models(options)
    weights = ContextWeights(options.hotwords_score, options.lm_weight, options.ilm_weight)
    return Context(bundle, options.hotwords or (), models.get("", models) or None, weights, language)


def _language_models(options):
    """{code: path}; "" for that of no language."""
    models = {}
    for given in options.lm or ():
        code, _, path = given.rpartition("=")
        if Path(given).is_file():  # a path with an equals sign
            code, path = "", given
        if code in models or models and "" in (code, *models):
            raise UserError(f"--lm {given}: a second one; expected one for each language, such as hi-IN=hi.arpa")
        models[code] = path
    return models
