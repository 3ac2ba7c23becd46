"""A SAD network in ONNX Runtime, from a file that onnx_export.py wrote. Nothing here needs torch.

The file's metadata has, under "pyspeech", a JSON object: "kind", "format", "version" (of pyspeech), "network" and "stft"
(NetworkConfig and StftConfig), "points" ({name: OperatingPoint}, the default first) and "card" (text for people).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import pyspeech
from pyspeech.engine.process import stage_cores
from pyspeech.errors import UserError
from pyspeech.sad.config import NetworkConfig, OperatingPoint, StftConfig
from pyspeech.sad.pieces import Geometry

METADATA = "pyspeech"
KIND = "SAD network"
FORMAT = 1  # of the metadata and the graph's inputs; another number for what this code could not read, or would misread


class OnnxNetwork:
    """A SAD network of an ONNX file.

    network, stft_config: its options. points: {name: OperatingPoint}. card: what it was trained on. UserError where the file
    is missing or was not written by `export_onnx`.
    """

    def __init__(self, path: str | Path) -> None:
        self._session = _open(Path(path))
        content = _content(path, self._session)
        try:
            self.network, self.stft_config = NetworkConfig(**content["network"]), StftConfig(**content["stft"])
            self.points = {name: OperatingPoint(**point) for name, point in content["points"].items()}
            self.card = content["card"]
            for part in (self.network, self.stft_config, *self.points.values()):
                part.check()
            self.default = next(iter(self.points.values()))
        except (KeyError, TypeError, AttributeError, StopIteration, UserError) as error:
            raise UserError(
                f"{path}: its metadata is not that of a {KIND} ({type(error).__name__}: {error}); export it again with "
                "utils/export_onnx.py"
            ) from None
        self.geometry = Geometry.of(self.network, self.stft_config)
        self.workers = stage_cores()  # each a thread: the steps of a recurrent network are too short to share

    def score_piece(self, samples: np.ndarray, num_frames: int, first: int, count: int) -> np.ndarray:
        """As of PieceNetwork: samples float32 (N,) -> scores float32 (count,)."""
        span = np.array([num_frames, first, count], np.int64)
        (scores,) = self._session.run(["scores"], {"samples": np.ascontiguousarray(samples)[None], "span": span})
        return np.asarray(scores)


def _open(path):
    if not path.is_file():
        raise UserError(f"{path}: no such model; expected a file that utils/export_onnx.py wrote")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors, not the warnings of shapes that are unknown beforehand
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class for each status, without one for all
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{path}: not an ONNX model, or damaged ({reason}); export it again") from None


def _content(path, session):
    """The metadata of a file, checked as far as it says what the file is."""
    found = session.get_modelmeta().custom_metadata_map.get(METADATA)
    try:
        content = json.loads(found) if found else None
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise UserError(f"{path}: not a {KIND} of this repository; expected a file that utils/export_onnx.py wrote")
    if content.get("format") != FORMAT:
        raise UserError(
            f"{path}: has format {content.get('format')}, written by pyspeech {content.get('version')}; this is pyspeech "
            f"{pyspeech.__version__}, which reads format {FORMAT}: export it again"
        )
    return content
