"""The options of training, as a plain dataclass that recipes embed in their configuration; it imports nothing heavy."""

import math
from dataclasses import dataclass

from pyspeech.errors import requirement


@dataclass
class TrainConfig:
    """Training options. A step is one update of the weights."""

    max_steps: int | None = None  # stop after this many steps, skipped ones included; null: no limit
    max_epochs: int | None = None  # stop after this many epochs; null: no limit; the first limit reached ends training
    patience: int | None = None  # stop after this many validations in a row without improvement; null: never
    lr: float = 1e-3  # peak learning rate of AdamW
    weight_decay: float = 0.0  # weight decay of AdamW on matrices and kernels; 0: off
    betas: tuple[float, float] = (0.9, 0.999)  # decay rates of AdamW's two moving averages, each from 0 to less than 1
    schedule: str = "constant"  # learning rate after the warm-up: constant, or cosine (falls to 0 at max_steps)
    warmup_steps: int = 0  # steps over which the learning rate rises linearly; 0: no warm-up
    clip_norm: float | None = 5.0  # scale gradients down to this total norm; null: off
    accumulate: int = 1  # batches per step over all processes; their gradients are averaged
    max_bad_steps: int = 20  # stop after this many steps in a row with a non-finite loss or gradient
    log_every: int = 50  # steps between log lines
    valid_every: int | None = None  # steps between validations; null: at the end of each epoch
    save_every: int = 500  # steps between checkpoints; each validation also writes one
    keep_checkpoints: int = 2  # number of checkpoints kept, at least 2
    minimize: str = "loss"  # validation metric by which the best weights are chosen
    average_best: int = 1  # average the weights of this many best validations; 1: only the best
    bf16: bool | None = None  # compute in bfloat16; null: on a GPU that supports it; a CPU without support uses float32
    seed: int = 42  # random seed of weights, batches and data augmentation; set by recipes with `seeds`
    # processes that read data; 0: the training process itself; null: by the number of cores, on a GPU
    num_workers: int | None = None

    # The weights do not depend on these, for pyspeech.engine.plan.
    without_effect = ("max_bad_steps", "log_every", "save_every", "keep_checkpoints", "num_workers")

    def __post_init__(self) -> None:
        # YAML has lists alone.
        self.betas = tuple(self.betas)  # pyright: ignore[reportAttributeAccessIssue]

    def check(self) -> None:
        """Raise UserError for the first option that makes no sense."""
        require = requirement("training", self)
        for name in ("accumulate", "max_bad_steps", "log_every", "save_every", "average_best"):
            require(name, getattr(self, name) >= 1, "at least 1")
        for name in ("max_steps", "max_epochs", "valid_every", "patience"):
            require(name, getattr(self, name) is None or getattr(self, name) >= 1, "at least 1, or null")
        require("warmup_steps", self.warmup_steps >= 0, "at least 0")
        require("num_workers", self.num_workers is None or self.num_workers >= 0, "at least 0, or null")
        require("seed", 0 <= self.seed < 2**63, "0 to 2^63 - 1")
        require("lr", math.isfinite(self.lr) and self.lr > 0, "a positive number")
        require("weight_decay", 0 <= self.weight_decay < math.inf, "0 or a positive number")
        require("betas", len(self.betas) == 2 and all(0 <= beta < 1 for beta in self.betas), "two numbers, 0 to less than 1")
        require("clip_norm", self.clip_norm is None or self.clip_norm > 0, "a positive number, or null")
        require("keep_checkpoints", self.keep_checkpoints >= 2, "at least 2, so that a damaged one can be replaced")
        require("schedule", self.schedule in ("constant", "cosine"), "constant or cosine")
        require("max_steps", self.max_steps is not None or self.schedule != "cosine", "a number, for schedule=cosine")
        require("max_steps", self.max_steps is not None or self.max_epochs is not None, "a number, or max_epochs set")


# Options that a run may be resumed with another value of; all others decide what the steps so far have led to.
CHANGEABLE = ("max_steps", "max_epochs", *TrainConfig.without_effect)
