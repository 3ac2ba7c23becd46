#!/usr/bin/env python3
"""Speech activity detection on Apollo 11 radio (Heitkaemper et al. 2020): corpus to table of results."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspeech.engine.recipe import Recipe, folder_or, list_of_folders, stages_at_once
from pyspeech.sad.config import DatasetConfig, GridConfig, NetworkConfig, StatisticalConfig, StftConfig
from pyspeech.sad.registry import NETWORKS
from pyspeech.training.config import TrainConfig
from steps.page import declare_page
from steps.sad.corpus import prepare
from steps.sad.grid import train_grid
from steps.sad.options import check_options, if_grid, network_options, scored, timed, trained, tuned
from steps.sad.results import report
from steps.sad.score import measure_speed, score_networks, tune_thresholds
from steps.sad.systems import FIXED, PAPER, TUNED, pattern
from steps.sad.train import train_system
from steps.sad.untrained import detect_without_training
from steps.systems import DECODING, TRAINING, if_used


@dataclass
class Config:
    corpus: str = folder_or("mini", what="a Fearless Steps release")  # mini (simulated), or the folder of a release (1, 2, 4)
    skip_bad: bool = False  # leave out files that fail the corpus checks instead of stopping
    minutes: list[int] = field(default_factory=lambda: [80, 40, 30])  # minutes of simulated train, dev and eval streams
    simulated: str = "auto"  # add simulated streams to a real corpus: always, never, or auto (less than 2 h of train)
    real: list[str] = list_of_folders("labelled recordings")  # folders of labelled recordings to add to the corpus
    real_as: list[str] = field(default_factory=lambda: ["eval"])  # train, dev or eval: the set of all folders in real, or each
    collars: list[float] = field(default_factory=lambda: [0.0, 0.5])  # seconds left unscored at boundaries; a table for each
    systems: list[str] = field(default_factory=lambda: list(PAPER))  # networks to train and compare
    statistical: StatisticalConfig = field(default_factory=StatisticalConfig)
    features: StftConfig = field(default_factory=StftConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    data: DatasetConfig = field(default_factory=DatasetConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    grid: GridConfig = field(default_factory=GridConfig)  # of Figure 7
    report: bool = True  # make the page report/index.html
    check = check_options


recipe = Recipe("Apollo 11 speech detection", Config, Path(__file__).resolve().with_name("conf"), "mini", jobs=stages_at_once)

recipe.stage(
    config=["corpus", "skip_bad", "minutes", "simulated", "real", "real_as"],
    outputs=["corpus"],
    cpus=2,
    resumable=True,
    version=4,
)(prepare)

recipe.stage(
    name="statistical",
    config=["statistical", "collars"],
    inputs=["corpus"],
    outputs=[*scored(TUNED + FIXED), f"sweeps/{pattern(TUNED)}.json", "figures/statistical"],
    resumable=True,
    version=5,
)(detect_without_training)

for system, network in NETWORKS.items():
    recipe.stage(
        name=f"train_{system}",
        about=f"Train the {system} network; the epoch is chosen on dev.",
        config=["features", "data", "train", "collars", *network_options(system)],
        inputs=if_used(system, "corpus"),
        outputs=if_used(system, f"training/{system}"),
        **TRAINING,
        hours=network.hours,
        version=2,
    )(partial(train_system, system=system))

recipe.stage(name="decode", config=["systems"], inputs=trained("corpus"), outputs=["frame_scores"], **DECODING)(score_networks)

recipe.stage(
    name="tune",
    config=["systems", "collars"],
    inputs=trained("corpus", "frame_scores"),
    outputs=tuned,
    cpus=2,
    resumable=True,
    version=4,
)(tune_thresholds)

recipe.stage(
    name="grid",
    config=["features", "data", "train", "network", "collars", "grid"],
    inputs=if_grid("corpus", "training/seg_rnn/model.pt"),
    outputs=if_grid("training/grid", "grid.json"),
    **TRAINING,
    hours=144,
    shards=8,
)(train_grid)

recipe.stage(
    name="speed",
    config=["statistical"],
    inputs=lambda conf: ["corpus", *(f"models/{system}/model.pt" for system in timed(conf))],
    outputs=["speed.json"],
    version=2,
)(measure_speed)

recipe.stage(
    name="results",
    config=["corpus", "systems", "collars", "grid"],
    inputs=if_grid("grid.json", always=["corpus", "{scores,sweeps}/*.json", "speed.json"]),
    outputs=if_grid("figures/grid.png", always=["results.json", "RESULTS.md", "figures/thresholds.png"]),
    version=4,
)(report)

declare_page(recipe, "corpus", "frame_scores", "hypotheses", "sweeps/*.json", tables="steps.sad.tables")

if __name__ == "__main__":
    recipe.main()
