"""A training from a model's making to its result, as all recipes set it up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from pyspeech.compat import default_device
from pyspeech.engine.place import from_environment
from pyspeech.errors import UserError
from pyspeech.training import distributed
from pyspeech.training.data import BatchLoader, choose_workers
from pyspeech.training.optimization import make_optimizer
from pyspeech.training.randomness import seed_everything
from pyspeech.training.trainer import Trainer

if TYPE_CHECKING:
    from pathlib import Path

    from pyspeech.training.config import TrainConfig

Model = TypeVar("Model", bound=torch.nn.Module)


def train(
    make_model: Callable[[], Model],
    dataset: Any,
    sampler: Any,
    compute_loss: Callable[[Any, Any], tuple[torch.Tensor, dict[str, float]]],
    config: TrainConfig,
    folder: str | Path,
    validate: Callable[[Any], dict[str, float]] | None = None,
    log: logging.Logger | None = None,
    choose_after: int = 0,
) -> Model | None:
    """The trained model, a torch module, on the GPU where there is one; goes on from the newest checkpoint in `folder`.

    make_model: make_model() gives a new module; its random numbers follow from config.seed. dataset, sampler: as of
    BatchLoader; the others: as of Trainer.

    Where the environment says that this is one of several processes (pyspeech.training.distributed), they train together, and
    all but the first get None: what is made of the model is the first one's to make.
    """
    distributed.join(from_environment())
    if len(set(distributed.gather(str(folder)))) > 1:
        raise UserError(f"{folder}: other processes train in another folder; they need the same command and the same files")
    seed_everything(config.seed)
    model = make_model().to(default_device())
    workers = choose_workers(config.num_workers, log or logging.getLogger(__name__))
    batches = BatchLoader(dataset, sampler, config.seed, workers)
    optimizer = make_optimizer(model, config)
    Trainer(
        model, optimizer, batches, compute_loss, config, folder, validate=validate, log=log, choose_after=choose_after
    ).run()
    return model if distributed.rank() == 0 else None
