"""The command line of a recipe: its flags, and the text of --help and --list."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from pyspeech.engine import config, site
from pyspeech.engine.declaration import Declaration
from pyspeech.engine.process import THREADS, shell_command, threads
from pyspeech.engine.queues import QUEUES
from pyspeech.engine.stages import Stage
from pyspeech.errors import UserError

FLAGS = {
    "--stage": "X     begin at this stage (number or name); without it: every stage that is not up to date",
    "--stop-stage": "Y     end after this stage",
    "--profile": "NAME  take the options of conf/NAME.yaml",
    "--exp": "DIR   keep everything this run makes in DIR",
    "--jobs": "N     run up to N stages at once, each with its share of the cores; 1: one after the other",
    "--gpus": "N     train on N GPUs, with --device cpu in N processes; train.accumulate has to be N or more",
    "--device": "cpu   compute on the CPU, though there is a GPU",
    "--cluster": "Q     run each stage as a job of the queue Q, slurm or sge, and follow; its options: cluster.KEY=VALUE",
    "--cancel": "      end the jobs of this experiment",
    "--force": "      run the chosen stages again, though they are up to date",
    "--list": "      show the stages",
    "--dry-run": "      show what would run, and why",
    "--help": "      show this text",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UserError(f"{message} (see --help)")


def parse(arguments: Sequence[str], options: Mapping[str, config.Option]) -> argparse.Namespace:
    """Read the flags and `overrides` of a command line into a namespace; options: {key: Option} for hints in UserErrors."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    for flag in ("--stage", "--stop-stage", "--profile", "--exp", "--jobs", "--gpus", "--device", "--cluster"):
        parser.add_argument(flag)
    for flag in ("--force", "--list", "--dry-run", "--cancel"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--help", "-h", action="store_true")
    parser.add_argument("overrides", nargs="*")
    flags, unknown = parser.parse_known_intermixed_args(arguments)
    if unknown:
        raise _unknown_flag(unknown[0], options)
    for argument in flags.overrides:
        config.split_override(argument)
    if flags.jobs is not None and not (flags.jobs.isdecimal() and int(flags.jobs) >= 1):
        raise UserError(f"--jobs {flags.jobs}: expected a number of stages, at least 1")
    if flags.gpus is not None and not (flags.gpus.isdecimal() and int(flags.gpus) >= 1):
        raise UserError(f"--gpus {flags.gpus}: expected a number of GPUs, at least 1")
    if int(flags.gpus or 1) > 1 and int(flags.jobs or 1) > 1:
        raise UserError(f"--jobs {flags.jobs} --gpus {flags.gpus}: one stage at a time has all GPUs; leave one of them out")
    if flags.device not in (None, "cpu"):
        raise UserError(f"--device {flags.device}: expected cpu; without it a GPU is used, if there is one")
    flags.overrides, flags.site = site.split_overrides(flags.overrides)
    if flags.cluster not in (None, *QUEUES):
        raise UserError(f"--cluster {flags.cluster}: expected one of {', '.join(QUEUES)}")
    if flags.site and not flags.cluster:
        raise UserError(f"{site.PREFIX}{flags.site[0]}: an option of --cluster {'|'.join(QUEUES)}, which is not given")
    return flags


def repeat(flags: argparse.Namespace, stage: str | int | None = None) -> list[str]:
    """List the arguments that do the same again, without --force; or, with `stage`, that begin there and go to the end."""
    chosen = {
        "--profile": flags.profile,
        "--exp": flags.exp,
        "--jobs": flags.jobs,
        "--gpus": flags.gpus,
        "--device": flags.device,
        "--cluster": flags.cluster,
        "--stage": stage or flags.stage,
        "--stop-stage": None if stage else flags.stop_stage,
    }
    return [*_given(chosen), *flags.overrides, *(site.PREFIX + text for text in flags.site)]


def repeat_in_job(flags: argparse.Namespace, profile: str | None, folder: str) -> list[str]:
    """List what a job of a cluster is told beside its stage: what was decided where it was submitted."""
    said = {"--profile": profile, "--exp": folder, "--device": flags.device}
    return [*_given(said), *flags.overrides]


def _given(values):
    """{flag: value} as arguments, those that have a value."""
    return [text for flag, value in values.items() if value is not None for text in (flag, value)]


def _unknown_flag(argument, options):
    name = argument.lstrip("-").partition("=")[0]
    if name in options:
        return UserError(f"no flag '{argument}': options have no dashes, write {name}=VALUE")
    guess = config.nearest(name, [*(flag[2:] for flag in FLAGS), *options])
    guess = f"--{guess}" if f"--{guess}" in FLAGS else guess
    return UserError(f"no flag '{argument}'" + (f"; did you mean '{guess}'?" if guess else "") + " (flags: --help)")


def help_text(recipe: Declaration, profile: str | None, values: Mapping[str, Any]) -> str:
    """Write usage, profiles, every option and the stages of a recipe; values: {key: value} under `profile`."""
    width = min(shutil.get_terminal_size((120, 24)).columns, 120)
    lines = [recipe.title, "", f"usage: {shell_command(sys.argv[0], [])} [flags] [key=value ...]", ""]
    lines += [f"  {flag:<13}{text}" + (f" [{recipe.jobs}]" if flag == "--jobs" else "") for flag, text in FLAGS.items()]
    lines += ["", f"{THREADS}=N in the environment sets the threads of each process, on which figures depend [{threads()}]"]
    if recipe.profiles():
        lines += ["", "profiles: " + ", ".join(recipe.profiles())]
    lines += ["", "options" + (f", with their values in profile {profile}" if profile else "") + ":"]
    for option in config.list_options(recipe.config_class):
        value = values.get(option.key)
        if option.key not in values:  # a dictionary
            value = {key[len(option.key) + 1 :]: item for key, item in config.below(values, [option.key]).items()}
        lines += textwrap.wrap(
            f"{option.doc} [{config.type_name(option.type)}]".strip(),
            width,
            initial_indent=f"  {option.key}={config.show(value)}".ljust(38) + "  ",
            subsequent_indent=" " * 40,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join([*lines, "", "stages:", *stage_lines(recipe.stages)])


def stage_lines(stages: Sequence[Stage]) -> list[str]:
    """Write one line a stage: number, name, what it does, what it needs."""
    width = max((len(stage.name) for stage in stages), default=0)
    return [f"  {stage.number:>2} {stage.name:<{width}}  {stage.doc} [{stage.resources}]" for stage in stages]
