"""Entries of lhotse manifests that are no plain piece of a file: lhotse makes their samples."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspeech.errors import UserError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class LhotseAudio:
    """A recording or cut, with transforms, several sources or tracks; it takes the place of a path.

    where: what messages call it; entry: its JSON.
    """

    where: str
    entry: str

    def __fspath__(self) -> str:
        return self.where

    def __str__(self) -> str:
        return self.where

    def load(self) -> tuple[np.ndarray, int]:
        """(samples float32 (N, channels), sampling rate in Hz); UserError where lhotse cannot."""
        try:
            from lhotse.serialization import deserialize_item
        except ImportError:
            raise UserError(f"{self.where}: needs lhotse, which is not installed; save it as audio first") from None
        try:
            item = deserialize_item(json.loads(self.entry))
            return item.load_audio().T, item.sampling_rate
        except Exception as error:  # lhotse and its backends raise nearly every kind
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"{self.where}: lhotse cannot read it ({type(error).__name__}: {reason})") from error
