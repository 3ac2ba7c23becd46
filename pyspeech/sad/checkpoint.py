"""The file of a SAD network: its weights and options, and how its scores become decisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech import model_file
from pyspeech.errors import UserError
from pyspeech.sad.config import KIND, NetworkConfig, StftConfig
from pyspeech.sad.networks import SadNetwork
from pyspeech.sad.smoothing import SMOOTHINGS

if TYPE_CHECKING:
    import torch


def save_model(folder: str | Path, model: SadNetwork, threshold: float = 0.5, smoothing: str = "none") -> None:
    """Write `folder`/model.pt; threshold, smoothing: of its scores (see smoothing.decide).

    A model.onnx in the folder is of the model before, and removed.
    """
    (Path(folder) / model_file.ONNX_FILE).unlink(missing_ok=True)
    model_file.write(
        folder, KIND, model, network=model.config, stft=model.stft.config, threshold=float(threshold), smoothing=smoothing
    )


def load_model(folder: str | Path, device: str | torch.device = "cpu") -> SadNetwork:
    """The SadNetwork of `folder`, in evaluation mode, with `threshold` and `smoothing` as attributes.

    folder: of a model.pt, or that file. UserError for any other.
    """
    return model_file.read(folder, KIND, _build).to(device).eval()


def _build(content):
    model = SadNetwork(NetworkConfig(**content["network"]), StftConfig(**content["stft"]))
    model.load_state_dict(content["model"])
    model.threshold, model.smoothing = content["threshold"], content["smoothing"]
    if model.smoothing not in SMOOTHINGS:
        raise UserError(f"smoothing {model.smoothing!r}; expected one of {', '.join(SMOOTHINGS)}")
    return model
