"""The last stage of a recipe: the page to look at and listen to. No other stage needs it."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspeech.engine.recipe import Experiment, Recipe


def declare_page(recipe: Recipe, *shown: str, tables: str) -> None:
    """Add the stage `report`, which the option `report` switches off.

    Args:
        recipe: The recipe, all other stages declared.
        shown: Patterns of what the stage reads beside the results.
        tables: Module whose `names()` gives {system: its name in the tables of the results}.
    """

    def outputs(conf):
        return ["report"] if conf.report else []

    recipe.stage(
        name="report",
        about="The page report/index.html: results, examples with sound, training curves, what ran.",
        inputs=[*shown, "results.json", "RESULTS.md"],
        outputs=outputs,
    )(partial(make_page, tables=tables))


def make_page(exp: Experiment, conf: Any, tables: str) -> None:
    """Write report/index.html, and beside it the names of the systems, which other pages of the experiment show too."""
    from pyspeech.files import write_json
    from pyspeech.report.experiment import NAMES
    from pyspeech.report.page import write_page

    write_json(exp.dir / NAMES, importlib.import_module(tables).names())
    write_page([exp.dir], exp.dir / "report")
