"""Splits of labelled utterances in which pages or families of engines are left out of training in turn.

    pages       the pages of a fold are eval, all others train
    families    the fakes of the families of a fold, and the genuine speech of a fold of speakers, are eval; all others train

Folds hold like shares of the files of either class. They follow from the names alone, so they are the same on every machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from local.add2022.draw_sets import CLASSES, GROUPS
from local.add2022.labelled import COLUMNS
from local.splits import share_of
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.data.manifests import Utterance


@dataclass(frozen=True)
class Split:
    """A training set and what it is tested on.

    Attributes:
        kind: "pages" or "families".
        fold: Its number, from 1.
        held: The pages or families that are left out of training.
        sets: {utterance: "train" or "eval"}; what is in neither is missing.
        size: How many pages training is limited to; None: all others.
    """

    kind: str
    fold: int
    held: tuple[str, ...]
    sets: Mapping[str, str]
    size: int | None = None

    @property
    def name(self) -> str:
        """Name, fit for a file."""
        return f"{self.kind}-{self.fold}" + f"-from-{self.size}" * (self.size is not None)


def page_of(one: Utterance) -> str:
    return (one.custom or {}).get("page", "")


def family_of(one: Utterance) -> str:
    """The family of a fake, its system where no family is told; "" of genuine speech."""
    custom = one.custom or {}
    return "" if one.text == "genuine" else custom.get("family") or custom["attack"]


def page_splits(utterances: Sequence[Utterance], folds: int) -> list[Split]:
    """A Split for each fold of pages; UserError where there are too few pages."""
    groups = deal(utterances, page_of, folds)
    return [
        Split("pages", number, held, {one.id: "eval" if page_of(one) in held else "train" for one in utterances})
        for number, held in enumerate(groups, 1)
    ]


def family_splits(utterances: Sequence[Utterance], folds: int) -> list[Split]:
    """A Split for each fold of families; UserError where there are too few families or genuine speakers."""
    fakes, genuine = ([one for one in utterances if one.text == kind] for kind in reversed(CLASSES))
    speaker = GROUPS["speaker"]
    found = []
    for number, (held, people) in enumerate(zip(deal(fakes, family_of, folds), deal(genuine, speaker, folds), strict=True), 1):
        out = {one.id for one in fakes if family_of(one) in held} | {one.id for one in genuine if speaker(one) in people}
        found.append(Split("families", number, held, {one.id: "eval" if one.id in out else "train" for one in utterances}))
    return found


def deal(utterances: Sequence[Utterance], group: Callable[[Utterance], str], folds: int) -> list[tuple[str, ...]]:
    """The names of groups of utterances in as many folds: the largest first, each to the fold that has the least of its
    classes."""
    counts = defaultdict(Counter)
    for one in utterances:
        counts[group(one)][one.text] += 1
    if len(counts) < folds:
        raise UserError(f"--folds {folds}: the corpus has {len(counts)} groups to leave out; expected at most as many folds")
    total = sum(counts.values(), Counter())
    loads = [Counter() for _ in range(folds)]
    members = [[] for _ in range(folds)]
    for name in sorted(counts, key=lambda name: (-counts[name].total(), share_of(name))):
        own = counts[name]

        def load(fold, own=own):
            return sum(loads[fold][kind] * own[kind] / total[kind] ** 2 for kind in own), loads[fold].total(), fold

        best = min(range(folds), key=load)
        members[best].append(name)
        loads[best] += own
    return [tuple(sorted(names)) for names in members]


def smaller(split: Split, utterances: Sequence[Utterance], size: int) -> Split:
    """The Split with `size` of its training pages; those of a smaller size are among those of a larger one.

    UserError where it has fewer, or where these lack a class.
    """
    counts = defaultdict(Counter)
    for one in utterances:
        if split.sets.get(one.id) == "train":
            counts[page_of(one)][one.text] += 1
    if size >= len(counts):
        raise UserError(f"--sizes {size}: fold {split.fold} has {len(counts)} pages for training; expected fewer")
    order = sorted(counts, key=lambda page: share_of(f"{page} {split.fold}"))
    order.sort(key=lambda page: page != next((one for one in order if len(counts[one]) == len(CLASSES)), None))
    chosen = set(order[:size])
    if len(sum((counts[page] for page in chosen), Counter())) < len(CLASSES):
        raise UserError(f"--sizes {size}: no page has both genuine and fake speech; expected at least one")
    sets = {one.id: split.sets[one.id] for one in utterances if split.sets[one.id] == "eval" or page_of(one) in chosen}
    return replace(split, sets=sets, size=size)


def write_list(path: Path, utterances: Sequence[Utterance], split: Split) -> None:
    """Write the utterances of a split as a list that egs/add2022 takes as corpus (local/add2022/labelled.py)."""
    import csv

    from pyspeech.files import atomic_write

    with atomic_write(path) as stream:
        rows = csv.writer(stream)
        rows.writerow(COLUMNS)
        for one in utterances:
            if one.id in split.sets:
                custom = one.custom or {}
                system, family = (custom.get(name, "") if one.text == "fake" else "" for name in ("attack", "family"))
                told = (system, family, one.speaker, one.language, custom.get("original", ""))
                rows.writerow([one.audio, one.text, *told, split.sets[one.id], page_of(one)])
