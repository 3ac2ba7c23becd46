"""Model files with all that encoding or resynthesis needs: the model, its speakers, and how features are computed.

folder/model.pt                                   a VQ-VAE or an inverter
folder/vqvae/model.pt, folder/inverter/model.pt   a pair: an inverter and the VQ-VAE whose codes it speaks
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pyspeech import model_file
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.fbank import GlobalStats
from pyspeech.model_file import Kind
from pyspeech.units.config import INVERTER, VQVAE, InverterConfig, VqVaeConfig
from pyspeech.units.inverter import Inverter
from pyspeech.units.vqvae import VqVae

PAIR = (VQVAE, INVERTER)  # the kinds of its models, whose names their folders have
PAIR_FILES = tuple(f"{kind.name}/{model_file.MODEL_FILE}" for kind in PAIR)


@dataclass
class Bundle:
    """Result of `load_model`.

    model: VqVae or Inverter; speakers: names in the order of their indices; features: MfccConfig, of the VQ-VAE's input
    and the inverter's magnitudes; stats: GlobalStats of a corpus, or None where features.needs_stats is false
    """

    model: Any
    speakers: list
    features: MfccConfig
    stats: GlobalStats | None

    def speaker_index(self, name: str) -> int:
        """UserError for a speaker that the model does not know."""
        if name not in self.speakers:
            raise UserError(f"speaker '{name}': the model knows {', '.join(self.speakers)}")
        return self.speakers.index(name)


def save_model(
    folder: str | Path, model: VqVae | Inverter, speakers: Sequence[str], features: MfccConfig, stats: GlobalStats | None = None
) -> None:
    """Write `folder`/model.pt, whole or not at all; the arguments are what `load_model` gives back."""
    _check(model, speakers, features, stats)
    model_file.write(
        folder,
        INVERTER if isinstance(model, Inverter) else VQVAE,
        model,
        config=model.config,
        speakers=list(speakers),
        features=features,
        stats=None if stats is None else stats.to_dict(),
    )


def load_model(folder: str | Path, kind: Kind, device: str | torch.device = "cpu") -> Bundle:
    """The Bundle of `folder`: model on `device`, in evaluation mode.

    folder: of a model.pt, or that file; kind: VQVAE or INVERTER, which the file has to be. UserError for any other.
    """
    bundle = model_file.read(folder, kind, partial(_build, kind))
    bundle.model.to(device).eval()
    return bundle


def _build(kind, content):
    speakers, features = content["speakers"], MfccConfig(**content["features"])
    stats = None if content["stats"] is None else GlobalStats.from_dict(content["stats"])
    if kind == INVERTER:
        model = Inverter(InverterConfig(**content["config"]), content["model"]["codebook"], len(speakers))
    else:
        model = VqVae(VqVaeConfig(**content["config"]), len(speakers))
    model.load_state_dict(content["model"])
    _check(model, speakers, features, stats)
    return Bundle(model, speakers, features, stats)


def save_pair(folder: str | Path, vqvae: Bundle, inverter: Bundle) -> None:
    """Write the Bundles of an inverter and of the VQ-VAE whose codes it speaks. UserError where they are no pair."""
    check_pair(vqvae, inverter)
    for kind, bundle in zip(PAIR, (vqvae, inverter), strict=True):
        save_model(Path(folder) / kind.name, bundle.model, bundle.speakers, bundle.features, bundle.stats)


def load_pair(folder: str | Path, device: str | torch.device = "cpu") -> tuple[Bundle, Bundle]:
    """The Bundles (VQ-VAE, inverter) that `save_pair` wrote. UserError where that is not what `folder` holds."""
    vqvae, inverter = (load_model(Path(folder) / kind.name, kind, device) for kind in PAIR)
    try:
        check_pair(vqvae, inverter)
    except UserError as error:
        raise UserError(f"{folder}: {error}; make the two again") from None
    return vqvae, inverter


def load_vqvae(folder: str | Path, device: str | torch.device = "cpu") -> Bundle:
    """The Bundle of the VQ-VAE in `folder`: of a pair, or on its own."""
    of_pair = Path(folder) / VQVAE.name
    return load_model(of_pair if of_pair.is_dir() else folder, VQVAE, device)


def check_pair(vqvae: Bundle, inverter: Bundle) -> None:
    """UserError unless the inverter speaks the codes of this VQ-VAE, in time with them."""
    spectra = [bundle.features.magnitudes for bundle in (vqvae, inverter)]
    framings = {(spectrum.sampling_rate, spectrum.shift) for spectrum in spectra}
    if (
        not torch.equal(vqvae.model.codebook.cpu(), inverter.model.codebook.cpu())
        or inverter.model.config.repeat != vqvae.model.config.stride
        or len(framings) > 1
    ):
        raise UserError("the inverter was trained with another VQ-VAE")


def _check(model, speakers, features, stats):
    """UserError unless all these belong together."""
    if len(speakers) != model.num_speakers:
        raise UserError(f"{len(speakers)} speakers: the model has {model.num_speakers}")
    if isinstance(model, Inverter):
        found, expected = features.magnitudes.num_bins, model.config.bins
    else:
        found, expected = features.dim, model.config.features
    if found != expected:
        raise UserError(f"features of {found} values a frame: the model has {expected}")
    if features.needs_stats and stats is None:
        raise UserError("features are normalised by a corpus's mean and variance, and there is none")
