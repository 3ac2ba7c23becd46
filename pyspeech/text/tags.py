"""Tags in transcripts: noise, laughter, unknown words and the like, which nobody said.

A pattern is a tag as it is written; * stands for one or more characters that are no brackets. `[laughter-*]=*` leaves what
the star stands for. Case does not matter. A tag is a token of its own, beside white space, punctuation or another tag;
only those in angle brackets are tags within a word too. What the star stands for begins and ends with a blank in brackets
alone, and of angle brackets about a single word: `a < b and c > d` has no tag. Patterns are tried in their order.
"""

import re
from collections import Counter
from collections.abc import Sequence

from pyspeech.errors import UserError

DEFAULT_TAGS = (
    "[laughter-*]=*",  # Switchboard: a word said with a laugh
    "[*]",  # Switchboard, MUCS: [laughter], [vocalized-noise], [silence]
    "<*>",  # Kaldi, NIST, MUCS: <noise>, <UNK>, <spoken_noise>, </foreign>
    "++*++",  # Sphinx
    "!SIL",
    "~SIL",
    "%HESITATION",  # NIST
    "(%HESITATION)",
    "(())",  # LDC: not to be understood
    "(( ))",
    "{laugh}",
    "{cough}",
    "{sneeze}",
    "{breath}",
    "{lipsmack}",
    "IGNORE_TIME_SEGMENT_IN_SCORING",
)
_BEFORE, _BEHIND = r"(?<![^\s>\])}+])", r"(?=[\s<\[({+.,;:?!\u0964]|$)"  # another tag may be beside a tag
_TIGHT = r"[^\s<>\[\](){}](?:[^<>\[\](){}]*?[^\s<>\[\](){}])??"
_STARS = {"<": rf"(\s*[^\s<>\[\](){{}}]+\s*|{_TIGHT})", **dict.fromkeys("[({", r"([^<>\[\](){}]+?)")}
LIKE_TAGS = re.compile(  # brackets also within a word, where a pattern takes none: they are named
    rf"<(?:\s*[^\s<>]+\s*|[^\s<>](?:[^<>]*[^\s<>])?)>|\[[^\[\]]+\]|\{{[^{{}}]+\}}"
    rf"|{_BEFORE}(?:\(\(.*?\)\)|\+\+\S+\+\+|[%!~][A-Za-z_]+){_BEHIND}"
)


class Tags:
    """Drops tags from texts and counts them.

    dropped: Counter of the tags that were; left: Counter of what looks like a tag and is none of the list.
    """

    def __init__(self, patterns: Sequence[str] = DEFAULT_TAGS) -> None:
        self.dropped: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        self._rules = [_rule(pattern) for pattern in patterns]

    def drop(self, text: str) -> str:
        """Return a text without its tags; one without tags as it is."""
        found = text
        for pattern, keeps in self._rules:
            found = pattern.sub(lambda match, keeps=keeps: self._taken(match, keeps), found)
        self.left.update(LIKE_TAGS.findall(found))
        return text if found == text else " ".join(found.split())

    def _taken(self, match, keeps):
        self.dropped[match[0]] += 1
        return f" {match[1]} " if keeps else " "


def is_pattern(pattern: str) -> bool:
    """True if a text is a pattern: a tag with at most one star, of which `=*` may keep what it stands for."""
    tag, separator, kept = pattern.partition("=")
    return bool(tag.strip("* ")) and tag.count("*") <= 1 and (not separator or (kept == "*" and "*" in tag))


def _rule(pattern):
    """(regular expression, whether what its star stands for is kept)"""
    if not is_pattern(pattern):
        raise UserError(f"tag '{pattern}'; expected a tag such as <noise>, one star at most, or [laughter-*]=*")
    tag, _, kept = pattern.partition("=")
    inside = re.escape(tag).replace(r"\*", _STARS.get(tag[0], f"({_TIGHT})")).replace(r"\ ", r"\s+")
    borders = ("", "") if tag.startswith("<") else (_BEFORE, _BEHIND)  # no word has angle brackets
    return re.compile(inside.join(borders), re.IGNORECASE), bool(kept)


def most(counts: Counter[str], limit: int = 10) -> str:
    """The most frequent of some things, with how often they are there: "a (3), b (1) and 5 more"."""
    named = ", ".join(
        f"{name} ({count})" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]
    )
    return named + (f" and {len(counts) - limit} more" if len(counts) > limit else "")
