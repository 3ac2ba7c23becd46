"""Graphemes with B- twins as units of a transducer (Joshi et al. 2021, section 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from pyspeech.errors import UserError
from pyspeech.text.inventory import Inventory
from pyspeech.text.normalize import is_mark
from pyspeech.text.scripts import main_script

Kind = TypeVar("Kind", bound=Inventory)
BLANK = "<blk>"
WORD_START = "B-"
UNDETERMINED = "und"  # ISO 639-2's code for the language of units that were built without one


class GraphemeUnits(Inventory):
    """Graphemes of one language, or of several together.

    symbols: list of V = 2 G + 1 names; 0 is the blank, 1..G the graphemes in code point order, G+1..2G their B- twins.
    languages: {code: {"graphemes": str, "script": str or None}} of the languages that the units were built for.
    """

    kind = "graphemes"

    def __init__(self, graphemes: Iterable[str], languages: dict[str, dict] | None = None) -> None:
        """graphemes: single characters, in any order; `build` and `union` are the usual ways."""
        self.graphemes = sorted(set(graphemes))
        wrong = [grapheme for grapheme in self.graphemes if len(grapheme) != 1 or grapheme.isspace()]
        if wrong:
            raise UserError(f"graphemes: {wrong[0]!r} is not a single character other than a space")
        self.languages = languages or {}
        self.symbols = [BLANK, *self.graphemes, *(WORD_START + grapheme for grapheme in self.graphemes)]
        self._index = {grapheme: number for number, grapheme in enumerate(self.graphemes, start=1)}

    @classmethod
    def build(cls, texts: Iterable[str], graphemes: Iterable[str] | None = None, language: str = UNDETERMINED) -> GraphemeUnits:
        """Units of the characters in normalised texts.

        graphemes: the inventory, where it is not to be taken from the texts (a string or a list of characters).
        language: its code, which `language_of` answers with. UserError where no grapheme is found.
        """
        counts = Counter(character for text in texts for word in text.split() for character in word)
        inventory = set(counts) if graphemes is None else set(graphemes)
        if not inventory:
            raise UserError(f"no grapheme found in the texts (language {language}): expected transcripts of the training set")
        known = {character: counts[character] for character in inventory} if counts else dict.fromkeys(inventory, 1)
        units = cls(inventory)
        units.languages = {language: {"graphemes": "".join(units.graphemes), "script": main_script(known)}}
        return units

    @classmethod
    def union(cls, units: dict[str, GraphemeUnits] | list[GraphemeUnits]) -> GraphemeUnits:
        """Units of several languages together; a grapheme that two of them have is one symbol.

        units: {code: GraphemeUnits}, or [GraphemeUnits, ...] that were built with `language=`.
        """
        languages = merge_languages(units)
        members = units.values() if isinstance(units, dict) else units
        return cls({grapheme for item in members for grapheme in item.graphemes}, languages)

    def encode(self, text: str) -> list[int]:
        """Symbol numbers of a normalised text, [] for an empty one: its words' first graphemes as B- twins.

        Unknown graphemes are dropped, and so are marks left without what they combine with; a word of nothing else is
        dropped altogether.
        """
        numbers = []
        for word in text.split():
            start = True
            for character in word:
                number = self._index.get(character)
                if number is None or start and is_mark(character):
                    continue
                numbers.append(number + len(self.graphemes) if start else number)
                start = False
        return numbers

    def decode(self, numbers: Iterable[int]) -> str:
        """Text of symbol numbers (ints, 0..V-1): a B- twin starts a word; blanks are passed over.

        `decode(encode(text)) == text` for normalised text of known graphemes.
        """
        characters, size = [], len(self.graphemes)
        for number in map(int, numbers):
            if not 0 <= number <= 2 * size:
                raise UserError(f"symbol {number} is not in 0..{2 * size}: these are not the units of the model")
            if number > size:
                characters.append(" ")
            if number:
                characters.append(self.graphemes[(number - 1) % size])
        return "".join(characters).strip()

    def count_unknown(self, texts: Iterable[str]) -> Counter[str]:
        """Counter of the characters in normalised texts that are no units: {character: how often}."""
        known = set(self.graphemes)
        return Counter(character for text in texts for word in text.split() for character in word if character not in known)

    def to_json(self) -> dict:
        """Plain data (dict of strings and lists) for `from_json`."""
        return {"kind": self.kind, "graphemes": self.graphemes, "languages": self.languages}

    @classmethod
    def from_json(cls, data: dict) -> GraphemeUnits:
        """Units from what `to_json` gave."""
        return cls(data["graphemes"], data["languages"])


def merge_languages(units: dict[str, Kind] | list[Kind]) -> dict[str, dict]:
    """The `languages` of a union of units, which are given as to `GraphemeUnits.union`."""
    if not isinstance(units, dict):
        codes = [code for item in units for code in item.languages]
        if len(set(codes)) < len(codes) or UNDETERMINED in codes or not codes:
            raise UserError(
                f"union of units: expected units of different languages, found "
                f"{', '.join(codes) or 'none'}; build them with language=, or give {{code: units}}"
            )
        return {code: entry for item in units for code, entry in item.languages.items()}
    several = [code for code, item in units.items() if len(item.languages) != 1]
    if several or not units:
        raise UserError(f"union of units: expected units of one language each, not {', '.join(several) or 'none'}")
    return {code: next(iter(item.languages.values())) for code, item in units.items()}
