#!/usr/bin/env python3
"""Units from untranscribed speech, speech from units (Tjandra et al. 2020): corpus to the paper's tables and WAVs."""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspeech.engine.recipe import Recipe, folder_or, stages_at_once
from pyspeech.features.config import MfccConfig
from pyspeech.units.config import InverterConfig, SubmissionConfig, UnitDataConfig, UnitTrainConfig, VqVaeConfig
from steps.page import declare_page
from steps.systems import DECODING, SCORING, TRAINING, if_used, models_of
from steps.units.corpus import prepare
from steps.units.options import anchors, check_options, read_by_report, spoken_model, submitted
from steps.units.results import report
from steps.units.score import score_anchors, score_system
from steps.units.synthesis import make_submission, synthesize, train_inverter
from steps.units.train import SYSTEMS, train_system
from steps.units.voices import score_synthesis


@dataclass
class Config:
    corpus: str = folder_or("mini", what="a ZeroSpeech 2019 release")  # mini (two Czech voices), or the folder of a release
    language: str = ""  # folder of the language in a release; empty: the only one, or english
    languages: list[str] = field(default_factory=lambda: ["cs"])  # languages of corpus=mini: cs, nl
    scale: float = 1.0  # share of the utterances with corpus=mini, more than 0 to 1
    skip_bad: bool = False  # leave out any number of bad files instead of stopping at more than a few
    systems: list[str] = field(default_factory=lambda: list(SYSTEMS))  # systems to train and compare
    repeated: list[str] = field(default_factory=lambda: ["trf128", "conv128", "trf256", "conv256"])  # trained with all seeds
    seeds: list[int] = field(default_factory=lambda: [42, 43, 44])  # random seeds of the trainings
    kmeans: list[int] = field(default_factory=lambda: [64, 128, 256, 512])  # numbers of codes of the k-means baselines
    features: MfccConfig = field(default_factory=MfccConfig)
    vqvae: VqVaeConfig = field(default_factory=VqVaeConfig)
    data: UnitDataConfig = field(default_factory=UnitDataConfig)
    train: UnitTrainConfig = field(default_factory=UnitTrainConfig)  # its seed is one of `seeds`
    synthesis: str = "trf128_smooth_5e-3_jitter_0.05"  # system whose units, with the first seed, are spoken and submitted
    inverter: InverterConfig = field(default_factory=InverterConfig)
    inverter_data: UnitDataConfig = field(default_factory=UnitDataConfig)
    inverter_train: UnitTrainConfig = field(default_factory=UnitTrainConfig)
    spoken: int = 40  # test utterances to speak in every voice, where the corpus does not list them
    recogniser: str = ""  # command that prints a line of text per audio file, to score the speech; empty: none
    submission: SubmissionConfig = field(default_factory=lambda: SubmissionConfig(code="pyspeech (Apache-2.0), egs/zerospeech"))
    report: bool = True  # make the page report/index.html
    check = check_options


recipe = Recipe("Unit discovery", Config, Path(__file__).resolve().with_name("conf"), "mini", "language", stages_at_once)
CORPUS = ["corpus", "language", "languages", "scale", "skip_bad"]
recipe.stage(config=CORPUS, outputs=["corpus"], cpus=2, resumable=True)(prepare)

recipe.stage(
    name="anchors",
    config=["kmeans", "seeds", "repeated", "features", "vqvae"],
    inputs=["corpus"],
    outputs=anchors,
    **SCORING,
    shards=4,
    version=2,
)(score_anchors)

for one in SYSTEMS:
    recipe.stage(
        name=f"train_{one}",
        about=f"Train {one}.",
        config=["features", "vqvae", "data", "train"],
        inputs=if_used(one, "corpus"),
        outputs=models_of(one),
        scratch=if_used(one, f"training/{one}"),
        **TRAINING,
        hours=24,
        version=2,
    )(partial(train_system, system=one))
    recipe.stage(
        name=f"score_{one}",
        about=f"Units of the test set by {one}: ABX and bitrate.",
        inputs=models_of(one, "corpus"),
        outputs=if_used(one, f"units/{one}", f"scores/{one}.json"),
        **SCORING,
        version=2,
    )(partial(score_system, system=one))

recipe.stage(
    config=["synthesis", "seeds", "inverter", "inverter_data", "inverter_train"],
    inputs=spoken_model,
    outputs=["models/synthesis"],
    scratch=["training/inverter"],
    **TRAINING,
    hours=24,
    version=2,
)(train_inverter)

recipe.stage(config=["spoken"], inputs=["corpus", "models/synthesis"], outputs=["wavs"], **DECODING)(synthesize)

recipe.stage(
    config=["spoken", "recogniser"],
    inputs=["corpus", "models/synthesis", "wavs"],
    outputs=["synthesis.json", "figures/sentence.png"],
    resumable=True,
)(score_synthesis)

recipe.stage(
    name="submission", config=["corpus", "synthesis", "seeds", "spoken", "submission"], inputs=submitted, outputs=["submission"]
)(make_submission)

recipe.stage(
    name="results",
    config=["corpus", "systems", "repeated", "seeds", "kmeans", "synthesis"],
    inputs=read_by_report,
    outputs=["results.json", "RESULTS.md", "figures/scores"],
)(report)

declare_page(recipe, "corpus", "units", "scores/*.json", "wavs", tables="steps.units.tables")

if __name__ == "__main__":
    recipe.main()
