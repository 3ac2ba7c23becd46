"""The language of a text by its script, among languages with known graphemes (Joshi et al. 2021, section 6.2).

A model with one output layer for all languages says no language: its hypotheses' script does, where every language has
a script of its own. Where several share one (es, fr and it; hi and mr), only those graphemes tell that one of them has
and the other lacks; without them the text fits several languages.
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping

NO_SCRIPT = {"COMBINING", "MODIFIER", "FEMININE", "MASCULINE"}


def script_of(character: str) -> str | None:
    """ "DEVANAGARI", "TAMIL", "LATIN", ... for a letter or mark, by its Unicode name; None for digits, apostrophes and
    marks of no one script."""
    if unicodedata.category(character)[0] not in "LM":
        return None
    script = unicodedata.name(character, "COMBINING").split()[0]
    return None if script in NO_SCRIPT else script


def main_script(counts: Mapping[str, int]) -> str | None:
    """The script of most of a {character: count}; None without letters. Of equals, the first by name."""
    scripts = Counter()
    for character, count in counts.items():
        if script_of(character):
            scripts[script_of(character)] += count
    return min(scripts, key=lambda script: (-scripts[script], script)) if scripts else None


def foreign_letters(counts: Mapping[str, int]) -> Counter[str]:
    """The letters and marks of a {character: count} that are of another script than most are, with their counts."""
    main = main_script(counts)
    return Counter({character: count for character, count in counts.items() if script_of(character) not in (None, main)})


def languages_of(text: str, languages: Mapping[str, dict]) -> list[str]:
    """The languages that a normalised text fits best: [code, ...], one where the script or the graphemes decide, [] for
    a text without letters or in a script that is no language's.

    languages: {code: {"graphemes": str, "script": str}}. First by the script of most of the text's letters, then,
    among the languages of that script, by how many of the text's characters are graphemes of the language.
    """
    script = main_script(Counter(text))
    same = [code for code, inventory in languages.items() if script and inventory["script"] == script]
    covered = {code: sum(character in languages[code]["graphemes"] for character in text) for code in same}
    return [code for code in same if covered[code] == max(covered.values())]
