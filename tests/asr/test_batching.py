"""Which utterances make a step: each once an epoch, one language a minibatch, languages by hours, the same ones again."""

import itertools
from collections import Counter

import numpy as np
import pytest
from asr_corpora import LANGUAGES, fake_cuts, unequal_cuts

from pyspeech.asr.batching import LanguageSampler, draw_languages
from pyspeech.data.cuts import split_batches
from pyspeech.data.utterances import Utterances
from pyspeech.errors import UserError


def sampler_of(cuts, batch_seconds=40, max_utterances=8, seed=1, languages=tuple(LANGUAGES), together=1, pooled=False):
    return LanguageSampler(Utterances.of(cuts), languages, batch_seconds, max_utterances, seed, together, pooled)


def batches_of(sampler, cuts):
    """The sampler's epoch as lists of cuts."""
    return [[cuts[row] for row in rows] for rows in sampler]


def language_of(batch):
    (language,) = {cut.supervisions[0].language for cut in batch}
    return language


def rows_of(sampler):
    return [rows.tolist() for rows in sampler]


def padded(batches):
    return sum(max(cut.duration for cut in batch) * len(batch) for batch in batches)


def test_an_epoch_has_every_utterance_once_in_batches_of_one_language():
    cuts = unequal_cuts()
    batches = batches_of(sampler_of(cuts), cuts)
    assert sorted(cut.id for batch in batches for cut in batch) == sorted(cut.id for cut in cuts)
    for batch in batches:
        language_of(batch)
        assert len(batch) <= 8 and max(cut.duration for cut in batch) * len(batch) <= 40
    # languages are mixed over the epoch, not one after the other
    assert sum(language_of(a) != language_of(b) for a, b in zip(batches, batches[1:], strict=False)) > 3


def test_pooled_minibatches_mix_languages_by_duration():
    cuts = [*unequal_cuts(), *fake_cuts("mr-IN", 9, 7)]
    batches = batches_of(sampler_of(cuts, pooled=True), cuts)
    assert sorted(cut.id for batch in batches for cut in batch) == sorted(cut.id for cut in unequal_cuts())
    mixed = 0
    for batch in batches:
        durations = [cut.duration for cut in batch]
        assert len(batch) <= 8 and max(durations) * len(batch) <= 40
        assert max(durations) - min(durations) < 3  # of 1 to 9 s
        mixed += len({cut.supervisions[0].language for cut in batch}) > 1
    assert mixed > len(batches) / 2


def test_minibatches_together():
    cuts = unequal_cuts()
    steps = batches_of(sampler_of(cuts, max_utterances=4, together=6), cuts)
    assert sorted(cut.id for step in steps for cut in step) == sorted(cut.id for cut in cuts)
    hours = {language: sum(cut.duration for cut in cuts if language_of([cut]) == language) for language in LANGUAGES}
    for step in steps[: len(steps) // 2]:  # as long as no language runs out
        minibatches = Counter(language for language, _ in itertools.groupby(language_of([cut]) for cut in step))
        assert set(minibatches) >= {"en-IN", "hi-IN"}
        utterances = Counter(language_of([cut]) for cut in step)
        for language, seconds in hours.items():
            share = 6 * seconds / sum(hours.values())
            assert (np.floor(share) - 1) * 4 < utterances[language] <= np.ceil(share) * 4


def test_minibatches_together_are_of_similar_durations():
    cuts = [cut for seed, language in enumerate(LANGUAGES) for cut in fake_cuts(language, 200, seed)]
    alone, together = batches_of(sampler_of(cuts), cuts), batches_of(sampler_of(cuts, together=3), cuts)
    at_random = [sum(alone[first : first + 3], []) for first in range(0, len(alone), 3)]
    assert padded(together) < 1.25 * padded(alone) and padded(at_random) > 1.4 * padded(alone)


def test_draw_languages():
    seconds = {"a": 10.0, "b": 20.0, "c": 70.0}
    counts = Counter()
    for seed in range(300):
        drawn = draw_languages(seconds, 5, np.random.default_rng(seed))
        assert len(drawn) == 5 and drawn == sorted(drawn)
        assert drawn.count("b") == 1 and drawn.count("c") in (3, 4) and drawn.count("a") in (0, 1)
        counts.update(drawn)
    assert abs(counts["a"] / 1500 - 0.1) < 0.03 and abs(counts["c"] / 1500 - 0.7) < 0.03
    assert draw_languages({"a": 1.0}, 3, np.random.default_rng(1)) == ["a"] * 3


def test_epochs_differ_and_come_again():
    sampler = sampler_of(unequal_cuts())
    first = rows_of(sampler)
    assert rows_of(sampler) == first
    np.random.seed(7)  # the global generators decide nothing
    sampler.set_epoch(3)
    other = rows_of(sampler)
    sampler.set_epoch(0)
    assert rows_of(sampler) == first and sorted(map(sorted, other)) != sorted(map(sorted, first))
    assert rows_of(sampler_of(unequal_cuts(), seed=2)) != first


def test_languages_are_drawn_by_hours():
    cuts = unequal_cuts()
    sampler = sampler_of(cuts, seed=5)
    hours = {language: sum(cut.duration for cut in cuts if language_of([cut]) == language) for language in LANGUAGES}
    counts = Counter()
    for epoch in range(500):
        sampler.set_epoch(epoch)
        counts[language_of([cuts[row] for row in next(iter(sampler))])] += 1
    for language, seconds in hours.items():
        share = seconds / sum(hours.values())
        assert abs(counts[language] - 500 * share) < 4 * np.sqrt(500 * share * (1 - share))


def test_batches_are_of_similar_durations():
    cuts = fake_cuts("en-IN", 300, seed=3)
    sampler = sampler_of(cuts, 60, 100, languages=["en-IN"])
    total = sum(cut.duration for cut in cuts)
    assert padded(batches_of(sampler, cuts)) < 1.15 * total
    assert padded(split_batches(cuts, 60, 100)) > 1.4 * total
    assert len({tuple(batch) for epoch in range(3) for batch in (sampler.set_epoch(epoch) or rows_of(sampler))}) > 60


def test_languages_left_out_and_missing():
    cuts = unequal_cuts()
    assert {language_of(batch) for batch in batches_of(sampler_of(cuts, languages=["ta-IN"]), cuts)} == {"ta-IN"}
    with pytest.raises(UserError, match="gu-IN"):
        sampler_of(cuts, languages=["ta-IN", "gu-IN"])
    with pytest.raises(UserError, match="batch_seconds=0"):
        sampler_of(cuts, 0)


def test_split_batches():
    cuts = fake_cuts("en-IN", 50, seed=1) + fake_cuts("en-IN", 1, seed=2, shortest=90, longest=91)
    batches = split_batches(cuts, 30, 4)
    assert sum(batches, []) == cuts and len(batches[-1]) == 1  # longer than the limit: by itself
    for batch in batches[:-1]:
        assert len(batch) <= 4 and max(cut.duration for cut in batch) * len(batch) <= 30
    for batch, following in zip(batches, batches[1:], strict=False):  # each as large as it may be
        more = [*batch, following[0]]
        assert len(more) > 4 or max(cut.duration for cut in more) * len(more) > 30
    assert split_batches([], 30, 4) == []
