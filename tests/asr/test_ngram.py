"""n-gram models as automata, against back-off as the ARPA format defines it."""

import random

import numpy as np
import pytest
import torch

from pyspeech.asr.ngram import LN10, ngram_graph, symbol_ngrams
from pyspeech.errors import UserError
from pyspeech.text.arpa import END, START, Arpa, Ngrams, read_arpa, write_arpa
from pyspeech.text.units import GraphemeUnits

SYMBOLS = ["<blk>", "a", "b", "c"]


def make_arpa(ngrams):
    """ngrams: {words as a string: (log10 probability, back-off)}."""
    split = {tuple(words.split()): values for words, values in ngrams.items()}
    words = [ngram[0] for ngram in split if len(ngram) == 1]
    orders = []
    for order in range(1, max(map(len, split)) + 1):
        own = [(ngram, *values) for ngram, values in split.items() if len(ngram) == order]
        ids = np.array([[words.index(word) for word in ngram] for ngram, _, _ in own], dtype=np.int32)
        orders.append(Ngrams(ids, np.array([p for _, p, _ in own], dtype=float), np.array([b for _, _, b in own], dtype=float)))
    return Arpa(words, orders), split


def backed_off(split, word, history):
    """log10 P(word | history) by looking n-grams up."""
    ngram = (*history, word)
    if ngram in split:
        return split[ngram][0]
    return split.get(history, (0.0, 0.0))[1] + backed_off(split, word, history[1:])


def scores(graph, sequence):
    node, found = torch.tensor([graph.start]), []
    for symbol in sequence:
        found.append(float(graph.begin(node)[1][0, symbol]))
        node = graph.step(node, torch.tensor([symbol]))
    return found


@pytest.mark.parametrize("pruned", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_equals_the_definition_of_back_off(order, pruned, tmp_path):
    """Pruned: n-grams are missing at random, histories and endings of longer ones among them."""
    generator = random.Random(order)
    words = [END, START, "a", "b", "c"]
    ngrams = {word: (-generator.random(), -generator.random()) for word in words}
    for length in range(2, order + 1):
        for _ in range(3**length):
            ngram = [generator.choice([START, "a", "b", "c"]), *generator.choices(words[2:], k=length - 1)]
            parts = {" ".join(ngram[: length - 1]), " ".join(ngram[1:])}
            if pruned or parts <= set(ngrams):
                ngrams[" ".join(ngram)] = (-generator.random(), -generator.random() * (length < order))
    arpa, split = make_arpa(ngrams)
    write_arpa(tmp_path / "a.arpa", arpa)
    for graph in (ngram_graph(arpa, SYMBOLS), ngram_graph(read_arpa(tmp_path / "a.arpa"), SYMBOLS)):
        for _ in range(20):
            sequence = generator.choices([1, 2, 3], k=generator.randint(1, 8))
            said = (START, *(SYMBOLS[symbol] for symbol in sequence))
            expected = [
                backed_off(split, said[place], said[max(0, place - order + 1) : place]) for place in range(1, len(said))
            ]
            np.testing.assert_allclose(scores(graph, sequence), np.array(expected) * LN10, atol=1e-5)


def test_by_hand():
    """P(a | <s>) is there; P(b | a) backs off from a; after b nothing is known; c has no 1-gram: that of <unk>."""
    ngrams = {"<s>": (-99, -0.5), "</s>": (-1, 0), "a": (-0.6, -0.25), "b": (-0.7, 0), "<unk>": (-2, 0), "<s> a": (-0.1, 0)}
    arpa, _ = make_arpa(ngrams)
    graph = ngram_graph(arpa, SYMBOLS)
    assert scores(graph, [1, 2, 3]) == pytest.approx([-0.1 * LN10, (-0.25 - 0.7) * LN10, -2 * LN10])
    assert scores(graph, [2, 1]) == pytest.approx([(-0.5 - 0.7) * LN10, -0.6 * LN10])
    del ngrams["<unk>"]
    assert scores(ngram_graph(make_arpa(ngrams)[0], SYMBOLS), [1, 3]) == pytest.approx([-0.1 * LN10, (-0.25 - 0.7) * LN10])


def test_symbols_of_units():
    units = GraphemeUnits.build(["ab ba"])
    arpa = symbol_ngrams(["ab ab", "ba"], units, 3)
    graph = ngram_graph(arpa, units.symbols)
    likely, other = units.encode("ab ab"), units.encode("bb aa")
    assert sum(scores(graph, likely)) > sum(scores(graph, other)) + 2
    everything = graph.begin(torch.tensor([graph.start]))[1][0, 1:].exp().sum()
    assert 0.8 < float(everything) < 1  # the rest is the end of the sentence


def test_models_over_words_are_refused():
    arpa, _ = make_arpa({"<s>": (-99, 0), "</s>": (-1, 0), "delhi": (-1, 0), "mumbai": (-1, 0), "a": (-1, 0)})
    with pytest.raises(
        UserError, match="1-grams are not the symbols of the model .first: delhi, mumbai; expected such as a b c"
    ):
        ngram_graph(arpa, SYMBOLS)
