"""GPU detection: one answer for a recipe's profile, its parallel stages and its device.

It is found without torch, so that --help stays instant: from the device files, nvidia-smi, CUDA_VISIBLE_DEVICES and the
version of torch. PYSPEECH_DEVICE=cpu, which `--device cpu` of a recipe sets, makes it no.
"""

from __future__ import annotations

import functools
import glob
import importlib.metadata
import os
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from pyspeech.errors import UserError

DEVICES = ("/dev/nvidia[0-9]*", "/dev/dxg")  # of Linux, and of Linux in Windows
QUERY = ("nvidia-smi", "--query-gpu=uuid,compute_cap,name", "--format=csv,noheader")
# {version of torch that an environment of path.sh has: (environment, what torch.cuda.get_arch_list() says there)}
KERNELS = {
    "1.13.1": ("k2", ("sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86")),
    "2.11.0": ("torch2", ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120")),
}


class Gpu(NamedTuple):
    name: str
    uuid: str = ""  # "": not known
    capability: tuple[int, int] | None = None  # None: not known


def has_gpu() -> bool:
    """Tell whether there is a GPU that this environment can use and may."""
    return bool(usable_gpus()[0])


def usable_gpus() -> tuple[list[str], str]:
    """(names of the GPUs to use, why those that are there cannot be used and what to do, or "")."""
    found = [] if switched_off() else visible_gpus()
    version, compiled = torch_kernels()
    for gpu in found:
        if gpu.capability and compiled is not None and not has_kernels(*gpu.capability, compiled):
            other = [name for name, architectures in KERNELS.values() if has_kernels(*gpu.capability, architectures)]
            what = f"torch {version} has no kernels for {gpu.name} (sm_{gpu.capability[0]}{gpu.capability[1]})"
            return [], what + (f": run it with PYSPEECH_ENV={other[-1]}" if other else "")
    return [gpu.name for gpu in found], ""


def switched_off() -> bool:
    """Tell whether the user asked for the CPU."""
    return os.environ.get("PYSPEECH_DEVICE", "").lower() == "cpu"


def require_usable() -> None:
    """Raise UserError where there is a GPU that this environment cannot use, and nobody asked for the CPU."""
    problem = usable_gpus()[1]
    if problem:
        raise UserError(f"{problem}; add --device cpu to run on the CPU")


def visible_gpus() -> list[Gpu]:
    """List the GPUs that CUDA_VISIBLE_DEVICES leaves, numbered as by nvidia-smi; like CUDA up to the first unknown."""
    gpus, text = installed_gpus(), os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return gpus
    chosen = []
    for name in (part.strip() for part in text.split(",")):
        if name.isdecimal():
            named = gpus[int(name) : int(name) + 1]
        elif name.startswith("MIG-"):  # a part of one of them
            named = gpus
        else:
            named = [gpu for gpu in gpus if name.startswith("GPU-") and (gpu.uuid.startswith(name) or not gpu.uuid)]
        if not named:
            break
        chosen += named
    return chosen


def has_kernels(major: int, minor: int, compiled: Sequence[str]) -> bool:
    """Tell whether the architectures `compiled` ("sm_86", "compute_90", ...) serve a GPU of capability `major`.`minor`.

    Machine code (sm) runs on GPUs of the same major and no lower minor number; PTX (compute) on any newer one.
    """
    for name in compiled:
        kind, _, digits = name.rstrip("abcdefghijklmnopqrstuvwxyz").partition("_")
        if kind not in ("sm", "compute") or not digits.isdigit():
            return True  # not CUDA (ROCm): torch's own word counts
        wanted = int(digits[:-1]), int(digits[-1])
        if wanted <= (major, minor) and (kind == "compute" or wanted[0] == major):
            return True
    return False


@functools.cache
def torch_kernels() -> tuple[str, tuple[str, ...] | None]:
    """(version of torch, the architectures it has kernels for): None where only torch itself knows."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "", None
    if version.endswith("+cpu"):
        return version, ()
    return version, KERNELS[version][1] if version in KERNELS else None


@functools.cache
def installed_gpus() -> list[Gpu]:
    """List the GPUs of this machine, or container. nvidia-smi is not asked where there is no device, for it takes a second."""
    devices = [path for pattern in DEVICES for path in glob.glob(pattern)]
    if not devices:
        return []
    try:
        text = subprocess.run(QUERY, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        text = ""
    if text.startswith("No devices"):  # their files are there, access is not
        return []
    lines = [line.split(", ", 2) for line in text.splitlines()]
    if not lines or any(len(line) != 3 for line in lines):
        return [Gpu("NVIDIA GPU") for _ in devices]
    return [Gpu(name, uuid, _capability(number)) for uuid, number, name in lines]


def _capability(text):
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None
