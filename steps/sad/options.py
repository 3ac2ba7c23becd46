"""Options of egs/fearless: whether they fit each other, and which stages depend on them."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspeech.errors import requirement
from pyspeech.sad.registry import COMMON, NETWORKS
from steps.sad.systems import SAMPLING_RATE, pattern, votes_of
from steps.systems import check_fixed, check_list


def check_options(conf: Any) -> None:
    """Raise UserError for options of the recipe that make no sense, or not together."""
    require = requirement("", conf)
    require("simulated", conf.simulated in ("always", "never", "auto"), "always, never or auto")
    for name in ("statistical", "features"):
        require(
            f"{name}.sampling_rate",
            getattr(conf, name).sampling_rate == SAMPLING_RATE,
            f"{SAMPLING_RATE} Hz, as all streams are read",
        )
    require("data.crop_seconds", conf.data.crop_seconds >= conf.features.frame_shift, "at least features.frame_shift")
    check_list(conf, "systems", NETWORKS)
    check_fixed(conf, "network.temporal", "statistical.voicing")
    for system in conf.systems:
        replace(conf.network, temporal=system).check()
    check_real(conf)
    require("minutes", len(conf.minutes) == 3 and min(conf.minutes) >= 1, "three numbers, 1 or more each")
    different = len(set(conf.collars)) == len(conf.collars) > 0
    require(
        "collars",
        different and all(0 <= collar < math.inf for collar in conf.collars),
        "seconds, 0 or more each, at least one and none twice",
    )
    require("train.minimize", conf.train.minimize == "dcf", "dcf, which is what is measured on dev")


def check_real(conf: Any) -> None:
    """Raise UserError where it is not clear what each folder of `real` is for."""
    from local.labelled_speech import USES

    require = requirement("", conf)
    require("real_as", set(conf.real_as) <= set(USES), "train, dev or eval each")
    require("real_as", len(conf.real_as) in (1, len(conf.real)), "one for all folders of real, or one for each")
    names = [Path(folder).resolve().name for folder in conf.real]
    require("real", len(names) == len(set(names)), "folders of different names")


def network_options(system: str) -> list[str]:
    """The options of `network` that a network depends on."""
    return [f"network.{option}" for option in (*COMMON, *NETWORKS[system].options)]


def timed(conf: Any) -> list[str]:
    """The networks of Table 3, and those that are not the paper's."""
    return [name for name in conf.systems if NETWORKS[name].paper_speed or not any(NETWORKS[name].paper)]


def scored(systems: Iterable[str]) -> list[str]:
    """The hypotheses and the scores of systems."""
    return [f"hypotheses/{pattern(systems)}", f"scores/{pattern(systems)}.json"]


def trained(*others: str) -> Callable[[Any], list[str]]:
    """A function of the configuration: the model of each network in use, and the patterns `others` before them."""
    return lambda conf: [*others, f"training/{pattern(conf.systems)}/model.pt"]


def tuned(conf: Any) -> list[str]:
    """List the outputs of tuning."""
    return [
        f"models/{pattern(conf.systems)}/model.pt",
        f"sweeps/{pattern([*conf.systems, *votes_of(conf.systems)[1:]])}.json",
        *scored([*conf.systems, *votes_of(conf.systems)]),
    ]


def cells(conf: Any) -> list[tuple[int, int]]:
    """The cells of Figure 7: [(segment length, shift)], frames; no shift beyond the length, as a frame would be in none. None
    where the networks that it compares are not both among the systems."""
    compared = {"cnn", "seg_rnn"} <= {*conf.systems}
    return [(length, shift) for length in conf.grid.lengths for shift in conf.grid.shifts if shift <= length and compared]


def if_grid(*paths: str, always: Iterable[str] = ()) -> Callable[[Any], list[str]]:
    """A function of the configuration: the paths `always`, and the others where it has cells of Figure 7."""
    return lambda conf: [*always, *(paths if cells(conf) else [])]
