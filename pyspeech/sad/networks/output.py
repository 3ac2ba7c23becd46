"""Output layer: from a temporal layer to scores."""

import torch

from pyspeech.compat import full_precision

SQUASH = 1e-3  # scores lie in SQUASH to 1 - SQUASH: the loss stays finite whatever the labels


def highest_score(logits: torch.Tensor) -> torch.Tensor:
    """(B, T, outputs) -> (B, T): the highest output's sigmoid, squashed to SQUASH to 1 - SQUASH.

    In bf16 the sigmoid of 6.3 would be 1, and its gradient 0.
    """
    return SQUASH + (1 - 2 * SQUASH) * torch.sigmoid(full_precision(logits).amax(dim=2))
