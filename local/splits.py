"""Assignment to splits: the words by which folders name splits, shares by the hash of a name, held-out texts."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from pyspeech.data.manifests import Utterance
from pyspeech.text.normalize import normalize

SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "development": "dev",
    "eval": "eval",
    "evaluation": "eval",
    "test": "eval",
}
SENTENCE_WORDS = 3  # texts of as many words on average are sentences
ENOUGH_SPEAKERS = 5  # of which one may be held out
SEED = 0  # of the draws of what is held out


def share_of(name: str) -> float:
    """A number from 0 to 1 that depends on the name alone, evenly distributed."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") / 2.0**32


def share_of_words(text: str) -> float:
    """`share_of` the words of a text alone: "For help..." and "...for help." go together."""
    return share_of(" ".join(re.findall(r"\w+", text.lower())))


def hold_out(utterances: Sequence[Utterance], share: float, split: str = "dev", limit: int = 500) -> list[Utterance]:
    """The utterances, with about a `share` of each language's training utterances moved into another split.

    Which ones depends on their ids, speakers or texts alone, not on their order or on the other languages.
    Where at least 5 speakers are named, of half the utterances or more, whole ones of these are moved, up to twice the share;
    utterances without a speaker stay. Else sentences are moved with all utterances of the same text, so that no text is on
    both sides; where the texts are words (fewer than 3 words on average, as with digits) or too few for that, each utterance
    is moved by itself. At most `limit` utterances a language (twice as many with speakers), and never all.
    """
    train = [utterance for utterance in utterances if utterance.split == "train"]
    moved = set()
    for language in {utterance.language for utterance in train}:
        moved |= _chosen([utterance for utterance in train if utterance.language == language], share, limit)
    return [replace(utterance, split=split) if utterance.id in moved else utterance for utterance in utterances]


def _chosen(utterances, share, limit):
    wanted = min(max(1, round(share * len(utterances))), limit, len(utterances) - 1)
    by_speaker, by_text = defaultdict(list), defaultdict(list)
    by_id = {utterance.id: [utterance.id] for utterance in utterances}
    for utterance in utterances:
        by_speaker[utterance.speaker].append(utterance.id)
        by_text[normalize(utterance.text, utterance.language)].append(utterance.id)
    named = {speaker: ids for speaker, ids in by_speaker.items() if speaker}
    if len(named) >= ENOUGH_SPEAKERS and 2 * sum(map(len, named.values())) >= len(utterances):
        drawn = _draw(named, wanted, min(2 * wanted, len(utterances) - 1))
        if drawn:
            return drawn
    sentences = sum(len(text.split()) for text in by_text) >= SENTENCE_WORDS * len(by_text)
    return (_draw(by_text, wanted) if sentences else set()) or _draw(by_id, wanted)


def _draw(groups, wanted, most=None):
    """Ids of `wanted` utterances or fewer, at most `most` (None: wanted), in whole groups, by a hash of the groups' names."""
    drawn = set()
    for key in sorted(groups, key=lambda key: hashlib.md5(f"{SEED} {key}".encode()).digest()):
        if len(drawn) < wanted and len(drawn) + len(groups[key]) <= (most or wanted):
            drawn |= set(groups[key])
    return drawn
