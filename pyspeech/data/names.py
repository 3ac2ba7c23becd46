"""Names of utterances, found by the other ways in which files spell them: with other folders, or folders joined to the name."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class KnownNames:
    """Names, to be found where another spelling has more folders or fewer (`real/x`, `x`), or joins them (`real_x`).

    The tools of this package join folders where they name a recording by its file (`find_recordings`).
    """

    def __init__(self, names: Iterable[str], plain: Callable[[str], str] = str) -> None:
        """Know names; plain: gives the form of a name that is compared, such as one without the ending of a file."""
        names, self.plain = dict.fromkeys(names), plain
        self.exact = {plain(name): name for name in names} | {name: name for name in names}
        self.other = {}  # other spellings of a name with folders: that name, None where it may be several
        for name in names:
            for other in _ends(plain(name)):
                self.other[other] = None if self.other.get(other, name) != name else name

    def find(self, name: str) -> str | None:
        """Return the name that another one stands for; None where there is none, or may be several."""
        plain = self.plain(name)
        for form in (name, plain):
            if form in self.exact:
                return self.exact[form]
        if plain in self.other:
            return self.other[plain]
        return next((self.exact[end] for end in _ends(plain) if end in self.exact), None)


def _ends(name):
    """`a/b/c` -> a_b_c, b/c, b_c, c."""
    parts = name.split("/")
    if len(parts) == 1:
        return []
    ends = ["/".join(parts[first:]) for first in range(1, len(parts))]
    return list(dict.fromkeys(form for end in [name, *ends] for form in (end, end.replace("/", "_")) if form != name))
