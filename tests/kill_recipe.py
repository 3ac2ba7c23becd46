#!/usr/bin/env python3
"""Disturbs a recipe until it ends, and compares what it has made with an undisturbed run, byte for byte.

    ./path.sh tests/kill_recipe.py zerospeech --profile quick               SIGKILL to all of its processes after a random 8 to
                                                                            30 s, again and again until it ends
    ./path.sh tests/kill_recipe.py zerospeech --profile quick --errors 20   twenty write errors, each in a run that then ends
                                                                            with one line, or goes on where nothing is lost
    ./path.sh tests/kill_recipe.py fearless --profile quick --slurm         as jobs of a Slurm of its own: a job killed in every
                                                                            stage, the driver twice, a node lost, one preempted,
                                                                            one out of time; and undisturbed jobs before

Both runs lie in the folder of --work: undisturbed/, which is finished first where it is not, and another that begins empty.
What the recipe prints is in .log files beside them. All other arguments are the recipe's own. It ends with status 1 where
results.json differs, or the recipe makes no progress; other files that differ are named (times of day, speeds).
"""

import argparse
import itertools
import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from job_harness import check_as_jobs
from kill_harness import FULL
from recipe_harness import Recipe, digests, finished_record
from slurm_harness import missing, private_slurm

from pyspeech.files import is_temporary

HARNESS = Path(__file__).with_name("kill_harness.py")
PATIENCE = 8  # attempts in a row that make nothing new before it is given up
EVENTS = "events.out.tfevents"  # what TensorBoard's files begin with: each attempt has its own
NO_SPACE = "No space left on device"


def kill_until_it_ends(recipe, folder, rng, shortest, longest, say=print):
    """Run a recipe (of recipe_harness) in `folder` until it ends by itself, killed again and again, with all of its processes,
    after shortest to longest seconds: the number of attempts. AssertionError where several in a row have made nothing new."""
    fruitless, before = 0, None
    for attempt in itertools.count(1):
        seconds = rng.uniform(shortest, longest)
        status, printed = run_once(recipe, folder, seconds)
        if status != -signal.SIGKILL:
            assert status == 0, printed
            return attempt
        say(f"attempt {attempt}, killed after {seconds:.1f} s: {describe(folder)}")
        now = made_so_far(folder)
        fruitless, before = fruitless + 1 if now == before else 0, now
        assert fruitless < PATIENCE, f"{PATIENCE} attempts have come no further: {describe(folder)}"


def fail_writes(recipe, undisturbed, folder, rng, errors, say=print):
    """Run a recipe in `folder` with write errors, one a run, at random changes of files; where it ends well, it is compared and
    begins anew, until there were so many. AssertionError where a run ends in any other way than well or with one line."""
    most = 12 * sum(path.is_file() for path in undisturbed.rglob("*")) // errors  # all of them in about three whole runs
    count, ends, status = 0, 0, 1
    while count < errors or status:
        number = rng.randint(1, most)
        program = [HARNESS, folder, number] if count < errors else []
        status, printed = run_once(recipe, folder, program=program)
        failed = [line for line in printed.splitlines() if line.startswith(FULL)]
        told = [line for line in printed.splitlines() if NO_SPACE in line]
        count += len(failed)
        if failed:
            say(f"error {count}, at {failed[0][len(FULL) + 1 :]}: status {status}{': ' if told else ''}{' | '.join(told)}")
        assert status in (0, 1) and "Traceback" not in printed, printed
        assert len(told) == 1 if status else True, printed
        if not status:
            ends += 1
            compare(undisturbed, folder, say)
            if count < errors:
                shutil.rmtree(folder)
    say(f"{count} write errors, the whole run {ends} times")


def run_once(recipe, folder, seconds=None, program=()):
    """(exit status, what was printed) of the recipe, killed with all of its processes after so many seconds."""
    with open(folder.with_suffix(".log"), "a+", encoding="utf-8") as printed:
        begun = printed.tell()
        process = recipe.start("--exp", folder, program=program, stdout=printed, start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        printed.seek(begun)
        return status, printed.read()


def made_so_far(folder):
    """What there is in an experiment folder, to see whether it gets more: {name: size} of its files, not of logs."""
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: path.stat().st_size
        for name, path in files.items()
        if name.parts[0] != "logs" and not path.name.startswith((".", EVENTS)) and not is_temporary(path.name)
    }


def describe(folder):
    """The stages that are done, and those that were begun."""
    names = [path.name.removesuffix(".json") for path in sorted((folder / "stages").glob("*.json"))]
    begun = [name.removesuffix(".attempt") for name in names if name.endswith(".attempt")]
    return f"{len(names) - len(begun)} stages done, begun: {', '.join(begun) or 'none'}"


def compare(undisturbed, folder, say=print):
    """AssertionError where results.json is not the same; the names of other files that differ are said and returned."""
    ours, theirs = digests(folder), digests(undisturbed)
    others = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name) and EVENTS not in name)
    assert "results.json" not in others, f"{folder}/results.json is not that of {undisturbed}"
    say(f"results are the same, byte for byte; of {len(theirs)} files these differ: {', '.join(others) or 'none'}")
    return others


def disturbances_of(recipe, undisturbed):
    """The disturbances of `check_as_jobs`: each stage and share that the undisturbed run has made is killed, and the stages
    that took longest are then disturbed in another way too. And {stage: seconds that it took} of those that do not split."""
    stages = runpy.run_path(str(recipe.script), run_name="run")["recipe"].stages
    made = [path.stem for path in (undisturbed / "stages").glob("*.json")]
    stages = [one for one in stages if one.name in made and finished_record(undisturbed, one.name)["outputs"]]
    seconds = {one.name: finished_record(undisturbed, one.name)["seconds"] for one in stages}
    found = {name: ["kill"] for name in seconds}
    found.update({f"{one.name}.shard0of{one.shards}": ["kill"] for one in stages if one.shards})
    whole = [one for one in stages if not one.shards]
    longest = sorted((one.name for one in whole if one.resumable), key=seconds.get, reverse=True)
    for how, name in zip(["time", "requeue", "node", "driver", "driver"], longest, strict=True):
        found[name].append(how)
    return found, {one.name: seconds[one.name] for one in whole}


def disturb_jobs(recipe, undisturbed, folder, rng, say=print):
    """Run a recipe in `folder` as jobs of a private Slurm, once undisturbed, and once with `disturbances_of` it."""
    assert not missing(), missing()
    disturbances, seconds = disturbances_of(recipe, undisturbed)
    moments = {name: rng.uniform(0, 0.7 * seconds.get(name, 0)) for name in disturbances}
    with private_slurm() as slurm:
        check_as_jobs(recipe, undisturbed, folder, slurm, {}, say=say)
        compare(undisturbed, folder, say)
        shutil.rmtree(folder)
        check_as_jobs(recipe, undisturbed, folder, slurm, disturbances, moments=moments, say=say)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", help="a recipe of egs/")
    parser.add_argument("--work", type=Path, help="folder of both runs [egs/RECIPE/exp/kills]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, nargs=2, default=(8, 30), metavar=("FROM", "TO"), help="until a kill [8 30]")
    parser.add_argument("--errors", type=int, help="as many write errors instead of kills")
    parser.add_argument("--slurm", action="store_true", help="disturb it as jobs of a cluster instead")
    return parser.parse_known_args()


def main():
    given, options = arguments()
    recipe, rng = Recipe(given.recipe, *options), random.Random(given.seed)
    work = (given.work or recipe.script.parent / "exp" / "kills").resolve()
    undisturbed, begun = work / "undisturbed", time.monotonic()
    work.mkdir(parents=True, exist_ok=True)
    status, printed = run_once(recipe, undisturbed)
    assert status == 0, printed
    print(f"undisturbed: {time.monotonic() - begun:.0f} s", flush=True)
    kind = "jobs" if given.slurm else "errors" if given.errors else "killed"
    folder, begun = work / f"{kind}-{given.seed}", time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_suffix(".log").unlink(missing_ok=True)

    def say(line):
        print(f"{time.monotonic() - begun:6.0f} s  {line}", flush=True)

    if given.slurm:
        disturb_jobs(recipe, undisturbed, folder, rng, say)
    elif given.errors:
        fail_writes(recipe, undisturbed, folder, rng, given.errors, say)
    else:
        attempts = kill_until_it_ends(recipe, folder, rng, *given.seconds, say)
        say(f"{attempts} attempts")
    compare(undisturbed, folder, say)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(str(error))
