"""Training of the systems of egs/indic (Joshi et al. 2021, sections 3, 4 and 6.1); the loss on dev chooses the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.asr.config import UNION
from steps.asr.bonus import with_bonus
from steps.asr.corpus import describe_corpus, languages_of, load_units, read_utterances
from steps.asr.start import first_bundle, make_model, stats_of

if TYPE_CHECKING:
    from pyspeech.asr.dataset import UtteranceDataset
    from pyspeech.asr.surroundings import Surroundings
    from pyspeech.asr.training import TransducerTraining
    from pyspeech.engine.run import Experiment
    from pyspeech.training.config import TrainConfig

STRUCTURES = {  # options of TransducerConfig
    "monolingual": {"structure": "monolingual"},
    "vanilla": {"structure": "vanilla"},
    "onehot": {"structure": "onehot"},
    "multi_softmax": {"structure": "multi_softmax"},
    "multi_softmax_lsp": {"structure": "multi_softmax", "lsp": True},
    "multi_softmax_lid": {"structure": "multi_softmax", "lid": True},
    "onehot_finetuned": {"structure": "monolingual"},
    "multi_softmax_finetuned": {"structure": "monolingual"},
}
# What each system is trained from; monolingual and finetuned systems are one model a language.
SEEDS = {
    "monolingual": None,
    "vanilla": None,
    "onehot": None,
    "multi_softmax": None,
    "multi_softmax_lsp": None,
    "multi_softmax_lid": None,
    "onehot_finetuned": "onehot",
    "multi_softmax_finetuned": "multi_softmax",
}


def train_system(exp: Experiment, conf: Any, system: str, seed: str | None = None) -> None:
    """Train `system`, from the models of the system `seed` where one is given: models/<system>[/<language>]/model.pt."""
    corpus = exp.dir / "corpus"
    languages = languages_of(corpus)
    if STRUCTURES[system]["structure"] != "monolingual":
        train_model(exp, conf, system, languages, conf.train, system)
        return
    shares = shares_of_steps(conf.finetune_steps if seed else conf.monolingual_steps, corpus, conf.steps_by_hours)
    for language in languages:
        train = shorter(conf.train, shares[language], conf.finetune_lr if seed else conf.monolingual_lr)
        train_model(exp, conf, system, [language], train, f"{system}/{language}", seed)


def shares_of_steps(share: float, corpus: Path, by_hours: bool) -> dict[str, float]:
    """{language: share of the steps of a multilingual system that its own system takes}: `share`, or, by hours, so much of
    the language's share of the training data, which makes as many epochs of each language (`share` of a multilingual
    system's)."""
    minutes = {language: sets["train"]["minutes"] for language, sets in describe_corpus(corpus).items() if "train" in sets}
    total = sum(minutes.values())
    return {language: share * (own / total if by_hours else 1) for language, own in minutes.items()}


def shorter(train: TrainConfig, share: float, lr: float) -> TrainConfig:
    """Training options with a share of the steps, and of the steps from validation to validation; a share of the rate."""

    def part(steps):
        return None if steps is None else max(1, round(share * steps))

    return replace(
        train,
        max_steps=part(train.max_steps),
        max_epochs=part(train.max_epochs),
        valid_every=part(train.valid_every),
        warmup_steps=part(train.warmup_steps),
        lr=lr * train.lr,
    )


def train_model(
    exp: Experiment, conf: Any, system: str, languages: Sequence[str], train: TrainConfig, name: str, seed: str | None = None
) -> None:
    """One model in training/<name>, then models/<name>/model.pt. Goes on after a kill, and is kept where it is done."""
    from pyspeech.asr.batching import LanguageSampler
    from pyspeech.asr.checkpoint import Bundle, save_model
    from pyspeech.asr.dataset import UtteranceDataset
    from pyspeech.asr.training import TransducerTraining, compute_loss
    from pyspeech.features.frame_store import FrameStore
    from pyspeech.training.run import train as run_training

    corpus = exp.dir / "corpus"
    structure = STRUCTURES[system]
    units = load_units(exp.dir / "units", languages, union=structure["structure"] in UNION)
    start = first_bundle(exp, conf, system, seed)
    stats = stats_of(exp, start)
    exp.log.info("%s: %s", name, ", ".join(f"{language} {units[language].size} symbols" for language in languages))
    limits, pooled = (conf.data.batch_seconds, conf.data.max_utterances), conf.data.pooled and structure["structure"] in UNION

    def make_dataset(part, **perturbed):
        return UtteranceDataset(
            read_utterances(conf, corpus, part),
            units,
            conf.features,
            stats,
            stored=FrameStore(exp.dir / "features" / "frames" / part),
            **perturbed,
        )

    dataset = make_dataset(
        "train",
        specaugment=conf.specaugment if conf.data.augment else None,
        warp=conf.data.warp,
        channel_db=conf.data.channel_db,
        channel_corners=conf.data.channel_corners,
        surroundings=surroundings_of(conf),
        cache_gigabytes=conf.data.cache_gigabytes,
    )
    dev = make_dataset("dev")
    sampler = LanguageSampler(dataset.utterances, languages, *limits, train.seed, conf.data.minibatches, pooled)
    choose_after = 0
    if dataset.surroundings and conf.data.pauses_from:
        batches = sum(1 for _ in sampler)
        dataset.surroundings_from = epoch, index = position_at(conf.data.pauses_from, train, batches)
        choose_after = (epoch * batches + index) // train.accumulate  # dev has no pauses: it would choose weights from before
    present = [language for language in languages if language in dev.utterances.codes]
    validate = dev_loss(dev, present, limits) if present else None

    def make_training():
        model = make_model(conf, structure, units, start, seed, exp.log)
        return TransducerTraining(model, conf.loss, train.warmup_steps)

    training = run_training(
        make_training, dataset, sampler, compute_loss, train, exp.dir / "training" / name, validate, exp.log, choose_after
    )
    if training is not None:  # it is one process's of several
        bundle = Bundle(training.transducer.eval(), units, conf.features, stats)
        search = with_bonus(exp, conf, bundle, languages)
        save_model(exp.dir / "models" / name, bundle.model, units, stats, conf.features, search)


def position_at(share: float, train: TrainConfig, batches: int) -> tuple[int, int]:
    """(epoch, index) of the batch at a share of a training whose epochs have about so many batches."""
    limits = []
    if train.max_steps is not None:
        limits.append(train.max_steps * train.accumulate)
    if train.max_epochs is not None:
        limits.append(train.max_epochs * batches)
    return divmod(round(share * min(limits)), batches)


def surroundings_of(conf: Any) -> Surroundings | None:
    """The Surroundings of utterances in training; None where none of their options is set."""
    from pyspeech.asr.surroundings import Surroundings
    from pyspeech.audio.io import find_audio

    folder = conf.data.noise_dir
    surroundings = Surroundings(conf.data, conf.features.sampling_rate, () if folder == "none" else find_audio([folder]))
    return surroundings if surroundings.used else None


def dev_loss(
    dataset: UtteranceDataset, languages: Sequence[str], limits: tuple[float, int]
) -> Callable[[TransducerTraining], dict[str, float]]:
    """validate(model) -> {"loss": of dev, the mean over the languages, so that a small one counts as much}."""
    from pyspeech.asr.batching import LanguageSampler
    from pyspeech.training.data import to_device

    sampler = LanguageSampler(dataset.utterances, languages, *limits, seed=0)

    def validate(training):
        device = training.batches.device
        sums = {language: [0.0, 0] for language in languages}
        for rows in sampler:
            batch = to_device(dataset[rows], device)
            frames = int(batch["lengths"].sum())
            entry = sums[dataset.languages[int(batch["languages"][0])]]
            entry[0] += training(batch)[0].item() * frames
            entry[1] += frames
        losses = {language: total / frames for language, (total, frames) in sums.items()}
        return {"loss": sum(losses.values()) / len(losses), **{f"loss_{language}": value for language, value in losses.items()}}

    return validate
