"""Tables of egs/fearless: no system that has results goes without a row."""

from pyspeech.sad.registry import NETWORKS
from steps.sad.tables import errors_table, labelled, table_2, table_3


def test_a_system_without_a_label_has_a_row_by_its_name():
    scores = {name: {"dev": {"0.5": {"dcf": 0.1}}} for name in ("unheard_of", *NETWORKS)}
    rows = [*((name, network.label) for name, network in NETWORKS.items()), ("unheard_of", "unheard_of")]
    assert labelled(scores) == rows
    for table in (table_2(scores, ["dev"], 0.5), errors_table(scores, ["dev"], 0.5), table_3(dict.fromkeys(scores, 0.01))):
        assert all(f"| {label} " in table for _, label in rows)
