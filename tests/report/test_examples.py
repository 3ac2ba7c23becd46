"""Sections of a report page: what their filters show at first."""

from pyspeech.report.examples import example, section


def test_filters_leave_some_example_at_first():
    shown = [
        example("one", [{"system": "a", "kind": "false", "rank": 1.0}]),
        example("two", [{"system": "b", "kind": "missed"}]),
    ]
    filters = [("system", "system", ["a", "b"], "a"), ("kind", "error", ["missed", "false"], "missed")]
    found = section("errors", "Errors", examples=shown, filters=filters)["filters"]
    assert [first for *_, first in found] == ["a", ""]
    assert [first for *_, first in section("errors", "Errors", filters=filters)["filters"]] == ["", ""]
