#!/usr/bin/env python3
"""Speech activity detection on Apollo 11 radio (Heitkaemper et al. 2020): corpus to table of results."""
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment  # noqa: E402

ensure_environment()
from pyspeech.pipeline import Recipe  # noqa: E402
from pyspeech.sad.config import DatasetConfig, NetworkConfig, StatisticalConfig, StftConfig  # noqa: E402
from pyspeech.training.config import TrainConfig  # noqa: E402

here = Path(__file__).resolve().parent
NETWORKS = ["cnn", "rnn", "seg_rnn"]
COLLARS = [0.0, 0.5]  # seconds: without, and the Fearless Steps default


@dataclass
class Config:
    corpus: str = "mini"  # mini, or the folder of a Fearless Steps release (phase 1, 2 or 4)
    skip_bad: bool = False  # leave out files that fail the corpus checks instead of stopping
    minutes: list = field(default_factory=lambda: [80, 20, 30])  # of simulated train, dev and eval streams
    simulated: str = "auto"  # simulated streams beside a real corpus: always, never, or auto (where train is under 2 h)
    statistical: StatisticalConfig = field(default_factory=StatisticalConfig)
    features: StftConfig = field(default_factory=StftConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    data: DatasetConfig = field(default_factory=DatasetConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def default_profile(overrides):
    """The mini corpus: mini. A real corpus: full, the paper's settings, where there is a GPU to train them on."""
    on_gpu = Path("/dev/nvidia0").exists()
    return "full" if overrides.get("corpus", "mini") != "mini" and on_gpu else "mini"


def experiment_name(conf, profile):
    return profile if conf.corpus == "mini" else f"{Path(conf.corpus).resolve().name}-{profile}"


recipe = Recipe("Fearless Steps speech activity detection", Config, conf=here / "conf",
                profile=default_profile, name=experiment_name)


@recipe.stage(config=["corpus", "skip_bad", "minutes", "simulated"], outputs=["corpus"], cpus=2)
def prepare(exp, conf):
    """Corpus to Lhotse manifests and reference labels."""
    from steps.sad_corpus import prepare_fearless
    prepare_fearless(conf, exp.dir / "corpus", exp.log)
