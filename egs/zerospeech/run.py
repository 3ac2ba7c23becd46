#!/usr/bin/env python3
"""Units from untranscribed speech, speech from units (Tjandra et al. 2020): corpus to the paper's tables and WAVs."""
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import List

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.errors import UserError
from pyspeech.experiment.config import folder_or
from pyspeech.experiment.process import has_gpu, stages_at_once
from pyspeech.features.config import MfccConfig
from pyspeech.pipeline import Recipe
from pyspeech.training.config import TrainConfig
from pyspeech.units.config import InverterConfig, UnitDataConfig, VqVaeConfig
from steps.systems import if_used, models_of
from steps.units.recognition import command_of
from steps.units.train import SYSTEMS

here = Path(__file__).resolve().parent


@dataclass
class Config:
    corpus: str = folder_or("mini")  # mini (two Czech voices of a game), or the folder of a ZeroSpeech 2019 release
    language: str = ""  # folder of the language in a release; empty: the only one, or english
    languages: List[str] = field(default_factory=lambda: ["cs"])  # of corpus=mini: cs, nl
    scale: float = 1.0  # of the number of utterances of corpus=mini
    skip_bad: bool = False  # leave out any number of bad files instead of stopping at more than a few
    systems: List[str] = field(default_factory=lambda: list(SYSTEMS))  # to train and compare
    # trained with all seeds, the others with one; k-means too, with as many codes as these have
    repeated: List[str] = field(default_factory=lambda: ["trf128", "conv128", "trf256", "conv256"])
    seeds: List[int] = field(default_factory=lambda: [42, 43, 44])
    kmeans: List[int] = field(default_factory=lambda: [64, 128, 256, 512])  # anchors: numbers of codes
    features: MfccConfig = field(default_factory=MfccConfig)
    vqvae: VqVaeConfig = field(default_factory=VqVaeConfig)
    data: UnitDataConfig = field(default_factory=UnitDataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)  # its seed is one of `seeds`
    synthesis: str = "trf128"  # the system whose units, with the first seed, are spoken
    inverter: InverterConfig = field(default_factory=InverterConfig)
    inverter_data: UnitDataConfig = field(default_factory=UnitDataConfig)
    inverter_train: TrainConfig = field(default_factory=TrainConfig)
    spoken: int = 40  # test utterances to speak, each in every voice, where the corpus does not list them
    recogniser: str = ""  # command that prints a line of text for each audio file given; scores what is spoken
    author: str = "anonymous"  # of the submission
    affiliation: str = "none"

    def __post_init__(self):
        if self.corpus != "mini" and not Path(self.corpus).is_dir():
            raise UserError(f"corpus={self.corpus}: no such folder; expected mini, or the folder of a release")
        if not 0 < self.scale <= 1:
            raise UserError(f"scale={self.scale}: expected more than 0, at most 1")
        if not self.languages:
            raise UserError("languages=[]: expected at least one")
        for name in ("systems", "seeds", "kmeans", "languages"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise UserError(f"{name}=[{','.join(map(str, values))}]: expected each once")
        if min(self.kmeans, default=1) < 1:
            raise UserError(f"kmeans=[{','.join(map(str, self.kmeans))}]: expected numbers of codes, each at least 1")
        for name in ("systems", "repeated"):
            for system in getattr(self, name):
                if system not in SYSTEMS:
                    raise UserError(f"{name}: no system {system}; expected some of {', '.join(SYSTEMS)}")
        if not self.seeds:
            raise UserError("seeds=[]: expected at least one")
        if self.synthesis not in self.systems:
            raise UserError(f"synthesis={self.synthesis}: expected one of systems=[{','.join(self.systems)}]")
        if self.spoken < 1:
            raise UserError(f"spoken={self.spoken}: expected at least 1")
        command_of(self.recogniser)
        trainings = [self.train, self.inverter_train, *(replace(self.train, seed=seed) for seed in self.seeds)]
        for part in (self.features, self.vqvae, self.data, self.inverter, self.inverter_data, *trainings):
            part.check()


def default_profile(overrides):
    """The mini corpus: mini. A real corpus: full, the paper's settings, where there is a GPU to train them on."""
    return "full" if overrides.get("corpus", "mini") != "mini" and has_gpu() else "mini"


def experiment_name(conf, profile):
    if conf.corpus == "mini":
        return profile
    language = f"-{conf.language.lower()}" if conf.language else ""
    return f"{Path(conf.corpus).resolve().name}{language}-{profile}"


def anchors_of(conf):
    """A pattern for the names of the systems that are not trained; of the sizes of k-means some may be left out."""
    return "{mfcc,kmeans*}" if conf.kmeans else "mfcc"


recipe = Recipe("Unit discovery", Config, conf=here / "conf", profile=default_profile, name=experiment_name,
                jobs=stages_at_once())


@recipe.stage(config=["corpus", "language", "languages", "scale", "skip_bad"], outputs=["corpus"], cpus=2)
def prepare(exp, conf):
    """Corpus to Lhotse manifests, ABX items and the list for the bitrate."""
    from steps.units.corpus import prepare_corpus
    prepare_corpus(conf, exp.dir / "corpus", exp.log)


@recipe.stage(config=["kmeans", "seeds", "repeated", "features", "vqvae"], inputs=["corpus"], cpus=2,
              outputs=lambda conf: [f"scores/{anchors_of(conf)}.json", f"units/{anchors_of(conf)}"])
def anchors(exp, conf):
    """ABX of the features themselves, and of k-means at the same rate and numbers of codes."""
    from steps.units.score import score_anchors
    score_anchors(exp, conf)


def stages_of(system):
    @recipe.stage(name=f"train_{system}", config=["features", "vqvae", "data", "train"], inputs=if_used(system, "corpus"),
                  outputs=models_of(system), scratch=if_used(system, f"training/{system}"), cpus=2, gpus=1, hours=24,
                  resumable=True)
    def train(exp, conf):
        from steps.units.train import train_system
        train_system(exp, conf, system)
    train.__doc__ = f"Train {system}."

    @recipe.stage(name=f"score_{system}", inputs=models_of(system, "corpus"),
                  outputs=if_used(system, f"units/{system}", f"scores/{system}.json"), cpus=2)
    def score(exp, conf):
        from steps.units.score import score_system
        score_system(exp, conf, system)
    score.__doc__ = f"Units of the test set by {system}: ABX and bitrate."


for one in SYSTEMS:
    stages_of(one)


@recipe.stage(config=["synthesis", "seeds", "inverter", "inverter_data", "inverter_train"],
              inputs=lambda conf: ["corpus", f"models/{conf.synthesis}/{conf.seeds[0]}"], outputs=["models/synthesis"],
              scratch=["training/inverter"], cpus=2, gpus=1, hours=24, resumable=True)
def train_inverter(exp, conf):
    """Train the inverter: from units to speech of all voices."""
    from steps.units.synthesis import train_inverter
    train_inverter(exp, conf)


@recipe.stage(config=["spoken"], inputs=["corpus", "models/synthesis"], outputs=["wavs"], gpus=1, resumable=True)
def synthesize(exp, conf):
    """Speak test utterances from their units, each in every voice."""
    from steps.units.synthesis import synthesize
    synthesize(exp, conf)


@recipe.stage(config=["spoken", "recogniser"], inputs=["corpus", "models/synthesis", "wavs"],
              outputs=["synthesis.json", "figures/sentence.png"])
def score_synthesis(exp, conf):
    """How near the voices that speak are to the ones asked for; speed of Griffin-Lim; a picture."""
    from steps.units.voices import score_synthesis
    score_synthesis(exp, conf)


@recipe.stage(config=["corpus", "synthesis", "seeds", "spoken", "author", "affiliation"], outputs=["submission"],
              inputs=lambda conf: ["corpus", "models/synthesis", f"units/{conf.synthesis}", "wavs"])
def submission(exp, conf):
    """Units and speech in the format of ZeroSpeech 2020, checked."""
    from steps.units.synthesis import make_submission
    make_submission(exp, conf)


@recipe.stage(config=["corpus", "systems", "repeated", "seeds", "kmeans", "synthesis"],
              inputs=lambda conf: ["synthesis.json", *(path for name in [anchors_of(conf), *conf.systems]
                                                       for path in (f"scores/{name}.json", f"units/{name}"))],
              outputs=["results.json", "RESULTS.md", "figures/scores"])
def results(exp, conf):
    """The paper's tables, speech from units, pictures."""
    from steps.units.results import report
    report(exp, conf)


if __name__ == "__main__":
    recipe.main()
