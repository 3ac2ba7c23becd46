"""Estimate n-gram models: interpolated Witten-Bell smoothing (Witten and Bell 1991; Chen and Goodman 1999, section 2.5).

    P(w | h) = (c(h w) + t(h) P(w | h')) / (c(h) + t(h))

c counts n-grams, t(h) is the number of different words after h, h' is h without its first word; below the 1-grams all words
are alike. As a model with back-off: P(w | h) for the n-grams that were seen, and the weight t(h) / (c(h) + t(h)) for others.
It suits models of characters and sentence pieces, whose short n-grams have all been seen: Kneser-Ney's discounts need n-grams
that were seen once.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from pyspeech.errors import UserError
from pyspeech.text.arpa import END, NEVER, START, Arpa, Ngrams


def witten_bell(sentences: Iterable[Sequence[str]], order: int, vocabulary: Iterable[str] = ()) -> Arpa:
    """Estimate an n-gram model.

    Args:
        sentences: The words, or symbols, of each; START and END are put around them.
        order: Length of the longest n-grams, at least 1; shorter where no sentence has as many words.
        vocabulary: Words that have a probability even where no sentence has them.

    Raises:
        UserError: where no sentence has a word.
    """
    counts: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(order)]
    for sentence in sentences:
        padded = (START, *sentence, END)
        if len(padded) > 2:
            for length in range(1, order + 1):
                counts[length - 1].update(padded[first : first + length] for first in range(len(padded) - length + 1))
    if not counts[0]:
        raise UserError("language model: no text to estimate it from; expected sentences of known characters")
    counts = [seen for seen in counts if seen]  # no sentence is as long as the others
    del counts[0][(START,)]  # it is given, never predicted
    words = [START, *dict.fromkeys([*sorted(word for (word,) in counts[0]), *vocabulary])]
    probabilities = {(): 1 / (len(words) - 1)}
    orders = []
    for length, seen in enumerate(counts, start=1):
        probabilities, weights = _order(seen, probabilities, words if length == 1 else ())
        orders.append((probabilities, weights))
    return _as_arpa(words, orders)


def _order(seen, lower, words):
    """({n-gram: probability}, {history: back-off weight}) of one order; lower: the probabilities of the order below."""
    totals, kinds = Counter(), Counter()
    for ngram, count in seen.items():
        totals[ngram[:-1]] += count
        kinds[ngram[:-1]] += 1
    weights = {history: kinds[history] / (totals[history] + kinds[history]) for history in totals}
    if words:  # 1-grams: all of them
        every, below = [(word,) for word in words[1:]], lower[()]
        base = dict.fromkeys(every, below)
    else:
        every, base = seen, {ngram: lower[ngram[1:]] for ngram in seen}
    found = {}
    for ngram in every:
        history = ngram[:-1]
        found[ngram] = seen[ngram] / (totals[history] + kinds[history]) + weights[history] * base[ngram]
    return found, weights


def _as_arpa(words, orders):
    numbers, made = {word: number for number, word in enumerate(words)}, []
    for length, (probabilities, _) in enumerate(orders, start=1):
        backoff = defaultdict(lambda: 1.0, orders[length][1] if length < len(orders) else {})
        ngrams = sorted(probabilities) if length > 1 else [(START,), *probabilities]
        logs = [math.log10(probabilities[ngram]) if ngram in probabilities else NEVER for ngram in ngrams]
        made.append(
            Ngrams(
                np.array([[numbers[word] for word in ngram] for ngram in ngrams], dtype=np.int32).reshape(-1, length),
                np.array(logs),
                np.array([math.log10(backoff[ngram]) for ngram in ngrams]),
            )
        )
    return Arpa(words, made)
