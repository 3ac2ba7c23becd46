"""Runs of an experiment folder: the command, its options, its stages, and the curves of its trainings.

All of it is read from files that the engine and the stages leave: conf.yaml, stages/*.json, logs/*.log, results.json and
RESULTS.md.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspeech.errors import UserError

MOST_POINTS = 200  # of a training curve: more would not be seen
NAMES = "report/names.json"  # {system: its name in the tables}, where the recipe says so
CONFIGURATION = "# the configuration of the latest run: "
_LINE = re.compile(r"^\S+ \S+ INFO step (?P<step>\d+)(?:/\d+)?, (?P<rest>.*)$")
# What a stage of several trainings says before each: system and seed, or the cell of a grid.
_NEXT = re.compile(r"^\S+ \S+ INFO (?:one of \d+ cells: (?P<cell>.*)|(?P<name>\S+?)(?:, seed (?P<seed>\d+))?: \d+ utterances)")
_VALUE = re.compile(r"^([\w.-]+) (-?[\d.]+(?:e[+-]?\d+)?)$")
_UNPLOTTED = {"epoch", "skipped"}

Curves = dict[str, list[tuple[int, float]]]


@dataclass
class Experiment:
    """One experiment folder.

    name: of the folder; title: of its recipe; command: of its latest run, "" where it is not recorded;
    changed: the key=value arguments of that command, what differs from the profile; profile: its name, "" for none;
    configuration: conf.yaml as text; text: RESULTS.md; stages: the records of finished stages, in order;
    curves: {training: {quantity: [(step, value)]}}; names: {system: its name in the tables}.
    """

    folder: Path
    name: str
    title: str
    command: str = ""
    profile: str = ""
    changed: list[str] = field(default_factory=list)
    configuration: str = ""
    text: str = ""
    stages: list[dict[str, Any]] = field(default_factory=list)
    curves: dict[str, Curves] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def called(self, system: str) -> str:
        """The name of a system in the tables; where that is not known, its name among the files."""
        return self.names.get(system, system)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Facts of the runs, as (name, value); each value that the stages have had is named once."""
        return [
            ("command", self.command),
            ("profile", self.profile or "none"),
            ("options that differ from the profile", " ".join(self.changed) or "none"),
            ("seeds", self._seeds()),
            ("commit", self._each("commit") or "not recorded"),
            ("environment", self._each("environment")),
            ("machine", self._each("host")),
            ("finished", max((stage["finished"] for stage in self.stages if "finished" in stage), default="")),
        ]

    def _each(self, key):
        return "; ".join(dict.fromkeys(str(stage[key]) for stage in self.stages if stage.get(key)))

    def _seeds(self):
        found = re.search(r"^seeds:\n((?:- .*\n)+)", self.configuration, re.MULTILINE)
        seeds = re.findall(r"- (.*)", found[1]) if found else re.findall(r"^  seed: (.*)$", self.configuration, re.MULTILINE)
        return ", ".join(dict.fromkeys(seeds)) or "none"


def read_experiment(folder: Path | str) -> Experiment:
    """Read an experiment folder; UserError for one that is none."""
    folder = Path(folder)
    if not (folder / "stages").is_dir():
        raise UserError(f"{folder}: no experiment folder: expected one that a recipe has made, with a folder 'stages'")
    configuration = _text(folder / "conf.yaml")
    first = next((line for line in configuration.splitlines() if line.startswith(CONFIGURATION)), "")
    command = first[len(CONFIGURATION) :]
    words = _words(command)
    return Experiment(
        folder=folder,
        name=folder.resolve().name,
        title=_text(folder / ".recipe").strip() or "Experiment",
        command=command,
        profile=next((after for word, after in zip(words, words[1:], strict=False) if word == "--profile"), ""),
        changed=[word for word in words if re.match(r"[a-z][\w.]*=", word)],
        configuration=configuration,
        text=_text(folder / "RESULTS.md"),
        stages=list(_records(folder / "stages")),
        curves=dict(_trainings(folder / "logs")),
        names=_names(folder / NAMES),
    )


def _text(path):
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _names(path):
    try:
        return {str(system): str(name) for system, name in json.loads(_text(path) or "{}").items()}
    except (ValueError, AttributeError):  # no names are worth no page
        return {}


def _words(command):
    try:
        return shlex.split(command)
    except ValueError:  # a quote without its end
        return command.split()


def _records(folder) -> Iterator[dict[str, Any]]:
    """The records of the stages, by number; those that do not parse, and attempts, are left out."""
    found = []
    for path in folder.glob("*.json"):
        name = path.name[: -len(".json")]
        if name.endswith(".attempt") or ".shard" in name:
            continue
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue
        if isinstance(record, dict) and "seconds" in record:
            found.append({"name": name, "number": 10**6, **record})
    return iter(sorted(found, key=lambda record: (record["number"], record["name"])))


def _trainings(logs) -> Iterator[tuple[str, Curves]]:
    """(name of a training, its curves) of the log files that have any."""
    for path in sorted(logs.glob("[0-9]*-*.log"), key=lambda path: (int(path.name.partition("-")[0]), path.name)):
        stage = path.stem.partition("-")[2].removeprefix("train_")
        for model, curves in read_curves(path).items():
            yield (model if model.startswith(stage) else f"{stage} {model}".strip(), curves)


def read_curves(path: Path) -> dict[str, Curves]:
    """{model: {quantity: [(step, value)]}} of the latest attempt that a log file tells of, "" for the only model of a stage.

    Names of what a validation gives begin with "validation ". Where a resumed training repeats steps, the later values count.
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    model = ""
    with open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.startswith("==== ") and ", attempt 1," in line:
                found, model = {}, ""
            elif match := _NEXT.match(line):
                model = match["cell"] or match["name"] + (f"/{match['seed']}" if match["seed"] else "")
            elif match := _LINE.match(line):
                _take(found.setdefault(model, {}), int(match["step"]), match["rest"])
    return {
        model: {name: thinned(sorted(points.items())) for name, points in curves.items()} for model, curves in found.items()
    }


def _take(curves, step, rest):
    prefix = "validation " if rest.startswith("validation: ") else ""
    for part in rest.removeprefix("validation: ").strip().split(", "):
        match = _VALUE.match(part)
        if match and match[1] not in _UNPLOTTED:
            curves.setdefault(prefix + match[1], {})[step] = float(match[2])


def thinned(points: list) -> list:
    """At most MOST_POINTS of the points, at equal distances, the first and the last among them."""
    if len(points) <= MOST_POINTS:
        return points
    return [points[round(index * (len(points) - 1) / (MOST_POINTS - 1))] for index in range(MOST_POINTS)]
