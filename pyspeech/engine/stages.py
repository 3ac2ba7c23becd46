"""Stages: what a recipe declares about each step, and how steps hang together through the files they read and write."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from pyspeech.engine import artifacts
from pyspeech.engine.config import nearest
from pyspeech.errors import UserError


@dataclasses.dataclass(frozen=True)
class Stage:
    """Step of a recipe. Patterns are those of pyspeech.engine.artifacts.

    config: dotted options (or groups of them) that its result depends on;
    inputs, outputs: what it reads and makes; scratch: its partial state, such as checkpoints;
    cpus, gpus, hours, memory (GB): the resources that it needs; cpus and memory those of each process of a training;
    trains: it takes as many GPUs, or processes of the CPU, as --gpus says (on a cluster at least `gpus`): all of these call
    its function, and with it pyspeech.training.run.train, which gives one of them the model, to make something of it;
    resumable: it goes on from its partial state after an interruption, instead of starting again;
    shards: how many jobs of a cluster share what it does by `pyspeech.engine.parts.in_parts`, before one job makes the whole of
    it;
        it is resumable; 0 or 1: a single job;
    about: what it does, on one line, where the docstring of the function does not say it;
    version: raised by the author when its result changes for the same configuration;
    idle: set by `bind` where the configuration leaves it nothing to make: it does not run, whatever it made before.
    """

    number: int
    name: str
    function: Callable
    config: tuple = ()
    inputs: tuple = ()
    outputs: tuple = ()
    scratch: tuple = ()
    cpus: int = 1
    gpus: int = 0
    hours: float = 1
    memory: float = 4
    resumable: bool = False
    trains: bool = False
    shards: int = 0
    about: str = ""
    version: int = 1
    idle: bool = False

    def __str__(self) -> str:
        return f"stage {self.number} {self.name}"

    @property
    def doc(self) -> str:
        """Description on one line: `about`, or the first paragraph of the function's docstring."""
        return self.about or " ".join((self.function.__doc__ or "").strip().split("\n\n")[0].split())

    @property
    def resources(self) -> str:
        needs = [f"{self.cpus} CPU{'s' if self.cpus > 1 else ''}"]
        if self.gpus:
            needs.append(f"{self.gpus} GPU{'s' if self.gpus > 1 else ''}")
        return ", ".join([*needs, f"{self.memory:g} GB", f"{self.hours:g} h", *[f"{self.shards} shards"] * (self.shards > 1)])

    def bind(self, conf: Any) -> Stage:
        """Work out the patterns of the stage, where they were declared as functions of the configuration."""

        def work_out(patterns: Any) -> tuple[str, ...]:
            return tuple(patterns(conf) if callable(patterns) else patterns)  # pyright: ignore[reportArgumentType]

        outputs = work_out(self.outputs)
        return dataclasses.replace(
            self,
            inputs=work_out(self.inputs),
            outputs=outputs,
            scratch=work_out(self.scratch),
            idle=callable(self.outputs) and not outputs,
        )


def makes(stage: Stage, pattern: str) -> bool:
    """Tell whether an expanded input pattern is (part of) what a stage makes."""
    return any(artifacts.overlap(pattern, output) for output in artifacts.expand(stage.outputs))


def producers(stage: Stage, stages: Sequence[Stage]) -> list[Stage]:
    """List the earlier stages that make something `stage` reads."""
    wanted = artifacts.expand(stage.inputs)
    return [other for other in stages[: stage.number] if any(makes(other, pattern) for pattern in wanted)]


def upstream(selected: Sequence[Stage], stages: Sequence[Stage]) -> list[Stage]:
    """List the stages outside `selected` that those depend on, directly or through others, in order."""
    found, waiting = set(), list(selected)
    while waiting:
        for producer in producers(waiting.pop(), stages):
            if producer not in found:
                found.add(producer)
                waiting.append(producer)
    return [stage for stage in stages if stage in found and stage not in selected]


def check(stages: Sequence[Stage]) -> None:
    """Raise ValueError where stages (bound to a configuration) contradict each other: a mistake in the recipe."""
    for stage in stages:
        own = artifacts.expand([*stage.outputs, *stage.scratch])
        for other in stages[: stage.number]:
            for theirs in artifacts.expand([*other.outputs, *other.scratch]):
                for path in own:
                    if artifacts.overlap(path, theirs):
                        raise ValueError(f"{stage} and {other} both make {path}: a path belongs to one stage")
    for stage in stages:
        for pattern in artifacts.expand(stage.inputs):
            late = [other for other in stages[stage.number :] if makes(other, pattern)]
            if late:
                raise ValueError(f"{stage} reads {pattern}, which {late[0]} makes: an input must come from before")


def find(stages: Sequence[Stage], text: str) -> Stage:
    """Find the stage of a name or a number; raises UserError that lists the stages and names the nearest."""
    for stage in stages:
        if text in (stage.name, str(stage.number)):
            return stage
    guess = nearest(text, [stage.name for stage in stages])
    known = ", ".join(f"{stage.number} {stage.name}" for stage in stages)
    raise UserError(f"no stage '{text}'; stages: {known}." + (f" Did you mean '{guess}'?" if guess else ""))
