"""Training of the systems of egs/zerospeech: the VQ-VAEs of Tables 1 to 3 of Tjandra et al. 2020."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyspeech.data.manifests import load_cuts
from steps.chance import warn_of_training
from steps.systems import seeds_of

if TYPE_CHECKING:
    import torch
    from lhotse.cut import Cut

    from pyspeech.engine.run import Experiment
    from pyspeech.features.config import MfccConfig
    from pyspeech.features.fbank import GlobalStats
    from pyspeech.training.config import TrainConfig
    from pyspeech.units.dataset import UnitDataset

Training = TypeVar("Training", bound="torch.nn.Module")
# What each differs in from the paper's Transformer VQ-VAE with 128 codes: options of VqVaeConfig, and of MfccConfig.
SYSTEMS = {
    "trf128": {},
    "trf128_logmel": {"features": {"kind": "log_mel"}},
    "conv256": {"kind": "conv", "codes": 256},
    "conv128": {"kind": "conv"},
    "trf64": {"codes": 64},
    "trf256": {"codes": 256},
    "trf512": {"codes": 512},
    "trf128_smooth_1e-2": {"smoothing": 1e-2},
    "trf128_smooth_5e-3": {"smoothing": 5e-3},
    "trf128_smooth_1e-3": {"smoothing": 1e-3},
    "trf128_jitter_0.05": {"jitter": 0.05},
    "trf128_jitter_0.075": {"jitter": 0.075},
    "trf128_smooth_5e-3_jitter_0.05": {"smoothing": 5e-3, "jitter": 0.05},
    "trf128_smooth_1e-3_jitter_0.05": {"smoothing": 1e-3, "jitter": 0.05},
}


def features_of(conf: Any, system: str) -> MfccConfig:
    """The MfccConfig of a system."""
    return replace(conf.features, **SYSTEMS[system].get("features", {}))


def train_system(exp: Experiment, conf: Any, system: str) -> None:
    """models/<system>/<seed>/model.pt for each of its seeds. Goes on after a kill, and is kept where it is done."""
    for seed in seeds_of(conf, system):
        train_vqvae(exp, conf, system, seed)


def train_vqvae(exp: Experiment, conf: Any, system: str, seed: int) -> None:
    """One VQ-VAE in training/<system>/<seed>, then models/<system>/<seed>/model.pt."""
    from pyspeech.units.checkpoint import save_model
    from pyspeech.units.dataset import UnitDataset, speakers_of
    from pyspeech.units.training import VqVaeTraining
    from pyspeech.units.vqvae import VqVae

    cuts, features = load_cuts(exp.dir / "corpus", "unit"), features_of(conf, system)
    speakers = speakers_of(cuts)
    stats = kept_stats(exp.dir / "training" / system / str(seed), cuts, features) if features.needs_stats else None
    options = {name: value for name, value in SYSTEMS[system].items() if name != "features"}
    config = replace(conf.vqvae, features=features.dim, **options)
    exp.log.info("%s, seed %d: %d utterances of %d speakers", system, seed, len(cuts), len(speakers))
    dataset = UnitDataset(speakers, features, conf.data, stats)
    training = run_training(
        exp,
        lambda: VqVaeTraining(VqVae(config, len(speakers))),
        dataset,
        cuts,
        replace(conf.train, seed=seed),
        f"{system}/{seed}",
    )
    if training is None:  # it is another process's
        return
    warn_of_training(exp.log, f"{system}, seed {seed}", exp.dir / "training" / system / str(seed), codes=config.codes)
    save_model(exp.dir / "models" / system / str(seed), training.vqvae, speakers, features, stats)


def kept_stats(folder: Path, cuts: Sequence[Cut], features: MfccConfig) -> GlobalStats:
    """The GlobalStats of the cuts' features, in folder/stats.json once they are computed: a minute or two for 15 hours."""
    from pyspeech.features.fbank import GlobalStats
    from pyspeech.training.distributed import from_first
    from pyspeech.units.dataset import corpus_stats

    def make():
        path = folder / "stats.json"
        if not path.exists():
            corpus_stats(cuts, features).save(path)
        return GlobalStats.load(path)

    return from_first(make)


def run_training(
    exp: Experiment,
    make_training: Callable[[], Training],
    dataset: UnitDataset,
    cuts: Sequence[Cut],
    config: TrainConfig,
    name: str,
) -> Training | None:
    """The VqVaeTraining or InverterTraining that make_training() gives, trained in training/<name>, as
    pyspeech.training.run.train gives it. dataset: UnitDataset; config: TrainConfig."""
    from pyspeech.training.run import train
    from pyspeech.units.dataset import DurationSampler
    from pyspeech.units.training import compute_loss

    sampler = DurationSampler(cuts, dataset.data, config.seed)
    return train(make_training, dataset, sampler, compute_loss, config, exp.dir / "training" / name, log=exp.log)
