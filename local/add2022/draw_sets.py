"""Train, dev and eval of a corpus that has none: drawn by page, speaker, family or utterance, the same ones on every machine.

Whole groups are drawn, in the order of a hash of their names, until a set has its share of either class:

    page        nothing of a page is in two sets
    speaker     no person is in two sets; files whose speaker is not known are drawn one by one
    family      no family of engines is in two sets (a system where no family is known); genuine files by speaker
    utterance   each file by itself
    auto        the first of page, speaker and utterance that there are several of and that give every set both classes
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace

from local.splits import share_of
from pyspeech.data.manifests import Utterance
from pyspeech.errors import UserError
from pyspeech.spoof.formats import UNKNOWN

SHARES = {"eval": 0.15, "dev": 0.15}  # of each class
MOST = 1.25  # times its share a set may have of a class
CLASSES = ("genuine", "fake")
SHOWN = 8  # names of groups in the log


def _page(one):
    return (one.custom or {}).get("page") or one.id


def _speaker(one):
    return one.speaker if one.speaker not in (None, UNKNOWN) else one.id


def _family(one):
    custom = one.custom or {}
    return _speaker(one) if one.text == "genuine" else custom.get("family") or custom.get("attack", UNKNOWN)


GROUPS: dict[str, Callable[[Utterance], str]] = {
    "page": _page,
    "speaker": _speaker,
    "family": _family,
    "utterance": lambda one: one.id,
}
AUTO = "auto"
WAYS = (AUTO, *GROUPS)


def draw_sets(utterances: list[Utterance], way: str, name: str, log: logging.Logger) -> list[Utterance]:
    """The same utterances with their `split`: train, dev or eval. way: one of WAYS. name: what messages call the corpus.

    With "auto", all are for training where they are too few for three sets, which a warning says. UserError where another
    way does not give every set both classes.
    """
    for one in (way,) if way != AUTO else ("page", "speaker", "utterance"):
        groups = defaultdict(Counter)
        for utterance in utterances:
            groups[GROUPS[one](utterance)][utterance.text] += 1
        found = draw_groups(groups)
        if found and (way != AUTO or one == "utterance" or 1 < len(groups) < len(utterances)):
            _say(groups, found, one, name, log)
            return [replace(utterance, split=found[GROUPS[one](utterance)]) for utterance in utterances]
    if way != AUTO:
        raise UserError(f"{name}: split_by={way}: too few groups for train, dev and eval with both classes; expected {AUTO}")
    log.warning("%s: too few files for train, dev and eval with both classes; all are for training", name)
    return [replace(utterance, split="train") for utterance in utterances]


def draw_groups(groups: dict[str, Counter]) -> dict[str, str]:
    """{group: set} of {group: files of each class}; {} where a set would lack a class."""
    rest = sorted(groups, key=share_of)
    total = sum(groups.values(), Counter())
    sets = {}
    for name, share in SHARES.items():
        chosen = _draw(groups, rest, {kind: share * total[kind] for kind in CLASSES})
        sets.update(dict.fromkeys(chosen, name))
        rest = [group for group in rest if group not in sets]
    sets.update(dict.fromkeys(rest, "train"))
    have = {(split, kind) for group, split in sets.items() for kind in groups[group]}
    return sets if have >= {(split, kind) for split in ("train", *SHARES) for kind in CLASSES} else {}


def _draw(groups, rest, wanted):
    """Groups of `rest`, in its order, that a set wants: its share of each class, and not much more than that; but of a class
    that it would have none of, the smallest group."""
    chosen, have = [], Counter()
    for group in rest:
        lacks = any(groups[group][kind] and have[kind] < wanted[kind] for kind in CLASSES)
        if lacks and all(have[kind] + groups[group][kind] <= max(1, MOST * wanted[kind]) for kind in CLASSES):
            chosen.append(group)
            have += groups[group]
    for kind in CLASSES:
        others = [group for group in rest if groups[group][kind] and group not in chosen]
        if not have[kind] and len(others) > 1:
            chosen.append(min(others, key=lambda group: groups[group].total()))
            have += groups[chosen[-1]]
    return chosen


def _say(groups, found, way, name, log):
    told = []
    for split in ("train", *SHARES):
        names = sorted(group for group in groups if found[group] == split)
        count = sum((groups[group] for group in names), Counter())
        told.append(
            f"{split} {count['genuine']} genuine and {count['fake']} fake"
            + f" of {len(names)} ({', '.join(names[:SHOWN])}{' ...' * (len(names) > SHOWN)})" * (way != "utterance")
        )
    log.info("%s: no column or folders of sets; drawn by %s: %s", name, way, "; ".join(told))
