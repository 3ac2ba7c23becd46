"""Execution of a recipe's command line: choice of profile, stages, folder and process, and the run itself."""

import contextlib
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspeech.engine import cli, cluster, config, job, ranks, site, stages
from pyspeech.engine.artifacts import Artifacts
from pyspeech.engine.declaration import Declaration
from pyspeech.engine.gpu import has_gpu, require_usable
from pyspeech.engine.plan import Plan
from pyspeech.engine.process import THREADS, shell_command, short_path, threads
from pyspeech.engine.records import Records
from pyspeech.engine.run import MARK, PAGE, REPORT, Experiment, Run, describe_os_error
from pyspeech.errors import UserError
from pyspeech.launch import ROOT


def run_command(recipe: Declaration, arguments: Sequence[str]) -> Experiment | None:
    """Do what the command line says; return the Experiment once the last of all stages is done. Raises UserError."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UserError("the current folder has been removed: go to another one") from None
    flags = cli.parse(arguments, recipe.options)
    if flags.device:
        os.environ["PYSPEECH_DEVICE"] = flags.device
    if not (flags.help or flags.list):
        require_usable()
    os.environ[THREADS] = os.environ.get(THREADS) or str(threads())
    profile = _choose_profile(recipe, flags)
    if flags.help:
        values = config.flatten(config.resolve(recipe.config_class, recipe.profile_file(profile)))
        print(cli.help_text(recipe, profile, values))
    elif flags.list:
        print("\n".join(cli.stage_lines(recipe.stages)))
    else:
        run = _make_run(recipe, flags, profile)
        with _usable(run.exp.dir):
            if flags.cancel:
                cluster.cancel(run.exp.dir)
                return None
            if flags.dry_run:
                run.show()
                return None
            if run.place.rank:
                run.take_part()
                return None
            if job.is_job_of(run.exp.dir):
                cluster.run_job(run)
                return None
            run.run()
            if run.stages[-1].number != recipe.stages[-1].number:
                return None
            report = run.exp.dir / REPORT
            if report.exists():
                print(report.read_text(encoding="utf-8"), "figures: ", run.exp.dir / "figures", sep="")
            if (run.exp.dir / PAGE).exists():
                print("to look and listen:", run.exp.dir / PAGE)
        return run.exp
    return None


def _make_run(recipe, flags, profile):
    selected = _select(recipe, flags)
    place, gpus = ranks.place_of(recipe.stages[selected], flags), int(flags.gpus or 1)
    conf, plain_conf = recipe.configure(profile, flags.overrides)
    folder = _folder(recipe, flags, plain_conf, profile)
    for path in (sys.argv[0], str(folder)):
        config.check_text(path)
    bound = [stage.bind(plain_conf) for stage in recipe.stages]
    stages.check(bound)
    options = config.flatten(conf)
    _check_shares(bound[selected], options, max(gpus, place.size))
    file = recipe.profile_file(profile)
    header = f"profile {profile} ({short_path(file)}), " if file else ""
    defaults = {**recipe.removed, **config.flatten(config.resolve(recipe.config_class))}
    without_effect = [option.key for option in recipe.options.values() if not option.changes_results]
    with _usable(folder):
        plan = Plan(bound, options, defaults, without_effect, Artifacts(folder), Records(folder))
    return Run(
        title=recipe.title,
        header=f"{header}experiment folder {short_path(folder)}",
        plan=plan,
        stages=bound[selected],
        conf=conf,
        plain_conf=plain_conf,
        force=flags.force,
        jobs=1 if gpus > 1 else int(flags.jobs or recipe.jobs),
        exp=Experiment(
            folder,
            logging.getLogger("pyspeech.stage"),
            profile,
            tuple(flags.overrides),
            command=_published_command(profile, flags.overrides),
        ),
        command=lambda stage=None: shell_command(sys.argv[0], cli.repeat(flags, stage)),
        driver=_driver(recipe, flags, profile, folder),
        gpus=gpus,
        place=place,
        another=lambda stage: ranks.command(stage.name, cli.repeat_in_job(flags, profile, str(folder))),
    )


def _check_shares(selected, options, processes):
    """Raise UserError where a training stage has fewer batches in a step than there are processes."""
    for stage in selected:
        if stage.trains and not stage.idle:
            for key, value in config.below(options, stage.config).items():
                if key.rpartition(".")[2] == "accumulate" and value < processes:
                    raise UserError(f"{key}={value}: expected at least {processes}, a batch in each step for each process")


def _driver(recipe, flags, profile, folder):
    """run -> the Driver that makes jobs of its stages, where --cluster asks for that."""
    if not flags.cluster:
        return None
    options = site.load_site(recipe.conf, flags.site)
    site.check_stages(flags.site, recipe.stages)
    return lambda run: cluster.Driver(run, flags.cluster, options, cli.repeat_in_job(flags, profile, str(folder)))


def _choose_profile(recipe, flags):
    profile = flags.profile
    if profile is None:
        overrides = dict(config.split_override(text) for text in flags.overrides)
        real = recipe.corpus and overrides.get(recipe.corpus.key, recipe.corpus.names[0]) not in recipe.corpus.names
        gpu = real and (cluster.has_gpus(flags.cluster) if flags.cluster else has_gpu())
        fitting = ("full" if gpu else "small") if real else None
        profile = fitting if fitting in recipe.profiles() else recipe.default_profile
    if profile is not None and profile not in recipe.profiles():
        guess = config.nearest(profile, recipe.profiles())
        default = ""
        if flags.profile is None:
            default = f", which runs without --profile: expected {profile}.yaml in {recipe.conf}"
        raise UserError(
            f"no profile '{profile}'{default}; profiles: {', '.join(recipe.profiles()) or 'none'}."
            + (f" Did you mean '{guess}'?" if guess else "")
        )
    return profile


def _select(recipe, flags):
    first = stages.find(recipe.stages, flags.stage).number if flags.stage is not None else 0
    last = stages.find(recipe.stages, flags.stop_stage).number if flags.stop_stage is not None else len(recipe.stages)
    if last < first:
        raise UserError(f"--stop-stage {flags.stop_stage} comes before --stage {flags.stage}: nothing to run")
    return slice(first, last + 1)


def _folder(recipe, flags, plain_conf, profile):
    """The experiment folder; raises UserError where it is plainly something else, as stages delete old outputs."""
    if flags.exp is None:
        module = sys.modules[recipe.config_class.__module__]
        beside = recipe.conf or Path(module.__file__).absolute()  # pyright: ignore[reportArgumentType]
        return beside.parent / "exp" / recipe.experiment_name(plain_conf, profile)
    folder = Path(flags.exp).expanduser().absolute()
    with _usable(folder):
        if folder.exists() and not folder.is_dir():
            raise UserError(f"--exp {flags.exp} is a file, expected a folder")
        ours = any((folder / name).exists() for name in (".lock", "stages"))
        if folder.is_dir() and any(folder.iterdir()) and not ours:
            raise UserError(f"--exp {flags.exp} holds other files and is no experiment folder: give a new or empty one")
        mark = folder / MARK  # folders of older versions have none
        title = mark.read_text(encoding="utf-8", errors="replace").strip() if mark.exists() else recipe.title
        if title != recipe.title:
            raise UserError(f"--exp {flags.exp} is a folder of the recipe '{title}': give another one")
    return folder


def _published_command(profile, overrides):
    """The command line from the folder of the repository, where the script lies in it."""
    script = os.path.abspath(sys.argv[0])
    script = os.path.relpath(script, ROOT) if script.startswith(ROOT + os.sep) else script
    return shlex.join([script, *(["--profile", profile] if profile else []), *overrides])


@contextlib.contextmanager
def _usable(folder):
    """A full disk, missing permissions and the like become a UserError."""
    try:
        yield
    except BrokenPipeError:  # not of the folder
        raise
    except OSError as error:
        raise UserError(
            f"experiment folder {short_path(folder)}: {describe_os_error(error)}; free space there, mend "
            "its permissions, or give another folder with --exp DIR"
        ) from None
