"""Units that transducers put out: graphemes with B- twins (Joshi et al. 2021, section 4), or sentence pieces.

The vocabulary of a language is the blank, its G graphemes (the code points of its normalised text) and as many twins
with the prefix B- for the first grapheme of a word: 2 G + 1 symbols, an odd number as in the paper's Table 1. Combining
marks never start a word, so their twins are never used; they are there, as they must be in the paper's (Tamil's
97 symbols are 48 graphemes), and cost one row each.

Both kinds of units have the same interface: symbols, size, union, encode, decode, count_unknown,
language_of, to_json, from_json.
Unknown graphemes (a test text may have what the training text lacks): `encode` drops them, as no model could put them
out, and `count_unknown` counts them, so that what prepares the texts can say so once. References of the scoring are not
encoded, so nothing is dropped there.
"""

import json
from pathlib import Path

from pyspeech.errors import UserError
from pyspeech.files import atomic_write
from pyspeech.text.graphemes import GraphemeUnits
from pyspeech.text.sentence_pieces import SentencePieceUnits

Units = GraphemeUnits | SentencePieceUnits


def units_from_json(data: object) -> Units:
    """Units of either kind from what their `to_json` gave."""
    kinds = {kind.kind: kind for kind in (GraphemeUnits, SentencePieceUnits)}
    if not isinstance(data, dict) or data.get("kind") not in kinds:
        raise UserError(f"not the description of units: expected a kind of {', '.join(kinds)}")
    return kinds[data["kind"]].from_json(data)


def save_units(path: Path | str, units: Units) -> None:
    """Write units to a JSON file."""
    with atomic_write(path) as stream:
        json.dump(units.to_json(), stream, ensure_ascii=False, indent=1)


def load_units(path: Path | str) -> Units:
    """Units from a file that `save_units` wrote; UserError for any other."""
    try:
        return units_from_json(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: no units can be read from it ({type(error).__name__}: {error})") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
