"""What is read or computed once and kept in memory, as long as there is room."""

from collections.abc import Callable
from typing import Any


class BoundedCache:
    """get(key, make): what make() gave for the key, the first time it was asked for, or gives now, where that is not kept.

    The first values are, up to `limit` bytes of all together; none that comes after one that did not fit. A value is an
    array, a tensor, or a list of these.
    """

    def __init__(self, limit: int) -> None:
        self._left, self._kept = limit, {}

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        value = self._kept.get(key)
        if value is None:
            value = make()
            size = sum(map(_bytes_of, value)) if isinstance(value, list) else _bytes_of(value)
            if size <= self._left:
                self._kept[key] = value
            self._left = max(0, self._left - size)
        return value


def _bytes_of(value):
    return value.nbytes if hasattr(value, "nbytes") else value.numel() * value.element_size()  # of torch 1, which has none
