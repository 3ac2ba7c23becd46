"""Width of a text on a screen."""

import unicodedata


def display_width(text: str) -> int:
    """Columns that a text takes, about: combining marks none, wide characters (East Asia) two."""
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )
