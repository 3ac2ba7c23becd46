#!/usr/bin/env python3
"""Streaming multilingual RNN-T that needs no language label (Joshi et al. 2021): corpus to the paper's tables."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspeech.asr.config import ContextConfig, DataConfig, LossConfig, SearchConfig, TransducerConfig
from pyspeech.engine.recipe import Recipe, folder_or, stages_at_once
from pyspeech.features.config import FbankConfig, SpecAugmentConfig
from pyspeech.text.tags import DEFAULT_TAGS
from pyspeech.training.config import TrainConfig
from steps.asr.corpus import compute_features, make_units, prepare
from steps.asr.options import check_options, own_options, read_by_decoding, read_by_training
from steps.asr.results import LID, read_by_report, report
from steps.asr.score import decode_system, stop_early
from steps.asr.train import SEEDS, train_system
from steps.page import declare_page
from steps.systems import DECODING, TRAINING, if_used


@dataclass
class Config:
    # mini (synthetic), prompts (real voices), the folder of a corpus, or a manifest (lhotse cuts, JSON lines of NeMo, a table)
    corpus: str = folder_or("mini", "prompts", what="a corpus", file=True)
    kind: str = "mucs"  # layout of that folder: mucs (also Microsoft's), fleurs, commonvoice, cmu_indic, kaldi or manifests
    languages: list[str] = field(default_factory=list)  # language codes, e.g. hi-IN; []: all in the corpus
    scale: float = 1.0  # factor on the number of utterances with corpus=mini or prompts
    skip_bad: bool = False  # leave out any number of bad utterances instead of stopping at more than a few
    longest: float = float("inf")  # leave out utterances of train and dev that are longer, in seconds; .inf: none
    cut_longer: bool = False  # cut them at pauses instead, where manifests (lhotse cuts) have the times of words
    tags: list[str] = field(default_factory=lambda: list(DEFAULT_TAGS))  # dropped from transcripts (pyspeech/text/tags.py)
    units: str = "grapheme"  # output symbols: grapheme or sentencepiece
    pieces: int = 200  # symbols per language with units=sentencepiece
    # weights: random, or those that fit of a model (folder or model.pt), or of an experiment's systems of the same names
    start_from: str = folder_or("random", what="a model", file=True)
    freeze: list[str] = field(default_factory=list)  # parts of start_from that training keeps: encoder, predictor, joint, lid
    systems: list[str] = field(default_factory=lambda: list(SEEDS))  # systems to train and compare
    features: FbankConfig = field(default_factory=FbankConfig)
    specaugment: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    model: TransducerConfig = field(default_factory=TransducerConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)  # of the multilingual systems
    monolingual_steps: float = 1.0  # training steps of monolingual systems, as a share of train.max_steps
    monolingual_lr: float = 1.0  # learning rate of monolingual systems, as a share of train.lr
    finetune_steps: float = 0.2  # training steps of finetuned systems, as a share of train.max_steps
    finetune_lr: float = 0.5  # learning rate of finetuned systems, as a share of train.lr
    steps_by_hours: bool = True  # scale these steps by the language's share of the hours, for equal numbers of epochs
    search: SearchConfig = field(default_factory=SearchConfig)
    symbol_bonuses: list[float] = field(default_factory=list)  # values of search.symbol_bonus of which dev chooses; []: none
    context: ContextConfig = field(default_factory=ContextConfig)
    stop_after: list[int] = field(default_factory=lambda: [1000, 100, 30, 10])  # tau of early stopping, in encoder frames
    stop_below: list[float] = field(default_factory=lambda: [0.2, 0.5])  # values of s_th for early stopping (Table 7)
    report: bool = True  # make the page report/index.html
    check = check_options


recipe = Recipe("Streaming multilingual RNN-T", Config, Path(__file__).resolve().parent / "conf", "mini", jobs=stages_at_once)
CORPUS = ["corpus", "kind", "languages", "scale", "skip_bad", "longest", "cut_longer", "tags"]
recipe.stage(config=CORPUS, outputs=["corpus"], cpus=2, resumable=True)(prepare)

recipe.stage(name="units", config=["units", "pieces"], inputs=["corpus"], outputs=["units"], version=2)(make_units)

FEATURES = ["features", "data.speeds", "data.stored_gb"]
recipe.stage(
    name="features", config=FEATURES, inputs=["corpus"], outputs=["features"], cpus=2, hours=4, resumable=True, shards=8
)(compute_features)

for system, seed in SEEDS.items():
    recipe.stage(
        name=f"train_{system}",
        about=f"Train {system}" + (f" from {seed}." if seed else "; the epoch is chosen on dev."),
        config=["specaugment", "model", "loss", "data", "train", "symbol_bonuses", *own_options(system)],
        inputs=read_by_training(system),
        outputs=if_used(system, f"models/{system}"),
        scratch=if_used(system, f"training/{system}"),
        **TRAINING,
        hours=48,
        version=2,
    )(partial(train_system, system=system, seed=seed))
    recipe.stage(
        name=f"decode_{system}",
        about=f"Recognise the test sets with {system}; its row of the tables.",
        config=["search", "context"],
        inputs=read_by_decoding(system),
        outputs=if_used(system, f"decoded/{system}", f"scores/{system}.json"),
        **DECODING,
        version=2,
    )(partial(decode_system, system=system))

recipe.stage(
    name="early_stopping",
    about="WER against active decoders (Table 7).",
    config=["stop_after", "stop_below"],
    inputs=if_used(LID, f"decoded/{LID}"),
    outputs=if_used(LID, "early_stopping.json"),
    version=2,
)(partial(stop_early, system=LID))

recipe.stage(
    name="results",
    config=["corpus", "systems", "start_from", "features", "model", "data", "train.average_best", "symbol_bonuses"],
    inputs=read_by_report,
    outputs=["results.json", "RESULTS.md", "figures"],
)(report)

declare_page(recipe, "corpus", "decoded", tables="steps.asr.tables")

if __name__ == "__main__":
    recipe.main()
