"""Training of the systems of egs/zerospeech: the VQ-VAEs of Tables 1 to 3 of Tjandra et al. 2020."""
from dataclasses import replace

from steps.systems import seeds_of
from steps.units.corpus import load_cuts

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


def features_of(conf, system):
    """The MfccConfig of a system."""
    return replace(conf.features, **SYSTEMS[system].get("features", {}))


def train_system(exp, conf, system):
    """models/<system>/<seed>/model.pt for each of its seeds. Goes on after a kill, and is kept where it is done."""
    for seed in seeds_of(conf, system):
        train_vqvae(exp, conf, system, seed)


def train_vqvae(exp, conf, system, seed):
    """One VQ-VAE in training/<system>/<seed>, then models/<system>/<seed>/model.pt."""
    from pyspeech.compat import default_device
    from pyspeech.training.randomness import seed_everything
    from pyspeech.units.checkpoint import save_model
    from pyspeech.units.dataset import UnitDataset, corpus_stats, speakers_of
    from pyspeech.units.training import VqVaeTraining
    from pyspeech.units.vqvae import VqVae

    cuts, features = load_cuts(exp.dir / "corpus", "unit"), features_of(conf, system)
    speakers = speakers_of(cuts)
    stats = corpus_stats(cuts, features) if features.needs_stats else None
    options = {name: value for name, value in SYSTEMS[system].items() if name != "features"}
    seed_everything(seed)
    model = VqVae(replace(conf.vqvae, features=features.dim, **options), len(speakers)).to(default_device())
    exp.log.info("%s, seed %d: %d utterances of %d speakers", system, seed, len(cuts), len(speakers))
    dataset = UnitDataset(speakers, features, conf.data, stats)
    run_training(exp, VqVaeTraining(model), dataset, cuts, replace(conf.train, seed=seed), f"{system}/{seed}")
    save_model(exp.dir / "models" / system / str(seed), model, speakers, features, stats)


def run_training(exp, training, dataset, cuts, train, name):
    """Train `training` (Vq-Vae- or InverterTraining) in training/<name>. dataset: UnitDataset; train: TrainConfig."""
    from pyspeech.training.data import BatchLoader
    from pyspeech.training.optimization import make_optimizer
    from pyspeech.training.trainer import Trainer
    from pyspeech.units.dataset import DurationSampler
    from pyspeech.units.training import compute_loss

    batches = BatchLoader(dataset, DurationSampler(cuts, dataset.data, train.seed), train.seed, train.num_workers)
    Trainer(training, make_optimizer(training, train), batches, compute_loss, train, exp.dir / "training" / name,
            log=exp.log).run()
