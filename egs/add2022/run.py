#!/usr/bin/env python3
"""Fake audio detection with McAdams augmentation (Li et al. 2022): corpus, LCNN-BLSTM, Table 3 and its figures."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspeech.engine.recipe import Recipe, folder_or, named_folders, stages_at_once
from pyspeech.features.config import SpecAugmentConfig
from pyspeech.spoof.config import AugmentConfig, CropConfig, DetectorConfig, LogMelConfig
from pyspeech.training.config import TrainConfig
from steps.page import declare_page
from steps.spoof.augment import OPTIONS, collect_backgrounds
from steps.spoof.corpus import prepare, prepare_tests
from steps.spoof.families import leave_out
from steps.spoof.options import TRAINED, all_corpora, check_options, if_left_out, if_tested, own_options, read_by_report
from steps.spoof.results import plot_vowel, report
from steps.spoof.score import compare_systems, score_system
from steps.spoof.train import SYSTEMS, if_augmented, read_by_training, train_system
from steps.systems import DECODING, PREPARING, TRAINING, if_used, models_of


@dataclass
class Config:
    corpus: str = folder_or("mini", "public", what="a corpus", file=True)  # mini, public (fetched), a folder or a list of files
    clones: str = folder_or("none", what="git clones")  # to read corpus=public from: owner/name or owner+name; or none
    kind: str = "auto"  # corpus layout: a module of local/add2022/, e.g. asvspoof5 or labelled, or auto
    split_by: str = "auto"  # split of labelled files without sets: page, speaker, family or utterance; auto: the first possible
    test: dict[str, str] = named_folders("a corpus", file=True)  # further test corpora of any layout: test.NAME=DIR
    scale: float = 1.0  # share of the utterances with corpus=mini, more than 0 to 1
    skip_bad: bool = False  # leave out any number of bad files instead of stopping at more than a few
    # weights: random, shipped (bundled), or those of a detector (its folder or model.pt)
    start_from: str = folder_or("random", "shipped", what="a detector", file=True)
    systems: list[str] = field(default_factory=lambda: list(SYSTEMS))  # rows of Table 3 to train and compare
    repeated: list[str] = field(default_factory=lambda: ["none", "rnm_sm", "rnm_sm_mc0.8"])  # systems trained with all seeds
    seeds: list[int] = field(default_factory=lambda: [42, 43, 44])  # random seeds of the trainings
    leave_out: list[str] = field(default_factory=list)  # families of engines to train the last system without; [all]: each
    left_out_steps: float = 1.0  # length of these trainings, as a share of train.max_steps
    features: LogMelConfig = field(default_factory=LogMelConfig)
    network: DetectorConfig = field(default_factory=DetectorConfig)
    data: CropConfig = field(default_factory=CropConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    specaugment: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    train: TrainConfig = field(default_factory=TrainConfig)  # its seed is one of `seeds`
    pooled_steps: float = 1.0  # training steps of systems without a held-out set, as a share of train.max_steps
    report: bool = True  # make the page report/index.html
    check = check_options


CONF = Path(__file__).resolve().with_name("conf")
recipe = Recipe(
    "Fake audio detection", Config, CONF, "mini", jobs=stages_at_once, removed={"engines": "seen", "data.pair_loss": 0.0}
)

recipe.stage(config=["corpus", "kind", "split_by", "scale", "skip_bad"], outputs=["corpus"], **PREPARING, version=2)(prepare)

recipe.stage(name="prepare_tests", config=["test", "skip_bad"], outputs=if_tested, **PREPARING)(prepare_tests)

recipe.stage(name="backgrounds", config=OPTIONS, inputs=["corpus"], outputs=if_augmented, resumable=True, version=3)(
    collect_backgrounds
)

recipe.stage(name="envelopes", inputs=["corpus"], outputs=["figures/envelopes.png"])(plot_vowel)

for system in SYSTEMS:
    recipe.stage(
        name=f"train_{system}",
        about=f"Train {system}.",
        config=[*TRAINED, *own_options(system)],
        inputs=read_by_training(system),
        outputs=models_of(system),
        scratch=if_used(system, f"training/{system}"),
        **TRAINING,
        hours=24,
        version=2,
    )(partial(train_system, system=system))
    recipe.stage(
        name=f"score_{system}",
        about=f"Score dev, adapt, eval and tests with {system}; error rates.",
        config=["test"],
        inputs=lambda conf, system=system: models_of(system, *all_corpora(conf))(conf),
        outputs=if_used(system, f"scores/{system}", f"scores/{system}.json"),
        **DECODING,
    )(partial(score_system, system=system))

recipe.stage(
    name="families",
    config=[*TRAINED, "augment", "specaugment", "systems", "seeds", "leave_out", "left_out_steps", "pooled_steps"],
    inputs=if_left_out("corpus", "backgrounds", last_scores=True),
    outputs=if_left_out("models/families", "families.json"),
    scratch=if_left_out("training/families"),
    **TRAINING,
    hours=96,
    version=2,
)(leave_out)

recipe.stage(
    name="compare",
    config=["systems", "repeated", "seeds", "test"],
    inputs=lambda conf: [*all_corpora(conf), *(f"scores/{name}" for name in conf.systems)],
    outputs=["differences.json"],
)(compare_systems)

recipe.stage(
    name="results",
    config=["corpus", "test", "systems", "leave_out"],
    inputs=read_by_report,
    outputs=["results.json", "RESULTS.md", "figures/scores"],
    version=2,
)(report)

declare_page(recipe, "corpus", "scores/*", "models/*/*/model.pt", tables="steps.spoof.tables")

if __name__ == "__main__":
    recipe.main()
