"""Phonemes of texts, by the pronunciation rules and dictionaries of eSpeak NG: what a forced alignment starts from.

Names are eSpeak NG's own mnemonics ("tS", "i:", "R^"), which hold no white space. Marks of stress, of the pauses
between clauses and of the joints within words are left out, so a stressed vowel is the phoneme that the unstressed is.

Limits: the pronunciation of the dictionary, not of the speaker; numbers and abbreviations are read by eSpeak NG's own
rules.
"""

import re

from local.synthesis import espeak

_MARKS = re.compile(r"[',%=!;:|*]*")  # in front of a name; the colon of a long vowel stands behind it
_OTHER_LANGUAGE = re.compile(r"\([a-z-]+\)")  # (en) before a word that is read by the rules of another language


def phonemes(texts, language, where=None):
    """Phonemes of each text: a list of words, each a list of names; None where a part is read as another language.

    texts: list of str; language: a voice of eSpeak NG ("cs"); where: as for `espeak.synthesize`. A text without words
    gives an empty list. UserError where eSpeak NG cannot be had or has no such language.
    """
    return [tidy(words) for words in espeak.transcribe(texts, language, where)]


def tidy(words):
    """Words as `espeak.Engine.phonemes` gives them -> words without marks, or None for several languages."""
    if any(_OTHER_LANGUAGE.search(name) for word in words for name in word):
        return None
    named = [[_MARKS.sub("", name, count=1) for name in word] for word in words]
    return [word for word in ([name for name in word if name] for word in named) if word]
