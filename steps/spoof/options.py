"""Options of egs/add2022: whether they fit each other, and which files depend on them."""

import math
import re
from collections.abc import Callable
from typing import Any

from pyspeech.errors import requirement
from pyspeech.spoof.scored_cuts import TOGETHER
from steps.spoof.corpus import KINDS, SETS, WAYS
from steps.spoof.start import check_start
from steps.spoof.train import SYSTEMS, if_augmented
from steps.systems import check_fixed, check_systems

TRAINED = ("features", "network", "data", "train", "start_from")  # options of every training


def check_options(conf: Any) -> None:
    """Raise UserError for options of the recipe that make no sense, or not together."""
    require = requirement("", conf)
    require("kind", conf.kind in KINDS, f"one of {', '.join(KINDS)}")
    require("split_by", conf.split_by in WAYS, f"one of {', '.join(WAYS)}")
    require("test", not set(conf.test) & set(SETS), f"other names than {', '.join(SETS)}, which are sets of the corpus")
    require("test", all(re.fullmatch(r"\w[\w.+-]*", name) for name in conf.test), "names of letters and digits, such as wild")
    require("scale", 0 < conf.scale <= 1, "more than 0, at most 1")
    for name in ("pooled_steps", "left_out_steps"):
        require(name, 0 < getattr(conf, name) < math.inf, "a positive number")
    check_fixed(conf, "augment.coefficients", "train.seed")  # each system has its own
    require("train.minimize", conf.train.minimize in ("eer", "loss"), "eer or loss")
    check_systems(conf, SYSTEMS)
    left_out = [family for group in conf.leave_out for family in group.split(TOGETHER)]
    require("leave_out", len(set(left_out)) == len(left_out), "each family once")
    check_start(conf)


def own_options(system: str) -> list[str]:
    """The options of a system's training beside those of all."""
    return ["augment", "specaugment"] * bool(SYSTEMS[system]) + ["pooled_steps"] * ("sets" in SYSTEMS[system])


def read_by_report(conf: Any) -> list[str]:
    """List what the tables are made of."""
    differences = "{differences,families}.json" if conf.leave_out else "differences.json"
    sources = ["backgrounds/sources.json"] * bool(if_augmented(conf))
    return [*all_corpora(conf), *sources, differences, *(f"scores/{name}{{,.json}}" for name in conf.systems)]


def all_corpora(conf: Any) -> list[str]:
    """The folder of the corpus, and that of those to test on alone, where there are some."""
    return ["corpus", *if_tested(conf)]


def if_tested(conf: Any) -> list[str]:
    """The folder of the corpora to test on alone, where there are some."""
    return ["tests"] * bool(conf.test)


def if_left_out(*paths: str, last_scores: bool = False) -> Callable[[Any], list[str]]:
    """A function of the configuration: the paths, and the scores of the last of the systems, where families are left out."""
    return lambda conf: [*paths, *[f"scores/{conf.systems[-1]}"] * last_scores] if conf.leave_out else []
