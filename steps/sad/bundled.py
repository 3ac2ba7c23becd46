"""The first stages of egs/detector, which makes the bundled speech detector; `exp` is the engine's Experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspeech.errors import requirement
from steps.sad.corpus import add_real, prepare_real
from steps.sad.options import check_real

if TYPE_CHECKING:
    from pyspeech.engine.run import Experiment


SYSTEMS = ("rnn", "causal_rnn")  # the bundled network, and that for streams


def check_options(conf: Any) -> None:
    """Raise UserError for options that make no sense, or not together; nested ones have been checked."""
    require = requirement("", conf)
    for name in ("train_minutes", "dev_minutes", "eval_minutes"):
        require(name, len(getattr(conf, name)) == 3 and min(getattr(conf, name)) >= 1, "three numbers, 1 or more each")
    check_real(conf)
    require("quiet_limit", 0 <= conf.quiet_limit <= 1, "0 to 1")
    require("features.sampling_rate", conf.features.sampling_rate == 8000, "8000 Hz, as all recordings are read")
    require("network.temporal", conf.network.temporal in SYSTEMS, f"one of {', '.join(SYSTEMS)}, the bundled networks")
    require("data.crop_seconds", conf.data.crop_seconds >= conf.features.frame_shift, "at least features.frame_shift")
    require("train.minimize", conf.train.minimize == "dcf", "dcf, which is what is measured on dev")


def prepare(exp: Experiment, conf: Any) -> None:
    """Simulate radio, close speech and recordings without speech; labels of words and of turns."""
    from local.detector import scenes
    from local.fearless import ami_clips

    out = exp.dir / "corpus"
    real = prepare_real(conf, out, exp.log, exp.parts)
    minutes = {name: getattr(conf, f"{name}_minutes") for name in scenes.SPLITS}
    scenes.prepare(out, exp.log, minutes=minutes, parts=exp.parts)
    ami_clips.prepare(out, exp.log)
    add_real(out, real)


def train(exp: Experiment, conf: Any) -> None:
    """Train the network on the labels of words; dev chooses the weights."""
    from steps.sad.train import train_network

    train_network(exp, conf, conf.network, exp.dir / trained(conf), "none", collars=[0.0])


def trained(conf: Any) -> str:
    """The folder of the network that is trained."""
    return f"training/{conf.network.temporal}"


def decode(exp: Experiment, conf: Any) -> None:
    """Scores of the network for every frame of dev and the eval sets."""
    from steps.sad.score import score_networks

    score_networks(exp, conf, [conf.network.temporal])
