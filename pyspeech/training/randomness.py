"""Random numbers that can be saved and restored, and separate streams of them.

Exact resume needs two things. The state of every generator is part of a checkpoint. And what runs ahead of the training
loop, or beside it (the sampler, the data set in any number of workers, validation), must neither draw from the loop's
generators nor depend on how far ahead it runs: it draws from a RandomStream of its own, which follows from the seed and
the position alone.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seed python, numpy and torch (all devices); called before a model is built, it decides the initial weights."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def get_random_state(cuda: bool = True) -> dict[str, Any]:
    """State of the generators of python, numpy, torch and, with `cuda`, of the GPU in use: plain data and tensors."""
    name, keys, position, has_gauss, cached = np.random.get_state()
    state = {
        "python": random.getstate(),
        "numpy": (name, torch.from_numpy(np.asarray(keys, dtype=np.int64)), int(position), int(has_gauss), float(cached)),
        "torch": torch.get_rng_state(),
    }
    if cuda and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Restore what get_random_state returned."""
    random.setstate(state["python"])
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_initialized():
        torch.cuda.set_rng_state(state["cuda"])


class RandomStream:
    """A stream of random numbers of its own, for python, numpy and torch on the CPU.

    `with stream:` puts the stream in place of the process's global generators and takes it away again, each as it was
    left; entered anew, it goes on where it stopped. Two streams of the same key (non-negative integers, the first one a
    number for the purpose, from 1) give the same numbers.
    """

    def __init__(self, *key: int) -> None:
        self._key = key
        self._state = None

    def __enter__(self) -> RandomStream:
        self._outside = get_random_state(cuda=False)
        if self._state is not None:
            set_random_state(self._state)
        else:
            words = np.random.SeedSequence(self._key).generate_state(6)
            random.seed(int(words[0]) << 32 | int(words[1]))
            np.random.seed(words[2:4])
            # Not torch.manual_seed, which would seed the GPU too.
            torch.default_generator.manual_seed(int(words[4]) << 31 | int(words[5]) >> 1)
        return self

    def __exit__(self, *exception: object) -> None:
        self._state = get_random_state(cuda=False)
        set_random_state(self._outside)
