"""What all tests share: the repository on the path, few threads, seeded random numbers."""

import os
import shutil
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# Before numpy and torch load, and for the programs that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", os.environ["OMP_NUM_THREADS"])
os.environ["MPLBACKEND"] = "Agg"
os.environ["PYSPEECH_DEVICE"] = "cpu"  # tests marked gpu name their device
# Programs that tests start load the library again and again: it is compiled once, whatever this environment says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))

# Tests write, sync and remove forty thousand small files: in memory, as on a disk that takes as long as all else.
if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 << 30:
    os.environ.setdefault("TMPDIR", "/dev/shm")

# A shell starts what runs in the background with Ctrl-C ignored, and so would everything be that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

from pyspeech.launch import environment_name

if environment_name() is None:  # a Python of the developer's own: the programs that tests start shall use it too
    os.environ["PYSPEECH_ENV"] = "system"

import browser_harness
import pytest
import slurm_harness
from web_server import Server

from pyspeech.engine.process import num_cores
from pyspeech.fetch import download

# Begun first, the longest before: processes that take files in turn then end at about the same time.
FIRST = """egs/test_fearless local/add2022/test_mini egs/test_add2022 egs/test_indic egs/test_zerospeech engine/test_ranks
    engine/test_run_killed engine/test_cluster engine/test_cluster_arrays engine/test_run asr/test_encoders bench/test_gpu
    egs/test_add_a_network egs/test_detector commands/test_detect test_repository bench/test_leave_out""".split()


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers():
    """One more than there are cores, as tests of clusters and of killed runs wait half of their time."""
    return num_cores() + 1


def pytest_collection_modifyitems(items):
    tests = Path(__file__).parent
    places = {tests / f"{name}.py": place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(FIRST)))


@pytest.fixture
def rng():
    """A numpy random generator, seeded anew for each test."""
    import numpy as np

    return np.random.default_rng(20221)


@pytest.fixture
def interrupt(monkeypatch):
    """interrupt("module.function"): Ctrl-C comes when that is called for the second time. Returns a list of the calls."""

    def prepare(name):
        from pkgutil import resolve_name

        module, _, function = name.rpartition(".")
        usual, calls = getattr(resolve_name(module), function), []

        def call_or_stop(*given, **options):
            calls.append(given)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return usual(*given, **options)

        monkeypatch.setattr(name, call_or_stop)
        return calls

    return prepare


@pytest.fixture
def corpus(made, tmp_path):
    """A copy to change of `made`, the corpus that a module makes once for its tests."""
    return shutil.copytree(made, tmp_path / made.name)


@pytest.fixture(scope="session")
def slurm():
    """A private Slurm of three virtual nodes. `.ci/run` installs what it needs, and tests fail there where it is missing."""
    why = slurm_harness.missing()
    if why and os.environ.get("PYSPEECH_TEST_SLURM") != "required":
        pytest.skip(why)
    with slurm_harness.private_slurm() as running:
        yield running


@pytest.fixture
def grid_engine(tmp_path, monkeypatch):
    """A stand-in for Grid Engine on the PATH: a function that gives the arguments of each qsub so far."""
    programs, state = tmp_path / "programs", tmp_path / "state"
    programs.mkdir(), state.mkdir()
    for name in ("qsub", "qstat", "qdel", "qconf"):
        (programs / name).write_text(f"#!/bin/sh\nexec '{sys.executable}' {programs / 'fake' / name} \"$@\"\n")
        (programs / name).chmod(0o755)
        (programs / "fake").mkdir(exist_ok=True)
        shutil.copy(Path(__file__).with_name("fake_grid_engine.py"), programs / "fake" / name)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_GRID_ENGINE", str(state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return lambda: [path.read_text() for path in sorted(state.glob("*.submitted"))]


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium (tests/browser_harness.py)."""
    why = browser_harness.missing()
    if why:
        pytest.skip(why)
    running = browser_harness.Browser(browser_harness.find_browser(), tmp_path_factory.mktemp("chromium"))
    yield running
    running.close()


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A web server (tests/web_server.py), an empty cache, and downloads that do not wait before they are tried again."""
    monkeypatch.setenv("PYSPEECH_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "PAUSES", (0, 0, 0, 0, 0))
    server = Server()
    yield server
    server.shutdown()
    server.server_close()
