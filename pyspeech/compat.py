"""The two generations of torch, 1.13 (environment k2) and 2.11 (torch2), behind one set of names, and what is there.

torch loads inside the functions, so that importing this module is instant. `python -m pyspeech.compat` prints the
environment and fails where one of its packages does not load.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import io
import os
import pickle
import platform
import sys
import types
import warnings
import zipfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.engine.gpu import has_gpu, has_kernels, switched_off
from pyspeech.errors import UserError
from pyspeech.files import atomic_write, proc_field
from pyspeech.launch import environment_name

if TYPE_CHECKING:
    import torch

CPU_INFO = Path("/proc/cpuinfo")


def prepare_lhotse() -> None:
    """Let lhotse's samplers run on torch 1.x too; call it before one is built.

    lhotse calls `Sampler.__init__()` without a data source, which torch 1.x requires and then ignores.
    """
    import torch

    if torch.__version__.startswith("1."):
        torch.utils.data.Sampler.__init__.__defaults__ = (None,)


def autocast(device: torch.device | str, enabled: bool = True, dtype: torch.dtype | None = None) -> AbstractContextManager:
    """Context manager: operations on `device` (torch.device or its name) in `dtype` (bfloat16) where that is safe."""
    import torch

    return torch.autocast(torch.device(device).type, dtype=dtype or torch.bfloat16, enabled=enabled)


def is_autocast(device: torch.device) -> bool:
    """True if autocast is on for a device of this kind."""
    import torch

    if not torch.__version__.startswith("1."):
        return torch.is_autocast_enabled(device.type)
    return torch.is_autocast_cpu_enabled() if device.type == "cpu" else torch.is_autocast_enabled()


def computes_in_bf16(device: torch.device) -> bool:
    """True if `device` has bfloat16 instructions: a GPU since Ampere, or a CPU for which Linux reports them.

    Others compute in it all the same, a CPU with AVX2 alone 20 to 30 times as slowly as in float32 (LCNN-BLSTM, torch 1.13).
    """
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_capability(device)[0] >= 8
    flags = proc_field(CPU_INFO, "flags") or proc_field(CPU_INFO, "Features")  # of an x86, of an ARM
    return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(flags.split())


def full_precision(values: Any) -> Any:
    """A tensor or PackedSequence in fp32 where it is in bf16 or fp16, else as it is."""
    import torch

    return values.float() if values.data.dtype in (torch.bfloat16, torch.float16) else values


def run_recurrent(layer: torch.nn.Module, inputs: Any, state: Any = None) -> Any:
    """Compute layer(inputs, state) of a torch.nn.LSTM or GRU, in fp32 under autocast.

    Under CUDA's autocast cuDNN would compute in fp16, whatever was asked for, and gradients of 1e-7 be lost.
    inputs: tensor or PackedSequence; state: None, a tensor or a tuple of them.
    """
    if not is_autocast(inputs.data.device):
        return layer(inputs, state)
    if state is not None:
        state = tuple(map(full_precision, state)) if isinstance(state, tuple) else full_precision(state)
    with autocast(inputs.data.device, enabled=False):
        return layer(full_precision(inputs), state)


def save_checkpoint(path: Path | str, content: object) -> None:
    """Write `content` (plain data and tensors) to `path`, whole or not at all; OSError where the disk is full.

    The bytes are made in memory: where a file cannot take them, torch.save to it ends the process.
    """
    import torch

    buffer = io.BytesIO()
    torch.save(content, buffer)
    with atomic_write(path, "wb") as stream:
        stream.write(buffer.getbuffer())


class DamagedFile(UserError):
    """A file that save_checkpoint did not write, or that was changed since. reason: what shows it."""

    def __init__(self, path: Path | str, reason: str):
        super().__init__(f"{path}: {reason}; restore or remove it")
        self.reason = reason


def load_checkpoint(path: Path | str) -> Any:
    """Load what torch.save wrote to `path`, with tensors on the CPU: only plain data and tensors; no code is run.

    Raises DamagedFile where the file is cut short, changed since, not a checkpoint, or holds other kinds of objects, and
    UserError where it is missing.
    """
    import torch

    try:
        with open(path, "rb") as stream:
            whole = zipfile.is_zipfile(stream)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such checkpoint; the training that writes it has to run first") from error
    if not whole:
        raise DamagedFile(path, f"not a checkpoint or cut short ({os.path.getsize(path)} bytes)")
    try:
        # torch.load does not look at the checksums that the file holds: a flipped bit would become a weight.
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
        if bad is not None:
            raise zipfile.BadZipFile(f"checksum of {bad} is wrong")
        if torch.__version__.startswith("1."):
            return _load_plain(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except (MemoryError, torch.cuda.OutOfMemoryError):
        raise
    except Exception as error:  # zipfile, pickle and torch raise nearly every kind
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DamagedFile(path, f"damaged or not a checkpoint ({reason})") from error


def _load_plain(path):
    """torch.load(weights_only=True) for torch 1.13.1, whose own refuses any Python float and ignores pickle_module."""
    import torch
    from torch import serialization

    allowed = {
        ("collections", "OrderedDict"),
        ("_codecs", "encode"),
        ("torch", "Size"),
        ("torch", "device"),
        ("torch._utils", "_rebuild_tensor_v2"),
        ("torch._utils", "_rebuild_parameter"),
    }
    allowed |= {("torch", name) for name, value in vars(torch).items() if isinstance(value, torch.dtype)}

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            if (module, name) not in allowed:
                raise pickle.UnpicklingError(f"it holds a {module}.{name}, which is neither a tensor nor plain data")
            return super().find_class(module, name)

    with serialization._open_zipfile_reader(str(path)) as archive:
        return serialization._load(archive, "cpu", types.SimpleNamespace(Unpickler=Unpickler), encoding="utf-8")


def default_device() -> torch.device:
    """Choose torch.device("cuda") if there is a GPU that this torch can use, otherwise torch.device("cpu").

    UserError where there should be one (see pyspeech.engine.gpu) and CUDA does not start: a GPU's work is not for a CPU.
    """
    import torch

    usable, problem = _gpus()
    if not usable and has_gpu():
        problem = problem or "CUDA finds none"
        raise UserError(f"torch cannot use the GPU: {problem}; repair that, or set PYSPEECH_DEVICE=cpu")
    return torch.device("cuda" if usable else "cpu")


def check_device(name: str | torch.device) -> None:
    """Raise UserError where a device has no such name, as of models that run on the CPU on each machine, without torch."""
    if str(name).partition(":")[0] not in ("auto", "cpu", "cuda"):
        raise _no_device(name, "device")


def _no_device(name, option):
    return UserError(f"{option} {name}: no such device; use auto, cpu or cuda")


def named_device(name: str | torch.device, option: str = "--device") -> torch.device:
    """Return the torch.device for a tool's --device: "auto" is `default_device`. UserError for "cuda" without such a GPU.

    option: what the message calls `name`.
    """
    import torch

    if name == "auto":
        return default_device()
    try:
        device = torch.device(name)
    except RuntimeError:
        raise _no_device(name, option) from None
    usable, problem = _gpus() if device.type == "cuda" else ([], "")
    if device.type == "cuda" and not usable:
        raise UserError(f"{option} {name}: no GPU that torch can use{f' ({problem})' if problem else ''}; use cpu or auto")
    return device


@functools.cache
def _gpus():
    """(names of the GPUs that torch can use, why those that are there cannot be used or "")."""
    import torch

    if switched_off():
        return [], ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    if not available:
        return [], " ".join(str(caught[0].message).split())[:160] if caught else ""
    compiled = torch.cuda.get_arch_list()
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    for index, name in enumerate(names):
        major, minor = torch.cuda.get_device_capability(index)
        if not has_kernels(major, minor, compiled):
            return [], (
                f"torch {torch.__version__} has no kernels for {name} (sm_{major}{minor}); "
                "PYSPEECH_ENV=torch2 is for newer GPUs"
            )
    return names, ""


@functools.cache
def describe_environment() -> str:
    """Describe in one line the environment, the versions of Python, torch and k2, and the device that computes."""
    import torch

    usable, problem = _gpus()
    if usable:
        where = usable[0] if len(usable) == 1 else f"{len(usable)} GPUs ({', '.join(sorted(set(usable)))})"
    else:
        where = f"CPU ({torch.get_num_threads()} threads)" + (f"; GPU not used: {problem}" if problem else "")
    name = environment_name()
    start = f"environment {name}" if name else "outside the environments of path.sh"
    return f"{start}: Python {platform.python_version()}, torch {torch.__version__}, {_describe_k2()}, {where}"


def _describe_k2():
    try:
        import k2  # noqa: F401  # pyright: ignore[reportMissingImports]
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "k2":
            return "k2 not installed"
        return f"k2 is installed but does not load ({str(error).splitlines()[0][:160]})"
    return f"k2 {importlib.metadata.version('k2')}"


def main() -> None:
    """Print the environment; exit with 1 where a package that it is for does not load."""
    packages = ["torch", "torchaudio", "lhotse"] + (["k2"] if environment_name() == "k2" else [])
    for package in packages:
        try:
            importlib.import_module(package)
        except Exception as error:
            sys.exit(f"{package} does not load: {type(error).__name__}: {error}")
    print(describe_environment())


if __name__ == "__main__":
    main()
