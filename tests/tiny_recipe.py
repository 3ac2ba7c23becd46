#!/usr/bin/env python3
"""A recipe of one small training, which tests run with --gpus and on a cluster.

TINY_SLOW: a file; while it is there, the loss of each batch takes 0.3 s. TINY_END: "<rank> <call> <signal>": this process of
several gets the signal when it computes its loss for the time `call`, from 1.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from pyspeech.engine import cluster
from pyspeech.engine.recipe import Recipe
from pyspeech.training.config import TrainConfig

cluster.POLL = 0.4  # seconds: a private Slurm may be asked often


@dataclass
class Config:
    train: TrainConfig = field(default_factory=lambda: TrainConfig(max_steps=12, accumulate=2, save_every=2, lr=0.1))


recipe = Recipe("Tiny recipe", Config, conf=Path(__file__).resolve().with_name("conf"))


@recipe.stage(config=["train"], outputs=["model.txt"], scratch=["training"], gpus=1, resumable=True, trains=True)
def train(exp, conf):
    """Train a line."""
    import torch

    from pyspeech.training import distributed
    from pyspeech.training.run import train as run_training

    rank, call, number = map(int, os.environ.get("TINY_END", "-1 0 0").split())
    calls = []

    class Numbers:
        def __getitem__(self, index):
            return torch.randn(4, 3) + index

    def loss(model, numbers):
        time.sleep(0.3 * os.path.exists(os.environ.get("TINY_SLOW", "")))
        calls.append(None)
        if distributed.world_size() > 1 and (rank, call) == (distributed.rank(), len(calls)):
            os.kill(os.getpid(), number)
        return (torch.dropout(model(numbers), 0.5, True) - 1).square().mean(), {}

    folder = exp.dir / "training"
    model = run_training(lambda: torch.nn.Linear(3, 1), Numbers(), list(range(5)), loss, conf.train, folder, log=exp.log)
    if model is not None:
        weights = [value.hex() for parameter in model.parameters() for value in parameter.flatten().tolist()]
        (exp.dir / "model.txt").write_text("\n".join(weights), encoding="utf-8")


@recipe.stage(inputs=["model.txt"], outputs=["copy.txt"])
def copy(exp, conf):
    """Something that does not train."""
    (exp.dir / "copy.txt").write_text((exp.dir / "model.txt").read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    recipe.main()
