"""The weights that trainings of egs/add2022 begin with: random ones, or those of a detector (`start_from`), which learns from
another corpus then."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyspeech.errors import UserError
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
