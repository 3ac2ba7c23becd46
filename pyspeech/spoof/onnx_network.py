"""A detector of fake audio in ONNX Runtime, from a file that onnx_export.py wrote. Nothing here needs torch.

samples float32 (1, N) -> score float32 (1,): log odds of genuine speech
metadata: "features", "network", "crop" (options of these names), "calibration", "threshold"
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pyspeech.model_file import open_onnx
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.config import KIND, LogMelConfig, saved_crop
from pyspeech.spoof.detector import Detector

SHIPPED = Path(__file__).parent / "shipped" / "model.onnx"  # the bundled detector


class OnnxNetwork:
    """The network of a file; `score_batch` is as of DetectorNetwork."""

    def __init__(self, path: Path, session: object, features: LogMelConfig) -> None:
        self._path, self._session, self.sampling_rate = path.absolute(), session, features.sampling_rate

    def __reduce__(self) -> tuple:
        """A process that it is sent to reads the file again: a session cannot be sent."""
        return _network_of, (self._path,)

    def score_batch(self, samples: np.ndarray) -> list[float]:
        """Log odds of pieces of one length, samples (B, N) float32."""
        run = self._session.run  # pyright: ignore[reportAttributeAccessIssue]
        return [float(run(["score"], {"samples": piece[None]})[0][0]) for piece in samples]


def load_onnx(path: str | Path = SHIPPED) -> Detector:
    """Load a Detector from an ONNX file, by default the bundled one; UserError where it is none."""

    def build(content):
        crop = saved_crop(content["crop"])
        return LogMelConfig(**content["features"]), crop, Calibration(**content["calibration"]), float(content["threshold"])

    session, (features, crop, calibration, threshold) = open_onnx(path, KIND, build)
    return Detector(OnnxNetwork(Path(path), session, features), crop, calibration, threshold)


def _network_of(path):
    return load_onnx(path).model
