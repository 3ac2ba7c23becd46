#!/usr/bin/env python3
"""Units from untranscribed speech, speech from units (Tjandra et al. 2020): corpus to the paper's tables and WAVs."""

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.engine.recipe import Recipe, folder_or, requirement, stages_at_once
from pyspeech.features.config import MfccConfig
from pyspeech.units.config import InverterConfig, SubmissionConfig, UnitDataConfig, UnitTrainConfig, VqVaeConfig
from steps.systems import check_fixed, check_list, check_systems, if_used, models_of
from steps.units.corpus import MINI_LANGUAGES, prepare_corpus
from steps.units.recognition import command_of
from steps.units.results import report
from steps.units.score import anchors_of, score_anchors, score_system
from steps.units.synthesis import make_submission, synthesize, train_inverter
from steps.units.train import SYSTEMS, train_system
from steps.units.voices import score_synthesis


@dataclass
class Config:
    # mini (two Czech voices of a game), or the folder of a ZeroSpeech 2019 release
    corpus: str = folder_or("mini", what="a ZeroSpeech 2019 release")
    language: str = ""  # folder of the language in a release; empty: the only one, or english
    languages: list[str] = field(default_factory=lambda: ["cs"])  # of corpus=mini: cs, nl
    scale: float = 1.0  # of the number of utterances of corpus=mini
    skip_bad: bool = False  # leave out any number of bad files instead of stopping at more than a few
    systems: list[str] = field(default_factory=lambda: list(SYSTEMS))  # to train and compare
    # trained with all seeds, the others with one; k-means too, with as many codes as these have
    repeated: list[str] = field(default_factory=lambda: ["trf128", "conv128", "trf256", "conv256"])
    seeds: list[int] = field(default_factory=lambda: [42, 43, 44])
    kmeans: list[int] = field(default_factory=lambda: [64, 128, 256, 512])  # anchors: numbers of codes
    features: MfccConfig = field(default_factory=MfccConfig)
    vqvae: VqVaeConfig = field(default_factory=VqVaeConfig)
    data: UnitDataConfig = field(default_factory=UnitDataConfig)
    train: UnitTrainConfig = field(default_factory=UnitTrainConfig)  # its seed is one of `seeds`
    synthesis: str = "trf128_smooth_5e-3_jitter_0.05"  # whose units, with the first seed, are spoken; the submitted one
    inverter: InverterConfig = field(default_factory=InverterConfig)
    inverter_data: UnitDataConfig = field(default_factory=UnitDataConfig)
    inverter_train: UnitTrainConfig = field(default_factory=UnitTrainConfig)
    spoken: int = 40  # test utterances to speak, each in every voice, where the corpus does not list them
    recogniser: str = ""  # command that prints a line of text for each audio file given; scores what is spoken
    submission: SubmissionConfig = field(default_factory=SubmissionConfig)

    def check(self):
        """Raise UserError for options that make no sense, or not together; nested ones have been checked."""
        check_systems(self, SYSTEMS)
        require = requirement("", self)
        require("scale", 0 < self.scale <= 1, "more than 0, at most 1")
        require("synthesis", self.synthesis in self.systems, f"one of systems=[{', '.join(self.systems)}]")
        require("spoken", self.spoken >= 1, "at least 1")
        check_fixed(self, "vqvae.features", "train.seed", "inverter.bins", "inverter.repeat", "inverter_train.seed")
        check_list(self, "languages", MINI_LANGUAGES)
        check_list(self, "kmeans", range(1, sys.maxsize), "numbers of codes, each at least 1", least=0)
        command_of(self.recogniser)


recipe = Recipe("Unit discovery", Config, Path(__file__).resolve().with_name("conf"), "mini", "language", stages_at_once)


@recipe.stage(config=["corpus", "language", "languages", "scale", "skip_bad"], outputs=["corpus"], cpus=2, resumable=True)
def prepare(exp, conf):
    """Corpus to Lhotse manifests, ABX items and the list for the bitrate."""
    prepare_corpus(conf, exp.dir / "corpus", exp.log)


recipe.stage(
    name="anchors",
    about="ABX of the features themselves, and of k-means at the same rate and numbers of codes.",
    config=["kmeans", "seeds", "repeated", "features", "vqvae"],
    inputs=["corpus"],
    cpus=2,
    resumable=True,
    shards=4,
    outputs=lambda conf: [f"scores/{anchors_of(conf)}.json", f"units/{anchors_of(conf)}"],
)(score_anchors)

for one in SYSTEMS:
    recipe.stage(
        name=f"train_{one}",
        about=f"Train {one}.",
        config=["features", "vqvae", "data", "train"],
        inputs=if_used(one, "corpus"),
        outputs=models_of(one),
        scratch=if_used(one, f"training/{one}"),
        cpus=2,
        gpus=1,
        hours=24,
        resumable=True,
        trains=True,
        version=2,
    )(partial(train_system, system=one))
    recipe.stage(
        name=f"score_{one}",
        about=f"Units of the test set by {one}: ABX and bitrate.",
        inputs=models_of(one, "corpus"),
        outputs=if_used(one, f"units/{one}", f"scores/{one}.json"),
        cpus=2,
        resumable=True,
    )(partial(score_system, system=one))

recipe.stage(
    name="train_inverter",
    about="Train the inverter: from units to speech of all voices.",
    config=["synthesis", "seeds", "inverter", "inverter_data", "inverter_train"],
    inputs=lambda conf: ["corpus", f"models/{conf.synthesis}/{conf.seeds[0]}"],
    outputs=["models/synthesis"],
    scratch=["training/inverter"],
    cpus=2,
    gpus=1,
    hours=24,
    resumable=True,
    trains=True,
    version=2,
)(train_inverter)

recipe.stage(
    name="synthesize",
    about="Speak test utterances from their units, each in every voice.",
    config=["spoken"],
    inputs=["corpus", "models/synthesis"],
    outputs=["wavs"],
    cpus=2,
    gpus=1,
    resumable=True,
    shards=4,
)(synthesize)

recipe.stage(
    name="score_synthesis",
    about="How near the voices that speak are to the ones asked for, and a picture.",
    config=["spoken", "recogniser"],
    inputs=["corpus", "models/synthesis", "wavs"],
    outputs=["synthesis.json", "figures/sentence.png"],
    resumable=True,
)(score_synthesis)

recipe.stage(
    name="submission",
    about="Units and speech in the format of ZeroSpeech 2020, checked.",
    config=["corpus", "synthesis", "seeds", "spoken", "submission"],
    inputs=lambda conf: ["corpus", "models/synthesis", f"units/{conf.synthesis}", "wavs"],
    outputs=["submission"],
)(make_submission)

recipe.stage(
    name="results",
    about="The paper's tables, speech from units, pictures.",
    config=["corpus", "systems", "repeated", "seeds", "kmeans", "synthesis"],
    inputs=lambda conf: [
        "synthesis.json",
        *(path for name in [anchors_of(conf), *conf.systems] for path in (f"scores/{name}.json", f"units/{name}")),
    ],
    outputs=["results.json", "RESULTS.md", "figures/scores"],
)(report)

if __name__ == "__main__":
    recipe.main()
