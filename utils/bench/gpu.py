#!/usr/bin/env python3
"""Check a GPU in half an hour: run the tests that need one, then train each recipe at the paper's sizes on its mini corpus.

One system of each recipe (and zerospeech's inverter) is trained for --steps steps by the recipe's own stage. The table has
steps per second and the share of time spent waiting for data (both without the first tenth of the steps), peak memory, and

  loss       mean over the first tenth of the steps, and over the last tenth
  CPU        largest difference of the first losses from the same steps on the CPU; dropout and bf16 cause some
  resumed    the same training, killed (SIGKILL to all processes) after half its steps and restarted by the same command:
             whether weights and losses are identical; if not, the largest difference of the weights, beside that of an
             undisturbed repetition, as not all GPU operations are deterministic

--folder keeps everything and reuses its corpora. The JSON file is written after each part. Without a GPU, try
`--device cpu --steps 3`.
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ROOT, ensure_environment

ensure_environment()
import contextlib
import os
import re
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pyspeech.commands.arguments import add_json, length, tool_parser, whole_number
from pyspeech.commands.terminal import exit_after
from pyspeech.engine.gpu import require_usable, usable_gpus
from pyspeech.engine.process import num_cores
from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.report.tables import decimals, markdown_table, percent
from steps.benchmark.plans import add_recipes, script_of
from steps.benchmark.programs import run_program, say

CPU_STEPS = 3  # that are compared with the CPU's
CLOSE = 0.1  # of a loss: nearer than this is the CPU's
ENOUGH = 100  # steps for a loss to fall


class Recipe(NamedTuple):
    """prepared: the last stage that its trainings need; options: what narrows it to one system; trainings: {stage: (the
    section of its training options, its folder in training/)}."""

    prepared: str
    options: tuple
    trainings: dict


RECIPES = {
    "fearless": Recipe("prepare", (), {"train_seg_rnn": ("train", "seg_rnn")}),
    "indic": Recipe("features", ("systems=[multi_softmax_lid]",), {"train_multi_softmax_lid": ("train", "multi_softmax_lid")}),
    "zerospeech": Recipe(
        "prepare",
        ("systems=[trf128]", "synthesis=trf128", "seeds=[42]", "repeated=[]"),
        {"train_trf128": ("train", "trf128/42"), "train_inverter": ("inverter_train", "inverter")},
    ),
    "add2022": Recipe(
        "backgrounds",
        ("systems=[rnm_sm_mc0.8]", "seeds=[42]", "repeated=[]"),
        {"train_rnm_sm_mc0.8": ("train", "rnm_sm_mc0.8/42")},
    ),
}


def main(arguments=None):
    options = parser().parse_args(arguments)
    if options.device == "cpu":
        os.environ["PYSPEECH_DEVICE"] = "cpu"
    require_usable()
    gpus = usable_gpus()[0]
    if not gpus and options.device != "cpu":
        raise UserError("there is no GPU here; --device cpu --steps 3 shows that this tool works")
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu-")))
        results = Bench(options, folder.absolute(), gpus).run()
    print("\n" + table(results), end="")
    return 0 if results["good"] else 1


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument(
        "--device", choices=("auto", "cpu"), default="auto", help="auto (default): the GPU; cpu: a trial without one"
    )
    parser.add_argument("--steps", type=steps, default=300, help="steps of each training (default: 300)")
    parser.add_argument("--minutes", type=length, default=30.0, help="time limit in minutes (default: 30)")
    add_recipes(parser, RECIPES, "train")
    parser.add_argument("--profile", default="full", help="profile of the recipes (default: full, the papers' sizes)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="further options of the recipes")
    parser.add_argument("--no-tests", action="store_true", help="skip the tests")
    parser.add_argument("--folder", type=Path, help="keep experiments in this folder (default: a temporary one)")
    add_json(parser)
    return parser


def steps(text):
    return whole_number(text, least=2)


class Bench:
    """One run of this tool; results: what the JSON file has."""

    def __init__(self, options, folder, gpus):
        self.options, self.folder, self.end = options, folder, time.monotonic() + 60 * options.minutes
        self.results = {
            "environment": describe(),
            "gpus": gpus,
            "profile": options.profile,
            "steps": options.steps,
            "tests": None,
            "corpora": {},
            "trainings": {},
            "good": False,
        }

    def run(self):
        print(self.results["environment"], flush=True)
        if not self.options.no_tests:
            self.results["tests"] = self._run_tests()
        with ThreadPoolExecutor(max(1, min(len(self.options.recipes), num_cores() // 2))) as pool:
            self.results["corpora"] = dict(
                zip(self.options.recipes, pool.map(self._prepare, self.options.recipes), strict=True)
            )
        self._keep()
        for recipe in self.options.recipes:
            for stage in RECIPES[recipe].trainings:
                if "problem" not in self.results["corpora"][recipe]:
                    self.results["trainings"][f"{recipe} {stage}"] = self._measure(recipe, stage)
                    self._keep()
        self.results["good"] = is_good(self.results)
        self._keep()
        return self.results

    def _keep(self):
        if self.options.json:
            write_json(self.options.json, self.results)

    def _run_tests(self):
        say("tests marked gpu")
        done = self._program([sys.executable, "-m", "pytest", "-q", "-m", "gpu", os.path.join(ROOT, "tests")])
        summary = done.lines[-1] if done.lines else ""
        say(summary)
        good = done.status == 0 or done.status == 5 and self.options.device == "cpu"  # 5: pytest had none to run
        return {"good": good, "summary": summary, "seconds": done.seconds}

    def _prepare(self, recipe):
        say(f"{recipe}: corpus")
        try:
            done = self._finish(recipe, "--stop-stage", RECIPES[recipe].prepared)
        except UserError as error:
            say(f"{recipe}: corpus: {error}")
            return {"problem": str(error)}
        say(f"{recipe}: corpus made in {done.seconds:.0f} s")
        return {"seconds": done.seconds, "gigabytes": done.gigabytes}

    def _measure(self, recipe, stage):
        """What is told of a training; {"problem": line} where it does not end well."""
        section, name = RECIPES[recipe].trainings[stage]
        folder, last = self.folder / recipe / "training" / name, self.options.steps
        whole, found = ["--stage", stage, "--stop-stage", stage, *settings(recipe, last)], {}
        try:
            if self.options.device != "cpu":
                say(f"{recipe} {stage}: {CPU_STEPS} steps on the CPU")
                short = ["--stage", stage, "--stop-stage", stage, *settings(recipe, last, {section: CPU_STEPS})]
                self._finish(recipe, *short, "--force", "--device", "cpu")
                found["cpu"] = losses_of(read_result(folder))
            say(f"{recipe} {stage}: {last} steps")
            done = self._finish(recipe, *whole, "--force")
            expected = read_result(folder)
            found.update(read_speeds(folder), seconds=done.seconds, host_gigabytes=done.gigabytes, losses=losses_of(expected))
            say(f"{recipe} {stage}: killed and resumed")
            found["resumed"] = self._kill_and_resume(recipe, whole, folder, expected)
            if not found["resumed"]["identical"]:
                self._finish(recipe, *whole, "--force")
                found["repeated"] = compare(expected, read_result(folder))
        except UserError as error:
            say(f"{recipe} {stage}: {error}")
            return {**found, "problem": str(error)}
        return found

    def _kill_and_resume(self, recipe, whole, folder, expected):
        """The training killed at a step behind the middle, and gone on with: how far it is from the expected result."""
        at = self.options.steps // 2 + 1
        killed = self._recipe(recipe, *whole, "--force", stop=lambda line: step_of(line) >= at)
        if not killed.stopped:
            raise UserError(self._why(killed) if killed.status else f"no line of step {at}, at which it was to be killed")
        lines = self._finish(recipe, *whole).lines
        resumed = [match for match in (re.search(r"resumed from .*: step (\d+),", line) for line in lines) if match]
        if not resumed:
            raise UserError("it did not go on from a checkpoint after it was killed")
        return {
            "killed_at": max(map(step_of, killed.lines)),
            "from": int(resumed[-1].group(1)),
            **compare(expected, read_result(folder)),
        }

    def _finish(self, recipe, *arguments):
        done = self._recipe(recipe, *arguments)
        if done.status:
            raise UserError(self._why(done))
        return done

    def _recipe(self, recipe, *arguments, **watching):
        command = [sys.executable, script_of(recipe), "--profile", self.options.profile, "--exp", self.folder / recipe]
        options = [*RECIPES[recipe].options, *self.options.set]
        return self._program([*command, "--jobs", "1", *options, *arguments], **watching)

    def _program(self, command, **watching):
        left = self.end - time.monotonic()
        if left <= 0:
            raise UserError(self._over())
        return run_program(command, limit=left, **watching)

    def _why(self, done):
        """A line that says why a program did not end well."""
        if time.monotonic() >= self.end:
            return self._over()
        return f"status {done.status}: {done.error}"

    def _over(self):
        return f"not done in {self.options.minutes:g} minutes (--minutes)"


def settings(recipe, steps, others=None):
    """Options of all trainings of a recipe, as one may need another's model; others: {section: another number of steps}."""
    sections = [section for section, _ in RECIPES[recipe].trainings.values()]
    values = {"max_epochs": "null", "valid_every": steps, "log_every": 1, "save_every": max(1, steps // 6)}
    numbers = {**dict.fromkeys(sections, steps), **(others or {})}
    return [
        f"{section}.{key}={value}" for section in sections for key, value in {**values, "max_steps": numbers[section]}.items()
    ]


def describe():
    from pyspeech.compat import describe_environment

    return describe_environment()


def step_of(line):
    """The step that a line of a training's log is of; 0 for others."""
    match = re.search(r"INFO step (\d+)/", line)
    return int(match.group(1)) if match else 0


def read_result(folder):
    from pyspeech.compat import load_checkpoint

    return load_checkpoint(folder / "best.pt")


def losses_of(result):
    return [point["train/loss"] for point in result["history"] if "train/loss" in point]


def read_speeds(folder):
    """{"steps_per_second", "waiting": share of the time, "gpu_gigabytes": None on a CPU} of the steps but the first tenth."""
    from pyspeech.compat import load_checkpoint
    from pyspeech.training.checkpoint import numbered_files

    newest = list(numbered_files(folder, "checkpoint").values())[-1]
    points = [point for point in load_checkpoint(newest)["position"]["history"] if "speed/waiting" in point]
    points = points[max(1, len(points) // 10) :]
    seconds = [1 / point["speed/steps_per_second"] for point in points]
    waiting = sum(one * point["speed/waiting"] for one, point in zip(seconds, points, strict=True))
    return {
        "steps_per_second": len(points) / sum(seconds),
        "waiting": waiting / sum(seconds),
        "gpu_gigabytes": max(
            (point["speed/gpu_gigabytes"] for point in points if "speed/gpu_gigabytes" in point), default=None
        ),
    }


def compare(one, other):
    """{"identical": whether weights and losses are, "largest_difference": of the weights} of two results."""
    differences = [
        (value.double() - other["model"][name].double()).abs().max().item()
        for name, value in one["model"].items()
        if value.numel()
    ]
    return {
        "identical": not any(differences) and one["history"] == other["history"],
        "largest_difference": max(differences, default=0.0),
    }


def farthest(losses, others):
    """The largest relative difference between losses of the same steps."""
    return max(abs(loss - other) / abs(other) for loss, other in zip(losses, others, strict=False))


def ends_of(losses):
    """The mean loss of the first and of the last tenth."""
    tenth = max(1, len(losses) // 10)
    return statistics.mean(losses[:tenth]), statistics.mean(losses[-tenth:])


def problems_of(found):
    """List the problems of a training, as str."""
    if "problem" in found:
        return [found["problem"]]
    first, last = ends_of(found["losses"])
    problems = ["the loss does not fall"] if len(found["losses"]) >= ENOUGH and last >= first else []
    if found.get("cpu") and farthest(found["losses"], found["cpu"]) > CLOSE:
        problems.append("the losses are not the CPU's")
    if not found["resumed"]["identical"] and found["repeated"]["identical"]:
        problems.append("resumed, it is not what it is undisturbed")
    return problems


def is_good(results):
    corpora = [found for found in results["corpora"].values() if "problem" in found]
    return (
        not corpora
        and (results["tests"] or {"good": True})["good"]
        and not any(map(problems_of, results["trainings"].values()))
    )


def table(results):
    """The results as Markdown."""
    header = ["training", "steps/s", "waiting %", "GPU GB", "host GB", "loss", "CPU", "resumed", "seconds"]
    parts = [f"{results['environment']}; {results['steps']} steps, profile {results['profile']}"]
    if results["tests"]:
        parts.append(f"Tests: {results['tests']['summary']}")
    rows = [cells(name, found) for name, found in results["trainings"].items() if "resumed" in found]
    parts += [markdown_table(header, rows)] if rows else []
    wrong = [(f"{recipe}'s corpus", [found["problem"]]) for recipe, found in results["corpora"].items() if "problem" in found]
    wrong += [(name, problems_of(found)) for name, found in results["trainings"].items()]
    parts += [f"{name}: {'; '.join(problems)}" for name, problems in wrong if problems]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def cells(name, found):
    first, last = ends_of(found["losses"])
    return [
        name,
        f"{found['steps_per_second']:.3g}",
        percent(found["waiting"], 0),
        decimals(found["gpu_gigabytes"], ".1f"),
        decimals(found["host_gigabytes"], ".1f"),
        f"{first:.3g} to {last:.3g}",
        f"{percent(farthest(found['losses'], found['cpu']), 1)} %" if found.get("cpu") else None,
        resumed_cell(found),
        f"{found['seconds']:.0f}",
    ]


def resumed_cell(found):
    if found["resumed"]["identical"]:
        return "identical"
    differences = [f"{found['resumed']['largest_difference']:.1e}"]
    if "repeated" in found:  # not where the time was over
        differences.append(f"repeated {found['repeated']['largest_difference']:.1e}")
    return ", ".join(differences)


if __name__ == "__main__":
    exit_after(main)
