"""Origin of a measurement: the machine, its GPUs, the versions of the software that computes, the commit."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import socket
import subprocess
from typing import Any

from pyspeech.engine.gpu import usable_gpus
from pyspeech.engine.process import batch_job, num_cores
from pyspeech.files import proc_field
from pyspeech.launch import ROOT, environment_name

PACKAGES = ("torch", "torchaudio", "k2", "lhotse", "numpy", "scipy", "soundfile")


def describe_machine() -> dict[str, Any]:
    """Plain data for a JSON file: host, processor, cores that this process may use, memory in GB (2^30 bytes), GPUs, system,
    environment, versions, commit, and the batch job that this is. Nothing heavy is loaded."""
    return {
        "host": socket.gethostname(),
        "cpu": proc_field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": num_cores(),
        "memory_gigabytes": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpus": usable_gpus()[0],
        "system": platform.platform(),
        "environment": environment_name() or "",
        "versions": {"python": platform.python_version(), **_versions()},
        "commit": commit(),
        "job": batch_job(),
    }


def commit() -> str:
    """The commit of this repository, with "-changed" behind it where files differ from it; "" where there is no git."""
    command = ["git", "-C", ROOT, "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=-changed"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def peak_gigabytes() -> float:
    """GB (2^30 bytes) of memory that this process has held at most; 0 where the system does not say."""
    return _status("VmHWM")


def held_gigabytes() -> float:
    """GB of memory that this process holds now; 0 where the system does not say."""
    return _status("VmRSS")


def _status(name):
    text = proc_field("/proc/self/status", name)
    return int(text.split()[0]) / 2**20 if text else 0.0


def _versions():
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
