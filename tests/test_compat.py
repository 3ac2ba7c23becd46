"""pyspeech.compat on the torch at hand; GPUs are made up."""

import errno
import pickle
import random
import resource
import subprocess
import sys

import pytest
import torch
from tool_harness import as_new

from pyspeech import compat
from pyspeech.engine.gpu import Gpu
from pyspeech.errors import UserError


@pytest.fixture
def new(monkeypatch):
    """The module as at the start of a program: it has not looked for GPUs yet."""
    monkeypatch.delenv("PYSPEECH_DEVICE")
    monkeypatch.setattr("pyspeech.engine.gpu.installed_gpus", lambda: [])
    return as_new(compat)


def test_importing_it_loads_no_torch():
    code = "import sys, pyspeech.compat; print([m for m in ('torch', 'lhotse', 'numpy') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_lhotse_sampler_can_be_built_after_prepare_lhotse():
    from lhotse import CutSet
    from lhotse.dataset import SimpleCutSampler
    from lhotse.testing.dummies import DummyManifest

    compat.prepare_lhotse()
    sampler = SimpleCutSampler(DummyManifest(CutSet, begin_id=0, end_id=5), max_cuts=2)
    assert [len(batch) for batch in sampler] == [2, 2, 1]


def test_autocast_computes_in_bfloat16_only_where_enabled():
    a = torch.ones(4, 4)
    with compat.autocast("cpu"):
        assert (a @ a).dtype == torch.bfloat16
    with compat.autocast(torch.device("cpu"), enabled=False, dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.float32


def training_state():
    model = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.BatchNorm1d(3), torch.nn.GRU(3, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model[1](model[0](torch.randn(2, 2, 9))).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "torch_random": torch.get_rng_state(),
        "python_random": random.getstate(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "dtype": torch.float16,
        "size": torch.Size([2, 3]),
        "plain": [1, -2.5, "text", None, True, b"bytes", {"nested": (1e300, 2**70)}],
    }


def equal(a, b):
    if torch.is_tensor(a):
        return type(a) is type(b) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return a == b


@pytest.mark.parametrize(
    ("text", "native"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 avx512_bf16 amx_tile\n", True),
        ("processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd i8mm bf16\n", True),
        ("processor\t: 0\nflags\t\t: fpu avx2 f16c\nbugs\t\t: bf16\n", False),
        ("", False),
        (None, False),  # no Linux
    ],
)
def test_cpus_with_instructions_for_bfloat16(text, native, tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(compat, "CPU_INFO", path)
    assert compat.computes_in_bf16(torch.device("cpu")) is native


def test_load_checkpoint_gives_back_what_was_saved(tmp_path):
    state = training_state()
    torch.save(state, tmp_path / "x.pt")
    assert equal(compat.load_checkpoint(tmp_path / "x.pt"), state)


def test_save_checkpoint_writes_what_load_checkpoint_reads(tmp_path):
    state = training_state()
    compat.save_checkpoint(tmp_path / "new" / "x.pt", state)
    compat.save_checkpoint(tmp_path / "y.pt", state)
    assert equal(compat.load_checkpoint(tmp_path / "new" / "x.pt"), state)
    assert (tmp_path / "y.pt").read_bytes() == (tmp_path / "new" / "x.pt").read_bytes()


def test_save_checkpoint_to_a_full_disk(tmp_path):
    """torch.save to a file would end the process."""
    compat.save_checkpoint(tmp_path / "x.pt", {"weights": torch.ones(2)})
    before, limits = (tmp_path / "x.pt").read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError) as caught:
            compat.save_checkpoint(tmp_path / "x.pt", {"weights": torch.ones(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert [path.name for path in tmp_path.iterdir()] == ["x.pt"] and (tmp_path / "x.pt").read_bytes() == before


@pytest.mark.parametrize("part", [0, 1, 100, 0.5, -1])
def test_load_checkpoint_names_a_file_that_is_cut_short(tmp_path, part):
    path = tmp_path / "x.pt"
    torch.save(training_state(), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data)) if isinstance(part, float) else part])
    with pytest.raises(UserError, match=r"x\.pt: .*cut short \(\d+ bytes\)"):
        compat.load_checkpoint(path)


def test_load_checkpoint_names_other_trouble(tmp_path):
    with pytest.raises(UserError, match="no such checkpoint"):
        compat.load_checkpoint(tmp_path / "missing.pt")
    path = tmp_path / "x.pt"
    torch.save({"weights": torch.arange(1000.0)}, path)
    data = bytearray(path.read_bytes())
    start = data.index(b"weights")
    data[start - 8 : start + 8] = b"\xff" * 16
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match=r"x\.pt: damaged or not a checkpoint"):
        compat.load_checkpoint(path)


class Trap:
    """Runs code when it is unpickled, as a file from a stranger may."""

    def __reduce__(self):
        return print, ("the trap went off",)


def test_load_checkpoint_runs_no_code_of_the_file(tmp_path, capsys):
    torch.save({"trap": Trap()}, tmp_path / "x.pt")
    with pytest.raises(UserError, match=r"x\.pt"):
        compat.load_checkpoint(tmp_path / "x.pt")
    assert "went off" not in capsys.readouterr().out
    pickle.loads(pickle.dumps(Trap()))
    assert "went off" in capsys.readouterr().out  # the trap works


# What torch.cuda.get_arch_list() says in torch 1.13.1 and 2.11.
OLD = ["sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86"]
NEW = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]


@pytest.mark.parametrize(
    "capability, compiled, served",
    [
        ((8, 6), OLD, True),
        ((8, 9), OLD, True),
        ((9, 0), OLD, False),
        ((3, 5), OLD, False),
        ((7, 2), OLD, True),
        ((9, 0), NEW, True),
        ((10, 3), NEW, True),
        ((7, 0), NEW, False),
        ((13, 0), NEW, True),
        ((9, 0), ["sm_90a"], True),
        ((9, 0), ["gfx90a"], True),
        ((9, 0), [], False),
    ],
)
def test_which_gpus_have_kernels(new, monkeypatch, capability, compiled, served):
    fake_gpus(monkeypatch, ["GPU"], capability, compiled)
    assert (new.default_device() == torch.device("cuda")) is served


def fake_gpus(monkeypatch, names, capability, compiled):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(names))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: names[index])
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: compiled)


def test_cuda_that_does_not_start_is_no_reason_to_train_on_the_cpu(new, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert new.default_device() == torch.device("cpu")
    monkeypatch.setattr("pyspeech.engine.gpu.installed_gpus", lambda: [Gpu("NVIDIA X")])
    with pytest.raises(UserError, match="torch cannot use the GPU: CUDA finds none; .* PYSPEECH_DEVICE=cpu"):
        new.default_device()
    assert new.named_device("cpu") == torch.device("cpu")
    monkeypatch.setenv("PYSPEECH_DEVICE", "cpu")
    assert new.default_device() == torch.device("cpu")


def test_the_cpu_where_it_was_asked_for(new, monkeypatch):
    fake_gpus(monkeypatch, ["NVIDIA A100"], (8, 0), OLD)
    monkeypatch.setenv("PYSPEECH_DEVICE", "cpu")
    assert new.default_device() == new.named_device("auto") == torch.device("cpu")


def test_gpus_are_described_and_used(new, monkeypatch):
    fake_gpus(monkeypatch, ["NVIDIA A100", "NVIDIA A100"], (8, 0), OLD)
    assert new.default_device() == torch.device("cuda")
    assert new.describe_environment().endswith(", 2 GPUs (NVIDIA A100)")


def test_gpu_too_new_for_this_torch_is_named_and_not_used(new, monkeypatch):
    fake_gpus(monkeypatch, ["NVIDIA H200"], (9, 0), OLD)
    assert new.default_device() == torch.device("cpu")
    assert "GPU not used" in new.describe_environment()
    assert "NVIDIA H200 (sm_90); PYSPEECH_ENV=torch2" in new.describe_environment()


def test_reason_why_cuda_does_not_start_is_told(new, monkeypatch):
    import warnings

    def too_old():
        warnings.warn("The NVIDIA driver on your system is too old\n(found version 11040).")
        return False

    monkeypatch.setattr(torch.cuda, "is_available", too_old)
    assert "; GPU not used: The NVIDIA driver on your system is too old (found version" in new.describe_environment()


def test_description_names_versions_threads_and_k2(new, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(new, "environment_name", lambda: "k2")
    text = new.describe_environment()
    version = ".".join(map(str, sys.version_info[:3]))
    assert text.startswith(f"environment k2: Python {version}, torch {torch.__version__}, k2 ")
    assert text.endswith(f", CPU ({torch.get_num_threads()} threads)")


def test_k2_missing_and_k2_broken_are_told_apart(new, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "k2", None)
    assert ", k2 not installed, " in as_new(compat).describe_environment()
    monkeypatch.delitem(sys.modules, "k2")
    (tmp_path / "k2.py").write_text("raise ImportError('undefined symbol: x')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert ", k2 is installed but does not load (undefined symbol: x), " in new.describe_environment()
