"""Batches of a transducer's training: minibatches of one language, drawn by hours (Joshi et al. 2021, section 4), or mixed
(section 3, vanilla and one-hot).

The sampler draws from a generator of its own, which follows from seed and epoch: an epoch can be entered anywhere with the
batches that it would have had. It sees durations and languages alone, as columns, and yields rows of them: an epoch of a
million utterances is drawn in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from pyspeech.data.cuts import DURATION_JITTER, split_batches
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.data.utterances import Utterances


class LanguageSampler:
    """Sampler of every utterance of some `languages` (codes) once per epoch, in minibatches of one language and similar
    durations. Yields arrays of rows of the `utterances`.

    batch_seconds: limit of a minibatch's seconds, padding included (the longest utterance times their number; an
    utterance longer than that is a minibatch of its own). max_utterances: limit of their number. together: minibatches,
    of a language each, that make one item; fewer at the end of an epoch. pooled: the languages are one set of utterances,
    from which minibatches of similar durations are drawn, of whatever languages.

    The languages of a step's minibatches are drawn with probabilities in proportion to their hours, among the languages
    that have minibatches left: by systematic sampling, so that the share of each is its share of the hours to within one
    minibatch, and steps differ little in their languages. The minibatches of a step have the same rank among the
    durations of their languages, as far as what is left allows, so that little of them is padding when they are encoded
    together.
    """

    def __init__(
        self,
        utterances: Utterances,
        languages: Iterable[str],
        batch_seconds: float,
        max_utterances: int,
        seed: int,
        together: int = 1,
        pooled: bool = False,
    ) -> None:
        if batch_seconds <= 0 or max_utterances < 1 or together < 1:
            raise UserError(
                f"batch_seconds={batch_seconds}, max_utterances={max_utterances}, together={together}: expected more than 0"
            )
        self.rows = {language: utterances.rows_of(language) for language in languages}
        for language, rows in self.rows.items():
            if not len(rows):
                raise UserError(f"no training utterances of language '{language}'; leave it out or check the corpus")
        if pooled:
            self.rows = {"all": np.concatenate(list(self.rows.values()))}
        self.durations, self.batch_seconds, self.max_utterances = utterances.durations, batch_seconds, max_utterances
        self.seed, self.epoch, self.together = seed, 0, together

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[np.ndarray]:
        rng = np.random.default_rng([self.seed, self.epoch])
        seconds = {language: float(self.durations[rows].sum()) for language, rows in self.rows.items()}
        left = {language: self._batches(rows, rng) for language, rows in self.rows.items()}
        while left:
            step, place = [], rng.random()
            for language in draw_languages({language: seconds[language] for language in left}, self.together, rng):
                batches = left[language]
                if batches:  # the languages drawn before may have taken the last one
                    step.append(batches.pop(int(place * len(batches))))
            left = {language: batches for language, batches in left.items() if batches}
            yield np.concatenate(step)

    def _batches(self, rows, rng):
        """The language's minibatches of the epoch by duration: arrays of rows."""
        durations = self.durations[rows]
        jitter = rng.uniform(-DURATION_JITTER, DURATION_JITTER, len(rows))
        ordered = rows[np.argsort(durations * (1 + jitter), kind="stable")]
        longest = self.durations[ordered].tolist()
        batches = split_batches(range(len(ordered)), self.batch_seconds, self.max_utterances, longest.__getitem__)
        return [ordered[batch[0] : batch[-1] + 1] for batch in batches]


def draw_languages(seconds: dict[str, float], count: int, rng: np.random.Generator) -> list[str]:
    """`count` of the languages of {language: seconds}, in order, each about seconds / total * count times.

    Systematic sampling: points of equal distance, the first of them random, on the line of all seconds. A count of 1 is
    a draw with probabilities in proportion to the seconds.
    """
    ends = np.cumsum(list(seconds.values()))
    points = (rng.random() + np.arange(count)) / count * ends[-1]
    chosen = np.searchsorted(ends, points, side="right").clip(max=len(ends) - 1)
    return [list(seconds)[index] for index in chosen]
