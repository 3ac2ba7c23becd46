"""The options of training, as a plain dataclass that recipes embed in their configuration; it imports nothing heavy."""

import math
from dataclasses import dataclass

from pyspeech.errors import requirement


@dataclass
class TrainConfig:
    """How to train. A step is one update of the weights; `None` switches an option off unless stated otherwise."""

    max_steps: int | None = None  # the end of training, skipped steps included, or ...
    max_epochs: int | None = None  # ... after this many epochs: whichever comes first
    patience: int | None = None  # or after this many validations in a row without a new best
    lr: float = 1e-3
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: str = "constant"  # or "cosine": down to 0 at max_steps
    warmup_steps: int = 0  # the learning rate rises linearly over these steps, under either schedule
    clip_norm: float | None = 5.0  # total gradient norm at most this
    accumulate: int = 1  # batches a step, of all processes together; their gradients are averaged
    max_bad_steps: int = 20  # stop after this many steps in a row with a non-finite loss or gradient
    log_every: int = 50  # steps
    valid_every: int | None = None  # steps; None: at the end of each epoch
    save_every: int = 500  # steps; a checkpoint is also written after each validation
    keep_checkpoints: int = 2
    minimize: str = "loss"  # the validation metric that says which weights are best
    average_best: int = 1  # the result is the mean of this many best weights
    bf16: bool | None = None  # None: on a GPU with instructions for it; a CPU without any never does
    seed: int = 42
    num_workers: int | None = None  # processes that read data; 0: the training process itself; None: by the cores, on a GPU

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
