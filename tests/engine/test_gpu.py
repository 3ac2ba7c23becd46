"""Is there a GPU that this environment can use: made-up devices, nvidia-smi, versions of torch and requests of the user."""

import importlib.metadata
import os
import subprocess
import sys

import pytest
from recipe_harness import ROOT
from toy_harness import Toy

from pyspeech.engine import gpu
from pyspeech.engine.process import stages_at_once

A100, H200, V100 = "GPU-aa, 8.0, NVIDIA A100", "GPU-ab, 9.0, NVIDIA H200", "GPU-b0, 7.0, Tesla V100"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """machine(lines of nvidia-smi or None, devices, version of torch): as if the process began there."""
    monkeypatch.delenv("PYSPEECH_DEVICE")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices, programs = tmp_path / "dev", tmp_path / "bin"
    devices.mkdir()
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(gpu, "DEVICES", (str(devices / "nvidia[0-9]*"),))

    def make(lines, names=("nvidia0", "nvidiactl"), version="1.13.1"):
        for name in names:
            (devices / name).touch()
        if lines is not None:
            (programs / "nvidia-smi").write_text("#!/bin/sh\ncat <<'E'\n" + "\n".join(lines) + "\nE\n")
            (programs / "nvidia-smi").chmod(0o755)
        monkeypatch.setattr(importlib.metadata, "version", lambda package: version)
        gpu.installed_gpus.cache_clear()
        gpu.torch_kernels.cache_clear()

    yield make
    gpu.installed_gpus.cache_clear()
    gpu.torch_kernels.cache_clear()


def test_a_machine_without_a_gpu_is_not_asked_for_its_name(machine):
    machine([A100], names=("nvidiactl", "nvidia-uvm"))
    assert gpu.usable_gpus() == ([], "") and not gpu.has_gpu()
    gpu.require_usable()


@pytest.mark.parametrize("version", ["1.13.1", "2.11.0"])
def test_any_device_will_do(machine, version):
    machine([A100], names=("nvidia3",), version=version)
    assert gpu.usable_gpus() == (["NVIDIA A100"], "") and gpu.has_gpu() and stages_at_once() == 1
    gpu.require_usable()


@pytest.mark.parametrize("lines, version, other", [([H200], "1.13.1", "torch2"), ([V100], "2.11.0", "k2")])
def test_a_gpu_of_another_environment(machine, lines, version, other, monkeypatch):
    machine(lines, version=version)
    assert not gpu.has_gpu()
    with pytest.raises(gpu.UserError) as error:
        gpu.require_usable()
    text = str(error.value)
    assert text.startswith(f"torch {version} has no kernels for ") and "\n" not in text
    assert f"PYSPEECH_ENV={other}" in text and "--device cpu" in text
    monkeypatch.setenv("PYSPEECH_DEVICE", "cpu")
    gpu.require_usable()
    assert not gpu.has_gpu()


def test_torch_for_cpus(machine):
    machine([A100], version="2.11.0+cpu")
    assert gpu.usable_gpus()[0] == [] and "2.11.0+cpu has no kernels for NVIDIA A100" in gpu.usable_gpus()[1]


@pytest.mark.parametrize("lines", [None, [], ["Unable to determine"], ["GPU-aa, [N/A], NVIDIA X"]])
def test_what_is_not_known_torch_will_say(machine, lines):
    machine(lines, names=("nvidia0",))
    assert gpu.has_gpu()


def test_a_torch_of_the_users_own(machine):
    machine([H200], version="2.4.1")
    assert gpu.has_gpu()


def test_devices_without_access(machine):
    machine(["No devices were found"])
    assert gpu.usable_gpus() == ([], "")


@pytest.mark.parametrize(
    "visible, names",
    [
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0", ["NVIDIA A100"]),
        ("1", ["Tesla V100"]),
        ("1,0", ["Tesla V100", "NVIDIA A100"]),
        ("0,7,1", ["NVIDIA A100"]),
        ("5", []),
        ("GPU-b", ["Tesla V100"]),
        ("GPU-x", []),
        ("MIG-c0", ["NVIDIA A100", "Tesla V100"]),
    ],
)
def test_those_that_cuda_may_see(machine, visible, names, monkeypatch):
    machine([A100, V100])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu.usable_gpus() == (names, "")


def test_a_hidden_gpu_needs_no_kernels(machine, monkeypatch):
    machine([H200, A100])
    assert "H200" in gpu.usable_gpus()[1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert gpu.usable_gpus() == (["NVIDIA A100"], "")


def test_asking_is_without_torch():
    code = "import sys, pyspeech.engine.gpu as gpu; gpu.has_gpu(); print([m for m in ('torch', 'numpy') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "[]\n"


def test_kernels_are_those_of_this_torch():
    import torch

    version = importlib.metadata.version("torch")
    if version not in gpu.KERNELS or not torch.cuda.is_available():
        pytest.skip("torch tells what it is compiled for only where there is a GPU")
    assert tuple(torch.cuda.get_arch_list()) == gpu.KERNELS[version][1]


def test_a_recipe_says_so_before_anything_starts(machine, tmp_path):
    machine([H200])
    toy = Toy(tmp_path / "toy")
    for arguments in ([], ["--dry-run"]):
        status, out, err = toy.run(*arguments)
        assert (status, out) == (1, "") and err.count("\n") == 1 and "PYSPEECH_ENV=torch2" in err
        assert not toy.exp.exists()
    for arguments in (["--help"], ["--list"]):
        status, out, err = toy.run(*arguments)
        assert status == 0 and not err
    status, out, err = toy.run("--device", "cpu", "--dry-run")
    assert status == 0 and not err
    status, out, err = toy.run("--device", "cuda")
    assert status == 1 and "--device cuda: expected cpu" in err


def test_stages_at_once_follow_what_is_asked_for(machine, monkeypatch):
    machine([A100])
    monkeypatch.setattr("pyspeech.engine.process.num_cores", lambda: 3)
    assert stages_at_once() == 1
    monkeypatch.setenv("PYSPEECH_DEVICE", "cpu")
    assert stages_at_once() == 3
