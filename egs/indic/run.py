#!/usr/bin/env python3
"""Streaming multilingual RNN-T that needs no language label (Joshi et al. 2021): corpus to the paper's tables."""
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import List

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.errors import UserError
from pyspeech.experiment.config import folder_or
from pyspeech.experiment.process import has_gpu, stages_at_once
from pyspeech.features.config import FbankConfig, SpecAugmentConfig
from pyspeech.pipeline import Recipe
from pyspeech.training.config import TrainConfig
from pyspeech.transducer.config import LossConfig, SearchConfig, TransducerConfig
from steps.systems import if_used

here = Path(__file__).resolve().parent
# What each system is trained from; monolingual and finetuned systems are one model a language.
SEEDS = {"monolingual": None, "vanilla": None, "onehot": None, "multi_softmax": None, "multi_softmax_lsp": None,
         "multi_softmax_lid": None, "onehot_finetuned": "onehot", "multi_softmax_finetuned": "multi_softmax"}
MADE = ("mini", "prompts")  # corpora that are downloaded or synthesised
KINDS = ("mucs", "fleurs", "commonvoice", "cmu_indic")


@dataclass
class DataConfig:
    batch_seconds: float = 400.0  # of a minibatch, padding included
    max_utterances: int = 128  # of a minibatch
    minibatches: int = 1  # of a language each, that make a step; the paper does not say
    speeds: List[float] = field(default_factory=list)  # copies of the training data at these speeds, such as 0.9 and 1.1
    augment: bool = True  # SpecAugment


@dataclass
class Config:
    corpus: str = folder_or(*MADE)  # mini (synthetic), prompts (real voices), or the folder of a corpus
    kind: str = "mucs"  # the layout of that folder: mucs (also Microsoft's), fleurs, commonvoice or cmu_indic
    languages: List[str] = field(default_factory=list)  # codes such as hi-IN; empty: all that the corpus has
    scale: float = 1.0  # of the number of utterances of corpus=mini and prompts
    skip_bad: bool = False  # leave out any number of bad utterances instead of stopping at more than a few
    units: str = "grapheme"  # or sentencepiece
    pieces: int = 200  # symbols a language, for units=sentencepiece
    systems: List[str] = field(default_factory=lambda: list(SEEDS))  # to train and compare
    features: FbankConfig = field(default_factory=FbankConfig)
    specaugment: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    model: TransducerConfig = field(default_factory=TransducerConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)  # of the multilingual systems
    monolingual_steps: float = 0.5  # of train.max_steps, for each monolingual system,
    monolingual_lr: float = 1.0  # whose learning rate is this share of train.lr
    finetune_steps: float = 0.2  # and for each finetuned one,
    finetune_lr: float = 0.5  # whose learning rate is this share of train.lr
    search: SearchConfig = field(default_factory=SearchConfig)
    stop_after: List[int] = field(default_factory=lambda: [100, 30, 10])  # tau in encoder frames (Table 7) ...
    stop_below: List[float] = field(default_factory=lambda: [0.2, 0.5])  # ... and s_th

    def __post_init__(self):
        if self.corpus not in MADE and not Path(self.corpus).is_dir():
            raise UserError(f"corpus={self.corpus}: no such folder; expected mini, prompts, or the folder of a corpus")
        if self.kind not in KINDS:
            raise UserError(f"kind={self.kind}: expected one of {', '.join(KINDS)}")
        if self.units not in ("grapheme", "sentencepiece"):
            raise UserError(f"units={self.units}: expected grapheme or sentencepiece")
        for system in self.systems:
            if system not in SEEDS:
                raise UserError(f"systems: no system {system}; expected some of {', '.join(SEEDS)}")
            if SEEDS[system] and SEEDS[system] not in self.systems:
                raise UserError(f"systems: {system} is trained from {SEEDS[system]}, which is not among them")
        for name in ("monolingual_steps", "monolingual_lr", "finetune_steps", "finetune_lr"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UserError(f"{name}={getattr(self, name)}: expected a positive number")
        for part in (self.features, self.specaugment, self.model, self.train, self.search):
            part.check()


def default_profile(overrides):
    """The made corpora: mini. A real corpus: full, the paper's sizes, where there is a GPU to train them on."""
    return "full" if overrides.get("corpus", "mini") not in MADE and has_gpu() else "mini"


def experiment_name(conf, profile):
    return profile if conf.corpus == "mini" else f"{Path(conf.corpus).resolve().name}-{profile}"


recipe = Recipe("Streaming multilingual RNN-T", Config, conf=here / "conf", profile=default_profile, name=experiment_name,
                jobs=stages_at_once())


@recipe.stage(config=["corpus", "kind", "languages", "scale", "skip_bad"], outputs=["corpus"], cpus=2)
def prepare(exp, conf):
    """Corpus to Lhotse manifests, one cut an utterance."""
    from steps.asr.corpus import prepare_corpus
    prepare_corpus(conf, exp.dir / "corpus", exp.log)


@recipe.stage(config=["units", "pieces"], inputs=["corpus"], outputs=["units"])
def units(exp, conf):
    """Output symbols of every language and their union."""
    from steps.asr.corpus import make_units
    make_units(conf, exp.dir / "corpus", exp.dir / "units", exp.log)


@recipe.stage(config=["features", "data.speeds"], inputs=["corpus"], outputs=["features"], cpus=2)
def features(exp, conf):
    """Log-mel frames for all trainings, their mean and variance."""
    from steps.asr.corpus import compute_features
    compute_features(conf, exp.dir / "corpus", exp.dir / "features", exp.log)


def stages_of(system, seed):
    part = "finetune" if seed else "monolingual"
    own = [f"{part}_steps", f"{part}_lr"] if seed or system == "monolingual" else []

    @recipe.stage(name=f"train_{system}", config=["specaugment", "model", "loss", "data", "train", *own],
                  inputs=if_used(system, "corpus", "units", "features", *([f"models/{seed}"] if seed else [])),
                  outputs=if_used(system, f"models/{system}"), scratch=if_used(system, f"training/{system}"),
                  cpus=2, gpus=1, hours=48, resumable=True)
    def train(exp, conf):
        from steps.asr.train import train_system
        train_system(exp, conf, system, seed)
    train.__doc__ = f"Train {system}" + (f" from {seed}." if seed else "; the epoch is chosen on dev.")

    @recipe.stage(name=f"decode_{system}", config=["search"],
                  inputs=if_used(system, "corpus", f"models/{system}"),
                  outputs=if_used(system, f"decoded/{system}", f"scores/{system}.json"), cpus=2, gpus=1, resumable=True)
    def decode(exp, conf):
        from steps.asr.score import decode_system
        decode_system(exp, conf, system)
    decode.__doc__ = f"Recognise the test sets with {system}; its row of the tables."


for name, seed_of in SEEDS.items():
    stages_of(name, seed_of)


@recipe.stage(config=["stop_after", "stop_below"], inputs=if_used("multi_softmax_lid", "decoded/multi_softmax_lid"),
              outputs=if_used("multi_softmax_lid", "early_stopping.json"))
def early_stopping(exp, conf):
    """The trade-off between WER and active decoders (Table 7), from the posteriors that were decoded with."""
    from steps.asr.score import stop_early
    stop_early(exp, conf, "multi_softmax_lid")


@recipe.stage(config=["corpus", "systems", "features", "model"],
              inputs=lambda conf: ["corpus", "units", *(f"scores/{name}.json" for name in conf.systems),
                                   *if_used("multi_softmax_lid", "early_stopping.json")(conf)],
              outputs=["results.json", "RESULTS.md", "figures"])
def results(exp, conf):
    """The paper's tables and the trade-off plot."""
    from steps.asr.results import report
    report(exp, conf)


if __name__ == "__main__":
    recipe.main()
