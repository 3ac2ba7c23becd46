"""Options of egs/indic: whether they fit each other, and what trainings and decodings depend on."""

from collections.abc import Callable
from typing import Any

from pyspeech.errors import requirement
from pyspeech.text.tags import is_pattern
from steps.asr.context import check_context, context_inputs
from steps.asr.corpus import KINDS
from steps.asr.start import check_start, start_inputs
from steps.asr.train import SEEDS, STRUCTURES
from steps.systems import check_fixed, check_list, if_used

BONUSES = "numbers, each at least 0, and search.symbol_bonus=0; or [], to use search.symbol_bonus as it is"


def check_options(conf: Any) -> None:
    """Raise UserError for options that make no sense, or not together; nested ones have been checked."""
    require = requirement("", conf)
    require("kind", conf.kind in KINDS, f"one of {', '.join(KINDS)}")
    require("longest", conf.longest > 0, "a positive number of seconds, or .inf")
    require("cut_longer", not conf.cut_longer or conf.longest < float("inf"), "false, or longest=SECONDS too")
    require("units", conf.units in ("grapheme", "sentencepiece"), "grapheme or sentencepiece")
    require("pieces", conf.pieces >= 1, "at least 1")
    require("tags", all(map(is_pattern, conf.tags)), "tags such as <noise>, with one star at most, or [laughter-*]=*")
    check_list(conf, "systems", SEEDS)
    for system in conf.systems:
        require("systems", SEEDS[system] in (None, *conf.systems), f"{SEEDS[system]} too, which {system} is trained from")
    for name in ("scale", "monolingual_steps", "monolingual_lr", "finetune_steps", "finetune_lr"):
        require(name, 0 < getattr(conf, name) < float("inf"), "a positive number")
    require("data.channel_db", not (conf.data.channel_db and conf.features.mean_frames), "0, as mean_frames takes it off")
    require("train.minimize", conf.train.minimize == "loss", "loss")
    check_fixed(conf, "model.structure", "model.lsp", "model.lid", "model.features")
    good = all(0 <= value < float("inf") for value in conf.symbol_bonuses)
    require("symbol_bonuses", good and not (conf.symbol_bonuses and conf.search.symbol_bonus), BONUSES)
    for name in ("stop_after", "stop_below"):
        require(name, all(0 <= value < float("inf") for value in getattr(conf, name) or [-1]), "numbers, each at least 0")
    check_context(conf)
    check_start(conf, SEEDS, STRUCTURES)


def own_options(system: str) -> list[str]:
    """The options of a system's training beside those of all."""
    part = "finetune" if SEEDS[system] else "monolingual"
    own = [f"{part}_steps", f"{part}_lr", "steps_by_hours"] if SEEDS[system] or system == "monolingual" else []
    return own if SEEDS[system] else [*own, "start_from", "freeze"]


def read_by_training(system: str) -> Callable[[Any], list[str]]:
    """A function of the configuration: what the training of a system reads, the model that it begins with among it."""

    def inputs(conf):
        seed = SEEDS[system]
        first = [f"models/{seed}"] if seed else start_inputs(conf, system) if system in conf.systems else []
        return if_used(system, "corpus", "units", "features/*.json", *first)(conf)

    return inputs


def read_by_decoding(system: str) -> Callable[[Any], list[str]]:
    """A function of the configuration: what the decoding with a system reads."""
    return lambda conf: if_used(system, "corpus", f"models/{system}", *context_inputs(conf, system))(conf)
