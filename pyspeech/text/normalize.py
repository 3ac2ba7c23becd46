"""The one normaliser of transcripts: what models are trained on, and what references and hypotheses are scored as.

In this order:

1. Full-width Latin letters, digits and signs become the usual ones; then canonical composition (NFC). It writes
   U+0958-095F (Devanagari letters with nukta) as letter + nukta and keeps U+0929, U+0931 and U+0934 as one code point;
   Tamil and other vowel signs of two parts become one.
2. Lower case. Turkish and Azerbaijani (tr, az): I becomes dotless.
3. Letters once written with ZERO WIDTH JOINER that Unicode has encoded since (Malayalam chillu, Bengali khanda ta) and
   the eyelash ra of Marathi become those; then ZWJ, ZWNJ and all other characters without a shape (format characters,
   variation selectors) are removed, but for the ZWJ in Bengali and Kannada ra + ZWJ + virama, which makes another word.
4. Indian scripts: one spelling for sequences that look alike, nukta before vowel signs and once, visarga where a colon
   stands between letters (pyspeech/text/indic_spelling.py). NFC is applied again.
5. Decimal digits of every script become 0-9. Numbers are not spelt out: no rule fits all languages, so digits are
   graphemes like others.
6. Apostrophes of all shapes become ' where they stand between two letters (don't, l'eau).
7. Everything else that is not a letter, a combining mark or a number (punctuation and danda, hyphens, symbols, control
   characters) becomes a space.
8. Combining marks at the beginning of a word, which have nothing to combine with, are removed.
9. Words are separated by one space, none at the ends.

Normalising twice changes nothing. All else stays: spelling variants, words in another script, 1,000 is two words.
"""

import functools
import re
import unicodedata

from pyspeech.text.indic_spelling import KEPT, ZWJ, join_letters, spell

FULL_WIDTH = {number: number - 0xFEE0 for number in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
APOSTROPHES = "'\u2018\u2019\u201b\u02bc\uff07`\u00b4"
SHAPELESS = {
    0x034F,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    0x180B,
    0x180C,
    0x180D,
    0x3164,
    0xFFA0,
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
}
WORD = re.compile("[LN][LMN]*(?:(?<=[LM])'L[LMN]*)*")  # over classes of characters: see _class
DOTLESS_I_LANGUAGES = ("tr", "az")


def normalize(text: str, language: str | None = None) -> str:
    """A transcript as it is learnt and scored: lower case, words of letters, marks and digits separated by single
    spaces.

    text: any string, as the corpus has it or as a recogniser gives it. language: its code ("hi-IN"); it matters for
    tr and az alone, None does for all others. Returns "" where nothing is left.
    """
    text = unicodedata.normalize("NFC", text.translate(FULL_WIDTH))
    if language is not None and re.split(r"[-_]", language.lower())[0] in DOTLESS_I_LANGUAGES:
        text = text.replace("I", "\u0131").replace("\u0130", "i")
    text = join_letters(unicodedata.normalize("NFC", text.lower()))
    shaped = [part if number % 2 else _without_shapeless(part) for number, part in enumerate(KEPT.split(text))]
    text = spell(unicodedata.normalize("NFC", "".join(shaped)))
    classes = "".join(map(_class, text))
    return " ".join("".join(map(_spelt, text[slice(*match.span())])) for match in WORD.finditer(classes))


def is_mark(character: str) -> bool:
    """True if a character combines with the one before it (vowel signs, virama, nukta, accents)."""
    return unicodedata.category(character)[0] == "M"


def _without_shapeless(text):
    return "".join(character for character in text if not _shapeless(character))


@functools.lru_cache(maxsize=4096)
def _shapeless(character):
    return unicodedata.category(character) == "Cf" or ord(character) in SHAPELESS


@functools.lru_cache(maxsize=4096)
def _class(character):
    """L (letter), M (mark), N (number), ' or a space."""
    if character in APOSTROPHES:
        return "'"
    category = "M" if character == ZWJ else unicodedata.category(character)[0]
    return category if category in "LMN" else " "


@functools.lru_cache(maxsize=4096)
def _spelt(character):
    """What a character of a word becomes: an apostrophe, a digit or itself."""
    if character in APOSTROPHES:
        return "'"
    return str(unicodedata.decimal(character)) if unicodedata.category(character) == "Nd" else character
