#!/usr/bin/env python3
"""Speech activity detection on Apollo 11 radio (Heitkaemper et al. 2020): corpus to table of results."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.engine.recipe import Recipe, folder_or, stages_at_once
from pyspeech.sad.config import DatasetConfig, GridConfig, NetworkConfig, StatisticalConfig, StftConfig
from pyspeech.training.config import TrainConfig
from steps.sad.options import check_options, if_grid, network_options
from steps.sad.systems import FIXED, NETWORKS, TUNED, VOTES, pattern


@dataclass
class Config:
    corpus: str = folder_or("mini", what="a Fearless Steps release")  # mini, or the folder of a release (phase 1, 2 or 4)
    skip_bad: bool = False  # leave out files that fail the corpus checks instead of stopping
    minutes: list[int] = field(default_factory=lambda: [80, 40, 30])  # of simulated train, dev and eval streams
    simulated: str = "auto"  # simulated streams beside a real corpus: always, never, or auto (where train is under 2 h)
    collars: list[float] = field(default_factory=lambda: [0.0, 0.5])  # seconds: a table, tuned for its own, of each
    statistical: StatisticalConfig = field(default_factory=StatisticalConfig)
    features: StftConfig = field(default_factory=StftConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    data: DatasetConfig = field(default_factory=DatasetConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    grid: GridConfig = field(default_factory=GridConfig)  # of Figure 7

    def check(self):
        """Raise UserError for options that make no sense, or not together; nested ones have been checked."""
        check_options(self)


recipe = Recipe("Apollo 11 speech detection", Config, Path(__file__).resolve().with_name("conf"), "mini", jobs=stages_at_once)


@recipe.stage(config=["corpus", "skip_bad", "minutes", "simulated"], outputs=["corpus"], cpus=2, version=2, resumable=True)
def prepare(exp, conf):
    """Corpus to Lhotse manifests and reference labels."""
    from steps.sad.corpus import prepare_fearless

    prepare_fearless(conf, exp.dir / "corpus", exp.log)


@recipe.stage(
    config=["statistical", "collars"],
    inputs=["corpus"],
    resumable=True,
    version=4,
    outputs=[
        f"hypotheses/{pattern(TUNED + FIXED)}",
        f"scores/{pattern(TUNED + FIXED)}.json",
        f"sweeps/{pattern(TUNED)}.json",
        "figures/statistical",
    ],
)
def statistical(exp, conf):
    """Statistical SAD, and a GMM baseline and WebRTC beside it, on every set; their rows of the table; Figures 2 and 3."""
    from steps.sad.untrained import detect_without_training

    detect_without_training(exp, conf.statistical, conf.collars)


for system in NETWORKS:

    @recipe.stage(
        name=f"train_{system}",
        about=f"Train the {system} network; the epoch is chosen on dev.",
        version=2,
        config=["features", "data", "train", "collars", *network_options(system)],
        inputs=["corpus"],
        cpus=2,
        outputs=[f"training/{system}"],
        gpus=1,
        hours=16 if system == "seg_rnn" else 12,
        resumable=True,
        trains=True,
    )
    def train(exp, conf, system=system):
        from steps.sad.train import train_system

        train_system(exp, conf, system)


@recipe.stage(
    inputs=["corpus", f"training/{pattern(NETWORKS)}/model.pt"],
    outputs=["frame_scores"],
    cpus=2,
    gpus=1,
    resumable=True,
    shards=4,
)
def decode(exp, conf):
    """Speech scores of every network for every frame of dev and the eval sets."""
    from steps.sad.score import score_networks

    score_networks(exp, NETWORKS)


@recipe.stage(
    config=["collars"],
    inputs=["corpus", "frame_scores", f"training/{pattern(NETWORKS)}/model.pt"],
    cpus=2,
    outputs=[
        f"models/{pattern(NETWORKS)}/model.pt",
        f"sweeps/{pattern([*NETWORKS, VOTES[1]])}.json",
        f"hypotheses/{pattern([*NETWORKS, *VOTES])}",
        f"scores/{pattern([*NETWORKS, *VOTES])}.json",
    ],
    version=4,
    resumable=True,
)
def tune(exp, conf):
    """Thresholds from dev (paper, Figure 6), the decisions at them and by majority voting, and their scores."""
    from steps.sad.score import tune_thresholds

    tune_thresholds(exp, NETWORKS, conf.collars)


@recipe.stage(
    config=["features", "data", "train", "network", "collars", "grid"],
    cpus=2,
    gpus=1,
    hours=144,
    inputs=["corpus", "training/seg_rnn/model.pt"],
    outputs=if_grid("training/grid", "grid.json"),
    trains=True,
    resumable=True,
    shards=8,
)
def grid(exp, conf):
    """Segment RNNs of other lengths and shifts (paper, Figure 7), measured on dev; each is kept once it is there."""
    from steps.sad.grid import train_grid

    train_grid(exp, conf)


@recipe.stage(inputs=["corpus", "models/{cnn,seg_rnn}/model.pt"], config=["statistical"], outputs=["speed.json"], version=2)
def speed(exp, conf):
    """Fraction of real time on one thread (paper, Table 3)."""
    from steps.sad.score import measure_speed

    measure_speed(exp, conf.statistical, ["cnn", "seg_rnn"])


@recipe.stage(
    inputs=if_grid("grid.json", always=["corpus", "{scores,sweeps}/*.json", "speed.json"]),
    outputs=if_grid("figures/grid.png", always=["results.json", "RESULTS.md", "figures/thresholds.png"]),
    config=["corpus", "collars", "grid"],
    version=3,
)
def results(exp, conf):
    """The tables and figures."""
    from steps.sad.results import report

    report(exp, conf)


if __name__ == "__main__":
    recipe.main()
