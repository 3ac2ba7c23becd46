#!/usr/bin/env python3
"""Measure seconds and peak memory of data preparation and loading on corpora of the official sizes.

A corpus is laid out from hard links to a few recordings (local/full_size.py). The recipe's own stages run on it with
`--profile full`: manifests, output symbols, features and statistics. Then the data of one training are read as in its stage,
without training: from a new process to the first batch; an epoch of batches, as far as --seconds allow (`x real time`: seconds
of audio per second of a core); and from another new process to the middle of the epoch (`resume`). `CPU` is the CPU time of
all cores; memory includes all processes that a command starts.

--folder keeps everything, and work found there is not repeated. Try `--scale 0.01` first.
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
import contextlib
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from pyspeech.commands.arguments import add_json, length, tool_parser, whole_number
from pyspeech.commands.terminal import exit_after
from pyspeech.engine.process import duration
from pyspeech.files import write_json
from pyspeech.report.tables import decimals, markdown_table
from steps.benchmark.plans import PLANS, add_recipes, finish, run_stage, training_of

BEGUN = time.monotonic()


def main(arguments=None):
    options = parser().parse_args(arguments)
    if options.read:
        print(json.dumps(read(options)))
        return
    results = {"scale": options.scale, "recipes": {}}
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paper-scale-")))
        for recipe in options.recipes:
            rows = results["recipes"][recipe] = []
            for row in measure(recipe, folder.absolute(), options):
                rows.append(row)
                print(f"{recipe} {row['part']}: {row['seconds']:.1f} s; {row['note']}", flush=True)
                if options.json:
                    write_json(options.json, results)
    print("\n" + table(results), end="")


def parser():
    parser = tool_parser(__doc__)
    add_recipes(parser, PLANS, "measure")
    parser.add_argument("--scale", type=share, default=1.0, help="factor on the numbers of files (default: 1)")
    parser.add_argument(
        "--recordings",
        type=Path,
        metavar="DIR",
        help="speech to cut the files from (default: the AMI clips of the mini corpora)",
    )
    parser.add_argument(
        "--seconds", type=length, default=120.0, help="longest time to read an epoch, in seconds (default: 120)"
    )
    parser.add_argument("--folder", type=Path, help="keep corpora and experiments in this folder (default: a temporary one)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="further options of the recipes")
    parser.add_argument("--read", choices=PLANS, help="only read the data of this training in this process, and print JSON")
    parser.add_argument("--skip", type=batches, default=0, help="batches of the epoch that --read skips")
    add_json(parser)
    return parser


def share(text):
    value = length(text, least=1e-6)
    return whole_number(text) if value > 1 else value


def batches(text):
    return whole_number(text, least=0)


def measure(recipe, folder, options):
    """Yield {"part", "seconds", "gigabytes", "note"} of each thing that is done, with further figures of some."""
    plan, corpus, experiment = PLANS[recipe], folder / PLANS[recipe].corpus, folder / f"{recipe}-exp"
    if not corpus.exists():
        yield lay_out(plan.corpus, corpus, options)
    for stage in plan.stages:
        done = run_stage(recipe, stage, "full", experiment, settings_of(plan, corpus, options))
        yield row_of(stage, done, said_of(done.lines))
    command = [sys.executable, os.path.abspath(__file__), "--read", recipe, "--folder", folder, "--seconds", options.seconds]
    command += ["--set", *options.set] if options.set else []
    done = finish(command)
    found = json.loads(done.lines[-1])
    note = (
        f"first batch after {found['first']:.1f} s; {found['read']} of {found['batches']} batches, "
        f"{found['audio'] / 3600:.1f} h, at {found['speed']:.0f} x real time, {found['workers'] or 'no'} workers"
    )
    yield {**row_of("epoch", done, note), **found}
    middle = found["batches"] // 2
    done = finish([*command, "--skip", middle, "--seconds", 0.001])
    found = json.loads(done.lines[-1])
    yield {**row_of("resume", done, f"batch {middle} after {found['first']:.1f} s"), "first": found["first"]}


def row_of(part, done, note):
    return {"part": part, "seconds": done.seconds, "cpu_seconds": done.cpu_seconds, "gigabytes": done.gigabytes, "note": note}


def lay_out(name, corpus, options):
    from local import full_size

    begun, computed = time.monotonic(), time.process_time()
    made = full_size.lay_out(name, options.recordings or packaged_recordings(), corpus, options.scale)
    note = f"{made['files']} files, {made['hours']:.1f} h"
    return {
        "part": "corpus",
        "seconds": time.monotonic() - begun,
        "cpu_seconds": time.process_time() - computed,
        "gigabytes": None,
        "note": note,
        **made,
    }


def packaged_recordings():
    """The folder of the AMI clips."""
    from local import voices

    return next(iter(voices.fetch_ami()[0].values())).parent


def settings_of(plan, corpus, options):
    return [f"corpus={corpus}", *plan.options, *options.set]


def said_of(lines):
    """Return the last line of a stage before that it is done: that it is up to date, for one."""
    said = [line.partition(" INFO ")[2] for line in lines if " INFO " in line]
    return next((text for text in reversed(said) if ": done in " not in text and ": runs (" not in text), "")


def read(options):
    """{"first", "read", "batches", "audio", "speed", "workers"} of the training's data, from batch --skip on."""
    plan, folder = PLANS[options.read], options.folder.absolute()
    os.environ["PYSPEECH_DEVICE"] = "cpu"
    settings = settings_of(plan, folder / plan.corpus, options)
    training = training_of(options.read, "full", folder / f"{options.read}-exp", settings)
    return read_batches(
        training.dataset,
        training.sampler,
        training.config,
        options,
        lambda batch: plan.seconds(batch, training.conf),  # pyright: ignore[reportCallIssue]
    )


def read_batches(dataset, sampler, config, options, seconds_of):
    """The figures of `read`; all batches are made as in training."""
    import logging

    from pyspeech.training.data import BatchLoader, choose_workers

    workers = choose_workers(config.num_workers, logging.getLogger())
    loader, begun = BatchLoader(dataset, sampler, config.seed, workers), cores_seconds()
    audio, count, end, first = 0.0, 0, float("inf"), None
    for _, batch in loader(0, options.skip):
        audio, count = audio + seconds_of(batch), count + 1
        if first is None:
            first, end = time.monotonic() - BEGUN, time.monotonic() + options.seconds
        if time.monotonic() > end:
            break
    del loader, batch  # workers end, and their computing is known
    return {
        "first": first,
        "read": count,
        "audio": audio,
        "workers": workers,
        "speed": audio / (cores_seconds() - begun),
        "batches": None if options.skip else count_batches(sampler),
    }


def cores_seconds():
    """Seconds of computing by this process and by those that it has waited for."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def count_batches(sampler):
    """Count the batches of the first epoch."""
    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(0)
    return sum(1 for _ in sampler)


def table(results):
    """The results as Markdown."""
    rows = [
        [
            f"{recipe} {row['part']}",
            shown(row["seconds"]),
            shown(row["cpu_seconds"]),
            decimals(row["gigabytes"], ".2f"),
            row["note"],
        ]
        for recipe, found in results["recipes"].items()
        for row in found
    ]
    return markdown_table(["", "time", "CPU", "GB", ""], rows)


def shown(seconds):
    return duration(seconds) if seconds >= 60 else f"{seconds:.1f} s"


if __name__ == "__main__":
    exit_after(main)
