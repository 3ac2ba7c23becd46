"""The normaliser of transcripts."""

import sys
import unicodedata

import pytest

from pyspeech.text.normalize import is_mark, normalize


@pytest.mark.parametrize(
    "raw, language, expected",
    [
        ("Hello,  World!", "en-IN", "hello world"),
        ("Don\u2019t say 'yes'\u2026 OK?", "en-IN", "don't say yes ok"),
        ("well-known L\u2019Eau", "fr-FR", "well known l'eau"),
        ("\u0915\u094d\u200d\u0937\u0964", "hi-IN", "\u0915\u094d\u0937"),  # ZWJ and danda go
        ("\u0958 \u0931", "hi-IN", "\u0915\u093c \u0931"),  # NFC: one decomposed, one kept
        ("\u0930\u093c", "hi-IN", "\u0931"),
        ("\u0b95\u0bc6\u0bbe", "ta-IN", "\u0b95\u0bca"),  # vowel sign of two parts
        ("\u0967\u0968 \u0ae9 \u0be7 4", "hi-IN", "12 3 1 4"),  # digits of four scripts
        ("\u0d28\u0d4d\u200d", "ml-IN", "\u0d7b"),  # chillu written with ZWJ
        ("\u0d28\u0d4d\u200c", "ml-IN", "\u0d28\u0d4d"),
        ("a\u00ad\ufeffb\tc\r\n", "en-IN", "ab c"),
        ("- \u093e\u0915", "hi-IN", "\u0915"),  # a mark with nothing before it
        ("e\u0301t\u00c9", "fr-FR", "\u00e9t\u00e9"),
        ("IRMAK \u0130zmir", "tr-TR", "\u0131rmak izmir"),
        ("''", "en-IN", ""),
        ("", "en-IN", ""),
        ("1,000", "en-IN", "1 000"),
        ("rock''n", "en-IN", "rock n"),
    ],
)
def test_normalize_examples(raw, language, expected):
    assert normalize(raw, language) == expected


def test_twice_is_once_for_every_character():
    around = ["a{}b", "a{}'b", "\u0915{}\u093c", "A{}\u0301", "a'{}b", " {}\u094d"]
    numbers = [
        number
        for number in range(sys.maxunicode + 1)  # of ideographs, Hangul and what lies beyond the
        if not (0x3400 <= number < 0xD7A4 or number >= 0x10000) or number % 100 == 0
    ]  # basic plane, a sample
    for number in numbers:
        once = normalize(" ".join(around).replace("{}", chr(number)))
        assert normalize(once) == once, hex(number)


def test_what_is_left_is_letters_marks_and_numbers():
    everything = "".join(f"{chr(number)}x " for number in range(0x3000) if number not in range(0xD800, 0xE000))
    text = normalize(everything)
    assert {unicodedata.category(character)[0] for character in set(text) - {" ", "'"}} == {"L", "M", "N"}
    assert not any(is_mark(word[0]) for word in text.split()) and "  " not in text
    assert unicodedata.is_normalized("NFC", text)
