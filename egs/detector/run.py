#!/usr/bin/env python3
"""The speech detector that comes with pyspeech: a broad corpus to one small network with two operating points."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.engine.recipe import Recipe, requirement
from pyspeech.sad.config import DatasetConfig, NetworkConfig, StftConfig
from pyspeech.training.config import TrainConfig


@dataclass
class Config:
    train_minutes: list[int] = field(default_factory=lambda: [300, 300, 240])  # of radio, of close speech, without speech
    dev_minutes: list[int] = field(default_factory=lambda: [25, 30, 60])
    eval_minutes: list[int] = field(default_factory=lambda: [25, 30, 60])
    # The share of dev's recordings without speech that an operating point may call speech: where nobody speaks, people want
    # silence, which the DCF, for the most part of recordings with speech, does not see to.
    quiet_limit: float = 0.01
    features: StftConfig = field(default_factory=StftConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    data: DatasetConfig = field(default_factory=DatasetConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def check(self):
        """Raise UserError for options that make no sense, or not together; nested ones have been checked."""
        require = requirement("", self)
        for name in ("train_minutes", "dev_minutes", "eval_minutes"):
            require(name, len(getattr(self, name)) == 3 and min(getattr(self, name)) >= 1, "three numbers, 1 or more each")
        require("quiet_limit", 0 <= self.quiet_limit <= 1, "0 to 1")
        require("features.sampling_rate", self.features.sampling_rate == 8000, "8000 Hz, as all recordings are read")
        require("network.temporal", self.network.temporal == "rnn", "rnn, the network that is shipped")
        require("data.crop_seconds", self.data.crop_seconds >= self.features.frame_shift, "at least features.frame_shift")
        require("train.minimize", self.train.minimize == "dcf", "dcf, which is what is measured on dev")


recipe = Recipe("Speech detector of pyspeech", Config, Path(__file__).resolve().with_name("conf"), "release")


@recipe.stage(config=["train_minutes", "dev_minutes", "eval_minutes"], outputs=["corpus"], cpus=2, resumable=True)
def prepare(exp, conf):
    """Simulated radio, close speech and recordings without speech; the labels of words and of turns."""
    from local.detector import scenes as speech_scenes
    from local.fearless import ami_clips

    speech_scenes.prepare(exp.dir / "corpus", {name: getattr(conf, f"{name}_minutes") for name in speech_scenes.SPLITS})
    ami_clips.prepare(exp.dir / "corpus")


@recipe.stage(
    config=["features", "network", "data", "train"],
    inputs=["corpus"],
    outputs=["training/rnn"],
    gpus=1,
    hours=12,
    resumable=True,
    trains=True,
)
def train(exp, conf):
    """Train the network on the labels of words; the weights are chosen on dev."""
    from steps.sad.train import train_network

    train_network(exp, conf, conf.network, exp.dir / "training/rnn", "none", collars=[0.0])


@recipe.stage(inputs=["corpus", "training/rnn/model.pt"], outputs=["frame_scores"], resumable=True)
def decode(exp, conf):
    """Scores of the network for every frame of dev and the eval sets."""
    from steps.sad.score import score_networks

    score_networks(exp, ["rnn"])


@recipe.stage(config=["features", "quiet_limit"], inputs=["corpus", "frame_scores"], outputs=["points.json"])
def tune(exp, conf):
    """Threshold, smoothing and least lengths of the operating points, from dev."""
    from steps.sad.points import choose_points

    choose_points(exp, conf.features, conf.quiet_limit)


@recipe.stage(inputs=["training/rnn/model.pt", "points.json"], outputs=["models/detector/model.onnx"])
def export(exp, conf):
    """The network with its operating points as one ONNX file, which is what is shipped."""
    from steps.sad.points import export

    export(exp, f"Made by {exp.command}.")


@recipe.stage(
    config=["features"], inputs=["corpus", "frame_scores", "points.json"], outputs=["results.json", "RESULTS.md"], version=2
)
def results(exp, conf):
    """The tables, with the statistical system beside."""
    from steps.sad.points import report

    report(exp, conf.features)


if __name__ == "__main__":
    recipe.main()
