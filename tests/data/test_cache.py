"""The bounded cache: what is kept, of which sizes, and that it is made once, by whichever process."""

import errno
import mmap
import multiprocessing
import os

import numpy as np

from pyspeech.data.cache import BoundedCache


def counting(made):
    def get(cache, key, value):
        return cache.get(key, lambda: made.append(key) or value)

    return get


def test_the_first_values_are_kept_as_far_as_they_fit(rng):
    made = []
    get, cache = counting(made), BoundedCache(100_000)
    values = {
        "array": rng.standard_normal((100, 7)),
        ("a", 1): [np.arange(5, dtype=np.int16), rng.standard_normal((3, 2, 2)).astype(np.float32), np.zeros((0, 4))],
        "large": np.zeros(20_000),
        "small": np.zeros(1),
    }
    for _ in range(3):
        for key, value in values.items():
            found = get(cache, key, value)
            assert type(found) is type(value) and len(found) == len(value)
            for ours, expected in zip(found, value, strict=True):
                assert np.array_equal(ours, expected)
            if isinstance(value, list):
                assert [part.dtype for part in found] == [part.dtype for part in value]
    assert made == ["array", ("a", 1), "large", "small", "large", "small", "large", "small"]


def test_no_room_keeps_nothing(monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    caches = [BoundedCache(0)]
    monkeypatch.setattr(mmap, "mmap", refuse)
    for cache in [*caches, BoundedCache(10_000)]:
        made = []
        for _ in range(2):
            assert counting(made)(cache, "x", np.ones(1)).tolist() == [1]
        assert made == ["x", "x"]


def test_many_small_values(rng):
    """More than there are slots for; each is itself, and the first are kept."""
    made, cache = [], BoundedCache(200_000)
    get, values = counting(made), {f"utterance {number}": rng.standard_normal(2) for number in range(500)}
    for _ in range(2):
        for key, value in values.items():
            assert np.array_equal(get(cache, key, value), value)
    kept = 2 * len(values) - len(made)
    assert kept == 16 + 200_000 // 4096 and made[len(values) :] == list(values)[kept:]


def test_keys_of_the_same_hash():
    cache, made = BoundedCache(10_000), []
    for _ in range(2):
        for key in (0, 1, 2**61 - 1, 2**61):  # in CPython 0 and 2^61 - 1 have the same hash, as have 1 and 2^61
            assert cache.get(key, lambda key=key: made.append(key) or np.array([key])).tolist() == [key]
    assert len(made) == 4


def test_forked_processes_share_what_is_kept_and_the_limit():
    cache = BoundedCache(300_000)
    counts = np.frombuffer(multiprocessing.RawArray("b", 8 * 40), dtype=np.int8).reshape(8, 40)

    def work(worker):
        for number in np.random.default_rng(worker).permutation(40).tolist():
            value = cache.get(number, lambda n=number: counts.__setitem__((worker, n), 1) or np.full(2000, n, dtype=np.int32))
            if value.tolist() != [number] * 2000:
                os._exit(1)

    context = multiprocessing.get_context("fork")
    for workers in (range(4), range(4, 8)):
        processes = [context.Process(target=work, args=(worker,)) for worker in workers]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * 4
    again = counts[4:].any(axis=0)  # of those that did not fit, every process makes its own
    assert 40 - 300_000 // 8000 <= again.sum() <= 40 - 300_000 // (8000 + 256) and counts[4:, again].all()
