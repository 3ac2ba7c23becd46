#!/usr/bin/env python3
"""Fake audio detection with McAdams augmentation (Li et al. 2022): corpus, LCNN-BLSTM, Table 3 and its figures."""
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
from pyspeech.features.config import SpecAugmentConfig
from pyspeech.pipeline import Recipe
from pyspeech.spoofing.config import AugmentConfig, CropConfig, DetectorConfig, LogMelConfig
from pyspeech.training.config import TrainConfig
from steps.spoof.corpus import KINDS
from steps.spoof.train import SYSTEMS
from steps.systems import if_used, models_of

here = Path(__file__).resolve().parent


@dataclass
class Config:
    corpus: str = folder_or("mini")  # mini (people, and fakes of several engines), or the folder of a corpus
    kind: str = "auto"  # the layout of that folder: add2022, asvspoof2019, or auto: what its folders are named like
    scale: float = 1.0  # of the number of utterances of corpus=mini
    skip_bad: bool = False  # leave out any number of bad files instead of stopping at more than a few
    systems: List[str] = field(default_factory=lambda: list(SYSTEMS))  # rows of Table 3 to train and compare
    # trained with all seeds, the others with one
    repeated: List[str] = field(default_factory=lambda: ["none", "rnm_sm", "rnm_sm_mc0.8"])
    seeds: List[int] = field(default_factory=lambda: [42, 43, 44])
    features: LogMelConfig = field(default_factory=LogMelConfig)
    network: DetectorConfig = field(default_factory=DetectorConfig)
    data: CropConfig = field(default_factory=CropConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    specaugment: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    train: TrainConfig = field(default_factory=TrainConfig)  # its seed is one of `seeds`
    pooled_steps: float = 1.0  # of train.max_steps, for the systems trained on all sets, which no set is left to stop

    def __post_init__(self):
        if self.corpus != "mini" and not Path(self.corpus).is_dir():
            raise UserError(f"corpus={self.corpus}: no such folder; expected mini, or the folder of a corpus")
        if self.kind not in KINDS:
            raise UserError(f"kind={self.kind}: expected one of {', '.join(KINDS)}")
        for name in ("systems", "repeated"):
            for system in getattr(self, name):
                if system not in SYSTEMS:
                    raise UserError(f"{name}: no system {system}; expected some of {', '.join(SYSTEMS)}")
        if not self.seeds:
            raise UserError("seeds=[]: expected at least one")
        if self.augment.coefficients != AugmentConfig().coefficients:
            raise UserError(f"augment.coefficients={self.augment.coefficients}: each system has a coefficient of its own; "
                            "choose systems=[...]")
        trainings = [self.train, *(replace(self.train, seed=seed) for seed in self.seeds)]
        for part in (self.features, self.network, self.data, self.augment, self.specaugment, *trainings):
            part.check()


def default_profile(overrides):
    """The mini corpus: mini. A real corpus: full, the paper's settings, where there is a GPU to train them on."""
    return "full" if overrides.get("corpus", "mini") != "mini" and has_gpu() else "mini"


def experiment_name(conf, profile):
    return profile if conf.corpus == "mini" else f"{Path(conf.corpus).resolve().name}-{profile}"


recipe = Recipe("Fake audio detection", Config, conf=here / "conf", profile=default_profile, name=experiment_name,
                jobs=stages_at_once())


@recipe.stage(config=["corpus", "kind", "scale", "skip_bad"], outputs=["corpus"], cpus=2)
def prepare(exp, conf):
    """Corpus to Lhotse manifests: train, dev, adapt, eval; checks that the files alone give nothing away."""
    from steps.spoof.corpus import prepare_corpus
    prepare_corpus(conf, exp.dir / "corpus", exp.log)


@recipe.stage(config=["augment.noise", "augment.music", "augment.reverberation", "features.sampling_rate"],
              outputs=["backgrounds"])
def backgrounds(exp, conf):
    """Noise, music and room impulse responses for training, which none of the other sets has."""
    from steps.spoof.augment import collect_backgrounds
    collect_backgrounds(exp, conf)


@recipe.stage(inputs=["corpus"], outputs=["figures/envelopes.png"])
def envelopes(exp, conf):
    """Spectral envelopes of a vowel under each McAdams coefficient (paper, Figure 2)."""
    from steps.spoof.results import plot_vowel
    plot_vowel(exp)


def stages_of(system):
    options = ["features", "network", "data", "augment", "specaugment", "train"]

    @recipe.stage(name=f"train_{system}", config=options + ["pooled_steps"] * ("pooled" in SYSTEMS[system]),
                  inputs=if_used(system, "corpus", "backgrounds"), outputs=models_of(system),
                  scratch=if_used(system, f"training/{system}"), cpus=2, gpus=1, hours=24, resumable=True)
    def train(exp, conf):
        from steps.spoof.train import train_system
        train_system(exp, conf, system)
    train.__doc__ = f"Train {system}."

    @recipe.stage(name=f"score_{system}", inputs=models_of(system, "corpus"),
                  outputs=if_used(system, f"scores/{system}", f"scores/{system}.json"), cpus=2, gpus=1)
    def score(exp, conf):
        from steps.spoof.score import score_system
        score_system(exp, conf, system)
    score.__doc__ = f"Score files of dev, adapt and eval by {system}, and its error rates."


for one in SYSTEMS:
    stages_of(one)


@recipe.stage(config=["corpus", "systems"],
              inputs=lambda conf: ["corpus", *(f"scores/{name}{suffix}" for name in conf.systems for suffix in ("", ".json"))],
              outputs=["results.json", "RESULTS.md", "figures/scores"])
def results(exp, conf):
    """Table 3, the histograms of Figure 3 and detection error curves."""
    from steps.spoof.results import report
    report(exp, conf)


if __name__ == "__main__":
    recipe.main()
