"""Training of the systems of egs/add2022: the rows of Table 3 of Li et al. 2022, the same trained on train alone, which
dev chooses the weights of, and one without augmentation."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from steps.chance import warn_of_training
from steps.spoof.start import first_model, start_inputs
from steps.systems import if_used, seeds_of

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.audio.sound_store import SoundStore
    from pyspeech.engine.run import Experiment
    from pyspeech.spoof.config import AugmentConfig
    from pyspeech.training.config import TrainConfig

COMMON = {"rnm": True}  # reverberation, noise and music
MASKED = {**COMMON, "masks": True}  # and masks on the spectrogram
AUGMENTED = {
    "rnm": COMMON,
    "rnm_sm": MASKED,
    # and McAdams anonymisation, by its coefficient
    **{f"rnm_sm_mc{coefficient}": {**MASKED, "coefficients": [coefficient]} for coefficient in (0.9, 0.8, 0.7, 0.6)},
}
SYSTEMS = {
    "none": {},
    **AUGMENTED,
    "rnm_sm_mc_any": {**MASKED, "coefficients": [0.6, 0.7, 0.8, 0.9]},  # one of them for each crop: not in the paper
    **{f"traindev_{name}": {**options, "sets": ("train", "dev")} for name, options in AUGMENTED.items()},
    **{f"pooled_{name}": {**AUGMENTED[name], "sets": ("train", "dev", "adapt")} for name in ("rnm_sm", "rnm_sm_mc0.8")},
}


def if_augmented(conf: Any) -> list[str]:
    """The folder of noise, music and rooms, where a training may need it."""
    return ["backgrounds"] * (bool(conf.leave_out) or any(SYSTEMS[name] for name in conf.systems))


def read_by_training(system: str) -> Callable[[Any], list[str]]:
    """A function of the configuration: what the training of a system reads, the model that it begins with among it."""
    backgrounds = ["backgrounds"] * bool(SYSTEMS[system])
    return lambda conf: if_used(system, "corpus", *backgrounds, *start_inputs(conf))(conf)


def trained_on(system: str) -> Sequence[str]:
    """The sets whose utterances a system is trained on."""
    return SYSTEMS[system].get("sets", ("train",))


def chosen_by(system: str) -> str | None:
    """The set that chooses a system's weights: dev, or adapt where that is trained on; None where both are."""
    return next((name for name in ("dev", "adapt") if name not in trained_on(system)), None)


def augment_config(conf: Any, system: str) -> AugmentConfig:
    """The AugmentConfig of a system: of conf.augment what it has."""
    options, config = SYSTEMS[system], conf.augment
    if not options.get("rnm"):
        config = replace(config, reverberation=0.0, noise=0.0, music=0.0, codec=0.0)
    if "coefficients" not in options:
        return replace(config, mcadams=0.0)
    return replace(config, coefficients=options["coefficients"])


def train_config(conf: Any, system: str, seed: int, chosen: bool) -> TrainConfig:
    """The TrainConfig of a system; chosen: whether there is a set to choose its weights by. Where that is not so as dev has
    gone into training, it stops early."""
    train = replace(conf.train, seed=seed)
    if chosen:
        return train
    share = conf.pooled_steps if "dev" in trained_on(system) else 1
    return replace(train, **scaled(train, share, "max_steps", "max_epochs"), patience=None, average_best=1)


def scaled(train: TrainConfig, share: float, *names: str) -> dict[str, int]:
    """{name: so much of it, at least 1} of options of a TrainConfig that are set."""
    return {name: max(1, round(share * getattr(train, name))) for name in names if getattr(train, name) is not None}


def train_system(exp: Experiment, conf: Any, system: str) -> None:
    """models/<system>/<seed>/model.pt for each of its seeds. Goes on after a kill, and is kept where it is done."""
    for seed in seeds_of(conf, system):
        train_detector(exp, conf, system, seed, backgrounds_of(exp, system), f"{system}/{seed}")


def backgrounds_of(exp: Experiment, system: str) -> dict[str, SoundStore]:
    """{"noises", "musics", "rirs": lists of arrays (n,) at the features' sampling rate} that a system is trained with."""
    if not SYSTEMS[system].get("rnm"):
        return {}
    from steps.spoof.augment import load_backgrounds

    return load_backgrounds(exp.dir / "backgrounds")


def train_detector(
    exp: Experiment,
    conf: Any,
    system: str,
    seed: int,
    backgrounds: Mapping[str, SoundStore],
    name: str,
    without: str | None = None,
) -> None:
    """One detector in training/<name>, then models/<name>/model.pt.

    backgrounds: of `backgrounds_of`. without: families of engines whose fakes it is not to meet, joined by TOGETHER. The set of
    `chosen_by` chooses the weights, as train.minimize says, and the threshold and the calibration are made on it; where there
    is none the latter alone, on dev, which the system may have been trained on.
    """
    from pyspeech.spoof.augmentation import augment
    from pyspeech.spoof.dataset import CropDataset, UtteranceSampler
    from pyspeech.spoof.scored_cuts import choosing_cuts, save_calibrated
    from pyspeech.spoof.training import compute_loss, validation
    from pyspeech.training.run import train as run_training
    from steps.spoof.corpus import training_cuts

    options, rate, corpus = SYSTEMS[system], conf.features.sampling_rate, exp.dir / "corpus"
    cuts, chooser = training_cuts(corpus, trained_on(system), without), chosen_by(system)
    choosing = choosing_cuts(corpus, chooser, without) if chooser else []
    disturb = partial(augment, rate=rate, config=augment_config(conf, system), **backgrounds)
    dataset, sampler = CropDataset(conf.data, rate, disturb), UtteranceSampler(cuts, conf.data, seed)
    loss = partial(compute_loss, specaugment=conf.specaugment if options.get("masks") else None)
    exp.log.info("%s: %d utterances", name, len(cuts))
    if conf.data.often:
        say_drawn(cuts, conf.data.often, exp.log, some_left_out=without is not None)
    known, calibration = (chooser, choosing) if chooser and choosing else ("dev", choosing_cuts(corpus, "dev", without))
    if not choosing and chooser:
        exp.log.warning(
            "no labelled %s set with genuine and fake utterances: %s keeps its last weights%s",
            chooser,
            system,
            "" if calibration else ", its scores are not calibrated, and its threshold is 0",
        )
    validate = validation(choosing, conf.data, rate) if choosing else None
    folder = exp.dir / "training" / name
    model = run_training(
        partial(first_model, conf),
        dataset,
        sampler,
        loss,
        train_config(conf, system, seed, bool(choosing)),
        folder,
        validate,
        exp.log,
    )
    if model is None:  # it is another process's
        return
    warn_of_training(exp.log, name, folder, chooser, measure="eer")  # pyright: ignore[reportArgumentType]
    save_calibrated(exp.dir / "models" / name, model, conf.data, known, calibration, exp.log, exp.parts)


def say_drawn(cuts: Sequence[Cut], often: Mapping[str, float], log: logging.Logger, some_left_out: bool = False) -> None:
    """Log which fakes conf.data.often draws more often; warn of names that no fake has."""
    from pyspeech.spoof.formats import label_of

    count = Counter(label.attack for label in map(label_of, cuts) if not label.genuine)
    log.info(
        "fakes drawn so many times as often as others: %s",
        ", ".join(f"{name} {times:g} ({count[name]} fakes)" for name, times in often.items()),
    )
    unknown = [name for name in often if not count[name]]
    if unknown and not some_left_out:
        log.warning("data.often: no fake is by %s; the engines are %s", ", ".join(unknown), ", ".join(sorted(count)))
