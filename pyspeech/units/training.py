"""Training steps of the VQ-VAE (Tjandra et al. 2020, equations 7, 9 and 10) and of the inverter (14).

The likelihood of equation 7 is a Gaussian's, so that its logarithm is the squared distance. The loss is the mean over the
frames and the values of a frame:

    L = (|x - x'|^2 + gamma |z - sg(e)|^2 + lambda |z_t - z_t+1|^2) / F

each term averaged over what it is taken of (frames; codes; pairs of codes), so that neither the length of the utterances
nor the stride changes the balance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pyspeech.compat import autocast
from pyspeech.errors import UserError
from pyspeech.units.inverter import compress
from pyspeech.units.layers import length_mask
from pyspeech.units.vqvae import mean_square

if TYPE_CHECKING:
    from pyspeech.units.inverter import Inverter
    from pyspeech.units.vqvae import VqVae


class VqVaeTraining(torch.nn.Module):
    """Training of a VQ-VAE by pyspeech.training.Trainer, with `compute_loss`."""

    def __init__(self, vqvae: VqVae) -> None:
        super().__init__()
        self.vqvae = vqvae

    def forward(self, batch: dict[str, Any]) -> tuple[torch.Tensor, dict[str, float]]:
        """batch: dict of tensors as UnitDataset makes them -> (loss, values to log)."""
        config = self.vqvae.config
        _, parts = self.vqvae(batch["features"], batch["lengths"], batch["speakers"], batch.get("targets"))
        terms = parts["reconstruction"] + config.commitment * parts["commitment"] + config.smoothing * parts["smoothing"]
        values = {name: float(torch.as_tensor(value).detach()) for name, value in parts.items()}
        values["reconstruction"] /= config.features
        return terms / config.features, values


class InverterTraining(torch.nn.Module):
    """Training of an inverter by pyspeech.training.Trainer, with `compute_loss`. vqvae: a trained VqVae, which gives the
    codes.

    The VQ-VAE, on the inverter's device, is not part of the model: it is neither trained, moved nor saved with it.
    """

    def __init__(self, inverter: Inverter, vqvae: VqVae) -> None:
        super().__init__()
        if inverter.config.repeat != vqvae.config.stride:
            raise UserError(
                f"inverter option repeat={inverter.config.repeat}: expected {vqvae.config.stride}, the stride of the VQ-VAE"
            )
        self.inverter = inverter
        self.frozen = (vqvae.eval(),)  # in a tuple: torch does not find it there

    def forward(self, batch: dict[str, Any]) -> tuple[torch.Tensor, dict[str, float]]:
        """batch: as UnitDataset makes them with magnitudes -> (loss, values to log).

        "spectral_db" is the error of the linear magnitudes relative to their energy.
        """
        config, target = self.inverter.config, batch["magnitudes"]
        with autocast(target.device, enabled=False):  # the codes that synthesis will have
            codes, code_lengths = self.frozen[0].encode(batch["features"], batch["lengths"])
        predicted = self.inverter(codes, code_lengths, batch["speakers"])[:, : target.shape[1]]
        mask = length_mask(batch["lengths"], target.shape[1])
        loss = mean_square(predicted - compress(target, config), mask) / config.bins
        with torch.no_grad():
            linear = predicted.clamp(min=0).pow(1 / config.power)
            error = mean_square(linear - target, mask) / mean_square(target, mask).clamp(min=1e-20)
        return loss, {"spectral_db": 10 * float(error.clamp(min=1e-10).log10())}


def compute_loss(training: VqVaeTraining | InverterTraining, batch: dict[str, Any]) -> tuple[torch.Tensor, dict[str, float]]:
    """Compute the loss of a batch for pyspeech.training.Trainer."""
    loss, values = training(batch)
    return loss, {**values, "audio_seconds": batch["seconds"]}
