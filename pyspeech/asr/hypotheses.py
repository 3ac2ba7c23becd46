"""Hypotheses of the transducer search: how they share their beginnings, and their words with times and confidences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspeech.text.units import Units


@dataclass
class Hypothesis:
    """A prefix and its score; frames and log_probs belong to its most probable alignment."""

    tokens: list  # symbol numbers, without blanks
    score: float  # natural log of the probability, summed over the alignments that the search kept
    frames: list  # encoder frame in which each symbol was put out
    log_probs: list  # log probability of each symbol there, given what came before

    @property
    def confidence(self) -> float:
        """Geometric mean of the symbols' probabilities, 0 to 1; 0 for an empty hypothesis."""
        return geometric_mean(self.log_probs)


@dataclass
class Word:
    """A word with its time in seconds and its confidence, 0 to 1."""

    text: str
    start: float
    end: float
    confidence: float


class History:
    """The symbols of all hypotheses as a tree: a node is a symbol after its parent's; node -1 is the empty prefix."""

    def __init__(self) -> None:
        self._parents, self._tokens, self._frames, self._log_probs = [], [], [], []

    def add(self, parents: list[int], tokens: list[int], log_probs: list[float], frame: int) -> int:
        """Lists of equal lengths: one new node each, numbered from the number returned."""
        first = len(self._parents)
        self._parents += parents
        self._tokens += tokens
        self._log_probs += log_probs
        self._frames += [frame] * len(parents)
        return first

    def last_frame(self, node: int) -> int | None:
        """Frame of the node's symbol; None for the empty prefix."""
        return self._frames[node] if node >= 0 else None

    def hypothesis(self, node: int, score: float) -> Hypothesis:
        """The Hypothesis that ends in `node`."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = self._parents[node]
        nodes.reverse()
        return Hypothesis(
            tokens=[self._tokens[node] for node in nodes],
            score=score,
            frames=[self._frames[node] for node in nodes],
            log_probs=[self._log_probs[node] for node in nodes],
        )


def words_of(hypothesis: Hypothesis, units: Units, frame_seconds: float) -> list[Word]:
    """[Word, ...] of a Hypothesis: from the frame of a word's first symbol to the end of that of its last one.

    The confidence is the geometric mean of the symbols' probabilities. Joined by spaces the words are
    `units.decode(hypothesis.tokens)`.
    """
    words, first = [], 0
    for end in range(1, len(hypothesis.tokens) + 1):
        # A symbol that starts a word shows in the text of the word before it and itself.
        if end == len(hypothesis.tokens) or len(units.decode(hypothesis.tokens[first : end + 1]).split()) > 1:
            text = units.decode(hypothesis.tokens[first:end])
            if text:
                start, last = hypothesis.frames[first], hypothesis.frames[end - 1]
                confidence = geometric_mean(hypothesis.log_probs[first:end])
                words.append(Word(text, start * frame_seconds, (last + 1) * frame_seconds, confidence))
            first = end
    return words


def geometric_mean(log_probs: Sequence[float]) -> float:
    """Geometric mean of probabilities: exp of the mean of log probabilities; 0 for none."""
    return math.exp(sum(log_probs) / len(log_probs)) if log_probs else 0.0
