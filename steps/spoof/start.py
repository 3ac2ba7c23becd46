"""The weights that trainings of egs/add2022 begin with: random ones, or those of a detector (`start_from`), which learns from
another corpus then."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.engine.artifacts import pattern_of
from pyspeech.errors import UserError
from pyspeech.model_file import MODEL_FILE
from steps.systems import check_same_features

if TYPE_CHECKING:
    from pyspeech.spoof.networks import DetectorNetwork


def check_start(conf: Any) -> None:
    """Raise UserError where the detector of conf.start_from cannot be read, looks at other features, or would have met what is
    to be left out."""
    if conf.start_from == "random":
        return
    if conf.leave_out:
        raise UserError(
            f"start_from={conf.start_from}: that detector may have met the engines of leave_out; expected random, "
            "or no leave_out"
        )
    from pyspeech.spoof.checkpoint import read_features

    try:
        theirs = asdict(read_features(_place(conf)))
    except UserError as error:
        raise UserError(f"start_from={conf.start_from}: {error}") from None
    check_same_features(conf, theirs)


def start_inputs(conf: Any) -> list[str]:
    """Patterns of the model file that a training begins with."""
    if conf.start_from == "random":
        return []
    place = Path(_place(conf))
    return [pattern_of(place / MODEL_FILE if place.is_dir() else place)]


def first_model(conf: Any) -> DetectorNetwork:
    """The network of conf.network and conf.features that a training begins with."""
    from pyspeech.spoof.checkpoint import load_model
    from pyspeech.spoof.networks import make_network

    model = make_network(conf.network, conf.features)
    model.check_pieces(conf.data.samples)
    if conf.start_from != "random":
        model.load_state_dict(load_model(_place(conf)).model.state_dict())
    return model


def _place(conf):
    """Where the detector of conf.start_from is."""
    from pyspeech.spoof.checkpoint import SHIPPED

    return SHIPPED if conf.start_from == "shipped" else conf.start_from
