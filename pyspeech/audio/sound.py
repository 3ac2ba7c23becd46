"""Samples that a model has made, and the file that they become."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.errors import UserError
from pyspeech.files import atomic_path, format_of

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Sound:
    """Audio in memory.

    Attributes:
        samples: (N,) or (channels, N), floats from -1 to 1.
        sampling_rate: Hz.
    """

    samples: np.ndarray
    sampling_rate: int

    def save(self, path: str | Path) -> None:
        """Write an audio file of 16 bit, whole or not at all; its ending says of which kind: .wav or .flac.

        UserError where that kind does not have so many channels or such a rate.
        """
        import soundfile

        kind = format_of(path, {"WAV": ".wav", "FLAC": ".flac"})
        try:
            with atomic_path(path) as temporary, open(temporary, "wb") as stream:
                soundfile.write(stream, self.samples.T, self.sampling_rate, "PCM_16", format=kind)
        except soundfile.LibsndfileError as error:
            channels = 1 if self.samples.ndim == 1 else len(self.samples)
            what = f"{channels} channels at {self.sampling_rate} Hz"
            raise UserError(f"{path}: {kind} cannot hold {what} ({error.error_string.strip()}); expected .wav") from None
