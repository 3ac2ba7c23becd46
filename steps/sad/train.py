"""Training of one SAD network (Heitkaemper et al. 2020, sections 3 and 4.2); the DCF on dev chooses the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.sad.registry import NETWORKS
from steps.chance import warn_of_training
from steps.sad.detect import blocks, labels_of_dev

if TYPE_CHECKING:
    from pyspeech.engine.run import Experiment
    from pyspeech.sad.config import NetworkConfig
    from pyspeech.sad.networks import SadNetwork
    from pyspeech.sad.thresholds import Sweep

VALIDATION_THRESHOLDS = 41  # of the decisions that choose the weights: the DCF hardly changes between two of them


def train_system(exp: Experiment, conf: Any, system: str) -> None:
    """Train the network of a row of the table in training/<system>."""
    network = replace(conf.network, temporal=system)
    train_network(exp, conf, network, exp.dir / "training" / system, NETWORKS[system].smoothings[0])


def train_network(
    exp: Experiment, conf: Any, network: NetworkConfig, folder: Path, smoothing: str, collars: Sequence[float] | None = None
) -> None:
    """Train a network, a NetworkConfig, in `folder`, where model.pt is the result. Goes on after a kill.

    smoothing: of the decisions by which the weights are chosen, see pyspeech.sad.smoothing; collars: of their DCF, seconds,
    by default those of `conf`."""
    from pyspeech.sad.checkpoint import save_model
    from pyspeech.sad.dataset import CropDataset, crop_sampler
    from pyspeech.sad.networks import SadNetwork, context_frames
    from pyspeech.sad.training import compute_loss
    from pyspeech.training.run import train

    streams = load_cuts(exp.dir / "corpus", "train")
    dataset = CropDataset(streams, conf.data, conf.features, context_frames(network, conf.features))
    sampler = crop_sampler(streams, conf.data, conf.train.seed)
    validate = dev_validation(exp, smoothing, collars or conf.collars)
    model = train(
        lambda: SadNetwork(network, conf.features), dataset, sampler, compute_loss, conf.train, folder, validate, exp.log
    )
    if model is not None:  # it is one process's of several
        warn_of_training(exp.log, folder.name, folder, measure="dcf")
        save_model(folder, model)


def dev_validation(exp: Experiment, smoothing: str, collars: Sequence[float]) -> Callable[[SadNetwork], dict[str, float]]:
    """validate(model) -> {"dcf": the mean over the collars of the lowest DCF on dev over the thresholds, a fraction}, and
    that of each collar."""

    def validate(model):
        found = sweep_dev(exp, model, smoothing, collars, VALIDATION_THRESHOLDS)
        each = {f"dcf_{collar:g}": sweep.best_dcf for collar, sweep in zip(collars, found, strict=True)}
        return {"dcf": sum(each.values()) / len(each), **each}

    return validate


def sweep_dev(
    exp: Experiment, model: SadNetwork, smoothing: str, collars: Sequence[float], num_thresholds: int | None = None
) -> list[Sweep]:
    """A pyspeech.sad.thresholds.Sweep for each collar of the decisions of a network on dev; None: of all thresholds."""
    from pyspeech.sad.decoding import score_stream
    from pyspeech.sad.thresholds import NUM_THRESHOLDS, sweep

    dev, stft = load_cuts(exp.dir / "corpus", "dev"), model.stft.config
    scores = (score_stream(model, blocks(cut)) for cut in dev)
    return sweep(
        scores,
        *labels_of_dev(exp, dev),
        smoothing,
        collars,
        stft.frame_shift,
        stft.frame_offset,
        num_thresholds or NUM_THRESHOLDS,
    )
