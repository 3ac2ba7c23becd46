"""Memory cache of what is read or computed once, with one limit for all processes that read data together."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

MEAN_BYTES = 4096  # that values have at least, on average, for the limit to be reached: so many of them have room in the index
ALIGNED = 64  # where arrays begin


class BoundedCache:
    """Cache with a limit: get(key, make) returns what make() gave for the key the first time, or gives now if that is not
    kept.

    The first values are kept, up to `limit` bytes of all together; none that comes after one that did not fit. A value is
    an array, or a list of arrays; who gets one leaves it as it is. Processes that are forked off, such as the workers of a
    DataLoader, share what is kept and the limit: what one of them has made, none makes again. Memory is taken as it fills;
    where the system does not promise so much, nothing is kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = min(limit, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        if self._limit <= 0:
            return
        self._most = 16 + self._limit // MEAN_BYTES
        self._slots = 2 * self._most
        try:
            self._data = mmap.mmap(-1, self._limit)
        except OSError:  # a system that promises no memory that it might not have
            self._limit = 0
            return
        # Of each slot the hash of its key (0: empty), and where its entry begins; behind them, how many bytes and slots are
        # taken.
        index = np.frombuffer(mmap.mmap(-1, 8 * (2 * self._slots + 2)), dtype=np.int64)
        (self._hashes, self._places), self._taken = index[:-2].reshape(2, -1), index[-2:]
        self._lock = multiprocessing.get_context("fork").Lock()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        if self._limit <= 0:
            return make()
        value = self._find(key)[1]
        if value is None:
            value = make()
            self._keep(key, value)
        return value

    def _find(self, key):
        """(the slot of a key, its value); where it is not kept (an empty slot, None)."""
        wanted = (hash(key) & (2**63 - 1)) or 1  # the same in processes that were forked
        slot = wanted % self._slots
        while self._hashes[slot]:
            if self._hashes[slot] == wanted:
                found, value = self._read(int(self._places[slot]))
                if found == key:
                    return slot, value
            slot = (slot + 1) % self._slots
        return slot, None

    def _keep(self, key, value):
        arrays = value if isinstance(value, list) else [value]
        places = np.cumsum([0, *(-(-array.nbytes // ALIGNED) * ALIGNED for array in arrays)]).tolist()
        described = [(array.dtype.str, array.shape, place) for array, place in zip(arrays, places, strict=False)]
        header = pickle.dumps((key, isinstance(value, list), described))
        begin = places[-1] + -(-(len(header) + 8) // ALIGNED) * ALIGNED  # of the whole entry: header, then arrays
        with self._lock:
            first, count = self._taken.tolist()
            if first + begin > self._limit or count == self._most:
                self._taken[0] = self._limit  # nothing that comes later
                return
            slot, kept = self._find(key)
            if kept is not None:  # another process was faster
                return
            self._taken[:] = first + begin, count + 1
            start = first + begin - places[-1]
            self._data[first : first + 8] = len(header).to_bytes(8, "little")
            self._data[first + 8 : first + 8 + len(header)] = header
            for array, place in zip(arrays, places, strict=False):
                self._view(array.dtype.str, array.shape, start + place)[...] = array
            self._places[slot] = first
            self._hashes[slot] = (hash(key) & (2**63 - 1)) or 1  # last: now others see it

    def _read(self, first):
        size = int.from_bytes(self._data[first : first + 8], "little")
        key, is_list, described = pickle.loads(self._data[first + 8 : first + 8 + size])
        start = first + -(-(size + 8) // ALIGNED) * ALIGNED
        arrays = [self._view(dtype, shape, start + place) for dtype, shape, place in described]
        return key, arrays if is_list else arrays[0]

    def _view(self, dtype, shape, place):
        return np.ndarray(shape, dtype, self._data, place)
