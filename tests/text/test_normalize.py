"""The normaliser of transcripts."""

import sys
import unicodedata

import numpy as np
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
        ("\uff28\uff45\uff4c\uff4c\uff4f\u3000\uff11\uff0c", "en-IN", "hello 1"),  # full width
    ],
)
def test_normalize_examples(raw, language, expected):
    assert normalize(raw, language) == expected


@pytest.mark.parametrize(
    "spellings, others",
    [
        # Marathi daryaa (valleys) has eyelash ra, three ways; darya (sea) has reph.
        (["\u0926\u0930\u094d\u200d\u092f\u093e", "\u0926\u0931\u094d\u092f\u093e",
          "\u0926\u0930\u093c\u094d\u200d\u092f\u093e"], ["\u0926\u0930\u094d\u092f\u093e"]),
        # Bengali ra with ya-phala (as in RAB), Assamese, Kannada; without the joiner it is reph on ya.
        (["\u09b0\u200d\u09cd\u09af\u09be\u09ac"], ["\u09b0\u09cd\u09af\u09be\u09ac"]),
        (["\u09f0\u200d\u09cd\u09af"], ["\u09f0\u09cd\u09af"]),
        (["\u0cb0\u200d\u0ccd\u0caf\u0cbe"], ["\u0cb0\u0ccd\u0caf\u0cbe"]),
        # Visarga as a colon: Hindi, Bengali, Telugu, Malayalam duhkha; not before a space, not in Gurmukhi, not in times.
        (["\u0926\u0941\u0903\u0916", "\u0926\u0941:\u0916"], ["\u0926\u0941: \u0916"]),
        (["\u09a6\u09c1\u0983\u0996", "\u09a6\u09c1:\u0996"], []),
        (["\u0c26\u0c41\u0c03\u0c16\u0c02", "\u0c26\u0c41:\u0c16\u0c02"], []),
        (["\u0d26\u0d41\u0d03\u0d16\u0d02", "\u0d26\u0d41:\u0d16\u0d02"], []),
        (["\u0a21\u0a3e:\u0a30", "\u0a21\u0a3e \u0a30"], []),
        (["10:30", "10 30"], []),
        (["\u0967:\u0968", "1 2"], []),
        # Nukta after the vowel sign, twice, and where the letter has one.
        (["\u092a\u0922\u093c\u093e", "\u092a\u0922\u093e\u093c", "\u092a\u0922\u093c\u093c\u093e", "\u092a\u095d\u093c\u093e"],
         ["\u092a\u0922\u093e"]),
        (["\u0931\u093e", "\u0930\u093e\u093c", "\u0930\u093c\u093c\u093e"], ["\u0930\u093e"]),
        (["\u09ac\u09a1\u09bc\u09c0", "\u09ac\u09a1\u09c0\u09bc"], []),
        (["\u0916\u093c\u0902", "\u0916\u0902\u093c"], []),
        # Independent a and a sign.
        (["\u0906\u092e", "\u0905\u093e\u092e"], ["\u0905\u092e"]),
        (["\u0913\u0930", "\u0905\u094b\u0930", "\u0906\u0947\u0930", "\u0905\u093e\u0947\u0930"], []),
        (["\u0986\u09ae", "\u0985\u09be\u09ae"], []),
        (["\u0a93", "\u0a85\u0abe\u0ac5"], []),
        # Odia and Malayalam sequences that look alike.
        (["\u0b10", "\u0b0f\u0b57"], ["\u0b0f"]),
        (["\u0b14", "\u0b13\u0b57"], []),
        (["\u0b5f", "\u0b2f\u0b3c"], ["\u0b2f"]),
        (["\u0d08", "\u0d07\u0d57"], []),
        (["\u0d13", "\u0d12\u0d3e"], []),
        (["\u0d0e\u0d28\u0d4d\u0d31\u0d46", "\u0d0e\u0d7b\u0d4d\u0d31\u0d46",
          "\u0d0e\u0d28\u0d4d\u200d\u0d4d\u0d31\u0d46"], []),
        (["\u0bb6\u0bcd\u0bb0\u0bc0", "\u0bb8\u0bcd\u0bb0\u0bc0"], []),
        # Signs in two parts, as converters of old fonts write them: Hindi daktar, ko, kaun; Gujarati; Malayalam ai.
        (["\u0921\u0949\u0915\u094d\u091f\u0930",
          "\u0921\u093e\u0945\u0915\u094d\u091f\u0930"], ["\u0921\u093e\u0915\u094d\u091f\u0930"]),
        (["\u0915\u094b", "\u0915\u093e\u0947"], ["\u0915\u0947"]),
        (["\u0915\u094c\u0928", "\u0915\u093e\u0948\u0928"], []),
        (["\u0a95\u0acb", "\u0a95\u0abe\u0ac7"], []),
        (["\u0a93", "\u0a85\u0abe\u0ac7"], []),
        (["\u0d15\u0d48", "\u0d15\u0d46\u0d46"], ["\u0d15\u0d46"]),
        (["\u09b0\u09be", "\u09ac\u09bc\u09be"], ["\u09ac\u09be"]),
        # Assamese letters and avagraha beside a colon for visarga.
        (["\u0985\u09a8\u09cd\u09a4\u0983\u09f0\u09be\u099c\u09cd\u09af",
          "\u0985\u09a8\u09cd\u09a4:\u09f0\u09be\u099c\u09cd\u09af"], []),
        (["\u0926\u0941\u0903\u093d\u0916", "\u0926\u0941:\u093d\u0916"], []),
        (["\u0d54", "\u0d2e\u0d4d\u200d"], ["\u0d2e\u0d4d"]),
        # A colon behind a chillu and om is none.
        (["\u0d39\u0d7b:\u0d35", "\u0d39\u0d7b \u0d35"], []),
        (["\u0950:\u0928\u092e", "\u0950 \u0928\u092e"], []),
    ],
)  # fmt: skip
def test_spellings(spellings, others):
    """Ways to write one word become one, and other words stay others; each is a fixed point."""
    found = {normalize(spelling) for spelling in spellings}
    assert len(found) == 1 and len(found.pop().split()) == len(normalize(spellings[0]).split())
    assert normalize(spellings[0]) not in map(normalize, others)
    for text in spellings + others:
        assert normalize(normalize(text)) == normalize(text)


def test_twice_is_once_for_sequences_of_indian_scripts():
    random = np.random.default_rng(0)
    for block in range(0x0900, 0x0D80, 0x80):
        pool = [
            *range(block, block + 0x80),
            0x200C,
            0x200D,
            0x200D,
            0x3A,
            block + 0x3C,
            block + 0x4D,
            block + 0x30,
            block + 0x30,
        ]
        for _ in range(1500):
            text = "".join(map(chr, random.choice(pool, size=int(random.integers(1, 9)))))
            assert normalize(normalize(text)) == normalize(text), ascii(text)


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
