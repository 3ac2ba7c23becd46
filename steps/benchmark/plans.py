"""The recipes as a benchmark sees them: a corpus of the official layout, the stages before the trainings, and what a stage
would train, taken from the stage itself."""

from __future__ import annotations

import contextlib
import logging
import os
import runpy
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspeech.errors import UserError
from pyspeech.launch import ROOT
from steps.benchmark.programs import Outcome, run_program

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from pyspeech.engine.recipe import Recipe


class Plan(NamedTuple):
    """corpus: as local/full_size.py calls it; stages: those before the trainings; training: a stage that trains; options:
    what narrows the recipe to it; seconds: seconds(batch, configuration) of audio."""

    corpus: str
    stages: tuple
    training: str
    options: tuple
    seconds: object


PLANS = {
    "fearless": Plan(
        "fearless",
        ("prepare",),
        "train_seg_rnn",
        ("simulated=never",),
        lambda batch, conf: len(batch["samples"]) * conf.data.crop_seconds,
    ),
    "zerospeech": Plan("zerospeech", ("prepare",), "train_trf128", ("seeds=[42]",), lambda batch, conf: batch["seconds"]),
    "add2022": Plan(
        "add2022",
        ("prepare", "prepare_tests", "backgrounds"),
        "train_rnm_sm_mc0.8",
        ("seeds=[42]",),
        lambda batch, conf: batch["seconds"],
    ),
    "indic": Plan(
        "mucs",
        ("prepare", "units", "features"),
        "train_multi_softmax_lid",
        (),
        lambda batch, conf: float(batch["lengths"].sum()) * conf.features.frame_seconds,
    ),
}


class Training(NamedTuple):
    """The arguments of a stage for pyspeech.training.run.train, and the recipe's configuration."""

    make_model: Any
    dataset: Any
    sampler: Any
    compute_loss: Any
    config: Any
    conf: Any


def add_recipes(parser: ArgumentParser, recipes: Collection[str], work: str) -> None:
    """The option --recipes of a tool that does this work with them."""
    parser.add_argument(
        "--recipes",
        nargs="+",
        choices=recipes,
        default=list(recipes),
        metavar="RECIPE",
        help=f"recipes to {work}: {', '.join(recipes)} (default: all)",
    )


def script_of(recipe: str) -> str:
    return os.path.join(ROOT, "egs", recipe, "run.py")


def load_recipe(recipe: str) -> Recipe:
    """The Recipe object of egs/<recipe>/run.py."""
    return runpy.run_path(script_of(recipe), run_name="recipe")["recipe"]


def finish(command: Sequence[object]) -> Outcome:
    """The Outcome of a program that has to end well; UserError with its first error otherwise."""
    done = run_program(list(map(str, command)))
    if done.status:
        raise UserError(f"{' '.join(map(str, command[1:4]))} ...: status {done.status}: {done.error}")
    return done


def run_stage(recipe: str, stage: str, profile: str, folder: Path, settings: Sequence[str]) -> Outcome:
    """Run one stage of a recipe on the CPU, in the experiment folder `folder`: its Outcome."""
    arguments = ["--profile", profile, "--device", "cpu", "--jobs", "1", "--exp", folder, *settings]
    return finish([sys.executable, script_of(recipe), "--stage", stage, "--stop-stage", stage, *arguments])


def training_of(recipe: str, profile: str, folder: Path, settings: Sequence[str]) -> Training:
    """The Training that the Plan's stage would begin in an experiment folder where those before it are done."""
    from pyspeech.engine.run import Experiment
    from pyspeech.training import run

    loaded, found = load_recipe(recipe), []
    conf = loaded.configure(profile, settings)[1]
    function = next(stage.function for stage in loaded.stages if stage.name == PLANS[recipe].training)

    class Taken(Exception):
        """The stage is to go no further."""

    def take(make_model, dataset, sampler, compute_loss, config, *others, **more):
        found.append(Training(make_model, dataset, sampler, compute_loss, config, conf))
        raise Taken

    usual, run.train = run.train, take  # which the stage calls with what it would train on
    try:
        with contextlib.suppress(Taken):
            function(Experiment(folder, logging.getLogger("pyspeech.benchmark"), profile, tuple(settings)), conf)
    finally:
        run.train = usual
    return found[0]
