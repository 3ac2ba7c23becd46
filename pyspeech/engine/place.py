"""Rank of this process in a training, from the environment that torchrun, Slurm's srun or pyspeech.engine.ranks sets.

WORLD_SIZE                        processes in all
RANK, or Slurm's SLURM_PROCID     which of them this is, from 0
LOCAL_RANK or SLURM_LOCALID       which of those of its machine, from 0: the GPU that it takes
MASTER_ADDR, MASTER_PORT          where process 0 is found
"""

import os
from dataclasses import dataclass

from pyspeech.errors import UserError


class Elsewhere(UserError):
    """Another process of this training has failed; it says why."""


@dataclass(frozen=True)
class Place:
    """A process's index among all `size` processes, and among those of its machine."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0


def from_environment() -> Place:
    """Read the Place that the environment names; that of a process alone where it names none. UserError for half of one."""
    size = _number("WORLD_SIZE")
    if size is None or size == 1:
        return Place()
    rank, local_rank = _number("RANK", "SLURM_PROCID"), _number("LOCAL_RANK", "SLURM_LOCALID")
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
    missing += ["RANK"] * (rank is None) + ["LOCAL_RANK"] * (local_rank is None)
    if missing:
        raise UserError(f"WORLD_SIZE={size} in the environment without {', '.join(missing)}: set them all, or unset it")
    assert rank is not None and local_rank is not None
    if rank >= size:
        raise UserError(f"RANK={rank} in the environment: expected less than WORLD_SIZE={size}")
    return Place(rank, size, local_rank)


def _number(*names):
    """The first of these environment variables that is set, an int; None where none is."""
    for name in names:
        text = os.environ.get(name, "")
        if text and not text.isdecimal():
            raise UserError(f"{name}={text} in the environment: expected a number")
        if text:
            return int(text)
    return None
