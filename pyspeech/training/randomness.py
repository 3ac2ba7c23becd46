"""Separate streams of random numbers, each of which follows from the seed and a position alone.

So a training can go on anywhere with the numbers that it would have had, on any number of processes: no generator has a
state that somebody must keep. Each batch has a stream for the data set, which makes it in any worker, and one for the loss;
an epoch has one for the sampler, and every validation has the same one.
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


def get_random_state() -> dict[str, Any]:
    """State of the generators of python, numpy and torch on the CPU."""
    return {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}


def set_random_state(state: dict[str, Any]) -> None:
    """Restore what get_random_state returned."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])


class RandomStream:
    """A stream of random numbers of its own, for python, numpy and torch on the CPU.

    `with stream:` puts the stream in place of the process's global generators and takes it away again, each as it was
    left; entered anew, it goes on where it stopped. Two streams of the same key (non-negative integers, the first one a
    number for the purpose: 1 sampler, 2 data set, 3 validation, 4 loss) give the same numbers.
    """

    def __init__(self, *key: int) -> None:
        self._key = key
        self._state = None

    def __enter__(self) -> RandomStream:
        self._outside = get_random_state()
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
        self._state = get_random_state()
        set_random_state(self._outside)


def loss_stream(device: torch.device, seed: int, epoch: int, index: int) -> RandomStream:
    """The RandomStream of the loss of a batch. A GPU's generator, from which nothing else draws, is seeded likewise."""
    key = (4, seed, epoch, index)
    if device.type == "cuda":
        torch.cuda.manual_seed(int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> 1))
    return RandomStream(*key)
