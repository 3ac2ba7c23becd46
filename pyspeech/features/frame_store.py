"""Log-mel frames of many utterances on disk, in half precision: computed once by many processes, read by every training.

    folder/store.json       {"num_bins": B, "rows": N, "shard": rows in a shard}
    folder/00000.f16        the frames of the rows that are stored, of N / 256 or so of them, one after the other
    folder/00000.npz        counts (n,): frames of each of these rows, -1 where they are not stored; and, over the frames
                            of the rows that count for the statistics, their number, sum and sum of squares (fp64)

A shard is a part of its stage (pyspeech.engine.parts): what was killed goes on at the shards that are missing. Shards and what
is in them follow from the rows alone, sums are added in their order: any number of processes gives the same bytes. Frames are
read where they lie, no more of them than is asked for: a store of any size takes no memory of the process that reads it, but
the system's cache where there is room.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from pyspeech.engine.parts import Parts, in_parts
from pyspeech.errors import UserError
from pyspeech.features.fbank import GlobalStats
from pyspeech.files import atomic_path, atomic_write, write_json

CONTENT = "store.json"
SMALLEST, MOST = 64, 256  # rows of a shard at least, where there are as many; shards at most: each is an open file
DTYPE = np.dtype("<f2")


def to_stored(frames: torch.Tensor) -> torch.Tensor:
    """Frames as a store gives them back: rounded to half precision, as float32."""
    return frames.half().float()


def frame_bytes(frames: np.ndarray, num_bins: int) -> int:
    """Bytes that N frames take in a store."""
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
    there = 0
    for path in folder.rglob("*.f16"):
        with contextlib.suppress(FileNotFoundError):  # half-written by another job a moment ago
            there += path.stat().st_size
    free = shutil.disk_usage(folder).free
    if wanted > there + free:
        raise UserError(
            f"{folder}: {wanted / 1e9:.1f} GB of frames are to be stored, the disk has room for {(free + there) / 1e9:.1f}; "
            f"make room, or set {option} lower: what is not stored is computed in each training"
        )


class Rows(NamedTuple):
    """Source of a store's rows.

    compute: compute(row) -> log-mel frames (F, num_bins) float32, for each row that is stored (N,) bool, or counted (N,)
    bool, for mean and variance.
    """

    folder: Path
    compute: Callable[[int], torch.Tensor]
    stored: np.ndarray
    counted: np.ndarray


def write_stores(
    stores: Mapping[str, Rows],
    num_bins: int,
    jobs: int | None = None,
    log: logging.Logger | None = None,
    parts: Parts | None = None,
) -> dict[str, GlobalStats | None]:
    """Write some stores, {name: Rows}, by `in_parts`: {name: mean and variance over its counted rows}, None where these are
    none."""
    shards = {name: _shards(rows, num_bins) for name, rows in stores.items()}
    in_parts(
        parts,
        "frames",
        _write_shard,
        {f"{name}-{shard.number:05d}": shard for name, some in shards.items() for shard in some},
        jobs,
        inputs=lambda shard: (shard.num_bins, shard.rows, shard.stored.tolist(), shard.counted.tolist()),
        files=lambda shard: [_path(shard.folder, shard.number, suffix) for suffix in (".f16", ".npz")],
        log=log,
    )
    return {name: _merge(rows.folder, shards[name]) if rows.counted.any() else None for name, rows in stores.items()}


class _Shard(NamedTuple):
    folder: Path
    number: int
    rows: range
    compute: Callable[[int], torch.Tensor]
    stored: np.ndarray  # of these rows
    counted: np.ndarray
    num_bins: int


def _shards(store, num_bins):
    total = len(store.stored)
    size = max(SMALLEST, -(-total // MOST))
    write_json(store.folder / CONTENT, {"num_bins": num_bins, "rows": total, "shard": size})
    pieces = [range(first, min(total, first + size)) for first in range(0, total, size)]
    return [
        _Shard(
            store.folder, number, rows, store.compute, store.stored[rows.start : rows.stop],
            store.counted[rows.start : rows.stop], num_bins,
        )
        for number, rows in enumerate(pieces)
    ]  # fmt: skip


def _write_shard(shard):
    counts, sums = np.full(len(shard.rows), -1, dtype=np.int64), [0, np.zeros(shard.num_bins), np.zeros(shard.num_bins)]
    with atomic_write(_path(shard.folder, shard.number, ".f16"), "wb") as stream:
        for place, row in enumerate(shard.rows):
            if not shard.stored[place] and not shard.counted[place]:
                continue
            frames = shard.compute(row)
            if shard.stored[place]:
                counts[place] = len(frames)
                stream.write(frames.numpy().astype(DTYPE).tobytes())
            if shard.counted[place]:
                wide = frames.double().numpy()
                sums = [sums[0] + len(wide), sums[1] + wide.sum(axis=0), sums[2] + np.square(wide).sum(axis=0)]
    with atomic_path(_path(shard.folder, shard.number, ".npz")) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, counts=counts, frames=sums[0], sum=sums[1], squares=sums[2])


def _merge(folder, shards):
    count, total, squares = 0, 0.0, 0.0
    for shard in shards:
        with np.load(_path(folder, shard.number, ".npz")) as content:
            count, total, squares = count + content["frames"], total + content["sum"], squares + content["squares"]
    return GlobalStats.from_sums(int(count), torch.as_tensor(total), torch.as_tensor(squares))


def _path(folder, number, suffix):
    return folder / f"{number:05d}{suffix}"


class FrameStore:
    """Store of frames: store.get(row) -> frames (F, num_bins) float32, or None if not stored; len(store): number of rows."""

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
        with np.load(_path(self.folder, number, ".npz")) as content:
            counts = content["counts"]
        path, expected = _path(self.folder, number, ".f16"), int(counts.clip(0).sum()) * self._frame_bytes
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
        """UserError where the file has been damaged, as far as the frames tell."""
        count = int(self._counts[row])
        if count < 0:
            return None
        # Read at a place: workers that were forked share these files, and would share a position in them.
        data = os.pread(self._file(row // self._size), count * self._frame_bytes, int(self._firsts[row]) * self._frame_bytes)
        frames = np.frombuffer(data, DTYPE).astype(np.float32)
        # Of other content that takes the place of a block of 4 kB, some half-precision number is not finite nearly always.
        if len(data) < count * self._frame_bytes or not np.isfinite(frames).all():
            path = _path(self.folder, row // self._size, ".f16")
            raise UserError(f"{path}: damaged in the frames of row {row}; remove {self.folder}, run its stage again")
        return torch.from_numpy(frames).reshape(-1, self.num_bins)

    def _file(self, number):
        if number not in self._files:
            self._files[number] = open(_path(self.folder, number, ".f16"), "rb", buffering=0)  # noqa: SIM115
        return self._files[number].fileno()
