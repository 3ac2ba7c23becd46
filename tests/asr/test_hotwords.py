"""The automaton of hotwords against naive string search; files of hotwords."""

import random

import pytest
import torch

from pyspeech.asr.context_graph import ContextGraph
from pyspeech.asr.hotwords import Hotword, as_hotwords, encode_hotwords, hotword_graph, read_hotwords
from pyspeech.errors import UserError
from pyspeech.text.units import GraphemeUnits


class Naive:
    """The bonus of a string of symbols as pyspeech/asr/hotwords.py defines it, by comparing strings alone."""

    def __init__(self, phrases):
        self.phrases = {}
        for phrase, boost in phrases:
            self.phrases[phrase] = max(boost, self.phrases.get(phrase, 0.0))

    def longest_beginning(self, text):
        ends = [text[first:] for first in range(len(text) + 1)]
        return next(end for end in ends if any(phrase.startswith(end) for phrase in self.phrases))

    def kept_along(self, beginning):
        return sum(self.kept(beginning[:length]) for length in range(1, len(beginning) + 1))

    def kept(self, beginning):
        if beginning in self.phrases:
            return max(self.phrases[beginning] * len(beginning) - self.kept_along(beginning[:-1]), 0.0)
        inside = [beginning[first:] for first in range(1, len(beginning)) if beginning[first:] in self.phrases]
        return self.kept(inside[0]) if inside else 0.0

    def provisional(self, beginning):
        further = [b for phrase, b in self.phrases.items() if phrase.startswith(beginning) and phrase != beginning]
        if not beginning or not further:
            return 0.0
        return max(max(further) * len(beginning) - self.kept_along(beginning), 0.0)

    def bonus(self, text):
        kept = sum(self.kept(self.longest_beginning(text[: length + 1])) for length in range(len(text)))
        return kept + self.provisional(self.longest_beginning(text))


def walk(graph, text):
    """Bonus after each symbol, and the node at the end."""
    node, total, totals = torch.tensor([graph.start]), 0.0, []
    for symbol in text:
        total += float(graph.begin(node)[1][0, symbol])
        node = graph.step(node, torch.tensor([symbol]))
        totals.append(total)
    return totals, node


@pytest.mark.parametrize("seed", range(30))
def test_equals_naive_string_search(seed):
    generator = random.Random(seed)

    def draw(longest):
        return tuple(generator.randint(1, 3) for _ in range(generator.randint(1, longest)))

    phrases = [(draw(5), generator.choice([0.5, 1.0, 2.0])) for _ in range(generator.randint(1, 6))]
    # As strings, for the naive search.
    naive = Naive([("".join(map(str, phrase)), boost) for phrase, boost in phrases])
    graph = hotword_graph(phrases, 5)
    text = draw(1) + draw(30)
    totals, node = walk(graph, text)
    for length in range(1, len(text) + 1):
        assert totals[length - 1] == pytest.approx(naive.bonus("".join(map(str, text[:length]))), abs=1e-9)
    end = "".join(map(str, text))
    assert float(graph.pending[node]) == pytest.approx(naive.provisional(naive.longest_beginning(end)), abs=1e-9)


def test_a_bonus_is_kept_or_given_back():
    graph = hotword_graph([([1, 2, 3], 1.5), ([1, 2], 1.5)], 5)
    assert walk(graph, [1])[0] == [1.5] and float(graph.pending[walk(graph, [1])[1]]) == 1.5
    assert walk(graph, [1, 4])[0] == [1.5, 0.0]  # given back
    assert walk(graph, [1, 2, 4])[0] == [1.5, 3.0, 3.0]  # the shorter phrase is complete
    assert walk(graph, [1, 2, 3, 3])[0] == [1.5, 3.0, 4.5, 4.5]  # and is a part of the longer one
    assert walk(graph, [1, 1, 2])[0] == [1.5, 1.5, 3.0]


@pytest.mark.parametrize("rows", [0, 4, 1000])
def test_states_are_nodes(monkeypatch, rows):
    """Whatever part of the nodes has a row in the table: walks of two times three rows against nodes one by one."""
    phrases = [((1, 2, 3, 4), 1.0), ((2, 3, 1), 2.0), ((3, 3, 3), 0.5), ((4, 1, 2, 2, 1), 1.0)]
    monkeypatch.setattr("pyspeech.asr.context_graph.TABLE_BYTES", rows * 16 * 6)
    graph, generator = hotword_graph(phrases, 6), random.Random(rows)
    for _ in range(20):
        nodes = torch.tensor([[generator.randrange(len(graph.back)) for _ in range(3)] for _ in range(2)])
        states, values = graph.begin(nodes)
        for _ in range(8):
            assert torch.equal(graph.nodes_of(states), nodes)
            assert torch.equal(values, torch.stack([graph.begin(own)[1] for own in nodes]))
            symbols = torch.tensor([generator.randrange(1, 6) for _ in range(3)])
            states, values = graph.advance(states, symbols)
            nodes = torch.stack([graph.step(own, symbols) for own in nodes])
    assert graph._table.count <= rows and (rows < 1000 or int(states.min()) >= 0)


def test_joined_graphs_are_each_as_alone():
    graphs = [hotword_graph([((1, 2), 1.0)], 4), ContextGraph.empty(5), hotword_graph([((2, 2, 1), 2.0), ((3,), 1.0)], 6)]
    joined, starts = ContextGraph.join(graphs)
    for graph, start in zip(graphs, starts, strict=True):
        nodes, own = torch.tensor([start]), torch.tensor([graph.start])
        for symbol in (2, 2, 1, 2, 3, 1):
            if symbol >= graph.size:
                continue
            values = joined.begin(nodes)[1][0]
            assert torch.equal(values[: graph.size], graph.begin(own)[1][0])
            nodes, own = joined.step(nodes, torch.tensor([symbol])), graph.step(own, torch.tensor([symbol]))
            assert joined.pending[nodes] == graph.pending[own]


def test_files_and_lists(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("\ufeffराम\n\nनई दिल्ली\t2.5\nसीता \t\n", encoding="utf-8")
    expected = [Hotword("राम"), Hotword("नई दिल्ली", 2.5), Hotword("सीता")]
    assert read_hotwords(path) == as_hotwords(path) == as_hotwords(["राम", ("नई दिल्ली", 2.5), Hotword("सीता")]) == expected
    for text, message in (
        ("\n", "has no phrase"),
        ("a\t0", "line 1: boost 0"),
        ("\na\tmuch\n", "line 2: boost much; expected a"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=message):
            read_hotwords(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_hotwords(tmp_path / "none.txt")
    with pytest.raises(UserError, match="hotword a: boost -1"):
        as_hotwords([("a", -1)])
    for item in (3, ("a", 1.0, 2.0), (1.0, "a"), None):
        with pytest.raises(UserError, match="hotword .*: expected a text, or"):
            as_hotwords([item])


def test_phrases_are_normalised_and_those_of_other_letters_named():
    units = GraphemeUnits.build(["abc de"])
    phrases, left_out = encode_hotwords([Hotword("A-B!"), Hotword("e", 2.0), Hotword("xa"), Hotword("...")], units, None, 1.5)
    assert phrases == [(units.encode("a b"), 1.5), (units.encode("e"), 2.0)] and left_out == ["xa", "..."]
