"""The optimiser and the learning rate schedules that TrainConfig describes."""

import math

import torch

from pyspeech.training.config import TrainConfig


def make_optimizer(model: torch.nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """AdamW with the learning rate, betas and weight decay of `config`.

    Matrices and kernels decay; biases and the scales of normalisation do not.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in trained if parameter.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [parameter for parameter in trained if parameter.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=config.lr, betas=config.betas)


def learning_rate_factor(config: TrainConfig, step: int) -> float:
    """Factor on `config.lr` at `step` (from 0): linear warm-up, then constant or half a cosine to 0."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    if config.schedule == "cosine":
        falling = max(1, config.max_steps - config.warmup_steps)  # pyright: ignore[reportOptionalOperand]
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - config.warmup_steps) / falling)))
    return 1.0
