"""Recipes that train several systems: what stages declare of a system that is used, its seeds, and its figures."""
import json


def if_used(system, *patterns):
    """A function of the configuration: the patterns, or none where the system is not among `systems`."""
    return lambda conf: list(patterns) if system in conf.systems else []


def seeds_of(conf, system):
    """The seeds that a system is trained with: all of them where it is among `repeated`, else the first."""
    return conf.seeds if system in conf.repeated else conf.seeds[:1]


def models_of(system, *others):
    """As `if_used`, of the folder of the system's model by each seed, and of other patterns before them."""
    return lambda conf: if_used(system, *others, *(f"models/{system}/{seed}" for seed in seeds_of(conf, system)))(conf)


def read_scores(folder, systems=None):
    """{system: its figures} of the files scores/<system>.json that the stages which score have left; by default of all."""
    paths = sorted(folder.glob("*.json")) if systems is None else (folder / f"{system}.json" for system in systems)
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
