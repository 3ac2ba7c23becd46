"""Witten-Bell models against the formula written out over plain counts, and against probabilities worked out by hand."""

import itertools
import math
from fractions import Fraction

import pytest

from pyspeech.errors import UserError
from pyspeech.text.arpa import END, START
from pyspeech.text.witten_bell import witten_bell

SENTENCES = ["abcab", "abb", "ca", "b", ""]


def probability(word, history, sentences, vocabulary):
    """Witten-Bell by its definition, with sums over the sentences."""
    if history is None:
        return Fraction(1, len(vocabulary))
    length = len(history)
    after = [s[at + length] for s in sentences for at in range(len(s) - length) if s[at : at + length] == history]
    after = [item for item in after if item != START]
    shorter = probability(word, history[1:] if history else None, sentences, vocabulary)
    if not after:
        return shorter
    return (after.count(word) + len(set(after)) * shorter) / Fraction(len(after) + len(set(after)))


def backed_off(arpa, word, history):
    """log10 P(word | history) as an ARPA file defines it."""
    known = [
        {tuple(arpa.words[number] for number in row): (p, b) for row, p, b in zip(*parts, strict=True)}
        for parts in ((o.words.tolist(), o.log_probs.tolist(), o.backoffs.tolist()) for o in arpa.orders)
    ]
    history = tuple(history)[-(arpa.order - 1) :] if arpa.order > 1 else ()
    ngram = (*history, word)
    if ngram in known[len(ngram) - 1]:
        return known[len(ngram) - 1][ngram][0]
    back = known[len(history) - 1].get(history, (0, 0.0))[1]
    return back + backed_off(arpa, word, history[1:])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_equals_the_definition(order):
    arpa = witten_bell(SENTENCES, order, "abcd")
    assert arpa.order == order and set(arpa.words) == {START, END, *"abcd"}
    sentences = [(START, *sentence, END) for sentence in SENTENCES if sentence]
    vocabulary = [*"abcd", END]
    for length in range(order):
        for history in itertools.product("abcd", repeat=length):
            for begin in {history, (START, *history)[-order + 1 :] if order > 1 else ()}:
                total = 0.0
                for word in vocabulary:
                    expected = probability(word, begin, sentences, vocabulary)
                    found = backed_off(arpa, word, begin)
                    assert found == pytest.approx(math.log10(expected), abs=1e-12)
                    total += 10**found
                assert total == pytest.approx(1)


def test_by_hand():
    """a, b and the end of each sentence once: 3 kinds in 4 tokens; a is always first."""
    arpa = witten_bell(["ab", "a"], 2)
    one = {arpa.words[row[0]]: p for row, p in zip(arpa.orders[0].words.tolist(), arpa.orders[0].log_probs, strict=True)}
    assert one["a"] == pytest.approx(math.log10((2 + 3 / 3) / (5 + 3)))
    assert backed_off(arpa, "a", [START]) == pytest.approx(math.log10((2 + 1 * 3 / 8) / (2 + 1)))


def test_no_text():
    with pytest.raises(UserError, match="no text to estimate it from"):
        witten_bell(["", ""], 3)
