"""The batches of an epoch from any position on, the same ones with any number of workers.

The state of a lhotse sampler runs ahead of training by the batches that workers have prefetched; resuming from it would
skip them. What is counted instead is the batches that the training loop has consumed. To resume, that many are drawn
from the sampler, which reads manifests only, and dropped before they reach the data set, which would read audio. So are those
of other processes: each process draws the whole sequence, and reads every batch whose index, modulo their number, is its own.
"""

import collections
import itertools
import logging
import os
import shutil
from collections.abc import Iterator
from typing import Any

import torch

from pyspeech.compat import default_device
from pyspeech.engine.process import stage_cores
from pyspeech.errors import UserError
from pyspeech.training import distributed
from pyspeech.training.randomness import RandomStream

MOST_WORKERS = 8
SHARED_BYTES = 1 << 30  # of shared memory, through which batches come from workers; containers often have 64 MB of it


def choose_workers(asked: int | None, log: logging.Logger) -> int:
    """Choose the number of processes that read data: `asked`; if None, one for each core of the stage but one, up to 8, for
    a training on a GPU with shared memory for batches; otherwise none, as training uses the cores itself."""
    if asked is not None or default_device().type != "cuda":
        return asked or 0
    shared = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else SHARED_BYTES
    if shared < SHARED_BYTES:
        log.warning("/dev/shm has %d MB: the training process reads its data itself; workers need 1 GB there", shared >> 20)
        return 0
    return min(MOST_WORKERS, stage_cores() - 1)


class BatchLoader:
    """`loader(epoch, consumed)`: an iterator over (names, batch) of an epoch from the batch of index `consumed` on, of those
    that are this process's.

    dataset    `dataset[item]` makes a batch of what the sampler yields. It draws random crops, noise and the like from
               the global generators of python, numpy or torch, which are seeded for each batch by (seed, epoch, index).
               `set_position(epoch, index)` is called before each batch where it exists. Nothing else in it may change from
               batch to batch: each worker has its own copy of it, made in the first epoch.
    sampler    a lhotse sampler, or anything that can be iterated anew for each epoch (a list, a torch sampler); for
               this loader alone. `set_epoch(epoch)` is called where it exists. It may draw from the global generators.
               It knows nothing of processes: ValueError for a lhotse sampler that splits (made with world_size=1 and rank=0
               it does not, whatever RANK and WORLD_SIZE are in the environment).
    names      what messages call the batch: `dataset.names(item)` where it exists; the ids of its cuts, or the item as text.

    One epoch at a time: asking for a new iterator ends the one before.
    """

    def __init__(self, dataset: Any, sampler: Any, seed: int, num_workers: int = 0) -> None:
        if getattr(sampler, "world_size", 1) != 1:
            raise ValueError(f"{type(sampler).__name__}: made with world_size={sampler.world_size}; expected 1, and rank=0")
        self._positions = _Positions(sampler, seed)
        self._loader = torch.utils.data.DataLoader(
            _SeededDataset(dataset, seed),
            sampler=self._positions,
            batch_size=None,
            num_workers=num_workers,
            persistent_workers=num_workers > 0,
            pin_memory=default_device().type == "cuda",
            generator=torch.Generator(),  # else each new iterator draws from the global one
        )

    def __call__(self, epoch: int, consumed: int = 0) -> Iterator[tuple[list[str], Any]]:
        self._positions.epoch, self._positions.consumed = epoch, consumed
        for names, batch in self._batches():
            if isinstance(batch, UserError):
                # A new one: `batch` would refer to itself through this frame, and keep the workers alive.
                raise UserError(*batch.args)
            yield names, batch

    def _batches(self):
        """Those of the torch DataLoader; WorkerLost where one of its processes is gone."""
        try:
            yield from self._loader
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):  # torch has no class of its own for it
                raise
            raise WorkerLost(
                f"a process that reads data has ended ({str(error).splitlines()[0]}); out of memory? "
                "Lower num_workers, or give the training more memory"
            ) from error


class WorkerLost(UserError):
    """A process that reads data was killed, by the kernel for want of memory or with the whole group of processes."""


class _Positions:
    """A sampler of (epoch, index, item) of this process, from the item of index `consumed` on."""

    def __init__(self, sampler, seed):
        self.sampler, self.seed = sampler, seed
        self.epoch = self.consumed = 0

    def __iter__(self):
        epoch, consumed = self.epoch, self.consumed
        stream = RandomStream(1, self.seed, epoch)
        with stream:
            if hasattr(self.sampler, "set_epoch"):
                self.sampler.set_epoch(epoch)
            items = iter(self.sampler)
            collections.deque(itertools.islice(items, consumed), maxlen=0)
        rank, size, end = distributed.rank(), distributed.world_size(), object()
        for index in itertools.count(consumed):
            with stream:
                item = next(items, end)
            if item is end:
                return
            if index % size == rank:
                yield epoch, index, item


class _SeededDataset(torch.utils.data.Dataset):
    def __init__(self, dataset, seed):
        self.dataset, self.seed = dataset, seed

    def __getitem__(self, position):
        epoch, index, item = position
        names = getattr(self.dataset, "names", item_names)(item)
        if hasattr(self.dataset, "set_position"):
            self.dataset.set_position(epoch, index)
        try:
            with RandomStream(2, self.seed, epoch, index, 0):  # the 0 stays: without it all published figures would move
                return names, self.dataset[item]
        except UserError as error:
            # Returned, for an exception that leaves a worker comes back with the worker's traceback as its message.
            return names, error


def item_names(item: Any) -> list[str]:
    """Names of what a sampler yielded: the ids of cuts, however nested (CutSet, list, tuple), or the item as text."""
    if hasattr(item, "id"):
        return [str(item.id)]
    if hasattr(item, "__iter__") and not isinstance(item, (str, bytes, dict)):
        return [name for part in item for name in item_names(part)]
    return [str(item)]


def to_device(batch: Any, device: str | torch.device) -> Any:
    """The batch with every tensor in it, in dicts, lists, tuples and named tuples, on `device`; the rest as it is."""
    if torch.is_tensor(batch):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
