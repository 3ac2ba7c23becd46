"""Units that transducers put out: graphemes with B- twins (Joshi et al. 2021, section 4), or sentence pieces.

The vocabulary of a language is the blank, its G graphemes (the code points of its normalised text) and as many twins
with the prefix B- for the first grapheme of a word: 2 G + 1 symbols, an odd number as in the paper's Table 1. Combining
marks never start a word, so their twins are never used; they are there, as they must be in the paper's (Tamil's
97 symbols are 48 graphemes), and cost one row each.

Both kinds of units have the same interface: symbols, len, language_names, encode, decode, count_unknown, language_of,
to_json, from_json.
Unknown graphemes (a test text may have what the training text lacks): `encode` drops them, as no model could put them
out, and `count_unknown` counts them, so that what prepares the texts can say so once. References of the scoring are not
encoded, so nothing is dropped there.
"""
import json
from collections import Counter
from pathlib import Path

from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.text.normalize import is_mark
from pyspeech.text.scripts import languages_of, main_script

BLANK = "<blk>"
WORD_START = "B-"


class GraphemeUnits:
    """Graphemes of one language, or of several together.

    symbols: list of V = 2 G + 1 names; 0 is the blank, 1..G the graphemes in code point order, G+1..2G their B- twins.
    languages: {code: {"graphemes": str, "script": str or None}} of the languages that the units were built for.
    """

    kind = "graphemes"

    def __init__(self, graphemes, languages=None):
        """graphemes: single characters, in any order; `build` and `union` are the usual ways."""
        self.graphemes = sorted(set(graphemes))
        wrong = [grapheme for grapheme in self.graphemes if len(grapheme) != 1 or grapheme.isspace()]
        if wrong:
            raise UserError(f"graphemes: {wrong[0]!r} is not one character that is no space")
        self.languages = languages or {}
        self.symbols = [BLANK, *self.graphemes, *(WORD_START + grapheme for grapheme in self.graphemes)]
        self._index = {grapheme: number for number, grapheme in enumerate(self.graphemes, start=1)}

    @classmethod
    def build(cls, texts, graphemes=None, language=None):
        """Units of the characters in normalised texts.

        graphemes: the inventory, where it is not to be taken from the texts (a string or a list of characters).
        language: code, which `union` and `language_of` need. UserError where no grapheme is found.
        """
        counts = Counter(character for text in texts for word in text.split() for character in word)
        inventory = set(counts) if graphemes is None else set(graphemes)
        if not inventory:
            raise UserError(f"no grapheme found in the texts{f' of {language}' if language else ''}: "
                            f"expected transcripts of the training set")
        known = {character: counts[character] for character in inventory} if counts else dict.fromkeys(inventory, 1)
        units = cls(inventory)
        if language:
            units.languages = {language: {"graphemes": "".join(units.graphemes), "script": main_script(known)}}
        return units

    @classmethod
    def union(cls, units):
        """Units of several languages together; a grapheme that two of them have is one symbol.

        units: [GraphemeUnits, ...] that were built with `language=`, or {code: GraphemeUnits}.
        """
        if isinstance(units, dict):
            units = [cls(item.graphemes, {code: item._entry()}) for code, item in units.items()]
        languages = {code: entry for item in units for code, entry in item.languages.items()}
        if not languages or not all(item.languages for item in units):
            raise UserError("union of units: each must have been built with its language's code")
        return cls({grapheme for item in units for grapheme in item.graphemes}, languages)

    def _entry(self):
        """What is known of these units as those of one language."""
        if len(self.languages) == 1:
            return next(iter(self.languages.values()))
        return {"graphemes": "".join(self.graphemes), "script": main_script(dict.fromkeys(self.graphemes, 1))}

    def __len__(self):
        """V, the blank included."""
        return len(self.symbols)

    @property
    def language_names(self):
        """Codes of the languages that the units were built for, in order."""
        return list(self.languages)

    def encode(self, text):
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

    def decode(self, numbers):
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

    def count_unknown(self, texts):
        """Counter of the characters in normalised texts that are no units: {character: how often}."""
        known = set(self.graphemes)
        return Counter(character for text in texts for word in text.split() for character in word
                       if character not in known)

    def languages_of(self, numbers):
        """The languages that symbol numbers fit best: `pyspeech.text.scripts.languages_of`."""
        return languages_of(self.decode(numbers), self.languages)

    def language_of(self, numbers):
        """The one language that symbol numbers fit best; None where several fit alike or none does."""
        fitting = self.languages_of(numbers)
        return fitting[0] if len(fitting) == 1 else None

    def to_json(self):
        """Plain data (dict of strings and lists) for `from_json`."""
        return {"kind": self.kind, "graphemes": self.graphemes, "languages": self.languages}

    @classmethod
    def from_json(cls, data):
        """Units from what `to_json` gave."""
        return cls(data["graphemes"], data["languages"])


def units_from_json(data):
    """Units of either kind from what their `to_json` gave."""
    from pyspeech.text.sentence_pieces import SentencePieceUnits

    kinds = {kind.kind: kind for kind in (GraphemeUnits, SentencePieceUnits)}
    if not isinstance(data, dict) or data.get("kind") not in kinds:
        raise UserError(f"not the description of units: expected a kind of {', '.join(kinds)}")
    return kinds[data["kind"]].from_json(data)


def save_units(path, units):
    """Write units to a JSON file."""
    with atomic_write(path) as stream:
        json.dump(units.to_json(), stream, ensure_ascii=False, indent=1)


def load_units(path):
    """Units from a file that `save_units` wrote; UserError for any other."""
    try:
        return units_from_json(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: no units can be read from it ({type(error).__name__}: {error})") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
