"""Which process of a training run this is; the one place that knows.

One process today. The samplers of lhotse split the batches by the same rank and world size, and a checkpoint holds the
random state of each rank.
"""

from typing import Any


def rank() -> int:
    """Index of this process, from 0; the process of rank 0 writes the files."""
    group = _process_group()
    return group.get_rank() if group else 0


def world_size() -> int:
    """Number of processes that train together."""
    group = _process_group()
    return group.get_world_size() if group else 1


def gather(value: Any) -> list[Any]:
    """The `value` of every rank as a list in the order of ranks, on every rank."""
    group = _process_group()
    if not group:
        return [value]
    values = [None] * group.get_world_size()
    group.all_gather_object(values, value)
    return values


def _process_group():
    from torch import distributed

    return distributed if distributed.is_available() and distributed.is_initialized() else None
