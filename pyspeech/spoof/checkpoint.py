"""The file of a detector of fake audio: the network, the pieces it scores, its calibration and its threshold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech import model_file
from pyspeech.spoof.calibration import Calibration
from pyspeech.spoof.config import KIND, DetectorConfig, LogMelConfig, saved_crop
from pyspeech.spoof.detector import Detector
from pyspeech.spoof.networks import make_network

if TYPE_CHECKING:
    import torch

SHIPPED = Path(__file__).parent / "shipped"  # the bundled detector, made by the profile release of the recipe add2022


def save_model(folder: str | Path, detector: Detector) -> None:
    """Write `folder`/model.pt, whole or not at all."""
    model_file.write(
        folder,
        KIND,
        detector.model,
        network=detector.model.config,
        features=detector.model.front_end.config,
        front_end=detector.model.front_end.saved(),
        crop=detector.crop,
        calibration=detector.calibration,
        threshold=float(detector.threshold),
    )


def load_model(folder: str | Path, device: str | torch.device = "cpu") -> Detector:
    """The Detector of `folder`, of a model.pt or that file, its model on `device`. UserError for any other."""
    detector = model_file.read(folder, KIND, _build)
    detector.model.to(device).eval()
    return detector


def read_features(folder: str | Path) -> LogMelConfig:
    """The features that the detector of `folder` looks at; UserError as of `load_model`.

    No network is built for it: what torch computes leaves threads, which processes that are forked later wait for forever.
    """
    return model_file.read(folder, KIND, lambda content: LogMelConfig(**content["features"]))


def _build(content):
    model = make_network(DetectorConfig(**content["network"]), LogMelConfig(**content["features"]), content.get("front_end"))
    model.load_state_dict(content["model"])
    return Detector(model, saved_crop(content["crop"]), Calibration(**content["calibration"]), float(content["threshold"]))
