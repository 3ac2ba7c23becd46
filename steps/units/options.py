"""Options of egs/zerospeech: whether they fit each other, and which files depend on them."""

import sys
from typing import Any

from pyspeech.errors import requirement
from steps.systems import check_fixed, check_list, check_systems
from steps.units.corpus import MINI_LANGUAGES
from steps.units.recognition import command_of
from steps.units.score import anchors_of
from steps.units.train import SYSTEMS


def check_options(conf: Any) -> None:
    """Raise UserError for options that make no sense, or not together; nested ones have been checked."""
    check_systems(conf, SYSTEMS)
    require = requirement("", conf)
    require("scale", 0 < conf.scale <= 1, "more than 0, at most 1")
    require("synthesis", conf.synthesis in conf.systems, f"one of systems=[{', '.join(conf.systems)}]")
    require("spoken", conf.spoken >= 1, "at least 1")
    check_fixed(conf, "vqvae.features", "train.seed", "inverter.bins", "inverter.repeat", "inverter_train.seed")
    check_list(conf, "languages", MINI_LANGUAGES)
    check_list(conf, "kmeans", range(1, sys.maxsize), "numbers of codes, each at least 1", least=0)
    command_of(conf.recogniser)


def anchors(conf: Any) -> list[str]:
    """List the outputs of the anchors' stage."""
    return [f"scores/{anchors_of(conf)}.json", f"units/{anchors_of(conf)}"]


def spoken_model(conf: Any) -> list[str]:
    """The corpus and the model whose units are spoken."""
    return ["corpus", f"models/{conf.synthesis}/{conf.seeds[0]}"]


def submitted(conf: Any) -> list[str]:
    """List what a submission is made of."""
    return ["corpus", "models/synthesis", f"units/{conf.synthesis}", "wavs"]


def read_by_report(conf: Any) -> list[str]:
    """List what the tables are made of."""
    systems = [anchors_of(conf), *conf.systems]
    return ["synthesis.json", *(path for name in systems for path in (f"scores/{name}.json", f"units/{name}"))]
