"""Even draws of pages: how often each is drawn, who stands behind whom, and what stays as it was without pages."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from tiny_spoof import write_corpus

from pyspeech.spoof.config import CropConfig
from pyspeech.spoof.dataset import UtteranceSampler
from pyspeech.spoof.formats import label_of, original_of, page_of
from pyspeech.spoof.page_draws import draw_by_page, pair_up

DATA = CropConfig(samples=8192, hop=8192, batch_size=8, balanced=True)


@pytest.mark.parametrize("count", [1, 6, 7, 100])
def test_each_page_is_drawn_equally_often(count):
    pages = np.array([0] * 50 + [1] * 3 + [2])
    drawn = draw_by_page(np.arange(54) + 100, pages, count, np.random.default_rng(1), np.ones(54)) - 100
    times = Counter(pages[drawn])
    assert len(drawn) == count and max(times.values()) - min(times.get(page, 0) for page in range(3)) <= 1
    for page in range(3):  # and within a page each utterance
        counts = np.bincount(drawn, minlength=54)[pages == page]
        assert counts.max() - counts.min() <= 1


def test_pages_by_the_root_of_their_size_and_by_their_size():
    pages = np.array([0] * 16 + [1] * 4 + [2])
    for evenness, expected in ((0.5, [400, 200, 100]), (0.0, [533, 133, 33])):
        drawn = draw_by_page(np.arange(21), pages, 700, np.random.default_rng(1), np.ones(21), evenness)
        assert np.bincount(pages[drawn]) == pytest.approx(expected, abs=1)


def test_engines_that_are_drawn_more_often_within_a_page():
    times = np.array([3.0, 1.0, 1.0, 1.0])
    drawn = draw_by_page(np.arange(4), np.array([0, 0, 1, 1]), 4000, np.random.default_rng(1), times)
    assert np.bincount(drawn)[0] == pytest.approx(1500, abs=100) and np.bincount(drawn)[2:].tolist() == [1000, 1000]


def test_copies_stand_behind_their_originals_and_others_behind_their_page():
    pages = np.array([0, 0, 1, 2, 0, 0, 1, 3])  # four genuine ones, four fakes
    behind = pair_up(np.arange(4), np.array([7, 4, 6, 5]), pages, {4: 1})
    assert behind.tolist() == [5, 4, 6, 7]
    assert sorted(pair_up(np.array([0, 0, 3]), np.array([6, 6, 4]), pages, {})) == [4, 6, 6]


def with_pages(cuts, pages, originals=True):
    """The same cuts, the number-th of which is of pages[number % len(pages)], a fake as a copy of a genuine one of its page."""
    cuts = list(cuts)
    for number, cut in enumerate(cuts):
        cut.supervisions[0].custom["page"] = pages[number % len(pages)]
    for cut in cuts if originals else ():
        own = [one.id for one in cuts if page_of(one) == page_of(cut) and label_of(one).genuine]
        cut.supervisions[0].custom["original"] = cut.id if label_of(cut).genuine else (own or ["none"])[-1]
    return cuts


def epoch_of(cuts, data=DATA, seed=1):
    return [cut for batch in UtteranceSampler(cuts, data, seed) for cut in batch]


def test_an_epoch_has_its_pages_evenly_and_pairs_of_the_same_page(tmp_path):
    cuts = with_pages(write_corpus(tmp_path, 60), ["a"] * 8 + ["b", "c"])
    for data, even in ((DATA, True), (dataclasses.replace(DATA, even_pages=0.0), False)):
        order = epoch_of(cuts, data)
        assert len(order) == 60
        for kind in (True, False):
            times = Counter(page_of(cut) for cut in order if label_of(cut).genuine is kind)
            assert (max(times.values()) - min(times.values()) <= 1 and len(times) > 1) is even
    pairs = list(zip(epoch_of(cuts)[::2], epoch_of(cuts)[1::2], strict=True))
    assert all(label_of(genuine).genuine and not label_of(fake).genuine for genuine, fake in pairs)
    both = {page_of(cut) for cut in cuts if label_of(cut).genuine} & {page_of(cut) for cut in cuts if not label_of(cut).genuine}
    together = [page_of(genuine) == page_of(fake) for genuine, fake in pairs]
    assert len(both) == 3 and sum(together) >= len(pairs) // 2
    assert any(original_of(genuine) == original_of(fake) for genuine, fake in pairs)


def test_without_pages_nothing_changes(tmp_path):
    cuts = list(write_corpus(tmp_path, 30))
    plain = [cut.id for cut in epoch_of(cuts, dataclasses.replace(DATA, even_pages=0.0))]
    assert [cut.id for cut in epoch_of(cuts)] == plain
    assert [cut.id for cut in epoch_of(with_pages(cuts, ["only"], originals=False))] == plain


def test_fakes_that_are_no_copies_are_drawn_too(tmp_path):
    """Where others are known to be copies of every genuine utterance."""
    cuts = list(write_corpus(tmp_path, 30))
    genuine = [cut for cut in cuts if label_of(cut).genuine]
    for cut, original in zip([cut for cut in cuts if not label_of(cut).genuine], genuine, strict=False):
        cut.supervisions[0].custom["original"] = original.id
    for often in ({}, {"A01": 2.0}):
        sampler, drawn = UtteranceSampler(cuts, dataclasses.replace(DATA, often=often), 1), Counter()
        for epoch in range(20):
            sampler.set_epoch(epoch)
            drawn.update(original_of(cut) != "" for batch in sampler for cut in batch if not label_of(cut).genuine)
        assert drawn[False] > 50 and drawn[True] > 50
