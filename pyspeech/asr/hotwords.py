"""Hotwords: phrases that the search prefers, as an automaton over output symbols (Aho and Corasick 1975).

Let y be the symbols of a hypothesis, and a phrase p have a boost b(p) per symbol. As long as the last symbols of y are the
beginning of a phrase, they have a bonus; it is given back when the match breaks off, and kept when the phrase is complete:

    bonus(y) = sum over i of kept(longest beginning of a phrase that y_1 ... y_i ends in)
               + provisional(longest beginning of a phrase that y ends in)

A phrase that lies within another one earns its bonus once: let K(q) be what has been kept along a beginning q of a phrase,
the sum of kept() over its own beginnings. Then kept(q) is b(q) |q| - K(q without its last symbol) for a phrase q, for others
that of the longest phrase that q ends in, 0 where there is none. provisional(q) is max b |q| - K(q), max over the phrases
that go on from q. Phrases that overlap otherwise earn theirs each. Neither is ever negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.asr.config import HOTWORDS_SCORE
from pyspeech.errors import UserError
from pyspeech.files import text_lines

if TYPE_CHECKING:
    from pyspeech.asr.context_graph import ContextGraph
    from pyspeech.text.units import Units


@dataclass(frozen=True)
class Hotword:
    """A phrase, and its bonus in log probability for each symbol; None: that of all phrases."""

    text: str
    boost: float | None = None


def read_hotwords(path: str | Path) -> list[Hotword]:
    """Read a UTF-8 file with a phrase, or a phrase, a tab and its boost, in each line; empty lines are passed over."""
    found = []
    for number, line in enumerate(text_lines(Path(path)), start=1):
        text, tab, boost = line.partition("\t")
        if text.strip() or boost.strip():
            found.append(Hotword(text.strip(), _boost(f"{path}, line {number}", boost) if tab and boost.strip() else None))
    if not found:
        raise UserError(f"hotwords {path}: the file has no phrase; expected one a line")
    return found


def as_hotwords(given: str | Path | Iterable[str | tuple[str, float] | Hotword]) -> list[Hotword]:
    """Hotwords of a file's path, or of a list of phrases, each a text, (text, boost) or a Hotword."""
    if isinstance(given, (str, Path)):
        return read_hotwords(given)
    found = []
    for item in given:
        item = _as_hotword(item)
        if item.boost is not None:
            _boost(f"hotword {item.text}", item.boost)
        found.append(item)
    return found


def _as_hotword(item):
    if isinstance(item, (str, Hotword)):
        return Hotword(item) if isinstance(item, str) else item
    if not isinstance(item, (tuple, list)) or len(item) != 2 or not isinstance(item[0], str):
        raise UserError(f"hotword {item!r}: expected a text, or (text, boost)")
    return Hotword(*item)


def _boost(where, value):
    try:
        boost = float(value)
    except (TypeError, ValueError):
        boost = math.nan
    if not 0 < boost < math.inf:
        raise UserError(f"{where}: boost {str(value).strip()}; expected a number above 0, such as {HOTWORDS_SCORE}")
    return boost


def encode_hotwords(
    hotwords: Sequence[Hotword], units: Units, language: str | None, score: float
) -> tuple[list[tuple[list[int], float]], list[str]]:
    """([(symbols, boost), ...], texts left out) of phrases; left out are those with characters that `units` lack."""
    from pyspeech.text.normalize import normalize

    phrases, left_out = [], []
    for hotword in hotwords:
        text = normalize(hotword.text, language)
        symbols = [] if units.count_unknown([text]) else units.encode(text)
        if symbols:
            phrases.append((symbols, score if hotword.boost is None else hotword.boost))
        else:
            left_out.append(hotword.text)
    return phrases, left_out


def hotword_graph(phrases: Iterable[tuple[Sequence[int], float]], size: int) -> ContextGraph:
    """The automaton of phrases, each its symbols (1 to size - 1, at least one) and its boost per symbol; of a phrase given
    twice the higher boost counts."""
    from pyspeech.asr.context_graph import ContextGraph

    children, best, complete = _trie(phrases)
    back, depth, ending = ([0] * len(children) for _ in range(3))  # ending: the longest phrase that a node ends in; 0: none
    kept, total = ([0.0] * len(children) for _ in range(2))  # total: K
    order = [(0, *child) for child in children[0].items()]
    for parent, symbol, node in order:  # grows, breadth first: all shorter nodes are done
        depth[node] = depth[parent] + 1
        back[node] = 0 if parent == 0 else _follow(children, back, back[parent], symbol)
        ending[node] = node if complete[node] else ending[back[node]]
        kept[node] = max(complete[node] * depth[node] - total[parent], 0.0) if complete[node] else kept[ending[node]]
        total[node] = total[parent] + kept[node]
        order += [(node, *child) for child in children[node].items()]
    nodes = range(len(children))
    pending = [max(best[node] * depth[node] - total[node], 0.0) if children[node] else 0.0 for node in nodes]
    arcs = [(parent, symbol, kept[node] + pending[node] - pending[parent], node) for parent, symbol, node in order]
    weights = [pending[back[node]] - pending[node] for node in nodes]
    return ContextGraph.build(size, arcs, back, weights, pending)


def _trie(phrases):
    """Of each node: {symbol: child}, the highest boost of the phrases beyond or at it, that of the phrase at it or 0."""
    children, best, complete = [{}], [0.0], [0.0]
    for symbols, boost in phrases:
        node = 0
        for symbol in symbols:
            if symbol not in children[node]:
                children[node][symbol] = len(children)
                children.append({})
                best.append(0.0)
                complete.append(0.0)
            node = children[node][symbol]
            best[node] = max(best[node], boost)
        complete[node] = max(complete[node], boost)
    return children, best, complete


def _follow(children, back, node, symbol):
    """The node that `symbol` leads to from `node`, or from the nodes that it backs off to; 0 where none has it."""
    while node and symbol not in children[node]:
        node = back[node]
    return children[node].get(symbol, 0)
