"""The sets of a corpus whose utterances, files or folders say their language and split: which of them are used."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from local.indic.languages import choose_codes
from pyspeech.commands.terminal import some
from pyspeech.data.manifests import Utterance
from pyspeech.errors import UserError


def is_hidden(path: Path) -> bool:
    """Return True where a file or a folder of a relative path has a name that begins with a dot."""
    return any(name.startswith(".") for name in path.parts)


def without_variants(
    paths: Iterable[Path], group: Callable[[Path], Hashable], plain: Callable[[Path], bool], log: logging.Logger
) -> list[Path]:
    """The paths, without those that are variants of a `plain` one of the same group, such as train_sp beside train."""
    beside = defaultdict(list)
    for path in paths:
        beside[group(path)].append(path)
    kept = []
    for several in beside.values():
        best = [path for path in several if plain(path)]
        for path in several:
            if best and path not in best:
                log.warning("%s: not used, as %s is there", path, best[0])
        kept += best or several
    return sorted(kept)


def of_languages(
    utterances: Sequence[Utterance], wanted: Sequence[str], name: str, log: logging.Logger, expected: str
) -> list[Utterance]:
    """The utterances of the wanted languages (all where there are none) that have a training and a test set.

    UserError for a wanted one that has not, and where none has; name: of the corpus in messages; expected: what it should be.
    """
    there = defaultdict(set)
    for one in utterances:
        there[one.language].add(one.split)
    usable = set()
    for language in choose_codes(sorted(there), wanted, name):
        missing = [split for split in ("train", "test") if split not in there[language]]
        if not missing:
            usable.add(language)
        elif wanted:
            raise UserError(f"{name}: {language}: no {' and no '.join(missing)} set; expected {expected}")
        else:
            log.warning("%s: %s: no %s set; the language is left out", name, language, " and no ".join(missing))
    if not usable:
        raise UserError(f"{name}: no language with a training and a test set; expected {expected}")
    return [one for one in utterances if one.language in usable]


def with_distinct_ids(sets: Mapping[Path, Sequence[Utterance]], what: str, log: logging.Logger) -> list[Utterance]:
    """The utterances of {path: its utterances}, all with language and split before their ids where two of the paths have one
    of the same; else those alone that are told apart by it, which a path has several times. what: the paths are."""
    holders = Counter(name for several in sets.values() for name in {one.id for one in several})
    if any(count > 1 for count in holders.values()):
        log.info("several %s have utterances of the same name: all begin with language and set", what)
        return [_begun(one) for several in sets.values() for one in several]
    return [one for path, several in sets.items() for one in _told_apart(path, several, log)]


def _told_apart(path, utterances, log):
    """The utterances of one path: of those of the same name, the ones of different languages or sets begin with these."""
    counts = Counter(one.id for one in utterances)
    if len(counts) == len(utterances):
        return utterances
    begun = Counter(_begun(one).id for one in utterances if counts[one.id] > 1)
    told = [begun[_begun(one).id] == 1 for one in utterances]
    same = {one.id for one in utterances if begun[_begun(one).id] > 1}
    apart = {one.id for one, alone in zip(utterances, told, strict=True) if alone} - same
    for names, outcome in ((apart, "these begin with language and set"), (same, "give each a name of its own")):
        if names:
            log.warning("%s: has several utterances of the same name (%s): %s", path, some(sorted(names)), outcome)
    return [_begun(one) if alone else one for one, alone in zip(utterances, told, strict=True)]


def _begun(utterance):
    return replace(utterance, id=f"{utterance.language}-{utterance.split}-{utterance.id}")
