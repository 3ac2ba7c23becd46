"""Training of the systems of egs/add2022: the rows of Table 3 of Li et al. 2022."""
from dataclasses import replace


def _system(masks=False, coefficient=None, adapt=False):
    return {"masks": masks, "coefficient": coefficient, "adapt": adapt}


# rnm: reverberation, noise, music; sm: masks on the spectrogram; mc: McAdams anonymisation; adp: the adaptation set is
# trained on too.
SYSTEMS = {
    "rnm": _system(),
    "rnm_sm": _system(masks=True),
    **{f"rnm_sm_mc{coefficient}": _system(True, coefficient) for coefficient in (0.9, 0.8, 0.7, 0.6)},
    "adp_rnm_sm": _system(masks=True, adapt=True),
    "adp_rnm_sm_mc0.8": _system(True, 0.8, adapt=True),
}


def training_sets(conf, name):
    """The sets that a system is trained on."""
    return [*conf.train_sets, *(["adapt"] if SYSTEMS[name]["adapt"] else [])]


def augment_config(conf, name):
    """The AugmentConfig of a system: conf.augment, with its coefficient, or without anonymisation."""
    coefficient = SYSTEMS[name]["coefficient"]
    if coefficient is None:
        return replace(conf.augment, mcadams=0.0)
    return replace(conf.augment, coefficients=[coefficient])


def train_system(exp, conf, name, seed, backgrounds):
    """Train a system with one seed: training/<name>/<seed>, then models/<name>/<seed>/model.pt. Goes on after a kill.

    conf: features (LogMelConfig), network (DetectorConfig), data (CropConfig), augment (AugmentConfig), specaugment
    (SpecAugmentConfig), train (TrainConfig), train_sets and valid_set (names of sets). backgrounds: {"noises",
    "musics", "rirs": lists of arrays (n,) at the features' sampling rate}. Where valid_set is not trained
    on, it chooses the weights, as train.minimize says; in any case the threshold and the calibration are made on it.
    """
    from functools import partial

    from pyspeech.compat import default_device
    from pyspeech.spoofing.augmentation import augment
    from pyspeech.spoofing.dataset import CropDataset, UtteranceSampler
    from pyspeech.spoofing.networks import LcnnBlstm
    from pyspeech.spoofing.training import compute_loss, validation
    from pyspeech.training.data import BatchLoader
    from pyspeech.training.optimization import make_optimizer
    from pyspeech.training.randomness import seed_everything
    from pyspeech.training.trainer import Trainer

    rate, train, sets = conf.features.sampling_rate, replace(conf.train, seed=seed), training_sets(conf, name)
    cuts, valid = load_cuts(exp.dir / "corpus", sets), load_cuts(exp.dir / "corpus", [conf.valid_set])
    seed_everything(seed)
    model = LcnnBlstm(conf.network, conf.features).to(default_device())
    disturb = partial(augment, rate=rate, config=augment_config(conf, name), **backgrounds)
    dataset = CropDataset(conf.data, rate, disturb)
    batches = BatchLoader(dataset, UtteranceSampler(cuts, conf.data, seed), seed, train.num_workers)
    loss = partial(compute_loss, specaugment=conf.specaugment if SYSTEMS[name]["masks"] else None)
    validate = validation(valid, conf.data, rate) if conf.valid_set not in sets else None
    exp.log.info("%s, seed %d: %d utterances of %s", name, seed, len(cuts), ", ".join(sets))
    Trainer(model, make_optimizer(model, train), batches, loss, train, exp.dir / "training" / name / str(seed),
            validate=validate, log=exp.log).run()
    finish(exp.dir / "models" / name / str(seed), model, conf.data, valid)


def finish(folder, model, crop, cuts):
    """Write the detector with the calibration and the threshold that its scores of `cuts` give."""
    from pyspeech.spoofing.calibration import fit_calibration
    from pyspeech.spoofing.detector import Detector, save_detector
    from pyspeech.spoofing.formats import KINDS
    from pyspeech.spoofing.scoring import equal_error_rate

    scores = score_cuts(model.eval(), crop, cuts)
    genuine, fake = ([scores[cut.id] for cut in cuts if cut.supervisions[0].text == kind] for kind in KINDS)
    save_detector(folder, Detector(model, crop, fit_calibration(genuine, fake), equal_error_rate(genuine, fake)[1]))


def score_cuts(model, crop, cuts):
    """{cut id: log odds of genuine speech}; crop: CropConfig of the model's training."""
    from pyspeech.spoofing.dataset import UtteranceReader
    from pyspeech.spoofing.detector import score_utterances

    read = UtteranceReader(model.log_mel.config.sampling_rate)
    return dict(zip([cut.id for cut in cuts], score_utterances(model, crop, map(read, cuts)).tolist()))


def load_cuts(corpus, names):
    """The cuts of some sets as a list."""
    from lhotse import CutSet

    return [cut for name in names for cut in CutSet.from_file(corpus / f"{name}.jsonl.gz")]
