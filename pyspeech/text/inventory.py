"""Common interface of all kinds of units; each kind has its own `symbols`, `languages` and `decode`."""

from collections.abc import Iterable

from pyspeech.text.scripts import languages_of


class Inventory:
    """symbols: list of V names, 0 the blank. languages: {code: {"graphemes", "script"}} that they were built for."""

    symbols: list[str]
    languages: dict[str, dict]

    def decode(self, numbers: Iterable[int]) -> str:
        raise NotImplementedError

    @property
    def size(self) -> int:
        """V, the blank included."""
        return len(self.symbols)

    def __len__(self) -> int:
        return self.size

    def languages_of(self, numbers: Iterable[int]) -> list[str]:
        """The languages that symbol numbers fit best: `pyspeech.text.scripts.languages_of`."""
        return languages_of(self.decode(numbers), self.languages)

    def language_of(self, numbers: Iterable[int]) -> str | None:
        """The one language that symbol numbers fit best; None where several fit alike or none does."""
        fitting = self.languages_of(numbers)
        return fitting[0] if len(fitting) == 1 else None
