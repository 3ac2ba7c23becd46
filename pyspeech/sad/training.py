"""Training step of a SAD network (Heitkaemper et al. 2020, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.nn import functional

from pyspeech.compat import autocast

if TYPE_CHECKING:
    import torch

    from pyspeech.sad.networks import SadNetwork


def compute_loss(model: SadNetwork, batch: dict[str, Any]) -> tuple[torch.Tensor, dict[str, float]]:
    """Binary cross entropy, the mean over the frames that have a label (paper, section 3): (loss, values to log)."""
    targets, context = batch["targets"], model.context
    scores = model(batch["samples"], batch["valid"], context, context).float()
    labelled = batch["labelled"]
    with autocast(scores.device, enabled=False):  # CUDA's refuses this loss
        losses = functional.binary_cross_entropy(scores, targets, reduction="none")
    count = labelled.sum().clamp(min=1)
    loss = (losses * labelled).sum() / count
    correct = (((scores > 0.5) == (targets > 0.5)) & labelled).sum() / count
    seconds = labelled.sum().item() * model.stft.config.frame_shift
    return loss, {"accuracy": correct.item(), "audio_seconds": seconds}
