"""A SAD network in ONNX Runtime, from a file that onnx_export.py wrote. Nothing here needs torch.

The file's metadata has, under "pyspeech", a JSON object: "kind", "format", "version" (of pyspeech), "network" and "stft"
(NetworkConfig and StftConfig), "points" ({name: OperatingPoint}, the default first) and "card" (text for people).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pyspeech.engine.process import stage_cores
from pyspeech.model_file import open_onnx
from pyspeech.sad.config import KIND, NetworkConfig, OperatingPoint, StftConfig
from pyspeech.sad.pieces import Geometry, state_shape
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

    def score_piece(
        self, samples: np.ndarray, num_frames: int, first: int, count: int, state: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Score a piece, see `pyspeech.sad.decoding.Scorer`."""
        span = np.array([num_frames, first, count], np.int64)
        inputs = {"samples": np.ascontiguousarray(samples)[None], "span": span}
        if not self.causal:
            return np.asarray(self._session.run(["scores"], inputs)[0]), None
        before = np.zeros(state_shape(self.network), np.float32) if state is None else state
        scores, after = self._session.run(["scores", "after"], {**inputs, "state": before})
        return np.asarray(scores), np.asarray(after)
