"""The bounded cache: what is kept, of which sizes, and that it is made once."""

import numpy as np
import torch

from pyspeech.cache import BoundedCache


def test_the_first_values_are_kept_as_far_as_they_fit():
    made = []

    def get(cache, key, value):
        return cache.get(key, lambda: made.append(key) or value)

    cache = BoundedCache(100)
    values = {"array": np.zeros(10), "list": [torch.zeros(2), torch.zeros(1)], "large": np.zeros(2), "small": np.zeros(1)}
    for _ in range(3):
        for key, value in values.items():
            assert get(cache, key, value) is value
    assert made == ["array", "list", "large", "small", "large", "small", "large", "small"]


def test_no_room_keeps_nothing():
    cache = BoundedCache(0)
    first, second = (cache.get("x", lambda: np.zeros(1)) for _ in range(2))
    assert first is not second
