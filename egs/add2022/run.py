#!/usr/bin/env python3
"""Fake audio detection with McAdams augmentation (Li et al. 2022): corpus, LCNN-BLSTM, Table 3 and its figures."""

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from pyspeech.launch import ensure_environment

ensure_environment()
from pyspeech.engine.recipe import Recipe, folder_or, stages_at_once
from pyspeech.features.config import SpecAugmentConfig
from pyspeech.spoof.config import AugmentConfig, CropConfig, DetectorConfig, LogMelConfig
from pyspeech.training.config import TrainConfig
from steps.spoof.augment import OPTIONS
from steps.spoof.options import TRAINING, check_options, if_left_out
from steps.spoof.score import score_system
from steps.spoof.train import SYSTEMS, train_system
from steps.systems import if_used, models_of


@dataclass
class Config:
    corpus: str = folder_or("mini", what="a corpus")  # mini (people, and fakes of several engines), or the folder of a corpus
    kind: str = "auto"  # the layout of that folder: add2022, asvspoof2019, or auto: what its folders are named like
    scale: float = 1.0  # of the number of utterances of corpus=mini
    engines: str = "seen"  # of its fakes in train and dev: seen (eval has others), or all, for a detector that is to be used
    skip_bad: bool = False  # leave out any number of bad files instead of stopping at more than a few
    start_from: str = folder_or("random", "shipped", what="a model.pt")  # weights: random, or of a detector (shipped: ours)
    systems: list[str] = field(default_factory=lambda: list(SYSTEMS))  # rows of Table 3 to train and compare
    repeated: list[str] = field(default_factory=lambda: ["none", "rnm_sm", "rnm_sm_mc0.8"])  # by all seeds, others by one
    seeds: list[int] = field(default_factory=lambda: [42, 43, 44])
    leave_out: list[str] = field(default_factory=list)  # families of engines to train the last system without; [all]: each
    left_out_steps: float = 1.0  # of train.max_steps, and of what goes by it, for these trainings
    features: LogMelConfig = field(default_factory=LogMelConfig)
    network: DetectorConfig = field(default_factory=DetectorConfig)
    data: CropConfig = field(default_factory=CropConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    specaugment: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    train: TrainConfig = field(default_factory=TrainConfig)  # its seed is one of `seeds`
    pooled_steps: float = 1.0  # of train.max_steps, for systems that are trained on every set that could choose weights
    check = check_options


recipe = Recipe(
    "Fake audio detection", Config, conf=Path(__file__).resolve().with_name("conf"), profile="mini", jobs=stages_at_once
)


@recipe.stage(
    config=["corpus", "kind", "scale", "engines", "skip_bad"],
    outputs=["corpus"],
    cpus=2,
    memory=8,
    hours=4,
    resumable=True,
    version=2,
)
def prepare(exp, conf):
    """Corpus to Lhotse manifests: train, dev, adapt, eval; checks that the files alone give nothing away."""
    from steps.spoof.corpus import prepare_corpus

    prepare_corpus(conf, exp.dir / "corpus", exp.log)


@recipe.stage(config=OPTIONS, inputs=["corpus"], outputs=["backgrounds"], resumable=True, version=3)
def backgrounds(exp, conf):
    """Noise, music and rooms for training, which no other set has; after `prepare`, which takes all cores."""
    from steps.spoof.augment import collect_backgrounds

    collect_backgrounds(exp, conf)


@recipe.stage(inputs=["corpus"], outputs=["figures/envelopes.png"])
def envelopes(exp, conf):
    """Spectral envelopes of a vowel under each McAdams coefficient (paper, Figure 2)."""
    from steps.spoof.results import plot_vowel

    plot_vowel(exp)


for system, options in SYSTEMS.items():
    own = ["augment", "specaugment"] * bool(options) + ["pooled_steps"] * ("sets" in options)
    recipe.stage(
        name=f"train_{system}",
        about=f"Train {system}.",
        config=[*TRAINING, *own],
        outputs=models_of(system),
        cpus=2,
        inputs=if_used(system, "corpus", *["backgrounds"] * bool(options)),
        gpus=1,
        hours=24,
        resumable=True,
        scratch=if_used(system, f"training/{system}"),
        trains=True,
        version=2,
    )(partial(train_system, system=system))
    recipe.stage(
        name=f"score_{system}",
        about=f"Score files of dev, adapt and eval by {system}, and its error rates.",
        inputs=models_of(system, "corpus"),
        outputs=if_used(system, f"scores/{system}", f"scores/{system}.json"),
        cpus=2,
        gpus=1,
        resumable=True,
        shards=4,
    )(partial(score_system, system=system))


@recipe.stage(
    config=[*TRAINING, "augment", "specaugment", "systems", "seeds", "leave_out", "left_out_steps", "pooled_steps"],
    inputs=if_left_out("corpus", "backgrounds", last_scores=True),
    scratch=if_left_out("training/families"),
    cpus=2,
    outputs=if_left_out("models/families", "families.json"),
    resumable=True,
    trains=True,
    gpus=1,
    hours=96,
    version=2,
)
def families(exp, conf):
    """The last of the systems trained without some families of engines, and what it makes of these."""
    from steps.spoof.families import leave_out

    leave_out(exp, conf)


@recipe.stage(
    config=["systems", "repeated", "seeds"],
    outputs=["differences.json"],
    inputs=lambda conf: ["corpus", *(f"scores/{name}" for name in conf.systems)],
)
def compare(exp, conf):
    """Paired differences between systems on eval, on all its fakes and on those of unseen engines."""
    from steps.spoof.score import compare_systems

    compare_systems(exp, conf)


@recipe.stage(
    config=["corpus", "systems", "leave_out"],
    outputs=["results.json", "RESULTS.md", "figures/scores"],
    version=2,
    inputs=lambda conf: [
        "corpus",
        "backgrounds/sources.json",
        "{differences,families}.json" if conf.leave_out else "differences.json",
        *(f"scores/{name}{{,.json}}" for name in conf.systems),
    ],
)
def results(exp, conf):
    """Table 3, the histograms of Figure 3 and detection error curves."""
    from steps.spoof.results import report

    report(exp, conf)


if __name__ == "__main__":
    recipe.main()
