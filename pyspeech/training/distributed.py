"""The processes of one training: which of them this is, and what they agree on.

Each process has a GPU, or a share of the cores, and runs the same code: what is collective here is called by all of them,
in the same order. Small things, Python objects, go over gloo, which notices at once that a process has ended; tensors of
GPUs go over NCCL. How many they are, the environment says: pyspeech.engine.place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from pyspeech.engine.place import Elsewhere, Place

if TYPE_CHECKING:
    import torch

Result = TypeVar("Result")
TIMEOUT = timedelta(minutes=15)  # for which a process waits for others; a validation, which they wait for, takes less


def join(place: Place) -> None:
    """Become one of several processes, until `leave`; returns once all are there. For a Place of one process, and for a
    process that has joined before, nothing."""
    import torch
    from torch import distributed

    from pyspeech.compat import default_device

    global _tensor_group
    if place.size == 1 or _joined():
        return
    device = default_device()
    if device.type == "cuda":
        torch.cuda.set_device(place.local_rank % torch.cuda.device_count())
    with _loss_noticed():
        distributed.init_process_group("gloo", rank=place.rank, world_size=place.size, timeout=TIMEOUT)
        _tensor_group = distributed.new_group(backend="nccl", timeout=TIMEOUT) if device.type == "cuda" else None


_tensor_group: Any = None  # of tensors on GPUs; None: the group of all else


def describe_environment() -> str:
    """Describe on one line what computes."""
    from pyspeech.compat import describe_environment as describe

    return describe()


def leave() -> None:
    """Be a process alone again."""
    if _joined():
        from torch import distributed

        distributed.destroy_process_group()


@contextlib.contextmanager
def threads(number: int) -> Iterator[None]:
    """Let torch compute with so many threads, unless the user has set their number."""
    import torch

    before = torch.get_num_threads()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def rank() -> int:
    """Index of this process, from 0; process 0 validates, and writes the files."""
    from torch import distributed

    return distributed.get_rank() if _joined() else 0


def world_size() -> int:
    """Number of processes that train together."""
    from torch import distributed

    return distributed.get_world_size() if _joined() else 1


def _joined():
    from torch import distributed

    return distributed.is_available() and distributed.is_initialized()


def gather(value: Result) -> list[Result]:
    """The `value` of every process, plain data, as a list in the order of ranks, on every process."""
    if world_size() == 1:
        return [value]
    from torch import distributed

    values: list[Any] = [None] * world_size()
    with _loss_noticed():
        distributed.all_gather_object(values, value)
    return values


def from_first(make: Callable[[], Result]) -> Result:
    """Return the result of make() in process 0, plain data and tensors on the CPU, on every process. Its exception is raised
    there, and Elsewhere on the others."""
    if world_size() == 1:
        return make()
    from torch import distributed

    outcome: list[Any] = [None, None]
    failure = None
    if rank() == 0:
        try:
            outcome = [make(), None]
        except Exception as error:
            failure, outcome = error, [None, str(error) or type(error).__name__]
    with _loss_noticed():
        distributed.broadcast_object_list(outcome, src=0)
    if failure is not None:
        raise failure
    if outcome[1] is not None:
        raise Elsewhere(outcome[1])
    return outcome[0]


def add_up(tensors: Sequence[torch.Tensor]) -> None:
    """Put in place of each of `tensors` its sum over the processes, the same bits on all of them."""
    if world_size() == 1 or not tensors:
        return
    import torch
    from torch import distributed

    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    with _loss_noticed():
        distributed.all_reduce(flat, group=_tensor_group)
    for tensor, total in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(total.view_as(tensor))


def copy_from(tensors: Sequence[torch.Tensor], source: int) -> None:
    """Put in place of each of `tensors`, of any types, those of the process `source`, bit for bit."""
    if world_size() == 1 or not tensors:
        return
    import torch
    from torch import distributed

    flat = torch.cat([tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in tensors])
    with _loss_noticed():
        distributed.broadcast(flat, src=source, group=_tensor_group)
    sizes = [tensor.numel() * tensor.element_size() for tensor in tensors]
    for tensor, part in zip(tensors, flat.split(sizes), strict=True):
        tensor.detach().copy_(part.clone().view(tensor.dtype).view(tensor.shape))


@contextlib.contextmanager
def _loss_noticed() -> Iterator[None]:
    """What torch raises where another process has ended, or does not answer, as one line."""
    try:
        yield
    except RuntimeError as error:
        raise Elsewhere(
            f"another process of this training has ended, or has not answered for {TIMEOUT.total_seconds() / 60:g} minutes "
            f"({' '.join(str(error).split())[:160]}); what it said stands above; training goes on from the last checkpoint"
        ) from error
