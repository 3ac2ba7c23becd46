"""Log-mel frames of many utterances on disk, in half precision: computed once by many processes, read by every training.

    folder/store.json       {"num_bins": B, "rows": N, "shard": rows in a shard}
    folder/00000.f16        the frames of the rows that are stored, of N / 256 or so of them, one after the other
    folder/00000.npz        counts (n,): frames of each of these rows, -1 where they are not stored; and, over the frames
                            of the rows that count for the statistics, their number, sum and sum of squares (fp64)

The .npz of a shard is written last: a shard that has one is whole. So what was killed goes on at the shards that it was
in. Shards and what is in them follow from the rows alone, sums are added in their order: any number of processes
gives the same bytes. Frames are read where they lie, no more of them than is asked for: a store of any size takes no
memory of the process that reads it, but the system's cache where there is room.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from pyspeech.errors import UserError
from pyspeech.features.fbank import GlobalStats
from pyspeech.files import atomic_path, atomic_write, write_json
from pyspeech.workers import in_processes

CONTENT = "store.json"
SMALLEST, MOST = 64, 256  # rows of a shard at least, where there are as many; shards at most: each is an open file
DTYPE = np.dtype("<f2")


def to_stored(frames: torch.Tensor) -> torch.Tensor:
    """Frames as a store gives them back: rounded to half precision, as float32."""
    return frames.half().float()


def frame_bytes(frames: np.ndarray, num_bins: int) -> int:
    """What so many frames (N,) take in a store."""
    return int(frames.sum()) * num_bins * DTYPE.itemsize


def choose_rows(frames: np.ndarray, num_bins: int, limit: float) -> np.ndarray:
    """(N,) bool: the rows to store, all where their frames (N,) fit into `limit` bytes; otherwise as many as do, spread
    evenly over the rows, so that each language and speed has its share."""
    share = limit / max(1, frame_bytes(frames, num_bins))
    if share >= 1:
        return np.ones(len(frames), dtype=bool)
    chosen = np.diff(np.floor(np.arange(len(frames) + 1) * share)) > 0
    return chosen & (np.cumsum(frames * chosen) * num_bins * DTYPE.itemsize <= limit)


def check_space(folder: Path | str, wanted: int, option: str) -> None:
    """UserError where the disk has no room for `wanted` bytes, with what of them is in `folder` and those below already.

    option: the name of the option that is a limit in GB (1e9 bytes).
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    there = sum(path.stat().st_size for path in folder.rglob("*.f16"))
    free = shutil.disk_usage(folder).free
    if wanted > there + free:
        raise UserError(
            f"{folder}: {wanted / 1e9:.1f} GB of frames are to be stored, the disk has room for {(free + there) / 1e9:.1f}; "
            f"make room, or set {option} lower: what is not stored is computed in each training"
        )


def write_store(
    folder: Path | str,
    compute: Callable[[int], torch.Tensor],
    stored: np.ndarray,
    counted: np.ndarray,
    num_bins: int,
    jobs: int,
    log: logging.Logger | None = None,
) -> GlobalStats | None:
    """Write the frames of the rows `stored` (N,) bool, and give mean and variance over those `counted` (N,) bool; None
    where that is no row. Goes on where it was killed, if the rows are the same.

    compute: compute(row) -> log-mel frames (F, num_bins) float32, called in `jobs` processes, for the rows of either.
    """
    from tqdm import tqdm

    folder, total = Path(folder), len(stored)
    size = max(SMALLEST, -(-total // MOST))
    log = log or logging.getLogger(__name__)
    write_json(folder / CONTENT, {"num_bins": num_bins, "rows": total, "shard": size})
    for leftover in folder.glob(".*.tmp.*"):  # of processes that were killed
        leftover.unlink()
    numbers = range(-(-total // size))
    left = [number for number in numbers if not _shard(folder, number, ".npz").exists()]
    if len(left) < len(numbers):
        log.info("%d of %d shards of frames are there", len(numbers) - len(left), len(numbers))

    def write(number):
        rows = range(number * size, min(total, (number + 1) * size))
        _write_shard(folder, number, rows, compute, stored, counted, num_bins)

    shards = tqdm(in_processes(write, left, jobs), "frames", len(left), unit="shard", disable=None)
    for done, _ in enumerate(shards, start=len(numbers) - len(left) + 1):
        if done * 10 // len(numbers) > (done - 1) * 10 // len(numbers):
            log.info("frames: %d of %d shards", done, len(numbers))
    return _merge(folder, numbers) if counted.any() else None


def _write_shard(folder, number, rows, compute, stored, counted, num_bins):
    counts, sums = np.full(len(rows), -1, dtype=np.int64), [0, np.zeros(num_bins), np.zeros(num_bins)]
    with atomic_write(_shard(folder, number, ".f16"), "wb") as stream:
        for place, row in enumerate(rows):
            if not stored[row] and not counted[row]:
                continue
            frames = compute(row)
            if stored[row]:
                counts[place] = len(frames)
                stream.write(frames.numpy().astype(DTYPE).tobytes())
            if counted[row]:
                wide = frames.double().numpy()
                sums = [sums[0] + len(wide), sums[1] + wide.sum(axis=0), sums[2] + np.square(wide).sum(axis=0)]
    with atomic_path(_shard(folder, number, ".npz")) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, counts=counts, frames=sums[0], sum=sums[1], squares=sums[2])


def _merge(folder, numbers):
    count, total, squares = 0, 0.0, 0.0
    for number in numbers:
        with np.load(_shard(folder, number, ".npz")) as content:
            count, total, squares = count + content["frames"], total + content["sum"], squares + content["squares"]
    return GlobalStats.from_sums(int(count), torch.as_tensor(total), torch.as_tensor(squares))


def _shard(folder, number, suffix):
    return folder / f"{number:05d}{suffix}"


class FrameStore:
    """store.get(row) -> frames (F, num_bins) float32, or None where they are not stored; len(store): the rows."""

    def __init__(self, folder: Path | str) -> None:
        """UserError where the store in `folder` is missing or not whole."""
        self.folder = Path(folder)
        try:
            content = json.loads((self.folder / CONTENT).read_text(encoding="utf-8"))
            self.num_bins, self._rows, self._size = content["num_bins"], content["rows"], content["shard"]
            self._frame_bytes = self.num_bins * DTYPE.itemsize
            counts = [self._load_counts(number) for number in range(-(-self._rows // self._size))]
        except (OSError, ValueError, KeyError) as error:
            raise UserError(
                f"{self.folder}: no frames to be read there ({error}); the stage that writes them has to run"
            ) from None
        self._counts = np.concatenate([np.zeros(0, np.int64), *counts])
        # Of each row, the frames of its shard that stand before it.
        self._firsts = np.concatenate([np.zeros(0, np.int64), *(np.cumsum(part.clip(0)) - part.clip(0) for part in counts)])
        self._files = {}

    def _load_counts(self, number):
        with np.load(_shard(self.folder, number, ".npz")) as content:
            counts = content["counts"]
        path, expected = _shard(self.folder, number, ".f16"), int(counts.clip(0).sum()) * self._frame_bytes
        if path.stat().st_size != expected:
            raise UserError(
                f"{path}: {path.stat().st_size} bytes, expected {expected}; remove {self.folder}, run its stage again"
            )
        return counts

    def __len__(self) -> int:
        return self._rows

    @property
    def stored(self) -> np.ndarray:
        """(N,) bool: the rows whose frames are there."""
        return self._counts >= 0

    def get(self, row: int) -> torch.Tensor | None:
        count = int(self._counts[row])
        if count < 0:
            return None
        # Read at a place: workers that were forked share these files, and would share a position in them.
        data = os.pread(self._file(row // self._size), count * self._frame_bytes, int(self._firsts[row]) * self._frame_bytes)
        frames = np.frombuffer(data, DTYPE).astype(np.float32)
        return torch.from_numpy(frames).reshape(-1, self.num_bins)

    def _file(self, number):
        if number not in self._files:
            self._files[number] = open(_shard(self.folder, number, ".f16"), "rb", buffering=0)  # noqa: SIM115
        return self._files[number].fileno()
