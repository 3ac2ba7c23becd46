"""All that encoding or resynthesis needs in one file: the model, its speakers, and how features are computed.

folder/model.pt                                   a VQ-VAE or an inverter
folder/vqvae/model.pt, folder/inverter/model.pt   a pair: an inverter and the VQ-VAE whose codes it speaks
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from pyspeech.compat import load_checkpoint, save_checkpoint
from pyspeech.errors import UserError
from pyspeech.features.config import MfccConfig
from pyspeech.features.fbank import GlobalStats
from pyspeech.files import model_folders
from pyspeech.units.config import InverterConfig, VqVaeConfig
from pyspeech.units.inverter import Inverter
from pyspeech.units.vqvae import VqVae

MODEL_FILE = "model.pt"
PAIR = ("vqvae", "inverter")  # its folders, and the kinds of their models


@dataclass
class Bundle:
    """What `load_model` gives.

    model: VqVae or Inverter; speakers: names in the order of their indices; features: MfccConfig, of the VQ-VAE's input
    and the inverter's magnitudes; stats: GlobalStats of a corpus, or None where features.needs_stats is false
    """

    model: torch.nn.Module
    speakers: list
    features: MfccConfig
    stats: GlobalStats

    def speaker_index(self, name):
        """UserError for a speaker that the model does not know."""
        if name not in self.speakers:
            raise UserError(f"speaker '{name}': the model knows {', '.join(self.speakers)}")
        return self.speakers.index(name)


def save_model(folder, model, speakers, features, stats=None):
    """Write `folder`/model.pt, whole or not at all; the arguments are what `load_model` gives back."""
    _check(model, speakers, features, stats)
    content = {
        "kind": "inverter" if isinstance(model, Inverter) else "vqvae",
        "model": {name: value.cpu() for name, value in model.state_dict().items()},
        "config": asdict(model.config),
        "speakers": list(speakers),
        "features": asdict(features),
        "stats": None if stats is None else stats.to_dict(),
    }
    save_checkpoint(Path(folder) / MODEL_FILE, content)


def load_model(folder, kind, device="cpu"):
    """The Bundle of `folder`/model.pt: model on `device`, in evaluation mode. UserError for any other file.

    kind: "vqvae" or "inverter", which the file has to be.
    """
    path = Path(folder) / MODEL_FILE
    content = load_checkpoint(path, map_location="cpu")
    found = content.get("kind") if isinstance(content, dict) else None
    if found != kind:
        raise UserError(f"{path}: holds {f'a model of kind {found}' if found else 'no unit model'}; expected {kind}")
    try:
        speakers, features = content["speakers"], MfccConfig(**content["features"])
        stats = None if content["stats"] is None else GlobalStats.from_dict(content["stats"])
        if kind == "inverter":
            model = Inverter(InverterConfig(**content["config"]), content["model"]["codebook"], len(speakers))
        else:
            model = VqVae(VqVaeConfig(**content["config"]), len(speakers))
        model.load_state_dict(content["model"])
        _check(model, speakers, features, stats)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, UserError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path}: not a {kind} of this version ({type(error).__name__}: {reason}); "
            "train it again, or use the version of the code that made it"
        ) from error
    return Bundle(model.to(device).eval(), speakers, features, stats)


def save_pair(folder, vqvae, inverter):
    """Write the Bundles of an inverter and of the VQ-VAE whose codes it speaks. UserError where they are no pair."""
    check_pair(vqvae, inverter)
    for kind, bundle in zip(PAIR, (vqvae, inverter)):
        save_model(Path(folder) / kind, bundle.model, bundle.speakers, bundle.features, bundle.stats)


def load_pair(folder, device="cpu"):
    """The Bundles (VQ-VAE, inverter) that `save_pair` wrote. UserError where that is not what `folder` holds."""
    pair = tuple(load_model(Path(folder) / kind, kind, device) for kind in PAIR)
    try:
        check_pair(*pair)
    except UserError as error:
        raise UserError(f"{folder}: {error}; make the two again") from None
    return pair


def find_models(folder, kind):
    """A tool's --model, `folder`, where it holds what is asked for; otherwise UserError that lists the folders that do.

    kind: "pair", or "vqvae": one of its own or of a pair.
    """
    folder = Path(folder)
    if _holds(folder, kind):
        return folder
    if not folder.is_dir():
        raise UserError(f"--model {folder}: no such folder")
    found = {inside.parent if inside.name in PAIR else inside for inside in [*model_folders(folder), folder]}
    found = [str(inside) for inside in sorted(found) if _holds(inside, kind)]
    what = "VQ-VAE with its inverter (vqvae/model.pt, inverter/model.pt)" if kind == "pair" else "VQ-VAE (model.pt)"
    raise UserError(
        f"--model {folder}: no {what} in it; "
        + (f"choose one of {', '.join(found)}" if found else "expected a folder that egs/zerospeech/run.py made")
    )


def _holds(folder, kind):
    pair = [(folder / part / MODEL_FILE).is_file() for part in PAIR]
    return all(pair) if kind == "pair" else pair[0] or (folder / MODEL_FILE).is_file() and folder.name != PAIR[1]


def load_vqvae(folder, device="cpu"):
    """The Bundle of the VQ-VAE in `folder`: of a pair, or on its own."""
    of_pair = Path(folder) / "vqvae"
    return load_model(of_pair if (of_pair / MODEL_FILE).is_file() else folder, "vqvae", device)


def check_pair(vqvae, inverter):
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
