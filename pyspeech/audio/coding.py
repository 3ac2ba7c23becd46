"""Samples through a codec of libsndfile, in memory."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np


def coded(
    samples: np.ndarray,
    rate: int,
    container: str,
    subtype: str,
    level: float | None = None,
    dtype: Literal["float32", "float64"] = "float64",
) -> np.ndarray:
    """Samples (N,) within +-1 at `rate` Hz, coded and decoded: (M,) of `dtype`; M can differ from N, as codecs have blocks.

    container, subtype: libsndfile's, such as "OGG" and "VORBIS"; `rate` is one that they have. level: compression, 0 finest to
    1 coarsest, None for the default and for what has none.
    """
    import soundfile

    stream = io.BytesIO()
    soundfile.write(stream, samples, rate, format=container, subtype=subtype, compression_level=level)
    stream.seek(0)
    return soundfile.read(stream, dtype=dtype)[0]
