"""Tables for people: Markdown and plain columns, the forms of figures, the frame of RESULTS.md."""

from pyspeech.report.tables import aligned, bracketed, decimals, markdown_table, percent, report_text, spread


def test_markdown_is_as_wide_as_its_widest_cells():
    lines = markdown_table(["System", "a"], [["x", 1.5], ["longest", None]]).splitlines()
    assert lines == ["| System  |   a |", "|---------|----:|", "| x       | 1.5 |", "| longest |   – |"]


def test_columns_on_a_terminal():
    assert aligned([["", "errors"], ["all", 3], ["none", None]]) == [
        "      errors",
        "------------",
        "all        3",
        "none       -",
    ]
    assert aligned([["alone"]]) == ["alone", "-----"]


def test_forms_of_figures():
    assert (decimals(0.125, ".1f"), decimals(3.0, "g"), decimals(None)) == ("0.1", "3", None)
    assert (percent(0.12345), percent(0.5, 0), percent(None)) == ("12.35", "50", None)
    assert (bracketed([0.1, 0.25]), bracketed((0.1, 0.25), 2)) == ("[10.0, 25.0]", "[10.00, 25.00]")
    assert (spread([]), spread([2.0]), spread([1, 3]), spread([0.01, 0.03], scale=100)) == (
        None,
        "2.00",
        "2.00 ± 1.41",
        "2.00 ± 1.41",
    )


def test_paragraphs_of_a_report():
    text = report_text("Title", "A note.\n", "egs/x/run.py", ["## Table", markdown_table(["a"], [["b"]])])
    assert text == "# Title\n\nA note.\n\nMade by `egs/x/run.py`.\n\n## Table\n\n| a   |\n|-----|\n| b   |\n"
