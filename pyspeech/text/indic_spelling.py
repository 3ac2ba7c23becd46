"""Normalisation of Indic scripts: one spelling for what looks alike.

VOWELS are the tables "do not use" of the Unicode Standard, chapter 12 (DoNotEmit.txt of the character database): an
independent vowel and a sign in place of the letter; and two signs in place of one, as converters of old fonts write them.
What else people type: the nukta after the vowel sign or twice, and a colon for visarga. ZERO WIDTH JOINER has two uses that
change the word, of which one needs it:

    ra + virama + ZWJ   Devanagari eyelash ra, also spelt U+0931 + virama, which is what it becomes; ra + virama is reph
    ra + ZWJ + virama   Bengali, Assamese and Kannada: ra with the sign below the next consonant; stays, ra + virama is reph
"""

import re
import unicodedata

ZWJ = "\u200d"
# Letters once written with ZWJ that Unicode has encoded since, and the eyelash ra.
JOINED = {
    "\u0d23\u0d4d\u200d": "\u0d7a",
    "\u0d28\u0d4d\u200d": "\u0d7b",
    "\u0d30\u0d4d\u200d": "\u0d7c",
    "\u0d32\u0d4d\u200d": "\u0d7d",
    "\u0d31\u0d4d\u200d": "\u0d7c",
    "\u0d33\u0d4d\u200d": "\u0d7e",
    "\u0d2e\u0d4d\u200d": "\u0d54",
    "\u0d2f\u0d4d\u200d": "\u0d55",
    "\u0d34\u0d4d\u200d": "\u0d56",
    "\u0d15\u0d4d\u200d": "\u0d7f",
    "\u09a4\u09cd\u200d": "\u09ce",
    "\u0930\u094d\u200d": "\u0931\u094d",
}
KEPT = re.compile("([\u09b0\u09f0]\u200d\u09cd|\u0cb0\u200d\u0ccd)")  # ZWJ that makes another word
# Sequence, letter that is meant.
VOWELS = {
    # Devanagari
    "\u0905\u0946": "\u0904",
    "\u0905\u093e": "\u0906",
    "\u0930\u094d\u0907": "\u0908",
    "\u0909\u0941": "\u090a",
    "\u090f\u0945": "\u090d",
    "\u090f\u0946": "\u090e",
    "\u090f\u0947": "\u0910",
    "\u0905\u0949": "\u0911",
    "\u0906\u0945": "\u0911",
    "\u0905\u094a": "\u0912",
    "\u0906\u0946": "\u0912",
    "\u0905\u094b": "\u0913",
    "\u0906\u0947": "\u0913",
    "\u0905\u094c": "\u0914",
    "\u0906\u0948": "\u0914",
    "\u0905\u0945": "\u0972",
    "\u0905\u093a": "\u0973",
    "\u0905\u093b": "\u0974",
    "\u0906\u093a": "\u0974",
    "\u0905\u094f": "\u0975",
    "\u0905\u0956": "\u0976",
    "\u0905\u0957": "\u0977",
    "\u093e\u0945": "\u0949",
    "\u093e\u0946": "\u094a",
    "\u093e\u0947": "\u094b",
    "\u093e\u0948": "\u094c",
    # Bengali; the last one is ra as a font without it wrote it
    "\u0985\u09be": "\u0986",
    "\u098b\u09c3": "\u09e0",
    "\u098c\u09e2": "\u09e1",
    "\u09ac\u09bc": "\u09b0",
    # Gurmukhi
    "\u0a05\u0a3e": "\u0a06",
    "\u0a72\u0a3f": "\u0a07",
    "\u0a72\u0a40": "\u0a08",
    "\u0a73\u0a41": "\u0a09",
    "\u0a73\u0a42": "\u0a0a",
    "\u0a72\u0a47": "\u0a0f",
    "\u0a05\u0a48": "\u0a10",
    "\u0a73\u0a4b": "\u0a13",
    "\u0a05\u0a4c": "\u0a14",
    # Gujarati
    "\u0a85\u0abe": "\u0a86",
    "\u0a85\u0ac5": "\u0a8d",
    "\u0a85\u0ac7": "\u0a8f",
    "\u0a85\u0ac8": "\u0a90",
    "\u0a85\u0ac9": "\u0a91",
    "\u0a85\u0acb": "\u0a93",
    "\u0a86\u0ac5": "\u0a93",
    "\u0a85\u0acc": "\u0a94",
    "\u0a86\u0ac8": "\u0a94",
    "\u0a86\u0ac7": "\u0a93",
    "\u0ac5\u0abe": "\u0ac9",
    "\u0abe\u0ac5": "\u0ac9",
    "\u0abe\u0ac7": "\u0acb",
    "\u0abe\u0ac8": "\u0acc",
    # Odia; the last one is no vowel
    "\u0b05\u0b3e": "\u0b06",
    "\u0b0f\u0b57": "\u0b10",
    "\u0b13\u0b57": "\u0b14",
    "\u0b2f\u0b3c": "\u0b5f",
    # Tamil; the second is the syllable shri
    "\u0b85\u0bc2": "\u0b86",
    "\u0bb8\u0bcd\u0bb0\u0bc0": "\u0bb6\u0bcd\u0bb0\u0bc0",
    # Telugu
    "\u0c12\u0c55": "\u0c13",
    "\u0c12\u0c4c": "\u0c14",
    "\u0c3f\u0c55": "\u0c40",
    "\u0c46\u0c55": "\u0c47",
    "\u0c4a\u0c55": "\u0c4b",
    # Kannada
    "\u0c89\u0cbe": "\u0c8a",
    "\u0c92\u0ccc": "\u0c94",
    "\u0c8b\u0cbe": "\u0ce0",
    # Malayalam; the last one is the conjunct nta
    "\u0d07\u0d57": "\u0d08",
    "\u0d09\u0d57": "\u0d0a",
    "\u0d0e\u0d46": "\u0d10",
    "\u0d12\u0d3e": "\u0d13",
    "\u0d12\u0d57": "\u0d14",
    "\u0d46\u0d46": "\u0d48",
    "\u0d7b\u0d4d\u0d31": "\u0d28\u0d4d\u0d31",
}
WITH_NUKTA = (0x0900, 0x0980, 0x0A00, 0x0A80, 0x0B00, 0x0C00, 0x0C80)
WITH_VISARGA = (0x0900, 0x0980, 0x0A80, 0x0B00, 0x0C00, 0x0C80, 0x0D00)  # in Gurmukhi a colon ends an abbreviation


def _of_block(template, block):
    """A pattern whose {xx} are offsets in a block of 128 characters."""
    return re.sub(r"\{(\w\w)\}", lambda match: chr(block + int(match[1], 16)), template)


ALONE = {0x0950, *range(0x0D54, 0x0D57), *range(0x0D7A, 0x0D80)}  # om and chillu, which have no visarga


def _letters(block):
    codes = set(range(block, block + 128)) - ALONE
    return "".join(chr(code) for code in sorted(codes) if unicodedata.category(chr(code)) == "Lo")


_SIGNS = "{00}-{03}{3a}{3b}{3e}-{4c}{4e}{4f}{55}-{57}{62}{63}"
NUKTAS = [(re.compile(_of_block(f"([{_SIGNS}]+)({{3c}}+)", block)), r"\2\1") for block in WITH_NUKTA]
NUKTAS += [(re.compile(_of_block("({3c}){3c}+", block)), r"\1") for block in WITH_NUKTA]
NUKTAS += [(re.compile("([\u0929\u0931\u0934])\u093c+"), r"\1")]  # they have one
VISARGAS = [
    (re.compile(_of_block(f"(?<=[{_letters(block)}{_SIGNS}])[:\uff1a](?=[{_letters(block)}])", block)), chr(block + 3))
    for block in WITH_VISARGA
]
SEQUENCES = re.compile("|".join(sorted(VOWELS, key=len, reverse=True)))
JOINED_SEQUENCES = re.compile("|".join(JOINED))
ANY = re.compile("|".join(pattern.pattern for pattern in [SEQUENCES, *(pattern for pattern, _ in NUKTAS + VISARGAS)]))


def join_letters(text: str) -> str:
    """Replace letters that are written with ZWJ by those that Unicode has for them."""
    return JOINED_SEQUENCES.sub(lambda match: JOINED[match[0]], text)


def spell(text: str) -> str:
    """Bring text in NFC, without characters that have no shape, to one spelling; the result is in NFC.

    Doing it twice changes nothing.
    """
    while not text.isascii() and ANY.search(text):  # what is replaced may make another sequence
        for pattern, replacement in NUKTAS + VISARGAS:
            text = pattern.sub(replacement, text)
        text = SEQUENCES.sub(lambda match: VOWELS[match[0]], unicodedata.normalize("NFC", text))
        text = unicodedata.normalize("NFC", text)
    return text
