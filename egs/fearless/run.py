#!/usr/bin/env python3
"""Speech activity detection on Apollo 11 radio (Heitkaemper et al. 2020): corpus to table of results."""
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import List

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.pipeline import Recipe, folder_or, requirement
from pyspeech.sad.config import DatasetConfig, NetworkConfig, StatisticalConfig, StftConfig
from pyspeech.training.config import TrainConfig
from steps.systems import check_fixed

COMMON = ["compress", "context_seconds", "channels", "outputs"]
NETWORKS = {  # and the network options that each depends on
    "cnn": [*COMMON, "cnn_channels"], "rnn": [*COMMON, "rnn_size", "rnn_merge"],
    "seg_rnn": [*COMMON, "rnn_size", "rnn_merge", "segment_length", "segment_shift"],
}
UNTRAINED = "{statistical,threshold,webrtc0,webrtc1,webrtc2,webrtc3}"
RATE = 8000  # Hz, of the corpora and so of every detector here


@dataclass
class Config:
    corpus: str = folder_or("mini", what="a Fearless Steps release")  # mini, or the folder of a release (phase 1, 2 or 4)
    skip_bad: bool = False  # leave out files that fail the corpus checks instead of stopping
    minutes: List[int] = field(default_factory=lambda: [80, 20, 30])  # of simulated train, dev and eval streams
    simulated: str = "auto"  # simulated streams beside a real corpus: always, never, or auto (where train is under 2 h)
    statistical: StatisticalConfig = field(default_factory=StatisticalConfig)
    features: StftConfig = field(default_factory=StftConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    data: DatasetConfig = field(default_factory=DatasetConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def check(self):
        """Raise UserError for options that make no sense, or not together; nested ones have been checked."""
        require = requirement("", self)
        require("simulated", self.simulated in ("always", "never", "auto"), "always, never or auto")
        for name in ("statistical", "features"):
            require(f"{name}.sampling_rate", getattr(self, name).sampling_rate == RATE, f"{RATE} Hz, as all streams are read")
        require("data.crop_seconds", self.data.crop_seconds >= self.features.frame_shift, "at least features.frame_shift")
        check_fixed(self, "network.temporal")
        require("minutes", len(self.minutes) == 3 and min(self.minutes) >= 1, "three numbers, 1 or more each")
        require("train.minimize", self.train.minimize == "dcf", "dcf, which is what is measured on dev")


recipe = Recipe("Fearless Steps speech activity detection", Config, Path(__file__).resolve().with_name("conf"), "mini")


@recipe.stage(config=["corpus", "skip_bad", "minutes", "simulated"], outputs=["corpus"], cpus=2)
def prepare(exp, conf):
    """Corpus to Lhotse manifests and reference labels."""
    from steps.sad.corpus import prepare_fearless
    prepare_fearless(conf, exp.dir / "corpus", exp.log)


@recipe.stage(config=["statistical"], inputs=["corpus"], resumable=True,
              outputs=[f"hypotheses/{UNTRAINED}", f"scores/{UNTRAINED}.json", "figures/statistical"])
def statistical(exp, conf):
    """Statistical SAD, and WebRTC beside it, on every set; their rows of the table; Figures 2 and 3."""
    from steps.sad.score import detect_without_training
    detect_without_training(exp, conf.statistical)


for system, own in NETWORKS.items():
    @recipe.stage(name=f"train_{system}", about=f"Train the {system} network; the epoch is chosen on dev.",
                  config=["features", "data", "train", *(f"network.{option}" for option in own)], inputs=["corpus"],
                  outputs=[f"training/{system}"], cpus=2, gpus=1, hours=12, resumable=True)
    def train(exp, conf, system=system):
        from steps.sad.train import train_network
        train_network(exp, conf, system)


@recipe.stage(inputs=["corpus", "training/{cnn,rnn,seg_rnn}/model.pt"], outputs=["frame_scores"],
              cpus=2, gpus=1, resumable=True)
def decode(exp, conf):
    """Speech scores of every network for every frame of dev and the eval sets."""
    from steps.sad.score import score_networks
    score_networks(exp, NETWORKS)


@recipe.stage(inputs=["corpus", "frame_scores", "training/{cnn,rnn,seg_rnn}/model.pt"],
              outputs=["models/{cnn,rnn,seg_rnn}/model.pt", "sweeps.json", "hypotheses/{cnn,rnn,seg_rnn}",
                       "scores/{cnn,rnn,seg_rnn}.json"])
def tune(exp, conf):
    """Thresholds from dev (paper, Figure 6), the decisions at them, and their scores."""
    from steps.sad.score import tune_thresholds
    tune_thresholds(exp, NETWORKS)


@recipe.stage(inputs=["corpus", "models/{cnn,seg_rnn}/model.pt"], config=["statistical"], outputs=["speed.json"])
def speed(exp, conf):
    """Fraction of real time on one thread (paper, Table 3)."""
    from steps.sad.score import measure_speed
    measure_speed(exp, conf.statistical, ["cnn", "seg_rnn"])


@recipe.stage(inputs=["corpus", "scores/*.json", "sweeps.json", "speed.json"], config=["corpus"],
              outputs=["results.json", "RESULTS.md", "figures/thresholds.png"])
def results(exp, conf):
    """The tables and figures."""
    from steps.sad.results import report
    report(exp, conf)


if __name__ == "__main__":
    recipe.main()
