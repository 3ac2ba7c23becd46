"""The recipe engine: numbered stages that run in order, are skipped while up to date, and can be killed anywhere.

    recipe = Recipe("Title of the experiment", Config, conf=here / "conf", profile="mini")

    @recipe.stage(config=["corpus"], outputs=["manifests/{train,dev}.jsonl.gz"], cpus=2)
    def prepare(exp, conf):
        '''Corpus to manifests.'''

    if __name__ == "__main__":
        recipe.main()

The command line is described in pyspeech.engine.cli, when a stage is stale in pyspeech.engine.plan, and what a
stage gets as `exp` in pyspeech.engine.run. Importing this module is instant: no torch, no lhotse, no numpy.
"""

import contextlib
import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pyspeech.commands.terminal import open_closed_streams, take_interrupts
from pyspeech.engine import cli, cluster, config, job, ranks, site, stages
from pyspeech.engine.artifacts import Artifacts
from pyspeech.engine.gpu import has_gpu, require_usable
from pyspeech.engine.plan import Plan
from pyspeech.engine.process import shell_command, short_path, stages_at_once
from pyspeech.engine.records import Records
from pyspeech.engine.run import MARK, REPORT, Experiment, Run, describe_os_error
from pyspeech.errors import UserError, folder_or, requirement
from pyspeech.launch import ROOT

__all__ = ["Experiment", "Recipe", "folder_or", "requirement", "stages_at_once"]  # all that a recipe needs of the engine

Patterns = Iterable[str] | Callable[[Any], Iterable[str]]


class Recipe:
    """A titled list of stages over one configuration dataclass.

    title: the first line on the screen; an experiment folder belongs to the recipe of one title.

    config_class: a dataclass whose fields are options, or dataclasses of options. Each of these has a method `check` that
    raises UserError for the first option that makes no sense, best by `pyspeech.errors.requirement`; without one it is a
    ValueError here. The whole may have a `check` too, for its own options and for those that must fit each other. All
    are called when the command line is read, before anything else is looked at or done, --dry-run included. Stages may
    rely on them. A class names options that change no result in its attribute `without_effect`; only a stage that declares
    one by its own name runs again for it.

    conf: folder of the profiles, one YAML file each; the experiments lie beside it, in exp/<name>.

    profile: the default profile; None: the defaults of the dataclass. For a real corpus it is "full" instead where there
    is a GPU, and "small" where there is none, for recipes that have conf/full.yaml, conf/small.yaml.

    A real corpus is one for which the option that is declared by `pyspeech.errors.folder_or` holds a folder
    and none of its names. The engine refuses what is neither. <name> is the name of the profile for the first of the
    names, and <last folder of the path, or other name>-<profile> for any other value.

    part: the key of an option for a part of such a corpus, for instance its language; where it is not empty it stands in
    <name> too: <corpus>-<part>-<profile>.

    jobs: stages at a time, where --jobs does not say: a number, or a function that gives it (stages_at_once).
    """

    def __init__(
        self,
        title: str,
        config_class: type,
        conf: str | Path | None = None,
        profile: str | None = None,
        part: str | None = None,
        jobs: int | Callable[[], int] = 1,
    ) -> None:
        self.title, self.config_class, self._jobs = title, config_class, jobs
        self.conf = Path(conf).absolute() if conf is not None else None
        self.default_profile, self.part = profile, part
        self.stages = []
        self._options = {option.key: option for option in config.list_options(config_class)}
        self._corpus = next((option for option in self._options.values() if option.names), None)
        for kind in config.unchecked(config_class):
            raise ValueError(f"{kind.__name__}: has no method 'check', which is to refuse options that make no sense")

    def stage(
        self,
        config: Iterable[str] = (),
        inputs: Patterns = (),
        outputs: Patterns = (),
        scratch: Patterns = (),
        name: str | None = None,
        **declared: Any,
    ) -> Callable[[Callable], Callable]:
        """Decorator: the function (exp, conf) becomes the next stage; see pyspeech.engine.stages.Stage.

        inputs, outputs and scratch are lists of patterns, or functions of the configuration that give such a list.
        """

        def declare(function):
            for key, value in {"config": config, "inputs": inputs, "outputs": outputs, "scratch": scratch}.items():
                if isinstance(value, str):
                    raise ValueError(f"stage {name or function.__name__}: {key}={value!r}: expected a list, [{value!r}]")
            patterns: Any = (inputs, outputs, scratch)
            stage = stages.Stage(len(self.stages), name or function.__name__, function, tuple(config), *patterns, **declared)
            self._check(stage)
            self.stages.append(stage)
            return function

        return declare

    @property
    def jobs(self) -> int:
        return self._jobs() if callable(self._jobs) else self._jobs

    def profiles(self) -> list[str]:
        """The names of the profiles, sorted."""
        files = self.conf.glob("*.yaml") if self.conf else ()
        return sorted(path.stem for path in files if path.name != site.NAME)

    def configure(self, profile: str | None = None, overrides: Iterable[str] = ()) -> tuple[DictConfig, Any]:
        """(OmegaConf configuration, the same as dataclass) of a profile and key=value strings, every option checked.

        Raises UserError that names the first option that is unknown, of another type, or makes no sense.
        """
        conf = config.resolve(self.config_class, self._profile_file(profile), overrides)
        return conf, config.checked(conf, self.config_class)

    def main(self, arguments: Sequence[str] | None = None) -> Experiment | None:
        """Do what the command line says, and show RESULTS.md in the end, where the last stage has left one.

        Returns the Experiment once the last of all stages is done, else None (--help, or a --stop-stage before it).
        Exits with status 1 after an error, 130 after Ctrl-C, 143 after SIGTERM.
        """
        open_closed_streams()
        take_interrupts()
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # Names that the terminal cannot show.
                stream.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue]
        try:
            return self._main(list(sys.argv[1:] if arguments is None else arguments))
        except UserError as error:
            print(error, file=sys.stderr)
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:  # | head
            sys.exit(1)
        finally:
            try:
                sys.stdout.flush()
            except OSError:  # its reader has gone: Python must not complain again while it exits
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _main(self, arguments):
        try:
            os.getcwd()
        except FileNotFoundError:
            raise UserError("the present folder has been removed: go to another one") from None
        flags = cli.parse(arguments, self._options)
        if flags.device:
            os.environ["PYSPEECH_DEVICE"] = flags.device
        if not (flags.help or flags.list):
            require_usable()
        profile = self._choose_profile(flags)
        if flags.help:
            values = config.flatten(config.resolve(self.config_class, self._profile_file(profile)))
            print(cli.help_text(self, profile, values))
        elif flags.list:
            print("\n".join(cli.stage_lines(self.stages)))
        else:
            run = self._make_run(flags, profile)
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
                    job.run_job(run)
                    return None
                run.run()
                if run.stages[-1].number != self.stages[-1].number:
                    return None
                report = run.exp.dir / REPORT
                if report.exists():
                    print(report.read_text(encoding="utf-8"), "figures: ", run.exp.dir / "figures", sep="")
            return run.exp
        return None

    def _profile_file(self, profile):
        return self.conf / f"{profile}.yaml" if profile else None  # pyright: ignore[reportOptionalOperand]

    def _make_run(self, flags, profile):
        selected = self._select(flags)
        place, gpus = ranks.place_of(self.stages[selected], flags), int(flags.gpus or 1)
        conf, plain_conf = self.configure(profile, flags.overrides)
        folder = self._folder(flags, plain_conf, profile)
        for path in (sys.argv[0], str(folder)):
            config.check_text(path)
        bound = [stage.bind(plain_conf) for stage in self.stages]
        stages.check(bound)
        file = self._profile_file(profile)
        header = f"profile {profile} ({short_path(file)}), " if file else ""
        defaults = config.flatten(config.resolve(self.config_class))
        without_effect = [option.key for option in self._options.values() if not option.changes_results]
        with _usable(folder):
            plan = Plan(bound, config.flatten(conf), defaults, without_effect, Artifacts(folder), Records(folder))
        return Run(
            title=self.title,
            header=f"{header}experiment folder {short_path(folder)}",
            plan=plan,
            stages=bound[selected],
            conf=conf,
            plain_conf=plain_conf,
            force=flags.force,
            jobs=1 if gpus > 1 else int(flags.jobs or self.jobs),
            exp=Experiment(
                folder,
                logging.getLogger("pyspeech.stage"),
                profile,
                tuple(flags.overrides),
                command=_published_command(profile, flags.overrides),
            ),
            command=lambda stage=None: shell_command(sys.argv[0], cli.repeat(flags, stage)),
            driver=self._driver(flags, profile, folder),
            gpus=gpus,
            place=place,
            another=lambda stage: ranks.command(stage.name, cli.repeat_in_job(flags, profile, str(folder))),
        )

    def _driver(self, flags, profile, folder):
        """run -> the Driver that makes jobs of its stages, where --cluster asks for that."""
        if not flags.cluster:
            return None
        options = site.load_site(self.conf, flags.site)
        site.check_stages(flags.site, self.stages)
        return lambda run: cluster.Driver(run, flags.cluster, options, cli.repeat_in_job(flags, profile, str(folder)))

    def _choose_profile(self, flags):
        profile = flags.profile
        if profile is None:
            overrides = dict(config.split_override(text) for text in flags.overrides)
            real = self._corpus and overrides.get(self._corpus.key, self._corpus.names[0]) not in self._corpus.names
            gpu = real and (cluster.has_gpus(flags.cluster) if flags.cluster else has_gpu())
            fitting = ("full" if gpu else "small") if real else None
            profile = fitting if fitting in self.profiles() else self.default_profile
        if profile is not None and profile not in self.profiles():
            guess = config.nearest(profile, self.profiles())
            default = ""
            if flags.profile is None:
                default = f", which runs without --profile: expected {profile}.yaml in {self.conf}"
            raise UserError(
                f"no profile '{profile}'{default}; profiles: {', '.join(self.profiles()) or 'none'}."
                + (f" Did you mean '{guess}'?" if guess else "")
            )
        return profile

    def _select(self, flags):
        first = stages.find(self.stages, flags.stage).number if flags.stage is not None else 0
        last = stages.find(self.stages, flags.stop_stage).number if flags.stop_stage is not None else len(self.stages)
        if last < first:
            raise UserError(f"--stop-stage {flags.stop_stage} comes before --stage {flags.stage}: nothing to run")
        return slice(first, last + 1)

    def _folder(self, flags, plain_conf, profile):
        """The experiment folder; raises UserError where it is plainly something else, as stages delete old outputs."""
        if flags.exp is None:
            module = sys.modules[self.config_class.__module__]
            beside = self.conf or Path(module.__file__).absolute()  # pyright: ignore[reportArgumentType]
            return beside.parent / "exp" / self.experiment_name(plain_conf, profile)
        folder = Path(flags.exp).expanduser().absolute()
        with _usable(folder):
            if folder.exists() and not folder.is_dir():
                raise UserError(f"--exp {flags.exp} is a file, expected a folder")
            ours = any((folder / name).exists() for name in (".lock", "stages"))
            if folder.is_dir() and any(folder.iterdir()) and not ours:
                raise UserError(f"--exp {flags.exp} holds other files and is no experiment folder: give a new or empty one")
            mark = folder / MARK  # folders of older versions have none
            title = mark.read_text(encoding="utf-8", errors="replace").strip() if mark.exists() else self.title
            if title != self.title:
                raise UserError(f"--exp {flags.exp} is a folder of the recipe '{title}': give another one")
        return folder

    def experiment_name(self, plain_conf: Any, profile: str | None) -> str:
        """The name of the experiment, in exp/."""
        names = [profile]
        if self._corpus and getattr(plain_conf, self._corpus.key) != self._corpus.names[0]:
            corpus = getattr(plain_conf, self._corpus.key)
            part = getattr(plain_conf, self.part).lower() if self.part else ""
            names = [Path(corpus).resolve().name, part, profile]
        return "-".join(filter(None, names)) or "default"

    def _check(self, stage):
        """Mistakes in a declaration are those of the recipe's author: ValueError."""
        known = [*self._options, *sorted(config.groups(self._options))]
        for key in stage.config:
            if key not in known:
                guess = config.nearest(key, known)
                raise ValueError(
                    f"{stage}: config names '{key}', which is no option" + (f"; did you mean '{guess}'?" if guess else "")
                )
        if stage.shards > 1 and not stage.resumable:
            raise ValueError(f"{stage}: shards={stage.shards}, so it has to be resumable")
        if any(stage.name == other.name for other in self.stages):
            raise ValueError(f"two stages are named '{stage.name}'")


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
