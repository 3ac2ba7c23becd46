"""What is read or computed once and kept in memory, as long as there is room."""


class BoundedCache:
    """get(key, make): what make() gave for the key, the first time it was asked for; made anew where that did not fit.

    limit: bytes of all values together; what was kept stays. A value is an array, a tensor, or a list of these.
    """

    def __init__(self, limit):
        self.left, self._kept = limit, {}

    def get(self, key, make):
        value = self._kept.get(key)
        if value is None:
            value = make()
            size = sum(map(_bytes_of, value)) if isinstance(value, list) else _bytes_of(value)
            if size <= self.left:
                self.left -= size
                self._kept[key] = value
        return value


def _bytes_of(value):
    return value.nbytes if hasattr(value, "nbytes") else value.numel() * value.element_size()  # of torch 1, which has none
