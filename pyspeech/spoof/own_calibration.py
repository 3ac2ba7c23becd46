"""The calibration of a detector on recordings of one's own, in a file beside the model that it is used with.

The network stays as it is; its scores get the slope, the offset and the threshold that fit these recordings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.spoof.calibration import Calibration, fit_calibration

if TYPE_CHECKING:
    from pyspeech.spoof.detector import Detector
    from pyspeech.spoof.formats import Label

FILE = "calibration.json"
FEWEST = 5  # recordings of a class


@dataclass(frozen=True)
class OwnCalibration:
    """slope, offset, threshold: as of Calibration and Detector; eer, cllr: on the recordings that it is fitted to."""

    slope: float
    offset: float
    threshold: float
    genuine: int
    fake: int
    eer: float
    cllr: float


def fit_own(scores: Mapping[str, float], labels: Mapping[str, Label]) -> OwnCalibration:
    """Fit a calibration to scores before any, {name: log odds}, of recordings with labels, {name: Label}.

    Raises:
        UserError: for fewer than FEWEST recordings of either class.
    """
    from pyspeech.spoof.scoring import cllr, equal_error_rate

    kinds = [
        [scores[name] for name, label in labels.items() if label.genuine is kind and name in scores] for kind in (True, False)
    ]
    genuine, fake = kinds
    if min(len(genuine), len(fake)) < FEWEST:
        raise UserError(
            f"calibration: {len(genuine)} genuine and {len(fake)} fake recordings have a score and a label; expected at least "
            f"{FEWEST} of each"
        )
    found = fit_calibration(genuine, fake)
    eer, threshold = equal_error_rate(genuine, fake)
    cost = cllr(*([found.log_likelihood_ratio(score) for score in kind] for kind in kinds))
    return OwnCalibration(found.slope, found.offset, threshold, len(genuine), len(fake), float(eer), cost)


def save_own(model: Path, own: OwnCalibration) -> Path:
    """Write the calibration beside the file of a model, whole or not at all; the path written."""
    path = model.with_name(FILE)
    write_json(path, {**asdict(own), "model": model.name, "sha256": _digest(model)})
    return path


def with_own(detector: Detector, model: Path) -> Detector:
    """A detector with the calibration that lies beside the file of its model; as it is without one.

    Raises:
        UserError: for a file that is damaged, or belongs to another model.
    """
    path = model.with_name(FILE)
    if not path.is_file():
        return detector
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        slope, offset, threshold = (float(content[name]) for name in ("slope", "offset", "threshold"))
        digest = content["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: no calibration ({type(error).__name__}: {error}); calibrate again, or remove it") from None
    if digest != _digest(model):
        raise UserError(f"{path}: belongs to another model than {model.name}; calibrate again, or remove it")
    return replace(detector, calibration=Calibration(slope, offset), threshold=threshold)


def _digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
