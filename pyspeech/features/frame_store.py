"""Log-mel frames of many utterances in one file: computed once, read by every training, shared in memory.

folder/frames.f32    the frames one after the other, float32
folder/index.json    {"num_bins": B, "utterances": {key: [first frame, number of frames]}}
"""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from pyspeech.errors import UserError
from pyspeech.files import atomic_path, write_json

FRAMES, INDEX = "frames.f32", "index.json"


def write_store(folder: Path | str, utterances: Iterable[tuple[str, torch.Tensor]], num_bins: int, limit: float) -> int:
    """Write the frames of an iterable of (key, frames (F, num_bins)) until they take `limit` bytes: how many are in it.

    What comes after that is not asked for.
    """
    folder, index, total = Path(folder), {}, 0
    with atomic_path(folder / FRAMES) as temporary, open(temporary, "wb") as stream:
        for key, frames in utterances:
            if 4 * num_bins * (total + len(frames)) > limit:
                break
            stream.write(frames.numpy().astype("<f4", copy=False).tobytes())
            index[key] = [total, len(frames)]
            total += len(frames)
    write_json(folder / INDEX, {"num_bins": num_bins, "utterances": index})
    return len(index)


class FrameStore:
    """store.get(key) -> frames (F, num_bins) float32, or None. Memory-mapped: the system's cache holds what is used."""

    def __init__(self, folder: Path | str) -> None:
        """UserError where the store in `folder` is missing or not whole."""
        folder = Path(folder)
        try:
            content = json.loads((folder / INDEX).read_text(encoding="utf-8"))
            size = (folder / FRAMES).stat().st_size
        except (OSError, ValueError) as error:
            raise UserError(f"{folder}: no frames to be read there ({error}); the stage that writes them has to run") from None
        self.index, self.num_bins = content["utterances"], content["num_bins"]
        expected = 4 * self.num_bins * sum(count for _, count in self.index.values())
        if size != expected:
            raise UserError(f"{folder / FRAMES}: {size} bytes, expected {expected}; remove {folder}, run its stage again")
        self._frames = np.memmap(folder / FRAMES, "<f4", "r").reshape(-1, self.num_bins) if size else None

    def __contains__(self, key: str) -> bool:
        return key in self.index

    def get(self, key: str) -> torch.Tensor | None:
        if key not in self.index:
            return None
        first, count = self.index[key]
        if count == 0:
            return torch.zeros(0, self.num_bins)
        frames = self._frames[first : first + count]  # pyright: ignore[reportOptionalSubscript]
        return torch.from_numpy(np.array(frames, dtype=np.float32))
