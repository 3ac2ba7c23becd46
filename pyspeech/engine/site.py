"""Site options of a cluster: where jobs may run, on whose account, and what they run first."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspeech.engine import config
from pyspeech.engine.stages import Stage
from pyspeech.errors import UserError, requirement

NAME = "cluster.yaml"
PREFIX = "cluster."  # of these options on the command line


@dataclass
class Site:
    """Options of the file cluster.yaml; on the command line each with `cluster.` in front."""

    partition: str = ""  # partition (Grid Engine: queue) of all jobs; empty: the cluster's default
    gpu_partition: str = ""  # partition of jobs that need a GPU; empty: as the others
    account: str = ""  # account (Grid Engine: project) to charge
    qos: str = ""  # quality of service, of Slurm
    constraint: str = ""  # features of the nodes, of Slurm, such as "a100|h100"
    gpus_per_node: int = 8  # of Slurm: a training on more GPUs, or processes, gets several nodes, with as many on each
    gpu: str = ""  # kind of GPU, as the queue names it
    time_factor: float = 1.0  # of the hours that stages declare
    memory_factor: float = 1.0  # of the memory that stages declare
    hours: dict[str, float] = field(default_factory=dict)  # of single stages, by name, instead of what they declare
    memory: dict[str, float] = field(default_factory=dict)  # of single stages, by name, in GB
    shards: dict[str, int] = field(default_factory=dict)  # jobs that share a single stage, by name; 1: one job does it all
    at_once: int = 0  # jobs that share a stage and may run at a time; 0: as many as there is room for
    setup: list[str] = field(default_factory=list)  # lines of bash that each job runs first, such as "module load cuda"
    arguments: list[str] = field(default_factory=list)  # further arguments of sbatch or qsub
    parallel_environment: str = "smp"  # of Grid Engine: which one gives several slots on one host

    def check(self) -> None:
        """Raise UserError for an option that makes no sense."""
        require = requirement("", self)
        for name in ("time_factor", "memory_factor"):
            require(name, 0 < getattr(self, name) < float("inf"), "a positive number")
        require("gpus_per_node", self.gpus_per_node >= 1, "at least 1")
        for name in ("hours", "memory", "shards"):
            require(name, all(0 < value < float("inf") for value in getattr(self, name).values()), "positive numbers, by stage")
        require("at_once", self.at_once >= 0, "0 or more")


def load_site(conf: Path | None, overrides: Iterable[str] = ()) -> Site:
    """Load the Site of the user's own cluster.yaml ($XDG_CONFIG_HOME/pyspeech, or ~/.config/pyspeech), what conf/cluster.yaml
    of the recipe says instead, and `overrides`, "key=value" without the prefix. UserError that names the file or option."""
    own = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "pyspeech" / NAME
    files = [file for file in (own, conf / NAME if conf else None) if file and file.exists()]
    merged = config.resolve(Site)
    try:
        for file in files:
            config.read_into(merged, Site, file)
        config.override(merged, Site, overrides)
        return config.checked(merged, Site)
    except UserError as error:
        raise UserError(f"options of the cluster ({PREFIX}KEY=VALUE, or {NAME}): {error}") from None


def split_overrides(overrides: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split key=value strings into those of the recipe, and those of the site, without the prefix."""
    overrides = list(overrides)
    ours = [text for text in overrides if text.startswith(PREFIX)]
    return [text for text in overrides if text not in ours], [text[len(PREFIX) :] for text in ours]


def check_stages(overrides: Iterable[str], stages: Sequence[Stage]) -> None:
    """Raise UserError for an override of a single stage that is none of the recipe's; cluster.yaml may serve several."""
    for text in overrides:
        key, _ = config.split_override(text)
        option, _, name = key.partition(".")
        if name and name not in [stage.name for stage in stages]:
            guess = config.nearest(name, [stage.name for stage in stages])
            meant = f"; did you mean '{guess}'?" if guess else " (--list)"
            raise UserError(f"option {PREFIX}{key}: no stage '{name}'{meant}")
        if option == "shards" and name and not next(stage for stage in stages if stage.name == name).shards:
            raise UserError(f"option {PREFIX}{key}: stage {name} does not split (--list)")


def shards(site: Site, stage: Stage) -> int:
    """Count the jobs that share a stage at this site; 0: it is a single job. Stages that do not split are never shared."""
    wanted = site.shards.get(stage.name, stage.shards) if stage.shards else 0
    return wanted if wanted > 1 else 0


def resources(site: Site, stage: Stage) -> tuple[float, float]:
    """Return (hours, memory in GB) of a stage at this site."""
    hours, memory = stage.hours * site.time_factor, stage.memory * site.memory_factor
    return site.hours.get(stage.name, hours), site.memory.get(stage.name, memory)
