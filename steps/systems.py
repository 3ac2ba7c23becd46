"""Recipes that train several systems: their options, what stages declare of a system in use, its seeds, its figures."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspeech.errors import UserError, requirement

# What stages declare that make manifests of a large corpus, train a network, score without one, or compute with one.
PREPARING = {"cpus": 2, "memory": 8, "hours": 4, "resumable": True}
TRAINING = {"cpus": 2, "gpus": 1, "resumable": True, "trains": True}
SCORING = {"cpus": 2, "resumable": True}
DECODING = {"cpus": 2, "gpus": 1, "resumable": True, "shards": 4}


def check_systems(conf: Any, known: Collection[str]) -> None:
    """Raise UserError where `systems`, `repeated` or `seeds` of a configuration make no sense; known: names of systems."""
    check_list(conf, "systems", known)
    check_list(conf, "repeated", known, least=0)
    check_list(conf, "seeds", range(2**63), "0 to 2^63 - 1")


def check_list(conf: Any, name: str, choices: Collection[Any], expected: str | None = None, least: int = 1) -> None:
    """Raise UserError unless the option `name` has at least so many values, each of them once and among `choices`."""
    require, values = requirement("", conf), getattr(conf, name)
    require(name, len(values) >= least, "at least one")
    wrong = [str(value) for value in values if value not in choices]
    require(name, not wrong, expected or f"some of {', '.join(choices)}; there is no {', '.join(wrong)}")
    require(name, len(set(values)) == len(values), "each once")


def check_fixed(conf: Any, *keys: str) -> None:
    """Raise UserError where an option that the systems and other options set has another value than its default."""
    for key in keys:
        part, _, name = key.partition(".")
        default = getattr(type(getattr(conf, part))(), name)
        good = getattr(getattr(conf, part), name) == default
        requirement("", conf)(key, good, f"its default, {default}: it follows from each system and from other options")


def check_same_features(conf: Any, theirs: Mapping[str, Any]) -> None:
    """Raise UserError unless conf.features has the values `theirs`, {name: value} of the model of conf.start_from."""
    wrong = [f"features.{name}={str(value).lower()}" for name, value in theirs.items() if getattr(conf.features, name) != value]
    if wrong:
        raise UserError(f"start_from={conf.start_from}: its weights are for other features; expected {' '.join(wrong)}")


def if_used(system: str, *patterns: str) -> Callable[[Any], list[str]]:
    """A function of the configuration: the patterns, or none where the system is not among `systems`."""
    return lambda conf: list(patterns) if system in conf.systems else []


def seeds_of(conf: Any, system: str) -> list[int]:
    """The seeds that a system is trained with: all of them where it is among `repeated`, else the first."""
    return conf.seeds if system in conf.repeated else conf.seeds[:1]


def models_of(system: str, *others: str) -> Callable[[Any], list[str]]:
    """As `if_used`, of the folder of the system's model by each seed, and of other patterns before them."""
    return lambda conf: if_used(system, *others, *(f"models/{system}/{seed}" for seed in seeds_of(conf, system)))(conf)


def read_scores(folder: Path, systems: Iterable[str] | None = None) -> dict[str, Any]:
    """{system: its figures} of the files scores/<system>.json that the stages which score have left; by default of all."""
    paths = sorted(folder.glob("*.json")) if systems is None else (folder / f"{system}.json" for system in systems)
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
