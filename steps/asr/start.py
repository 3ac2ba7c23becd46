"""The weights that trainings of egs/indic begin with: random ones, those of another model (`start_from`), or, of finetuned
systems, those of a system of the same experiment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.asr.config import FREEZABLE, KIND, UNION
from pyspeech.engine.artifacts import pattern_of
from pyspeech.errors import UserError
from pyspeech.model_file import MODEL_FILE, find_model
from steps.systems import check_list, check_same_features

if TYPE_CHECKING:
    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.networks import Transducer
    from pyspeech.engine.run import Experiment
    from pyspeech.features.fbank import GlobalStats
    from pyspeech.text.units import Units

RANDOM = "random"
SIZES = {  # of the parts that can be frozen
    "encoder": ("encoder", "encoder_layers", "encoder_size"),
    "predictor": ("predictor_layers", "predictor_size", "embedding"),
    "joint": ("joint", "encoder_size", "predictor_size"),
    "lid": ("lid_sizes", "encoder_size"),
}


def check_start(conf: Any, systems: Mapping[str, str | None], structures: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise UserError where a model of start_from cannot be read or hears other features, and where options do not fit it.

    systems: {system: the one that it is finetuned from}; structures: {system: its options of TransducerConfig}.
    """
    check_list(conf, "freeze", FREEZABLE, least=0)
    if conf.start_from == RANDOM:
        if conf.freeze:
            raise UserError("freeze: random weights are to be trained; expected none, or start_from=DIR too")
        return
    from pyspeech.asr.checkpoint import read_options

    started: dict[Path, list[str]] = {}
    for system in conf.systems:
        if systems[system] is None:
            started.setdefault(start_place(conf, system), []).append(system)
    for place, names in started.items():
        try:
            model, features = read_options(place)
        except UserError as error:
            raise UserError(f"start_from={conf.start_from}: {error}") from None
        check_same_features(conf, asdict(features))
        for system in names:
            _check_frozen(conf, system, structures[system], model)


def _check_frozen(conf, system, structure, theirs):
    """UserError for what does not depend on languages and symbols; of these, the training tells."""
    for part in conf.freeze:
        has_lid = structure.get("lid")
        if part == "lid" and not (has_lid and theirs.lid):
            who = f"the system {system}" if not has_lid else f"the model of start_from={conf.start_from}"
            raise UserError(f"freeze=lid: {who} has no language identification; leave it out")
        if part in ("encoder", "predictor") and structure["structure"] == "onehot" != theirs.structure:
            raise UserError(f"freeze={part}: start_from={conf.start_from} has no inputs for languages, as {system} has")
        for name in SIZES[part]:
            own, there = getattr(conf.model, name), getattr(theirs, name)
            if own != there:
                raise UserError(f"freeze={part}: model.{name}={own}; expected {there}, as the model of start_from has it")


def start_place(conf: Any, system: str) -> Path:
    """The folder of the model that a system begins with: conf.start_from, or in an experiment the system of the same name.

    UserError where there is none.
    """
    own = Path(conf.start_from) / "models" / system
    return own if (own / MODEL_FILE).is_file() else find_model(conf.start_from, KIND, option="start_from")


def start_inputs(conf: Any, system: str) -> list[str]:
    """Patterns of the model files that the training of a system begins with."""
    if conf.start_from == RANDOM:
        return []
    return [pattern_of(start_place(conf, system) / MODEL_FILE)]


def first_bundle(exp: Experiment, conf: Any, system: str, seed: str | None) -> Bundle | None:
    """The model that a training begins with: that of the system `seed`, else of start_from; None for random weights."""
    from pyspeech.asr.checkpoint import load_model

    if seed:
        return load_model(exp.dir / "models" / seed)
    if conf.start_from == RANDOM:
        return None
    place = start_place(conf, system)
    exp.log.info("%s begins with the weights of %s", system, place)
    return load_model(place)


def stats_of(exp: Experiment, start: Bundle | None) -> GlobalStats:
    """The statistics that features are normalised with: those of the first model, so that it hears what it knows."""
    from pyspeech.features.fbank import GlobalStats

    return (start and start.stats) or GlobalStats.load(exp.dir / "features" / "stats.json")


def make_model(
    conf: Any,
    structure: Mapping[str, Any],
    units: Mapping[str, Units],
    start: Bundle | None,
    seed: str | None,
    log: logging.Logger,
) -> Transducer:
    """A new Transducer over the languages of `units`, with what fits of `start`; or that of the system `seed`, which `start`
    is, for its language.

    structure: options of TransducerConfig of the system.
    """
    from pyspeech.asr.finetune import symbols_in_union, to_monolingual
    from pyspeech.asr.networks import Transducer
    from pyspeech.asr.starting import freeze, take_weights

    if seed and start:
        [(language, own)] = units.items()
        union = start.model.config.structure in UNION
        return to_monolingual(start.model, language, symbols_in_union(start.units[language], own) if union else None).train()
    config = replace(conf.model, features=conf.features.dim, **structure)
    model = Transducer(config, {language: entry.size for language, entry in units.items()})
    if start:
        report = take_weights(model, units, start.model, start.units)
        for line in report.lines():
            log.info("%s", line)
        freeze(model, conf.freeze, report)
    return model
