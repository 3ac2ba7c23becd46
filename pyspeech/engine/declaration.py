"""Declaration of a recipe: stages, options and profiles, and the checks of these."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pyspeech.engine import config, site, stages

Patterns = Iterable[str] | Callable[[Any], Iterable[str]]


class Declaration:
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

    removed: {key: value} of options that are no longer there. A stage that was run with that value stays up to date.
    """

    def __init__(
        self,
        title: str,
        config_class: type,
        conf: str | Path | None = None,
        profile: str | None = None,
        part: str | None = None,
        jobs: int | Callable[[], int] = 1,
        removed: Mapping[str, Any] | None = None,
    ) -> None:
        self.title, self.config_class, self._jobs, self.removed = title, config_class, jobs, dict(removed or {})
        self.conf = Path(conf).absolute() if conf is not None else None
        self.default_profile, self.part = profile, part
        self.stages = []
        self.options = {option.key: option for option in config.list_options(config_class)}
        self.corpus = next((option for option in self.options.values() if option.names), None)
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
        """Decorate a function (exp, conf), which becomes the next stage; see pyspeech.engine.stages.Stage.

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
        """Stages at a time without --jobs."""
        return self._jobs() if callable(self._jobs) else self._jobs

    def profiles(self) -> list[str]:
        """List the names of the profiles, sorted."""
        files = self.conf.glob("*.yaml") if self.conf else ()
        return sorted(path.stem for path in files if path.name != site.NAME)

    def profile_file(self, profile: str | None) -> Path | None:
        """Locate the file of a profile; None for no profile."""
        return self.conf / f"{profile}.yaml" if profile else None  # pyright: ignore[reportOptionalOperand]

    def configure(self, profile: str | None = None, overrides: Iterable[str] = ()) -> tuple[DictConfig, Any]:
        """Resolve (OmegaConf configuration, the same as dataclass) of a profile and key=value strings, every option checked.

        Raises UserError that names the first option that is unknown, of another type, or makes no sense.
        """
        conf = config.resolve(self.config_class, self.profile_file(profile), overrides)
        return conf, config.checked(conf, self.config_class)

    def experiment_name(self, plain_conf: Any, profile: str | None) -> str:
        """Name the experiment, in exp/."""
        names = [profile]
        if self.corpus and getattr(plain_conf, self.corpus.key) != self.corpus.names[0]:
            corpus = getattr(plain_conf, self.corpus.key)
            part = getattr(plain_conf, self.part).lower() if self.part else ""
            names = [Path(corpus).resolve().name, part, profile]
        return "-".join(filter(None, names)) or "default"

    def _check(self, stage):
        """Mistakes in a declaration are those of the recipe's author: ValueError."""
        known = [*self.options, *sorted(config.groups(self.options))]
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
