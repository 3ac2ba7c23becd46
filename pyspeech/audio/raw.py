"""Samples without a header: what they are has to be said."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

# encoding: (libsndfile's name, bytes a sample); little-endian
ENCODINGS = {
    "s16": ("PCM_16", 2),
    "u8": ("PCM_U8", 1),
    "s8": ("PCM_S8", 1),
    "s24": ("PCM_24", 3),
    "s32": ("PCM_32", 4),
    "f32": ("FLOAT", 4),
    "f64": ("DOUBLE", 8),
    "mulaw": ("ULAW", 1),
    "alaw": ("ALAW", 1),
}


@dataclass(frozen=True)
class RawFormat:
    """Format of headerless samples.

    Attributes:
        sampling_rate: Hz.
        encoding: One of ENCODINGS.
        channels: Interleaved.
    """

    sampling_rate: int = 16000
    encoding: str = "s16"
    channels: int = 1

    @property
    def frame_bytes(self) -> int:
        """Bytes of a sample of each channel."""
        return ENCODINGS[self.encoding][1] * self.channels

    def soundfile_options(self) -> dict[str, Any]:
        """Arguments with which soundfile opens such a file."""
        subtype, _ = ENCODINGS[self.encoding]
        return {
            "samplerate": self.sampling_rate,
            "channels": self.channels,
            "subtype": subtype,
            "format": "RAW",
            "endian": "LITTLE",
        }

    def decode(self, data: bytes) -> np.ndarray:
        """Whole frames as float32 (n, channels)."""
        import numpy as np
        import soundfile

        if not data:
            return np.zeros((0, self.channels), dtype=np.float32)
        return soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True, **self.soundfile_options())[0]
