"""The grid of Figure 7 (Heitkaemper et al. 2020, section 4.2): segment RNNs of other segment lengths and shifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.engine.parts import in_parts
from pyspeech.files import write_json
from pyspeech.sad.registry import NETWORKS
from steps.sad.options import cells
from steps.sad.train import sweep_dev, train_network

if TYPE_CHECKING:
    from pyspeech.engine.run import Experiment


def train_grid(exp: Experiment, conf: Any) -> None:
    """Segment RNNs of other lengths and shifts on dev (Figure 7).

    grid.json: [{length, shift (frames), dcf: {collar: the lowest DCF on dev over the thresholds, a fraction}}, ...].

    A cell is trained as the network of the table is, in training/grid/<length>_<shift>, where it stays: what a stage that
    was killed has trained is not trained again. The cell of the table's own length and shift is that network. Of several
    processes, all train and the first one measures.
    """
    from pyspeech.training import distributed

    parts = {f"{length}_{shift}": (length, shift) for length, shift in cells(conf)}
    if distributed.world_size() > 1:
        for cell in parts.values():
            train_cell(exp, conf, *cell)
    if distributed.rank() == 0:
        # One at a time: a training takes all cores.
        rows = in_parts(exp.parts, "cells", lambda cell: measured_cell(exp, conf, *cell), parts, jobs=1)
        write_json(exp.dir / "grid.json", list(rows.values()))


def cell_folder(exp: Experiment, conf: Any, length: int, shift: int) -> Path:
    own = (conf.network.segment_length, conf.network.segment_shift)
    return exp.dir / "training" / ("seg_rnn" if (length, shift) == own else f"grid/{length}_{shift}")


def train_cell(exp: Experiment, conf: Any, length: int, shift: int) -> None:
    """Train a cell, unless it is there. Of several processes, all do."""
    from pyspeech.training import distributed

    folder = cell_folder(exp, conf, length, shift)
    if distributed.from_first(lambda: not (folder / "model.pt").exists()):
        exp.log.info("one of %d cells: length %d, shift %d", len(cells(conf)), length, shift)
        network = replace(conf.network, temporal="seg_rnn", segment_length=length, segment_shift=shift)
        train_network(exp, conf, network, folder, NETWORKS["seg_rnn"].smoothings[0])


def measured_cell(exp: Experiment, conf: Any, length: int, shift: int) -> dict[str, Any]:
    """The entry of a cell in grid.json, which is trained where it has not been."""
    from pyspeech.training import distributed

    if distributed.world_size() == 1:
        train_cell(exp, conf, length, shift)
    dcf = measure(exp, cell_folder(exp, conf, length, shift), conf.collars)
    exp.log.info(
        "length %d, shift %d: dev DCF %s",
        length,
        shift,
        ", ".join(f"{100 * value:.2f} % (collar {collar} s)" for collar, value in dcf.items()),
    )
    return {"length": length, "shift": shift, "dcf": dcf}


def measure(exp: Experiment, folder: Path, collars: Sequence[float]) -> dict[str, float]:
    """{collar: the lowest DCF on dev over the thresholds} of the segment RNN in a folder."""
    from pyspeech.compat import default_device
    from pyspeech.sad.checkpoint import load_model

    found = sweep_dev(exp, load_model(folder, default_device()), NETWORKS["seg_rnn"].smoothings[0], collars)
    return {f"{collar:g}": sweep.best_dcf for collar, sweep in zip(collars, found, strict=True)}
