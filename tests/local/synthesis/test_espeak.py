"""Phonemes of texts: the names that eSpeak NG gives, without its marks."""

import pytest

from local.synthesis.espeak import phonemes, without_marks
from pyspeech.errors import UserError


def test_marks_are_left_out():
    words = [
        ["p", "R", "'o"],
        ["z", "VU", "", ":", "", ":"],
        ["", "!", ",E", "l"],
        ["", "|", "I", "s"],
        [":v#", "'a:"],
        ["'r-", "!i"],
        ["", "!"],
    ]
    assert without_marks(words) == [["p", "R", "o"], ["z", "VU"], ["E", "l"], ["I", "s"], ["v#", "a:"], ["r-", "i"]]
    assert without_marks([]) == []


def test_other_languages_are_refused():
    assert without_marks([["a"], ["(en)", "p", "l", "'V", "s", "(nl)"]]) is None


@pytest.mark.network
def test_czech_and_dutch():
    czech, russian, none = phonemes(["Vidíš tu růžovou věc?", "Подожди, vidíš?", "..."], "cs")
    assert czech == [["v", "i", "J", "i:", "S"], ["t", "u"], ["R", "u:", "Z", "o", "v", "oU"], ["v", "j", "e", "ts"]]
    assert russian is None and none == []
    assert phonemes(["Wat zou dat zijn?"], "nl") == [[["v#", "A", "t"], ["z", "VU"], ["d", "A", "t"], ["z", "EI", "n"]]]
    assert phonemes([], "cs") == []


@pytest.mark.network
def test_unknown_language():
    with pytest.raises(UserError, match="xx"):
        phonemes(["text"], "xx")
