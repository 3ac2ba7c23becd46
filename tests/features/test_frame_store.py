"""Frames on disk: as computed but for the rounding, the same bytes whatever happened, and no more than the limit."""

import os
import signal

import numpy as np
import pytest
import torch

from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.features import frame_store
from pyspeech.features.fbank import GlobalStats
from pyspeech.features.frame_store import FrameStore, Rows, check_space, choose_rows, frame_bytes, write_stores

BINS, ROWS = 8, 300
LENGTHS = np.random.default_rng(1).integers(0, 40, ROWS)
ALL = np.ones(ROWS, dtype=bool)


def compute(row):
    """Frames in the range of log-mel energies."""
    return torch.from_numpy(np.random.default_rng(row).uniform(-16, 6, (LENGTHS[row], BINS)).astype(np.float32))


def write_store(folder, compute, stored, counted, jobs, parts=None):
    return write_stores({"store": Rows(folder, compute, stored, counted)}, BINS, jobs, parts=parts)["store"]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_frames_and_statistics_are_those_computed_one_by_one(tmp_path):
    counted = np.arange(ROWS) % 3 == 0
    stats = write_store(tmp_path, compute, ALL, counted, 2)
    expected = GlobalStats.compute(compute(row) for row in np.flatnonzero(counted))
    assert stats.mean == pytest.approx(expected.mean, abs=1e-12) and stats.std == pytest.approx(expected.std, abs=1e-12)
    store = FrameStore(tmp_path)
    assert len(store) == ROWS and store.stored.all() and store.num_bins == BINS
    for row in np.random.default_rng(2).permutation(ROWS):
        frames = store.get(row)
        assert frames.dtype == torch.float32 and torch.equal(frames, compute(row).half().float())
        assert frames.shape == (LENGTHS[row], BINS)
        assert len(frames) == 0 or (frames - compute(row)).abs().max() < 2**-7  # of a standard deviation of 3 to 4


def test_what_is_stored_changes_no_statistics(tmp_path):
    some = np.arange(ROWS) % 4 == 1
    everything = write_store(tmp_path / "all", compute, ALL, ALL, 2)
    assert write_store(tmp_path / "some", compute, some, ALL, 2) == everything
    assert write_store(tmp_path / "none", compute, ~ALL, ~ALL, 2) is None
    store = FrameStore(tmp_path / "some")
    assert np.array_equal(store.stored, some) and store.get(0) is None and torch.equal(store.get(1), compute(1).half().float())
    assert FrameStore(tmp_path / "none").get(5) is None


def test_any_number_of_processes_gives_the_same_bytes(tmp_path):
    for jobs in (1, 2, 5):
        write_store(tmp_path / str(jobs), compute, ALL, ALL, jobs)
    assert content(tmp_path / "1") == content(tmp_path / "2") == content(tmp_path / "5")
    assert len(content(tmp_path / "1")) > 5


@pytest.mark.parametrize("row", [10, 150, 299])
def test_killed_in_a_shard_it_goes_on_there(tmp_path, row):
    """A process that computes a row is killed in it; then what is whole stays as it is."""
    expected = write_store(tmp_path / "whole", compute, ALL, ALL, 1)

    def killed(number):
        return os.kill(os.getpid(), signal.SIGKILL) if number == row else compute(number)

    parts = Parts(tmp_path / "parts")
    with pytest.raises(UserError, match="status -9"):
        write_store(tmp_path / "killed", killed, ALL, ALL, 2, parts)
    whole = {path.stem: path.stat().st_mtime_ns for path in (tmp_path / "parts/frames").iterdir()}
    with pytest.raises(UserError, match="has to run"):
        FrameStore(tmp_path / "killed")
    assert 1 <= len(list((tmp_path / "killed").glob(".*.tmp.*"))) <= 2
    assert write_store(tmp_path / "killed", compute, ALL, ALL, 2, parts) == expected
    kept = {name: data for name, data in content(tmp_path / "killed").items() if not name.startswith(".")}
    assert kept == content(tmp_path / "whole")
    again = [name for name, time in whole.items() if (tmp_path / f"parts/frames/{name}.json").stat().st_mtime_ns != time]
    assert again == [] and len(whole) <= len(kept) // 2 - 1


def test_stores_of_several_sets(tmp_path):
    """Together and each by itself: the same."""
    half = ALL[: ROWS // 2]
    rows = {"a": Rows(tmp_path / "a", compute, ALL, ALL), "b": Rows(tmp_path / "b", compute, half, ~half)}
    found = write_stores(rows, BINS, 2)
    assert found == {"a": write_store(tmp_path / "c", compute, ALL, ALL, 2), "b": None}
    assert content(tmp_path / "a") == content(tmp_path / "c") and len(FrameStore(tmp_path / "b")) == ROWS // 2


def test_rows_within_a_limit_are_spread_evenly():
    frames = np.random.default_rng(1).integers(100, 2000, 100_000)
    total = frame_bytes(frames, 80)
    assert total == frames.sum() * 160
    for share in (0.0, 0.01, 0.3, 0.999, 1.0, 5.0):
        chosen = choose_rows(frames, 80, share * total)
        assert frame_bytes(frames[chosen], 80) <= share * total
        assert chosen.mean() == pytest.approx(min(1, share), abs=0.01)
        assert [part.mean() for part in np.split(chosen, 10)] == pytest.approx([min(1, share)] * 10, abs=0.02)
    assert choose_rows(np.zeros(0, int), 80, 0).tolist() == []


def test_a_disk_that_is_too_small(tmp_path, monkeypatch):
    free = frame_store.shutil.disk_usage(tmp_path).free
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "00000.f16").write_bytes(bytes(1000))
    check_space(tmp_path, 1000, "data.stored_gb")
    with pytest.raises(UserError, match="make room, or set data.stored_gb lower"):
        check_space(tmp_path, 2 * free + 10**9, "data.stored_gb")
    (tmp_path / "train" / ".7.tmp.00001.f16").symlink_to("renamed")  # as one that is gone between being listed and looked at
    check_space(tmp_path, 1000, "data.stored_gb")


def test_a_store_that_is_not_whole(tmp_path):
    with pytest.raises(UserError, match="has to run"):
        FrameStore(tmp_path / "nowhere")
    write_store(tmp_path, compute, ALL, ALL, 2)
    os.truncate(tmp_path / "00001.f16", 1000)
    with pytest.raises(UserError, match="00001.f16: 1000 bytes, expected"):
        FrameStore(tmp_path)


def test_a_block_of_something_else_is_named(tmp_path):
    write_store(tmp_path, compute, ALL, ALL, 2)
    row = int(LENGTHS.argmax())
    wanted = FrameStore(tmp_path).get(row).numpy().astype("<f2").tobytes()
    [path] = [path for path in tmp_path.glob("*.f16") if wanted in path.read_bytes()]
    path.write_bytes(path.read_bytes().replace(wanted, np.random.default_rng(1).bytes(len(wanted))))
    store = FrameStore(tmp_path)
    with pytest.raises(UserError, match=f"{path.name}: damaged in the frames of row {row}; remove"):
        store.get(row)
    assert all(len(store.get(other)) == LENGTHS[other] for other in range(ROWS) if other != row)
