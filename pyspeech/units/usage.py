"""Counts of the codes of a system, in the array files of units that its stage has left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


def count_codes(folder: Path, most: int | None = None) -> Counter[bytes]:
    """{the bytes of a code's vector: how often it occurs} in the first `most` array files of a folder, in all by default."""
    import numpy as np

    counts: Counter[bytes] = Counter()
    for path in sorted(folder.glob("*.npy"))[:most]:
        counts.update(row.tobytes() for row in np.load(path))
    return counts
