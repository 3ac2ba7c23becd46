#!/usr/bin/env python3
"""A small recipe that the engine's tests copy to a folder of their own and run; it stands in for one of egs/.

TOY_SLEEP: seconds that each step of a stage takes. TOY_HOLD: a file with the number of steps that `train` may do, which waits
for more then. TOY_FAIL: a way for `score` to fail.
"""

import os
import sys
import time
import types
from dataclasses import dataclass, field
from pathlib import Path

# The environment line would load torch in each of the many processes of these tests.
sys.modules["pyspeech.compat"] = types.SimpleNamespace(describe_environment=lambda: "Python of the tests")

from pyspeech.engine import cluster
from pyspeech.engine.recipe import Recipe, folder_or, requirement
from pyspeech.errors import UserError  # noqa: F401 (TOY_FAIL raises it)
from pyspeech.files import atomic_write

here = Path(__file__).resolve().parent
cluster.POLL = 0.4  # seconds: a private Slurm may be asked often


@dataclass
class OptimiserConfig:
    # fmt: off
    lr: float = 0.001  # learning rate of Adam
                       # after the warm-up
    # fmt: on

    def check(self):
        requirement("optimiser", self)("lr", self.lr > 0, "a positive number")


@dataclass
class TrainConfig:
    # how many updates
    # of the weights
    steps: int = 4
    workers: int = 0
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    without_effect = ("workers",)

    def check(self):
        requirement("training", self)("steps", self.steps >= 0, "at least 0")


@dataclass
class Config:
    corpus: str = folder_or("mini", what="a corpus")  # or the folder of a corpus
    collar: float = field(default=0.0, metadata={"help": "seconds around a boundary that do not count"})
    limit: int | None = None
    note: str = ""
    train: TrainConfig = field(default_factory=TrainConfig)

    def check(self):
        requirement("", self)("collar", self.collar >= 0, "at least 0")


recipe = Recipe("Toy recipe", Config, conf=here / "conf", profile="mini")


def step():
    time.sleep(float(os.environ.get("TOY_SLEEP", 0)))


def wait_for_leave(done):
    while "TOY_HOLD" in os.environ and done >= int(Path(os.environ["TOY_HOLD"]).read_text() or 0):
        time.sleep(0.02)


@recipe.stage(config=["corpus"], outputs=["manifests/{train,dev}.txt"], cpus=2)
def prepare(exp, conf):
    """Corpus to manifests."""
    (exp.dir / "manifests").mkdir(exist_ok=True)
    for split in ("train", "dev"):
        step()
        (exp.dir / "manifests" / f"{split}.txt").write_text(f"{conf.corpus} {split}\n", encoding="utf-8")


@recipe.stage(
    config=["train"],
    inputs=["manifests/{train,dev}.txt"],
    outputs=["model/best.txt"],
    scratch=["model"],
    gpus=1,
    hours=12,
    resumable=True,
)
def train(exp, conf):
    """Train; goes on from the newest step.

    The history has a line for each step, so that a step done twice, left out or taken over shows.
    """
    (exp.dir / "model").mkdir(exist_ok=True)
    state = exp.dir / "model" / "history.txt"
    history = state.read_text(encoding="utf-8") if state.exists() else ""
    assert exp.fresh <= (not history), "partial state was left for a stage that starts from nothing"
    while history.count("\n") < conf.train.steps:
        wait_for_leave(history.count("\n"))
        step()
        data = (exp.dir / "manifests" / "train.txt").read_text(encoding="utf-8")
        history += f"step {history.count(chr(10))} lr {conf.train.optimiser.lr} {data}"
        with atomic_write(state) as stream:
            stream.write(history)
        exp.log.info("step %d", history.count("\n"))
    with atomic_write(exp.dir / "model" / "best.txt") as stream:
        stream.write(history)


@recipe.stage(config=["collar"], inputs=["model/best.txt", "manifests/dev.txt"], outputs=["scores/*.txt", "plots"])
def score(exp, conf):
    """The scores."""
    for folder in ("scores", "plots"):
        (exp.dir / folder).mkdir(exist_ok=True)
    if os.environ.get("TOY_FAIL"):
        exec(os.environ["TOY_FAIL"])
    for name in ("a", "b"):
        step()
        text = f"{name} {conf.collar} {(exp.dir / 'model/best.txt').read_text()}"
        (exp.dir / "scores" / f"{name}.txt").write_text(text, encoding="utf-8")
        (exp.dir / "plots" / f"{name}.png").write_text(text, encoding="utf-8")


@recipe.stage(inputs=["scores/{a,b}.txt"], outputs=["results.txt"])
def table(exp, conf):
    """The table of results."""
    text = "".join((exp.dir / "scores" / f"{name}.txt").read_text() for name in ("a", "b"))
    with atomic_write(exp.dir / "results.txt") as stream:
        stream.write(text)
    print(text, end="")


if __name__ == "__main__":
    recipe.main()
