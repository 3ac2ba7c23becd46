#!/usr/bin/env python3
"""The speech detector that comes with pyspeech: a broad corpus to one small network with two operating points."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
from dataclasses import dataclass, field
from pathlib import Path

from pyspeech.engine.recipe import Recipe, list_of_folders
from pyspeech.sad.config import DatasetConfig, NetworkConfig, StftConfig
from pyspeech.training.config import TrainConfig
from steps.sad.bundled import check_options, decode, prepare, train, trained
from steps.sad.points import choose_points, export, report
from steps.systems import TRAINING


@dataclass
class Config:
    # minutes of training audio: radio, close speech, no speech
    train_minutes: list[int] = field(default_factory=lambda: [300, 300, 240])
    dev_minutes: list[int] = field(default_factory=lambda: [25, 30, 60])  # minutes of dev audio, likewise
    eval_minutes: list[int] = field(default_factory=lambda: [25, 30, 60])  # minutes of eval audio, likewise
    real: list[str] = list_of_folders("labelled recordings")  # folders of labelled recordings to add to the corpus
    # train, dev or eval: the set of all folders in real, or of each
    real_as: list[str] = field(default_factory=lambda: ["eval"])
    quiet_limit: float = 0.01  # highest false-alarm rate of an operating point on dev recordings without speech, 0 to 1
    features: StftConfig = field(default_factory=StftConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    data: DatasetConfig = field(default_factory=DatasetConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    check = check_options


recipe = Recipe("Speech detector of pyspeech", Config, Path(__file__).resolve().with_name("conf"), "release")

recipe.stage(
    config=["train_minutes", "dev_minutes", "eval_minutes", "real", "real_as"],
    outputs=["corpus"],
    cpus=2,
    resumable=True,
    version=3,
)(prepare)

recipe.stage(
    config=["features", "network", "data", "train"],
    inputs=["corpus"],
    outputs=lambda conf: [trained(conf)],
    **{**TRAINING, "cpus": 1, "hours": 12},
)(train)

recipe.stage(inputs=lambda conf: ["corpus", f"{trained(conf)}/model.pt"], outputs=["frame_scores"], resumable=True)(decode)

recipe.stage(
    name="tune", config=["features", "quiet_limit"], inputs=["corpus", "frame_scores"], outputs=["points.json"], version=2
)(choose_points)

recipe.stage(inputs=lambda conf: [f"{trained(conf)}/model.pt", "points.json"], outputs=["models/detector/model.onnx"])(export)

recipe.stage(
    name="results",
    config=["features"],
    inputs=["corpus", "frame_scores", "points.json"],
    outputs=["results.json", "RESULTS.md"],
    version=3,
)(report)

if __name__ == "__main__":
    recipe.main()
