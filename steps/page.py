"""The last stage of a recipe: the page to look at and listen to. No other stage needs it."""


def declare_page(recipe, *shown):
    """Add the stage `report`, which the option `report` switches off. shown: patterns of what it reads beside the results."""

    def outputs(conf):
        return ["report"] if conf.report else []

    inputs = [*shown, "results.json", "RESULTS.md"]
    recipe.stage(name="report", inputs=inputs, outputs=outputs)(make_page)


def make_page(exp, conf):
    """The page report/index.html: results, examples to look at and listen to, training curves, what ran."""
    from pyspeech.report.page import write_page

    write_page([exp.dir], exp.dir / "report")
