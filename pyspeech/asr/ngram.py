"""n-gram language models over the output symbols of a transducer, as automata for the search.

A node is a history: each n-gram but the longest is one. Sentence ends have no part in it, as an utterance of a stream ends
where a speaker pauses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pyspeech.asr.context_graph import ContextGraph
from pyspeech.errors import UserError
from pyspeech.text.arpa import END, START, UNKNOWN, Arpa
from pyspeech.text.witten_bell import witten_bell

if TYPE_CHECKING:
    from pyspeech.text.units import Units

LN10 = math.log(10)


def ngram_graph(arpa: Arpa, symbols: Sequence[str]) -> ContextGraph:
    """The automaton of an n-gram model for the search.

    Symbols that the model lacks have the probability of its <unk>, or without one that of its rarest 1-gram.

    Args:
        arpa: The model; its words are the names of symbols.
        symbols: Names of the V symbols of a vocabulary, the blank first.

    Raises:
        UserError: for a model over words: few of its 1-grams are names of symbols.
    """
    places = _places(arpa, symbols)
    rows = [_usable(ngrams, places, arpa.words) for ngrams in arpa.orders]
    histories = _histories(rows)
    nodes = {history: node for node, history in enumerate(histories)}
    back = [nodes[_longest(history[1:], nodes)] for history in nodes]
    log_probs = {words: log_prob for order in rows for words, log_prob, _ in order}
    log_probs.update({history: _backed_off(history, log_probs, histories) for history in histories if history})
    arcs = []
    for words, log_prob in log_probs.items():
        if places[words[-1]]:
            target = nodes[_longest(words, nodes)]
            arcs += [(nodes[words[:-1]], symbol, log_prob * LN10, target) for symbol in places[words[-1]]]
    if not any(word in UNKNOWN for word in arpa.words):
        known = {symbol for own in places for symbol in own}
        least = min(value for node, _, value, _ in arcs if node == 0)
        arcs += [(0, symbol, least, 0) for symbol in range(1, len(symbols)) if symbol not in known]
    start = nodes.get((arpa.words.index(START),), 0) if START in arpa.words else 0
    return ContextGraph.build(len(symbols), arcs, back, [weight * LN10 for weight in histories.values()], start=start)


def symbol_ngrams(texts: Iterable[str], units: Units, order: int) -> Arpa:
    """Estimate an n-gram model over the symbols of units from normalised texts."""
    symbols = units.symbols
    sentences = ([symbols[number] for number in units.encode(text)] for text in texts)
    return witten_bell(sentences, order, symbols[1:])


def _places(arpa, symbols):
    """For each word of the model the symbols that it stands for: one, none, or for <unk> those that the model lacks."""
    numbers = {symbol: number for number, symbol in enumerate(symbols) if number}
    words = [word for word in arpa.words if word not in (START, END, *UNKNOWN)]
    other = [word for word in words if word not in numbers]
    if 2 * len(other) >= len(words):
        raise UserError(
            f"{arpa.source}: its 1-grams are not the symbols of the model (first: {', '.join(other[:3]) or 'none'}; expected "
            f"such as {' '.join(symbols[1:4])}); a model over words is not taken: make one with train-lm"
        )
    present = set(words)
    lacking = [number for symbol, number in numbers.items() if symbol not in present]
    return [lacking if word in UNKNOWN else [numbers[word]] if word in numbers else [] for word in arpa.words]


def _usable(ngrams, places, names):
    """[(words, log probability, back-off)] of the n-grams that a hypothesis can have: START only at their beginning, all
    others symbols."""
    known = np.array([bool(own) or name in UNKNOWN for own, name in zip(places, names, strict=True)])
    good = known[ngrams.words]
    good[:, 0] |= ngrams.words[:, 0] == (names.index(START) if START in names else -1)
    rows = good.all(axis=1)
    words = map(tuple, ngrams.words[rows].tolist())
    return list(zip(words, ngrams.log_probs[rows].tolist(), ngrams.backoffs[rows].tolist(), strict=True))


def _histories(rows):
    """{words: back-off}, the empty history first, shorter ones before longer ones. One that a pruned model lacks, although it
    has a longer n-gram that begins so, has the back-off 0, and so has that of no words."""
    by_length = [{(): 0.0}, *({words: backoff for words, _, backoff in order} for order in rows)]
    for longer, shorter in zip(by_length[:0:-1], by_length[-2::-1], strict=True):
        for words in longer:
            shorter.setdefault(words[:-1], 0.0)
    return {words: backoff for own in by_length[:-1] for words, backoff in own.items()}


def _backed_off(words, log_probs, histories):
    """log10 P(last of the words | those before it)."""
    if words in log_probs:
        return log_probs[words]
    return histories.get(words[:-1], 0.0) + _backed_off(words[1:], log_probs, histories)


def _longest(words, nodes):
    """The longest ending of `words` that is a history."""
    while words not in nodes:
        words = words[1:]
    return words
