"""A SAD network in ONNX Runtime, from a file that onnx_export.py wrote. Nothing here needs torch.

The file's metadata has, under "pyspeech", a JSON object: "kind", "format", "version" (of pyspeech), "network" and "stft"
(NetworkConfig and StftConfig), "points" ({name: OperatingPoint}, the default first) and "card" (text for people).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pyspeech.engine.process import stage_cores
from pyspeech.model_file import open_onnx
from pyspeech.sad.config import KIND, NetworkConfig, OperatingPoint, StftConfig
from pyspeech.sad.pieces import Geometry, first_state
from pyspeech.sad.registry import NETWORKS


class OnnxNetwork:
    """A SAD network of an ONNX file.

    network, stft_config: its options. points: {name: OperatingPoint}. card: what it was trained on. UserError where the file
    is missing or was not written by `export_onnx`.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).absolute()
        self._session, _ = open_onnx(path, KIND, self._take)
        self.geometry = Geometry.of(self.network, self.stft_config)
        self.causal = NETWORKS[self.network.temporal].causal
        self._inputs = [one.name for one in self._session.get_inputs()]
        self.in_chunks = self._inputs[0] == "frames"
        # A file from before there were chunks keeps the state of the GRU alone.
        self._first = first_state(self.network, self.stft_config)[0 if self.in_chunks else -1 :] if self.causal else []
        self.workers = stage_cores()  # each a thread: the steps of a recurrent network are too short to share

    def __reduce__(self) -> tuple:
        """A process that it is sent to reads the file again: a session cannot be sent."""
        return OnnxNetwork, (self._path,)

    def _take(self, content):
        self.network, self.stft_config = NetworkConfig(**content["network"]), StftConfig(**content["stft"])
        self.points = {name: OperatingPoint(**point) for name, point in content["points"].items()}
        self.card = content["card"]
        for part in (self.network, self.stft_config, *self.points.values()):
            part.check()
        self.default = next(iter(self.points.values()))

    def score_piece(self, samples: np.ndarray, *numbers: int, state: Any = None) -> tuple[np.ndarray, Any]:
        """Score a piece, see `pyspeech.sad.decoding.Scorer`."""
        inputs = [np.ascontiguousarray(samples)[None], np.array(numbers, np.int64)]
        if self.causal:
            inputs += self._first if state is None else state
        scores, *after = self._session.run(None, dict(zip(self._inputs, inputs, strict=True)))
        return np.asarray(scores), after if self.causal else None
