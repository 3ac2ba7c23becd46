"""Draws of training utterances that give each page, a source of recordings, a like weight, and pairs of the same page.

What tells the classes apart between pages (rooms, codecs, levels) teaches a detector nothing about fakes: with pages drawn
evenly in both classes, and a fake of the same page behind a genuine utterance, a large page does not outweigh others.
"""

from collections.abc import Mapping

import numpy as np


def draw_by_page(
    utterances: np.ndarray, pages: np.ndarray, count: int, rng: np.random.Generator, times: np.ndarray, evenness: float = 1.0
) -> np.ndarray:
    """Draw `count` of the utterances (n,), in random order, from each page in proportion to its size ** (1 - evenness).

    Within a page all are drawn once before any returns, unless `times` (n,) differ there: then each draw is by itself, with
    chances that are proportional to them. pages: (n,) int.
    """
    names, sizes = np.unique(pages, return_counts=True)
    order = rng.permutation(len(names))
    names, shares = names[order], sizes[order] ** (1.0 - evenness)
    ends = np.rint(count * np.cumsum(shares) / shares.sum()).astype(int)
    drawn = []
    for page, wanted in zip(names, np.diff(ends, prepend=0), strict=True):
        own = np.flatnonzero(pages == page)
        if np.ptp(times[own]):
            drawn.append(rng.choice(own, size=wanted, p=times[own] / times[own].sum()))
        else:
            drawn += [rng.permutation(own)[: wanted - first] for first in range(0, wanted, len(own))]
    return utterances[rng.permutation(np.concatenate(drawn))]


def pair_up(genuine: np.ndarray, fakes: np.ndarray, pages: np.ndarray, originals: Mapping[int, int]) -> np.ndarray:
    """Order the fakes (n,) so that behind each of the genuine utterances (n,) comes a fake made of it, else one of its page,
    as far as any are left. pages: of all utterances; originals: {fake: the genuine one it was made of}."""
    behind, left = np.full(len(genuine), -1), np.ones(len(fakes), dtype=bool)
    anything = [0] * len(genuine)
    for keys, wanted in (
        ([originals.get(fake) for fake in fakes], genuine),
        (pages[fakes], pages[genuine]),
        (anything, anything),
    ):
        free = {}
        for place in np.flatnonzero(left)[::-1]:
            free.setdefault(keys[place], []).append(place)
        for place in np.flatnonzero(behind < 0):
            if free.get(wanted[place]):
                taken = free[wanted[place]].pop()
                behind[place], left[taken] = fakes[taken], False
    return behind
