#!/usr/bin/env python3
"""Benchmark the recipes on this machine or a cluster partition: features, data loading, training steps, decoding.

Each recipe's own code runs at the sizes of its mini corpus and of its paper (--sizes mini full), with random weights, on
synthetic audio in the layout of the official corpus; nothing is downloaded. The work and its random seed are fixed. Each line
is measured in 4 rounds over all lines, each time in a new process: warm-up, then 2 repeats of 5 s. The table has the median,
minimum and maximum, which include differences between processes and over time. With --processes 1 2 4 the same work is shared
by that many processes (--threads each; one GPU per process).

  CPU s             CPU time of all processes, more reliable than the clock on a busy machine
  real-time factor  seconds per second of audio; audio s/s: the inverse
  efficiency        speed of N processes as a share of N times the speed of one
  waiting           share of training time spent waiting for data, without dataset caches
  result            a number computed by the work (training: the loss of its fourth step), equal on all machines
  disturbed         tasks waited for a core more than 10 % of the time (/proc/pressure/cpu)

On a CPU --sizes is mini: a step at the papers' sizes takes minutes without a GPU.

  utils/bench/benchmark.py -o here                          here.md, here.json, here.png
  utils/bench/benchmark.py -o there --cluster slurm --partition gpu
  utils/bench/benchmark.py --compare here.json there.json   refuses different work; "no difference" if ranges overlap
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
import contextlib
import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from pyspeech.commands.arguments import length, tool_parser, whole_number
from pyspeech.commands.terminal import exit_after
from pyspeech.engine import config, ranks
from pyspeech.engine.gpu import require_usable, usable_gpus
from pyspeech.engine.job import prefix_of
from pyspeech.engine.process import num_cores
from pyspeech.engine.queues import QUEUES, Job
from pyspeech.engine.site import load_site
from pyspeech.engine.workers import in_processes
from pyspeech.errors import UserError
from pyspeech.files import atomic_write, write_json
from steps.benchmark.comparison import add_round, compare
from steps.benchmark.machine import describe_machine
from steps.benchmark.one_job import run_one_job
from steps.benchmark.parts import PARTS, UNITS
from steps.benchmark.plans import PLANS, add_recipes, load_recipe, run_stage
from steps.benchmark.programs import run_program, say
from steps.benchmark.report import plot, report, report_comparison
from steps.benchmark.timing import Team, repeat, thread_variables

LEAST_SECONDS = 5.0  # of a repeat, for a figure that is to be published
SIZES = ("mini", "full")  # profiles
SCALES = {"fearless": 0.002, "indic": 0.004, "zerospeech": 0.03, "add2022": 0.01}  # of the official corpora
RECORDINGS = 300.0  # seconds of made-up speech that their files are cut from
# No caches: a second epoch would read nothing. Augmentation from the first batch on, from sounds that are made up.
SETTINGS = {
    "fearless": ("data.cache_hours=0",),
    "indic": (),
    "zerospeech": ("data.cache_gigabytes=0",),
    "add2022": (
        "data.cache_gigabytes=0",
        "data.clean_batches=0",
        "augment.noise_dir=simulated",
        "augment.music_dir=simulated",
        "augment.room_dir=simulated",
    ),
}
MEMORY = 12.0  # GB that a job asks for


def main(arguments=None):
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(arguments)
    if options.compare:
        return show_comparison(options)
    if options.device == "cpu":
        os.environ["PYSPEECH_DEVICE"] = "cpu"
    if options.cluster:
        return run_on_cluster(options, arguments)
    require_usable()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        if options.only:
            print(json.dumps(measure(options.only.split(), folder.absolute(), options)))
            return 0
        results = Benchmark(options, folder.absolute()).run()
    print("\n" + report(results), end="")
    return 1 if any("problem" in line for line in results["lines"].values()) else 0


def parser():
    parser = tool_parser(__doc__)
    parser.allow_abbrev = False  # a job that was told --clu would submit itself: see `without`
    add_recipes(parser, PLANS, "measure")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=f"{', '.join(PARTS)} (default: all)"
    )
    parser.add_argument("--sizes", nargs="+", choices=SIZES, help="sizes of the work (default: both on a GPU, mini on a CPU)")
    parser.add_argument(
        "--processes",
        nargs="+",
        type=whole_number,
        metavar="N",
        help="numbers of processes that share a line's work (default: 1, and 2 with two cores or GPUs)",
    )
    parser.add_argument("--threads", type=whole_number, help="threads per process (default: cores / most processes)")
    parser.add_argument("--rounds", type=whole_number, default=4, help="rounds over all lines (default: 4)")
    parser.add_argument("--repeats", type=whole_number, default=2, help="repeats of a line in each round (default: 2)")
    parser.add_argument("--seconds", type=length, default=LEAST_SECONDS, help="approximate seconds per repeat (default: 5)")
    parser.add_argument("--batches", type=whole_number, default=4, help="batches per training step, in all (default: 4)")
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto", help="auto (default): the GPU if there is one")
    parser.add_argument("--folder", type=Path, help="keep and reuse corpora in this folder (default: a temporary one)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="further options of the recipes")
    parser.add_argument("-o", "--output", type=Path, metavar="NAME", help="write NAME.md, NAME.json and NAME.png")
    parser.add_argument(
        "--compare", nargs="+", type=Path, metavar="FILE", help="compare the first result with each of the others"
    )
    parser.add_argument("--cluster", choices=QUEUES, help="run as a job of this queue and follow its log")
    parser.add_argument("--partition", help="partition of the job (Grid Engine: queue); cluster.yaml has other options")
    parser.add_argument("--cores", type=whole_number, default=2, help="cores of the job (default: 2)")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of the job (default: 0)")
    parser.add_argument("--hours", type=length, default=2.0, help="hours of the job (default: 2)")
    parser.add_argument("--only", metavar="LINE", help="measure this line of the table in this process; print JSON")
    return parser


class Benchmark:
    """One run of this tool; results: what the JSON file has."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        gpus, cores = len(usable_gpus()[0]), num_cores()
        self.sizes = options.sizes or (SIZES if gpus else SIZES[:1])
        self.processes = sorted(set(options.processes or (1, min(2, gpus or cores))))
        self.threads = options.threads or max(1, cores // max(self.processes))
        if options.batches < max(self.processes):
            raise UserError(f"--batches {options.batches}: expected at least one a process, {max(self.processes)}")
        self.results = {
            "format": 1,
            "complete": False,
            "machine": describe_machine(),
            "device": "GPU" if gpus else "CPU",
            "threads": self.threads,
            "rounds": options.rounds,
            "repeats": options.repeats,
            "seconds": options.seconds,
            "least_seconds": LEAST_SECONDS,
            "lines": {},
        }

    def run(self):
        ready = {}
        for recipe, size in itertools.product(self.options.recipes, self.sizes):
            ready[recipe, size] = self._prepare(recipe, size) if set(self.options.parts) - {"features"} else None
        parts = [part for part in PARTS if part in self.options.parts]
        lines = [*itertools.product(self.options.recipes, self.sizes, parts, self.processes)]
        for _, (recipe, size, part, number) in itertools.product(range(self.options.rounds), lines):
            name = f"{recipe} {size} {part} {number}"
            before = self.results["lines"].get(name)
            if "problem" not in (before or {}):
                self.results["lines"][name] = ready[recipe, size] or add_round(before, self._line(name))
                self._keep()
        self.results["complete"] = True
        self._keep()
        return self.results

    def _prepare(self, recipe, size):
        """Lay out the corpus and run the stages before the trainings: None, or {"problem": line}."""
        try:
            begun = time.monotonic()
            lay_out(recipe, self.folder)
            for stage in PLANS[recipe].stages:
                run_stage(recipe, stage, size, self.folder / f"{recipe}-{size}", settings_of(recipe, self.folder, self.options))
            say(f"{recipe} {size}: corpus made in {time.monotonic() - begun:.0f} s")
        except UserError as error:
            say(f"{recipe} {size}: {error}")
            return {"problem": str(error)}
        return None

    def _line(self, name):
        options = self.options
        command = [
            sys.executable,
            os.path.abspath(__file__),
            "--only",
            name,
            "--folder",
            self.folder,
            "--device",
            options.device,
            "--repeats",
            options.repeats,
            "--seconds",
            options.seconds,
            "--batches",
            options.batches,
        ]
        command += ["--set", *options.set] if options.set else []
        done = run_program(command, environment={**os.environ, **thread_variables(self.threads)})
        if done.status:
            say(f"{name}: {done.lines[-1] if done.lines else ''}")
            return {"problem": f"status {done.status}: {done.lines[-1] if done.lines else 'it printed nothing'}"}
        line = {**json.loads(done.lines[-1]), "host_gigabytes": done.gigabytes}
        say(f"{name}: {line['audio_seconds'] / sorted(line['seconds'])[len(line['seconds']) // 2]:.4g} s of audio a second")
        return line

    def _keep(self):
        output = self.options.output
        if output:
            write_json(f"{output}.json", self.results)
            with atomic_write(f"{output}.md") as stream:
                stream.write(report(self.results))
            if any("problem" not in line for line in self.results["lines"].values()):
                plot([self.results], [output.name], f"{output}.png")


def lay_out(recipe, folder):
    """The recipe's corpus, from made-up speech, in the official layout."""
    from local import full_size
    from pyspeech.data.audio_files import write_audio
    from steps.benchmark.parts import made_up_speech

    corpus = folder / PLANS[recipe].corpus
    if not corpus.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as recordings, tempfile.TemporaryDirectory(dir=folder) as whole:
            write_audio(Path(recordings) / "speech.wav", made_up_speech(RECORDINGS, 16000), 16000)
            full_size.lay_out(PLANS[recipe].corpus, recordings, whole, SCALES[recipe])
            os.rename(whole, corpus)
            os.mkdir(whole)  # to be removed


def settings_of(recipe, folder, options):
    plan = PLANS[recipe]
    corpus = folder / plan.corpus
    return [f"corpus={corpus if corpus.exists() else folder}", *plan.options, *SETTINGS[recipe], *options.set]


def measure(line, folder, options):
    """Measure a line of the JSON file, but for its memory, in this process or in those that share the work."""
    (recipe, size, part), number = line[:3], int(line[3])
    settings, experiment = settings_of(recipe, folder, options), folder / f"{recipe}-{size}"
    work = work_of(recipe, size, part, settings, options)
    measured = measure_training if part == "training" else measure_shares
    found = measured(recipe, size, part, experiment, settings, number, options)
    return {"work": work, "processes": number, "device": "cuda" if usable_gpus()[0] else "cpu", **found}


def work_of(recipe, size, part, settings, options):
    """{key: value} of all that decides what a line computes, whatever the number of processes."""
    loaded = load_recipe(recipe)
    values = config.flatten(loaded.configure(size, settings)[0])
    stage = next(stage for stage in loaded.stages if stage.name == PLANS[recipe].training)
    without_effect = [option.key for option in config.list_options(loaded.config_class) if not option.changes_results]
    declared = {"features": ["features"], "decoding": [*stage.config, "search"]}.get(part, stage.config)
    chosen = {key: value for key, value in config.below(values, declared).items() if key not in without_effect}
    amount = {"batches": options.batches} if part == "training" else {"pieces": UNITS}
    return {"recipe": recipe, "part": part, "scale": SCALES[recipe], **amount, **chosen}


def measure_training(recipe, size, part, experiment, settings, number, options):
    import logging

    from pyspeech.engine.place import from_environment
    from steps.benchmark.parts import audio_of_step, train_steps, training_of

    log, place = logging.getLogger("pyspeech.benchmark"), from_environment()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="training-"))
        if place.rank > 0:
            stack.enter_context(ranks.alongside(place))
        elif number > 1:
            place = stack.enter_context(ranks.started([sys.executable, *sys.argv], number, log.error))
        agree = stack.enter_context(ranks.together(place))
        training = training_of(recipe, size, experiment, settings)
        found = train_steps(training, Path(agree(folder)), options.batches, options.repeats, options.seconds, log)
        return {**found, "audio_seconds": audio_of_step(recipe, training, options.batches)}


def measure_shares(recipe, size, part, experiment, settings, number, options):
    """Each process makes its pieces ready and does them again and again, all at the same time."""
    team = Team(number)

    def work(which):
        import torch

        from steps.benchmark.parts import PIECES

        team.number = which
        if usable_gpus()[0]:
            torch.cuda.set_device(which % torch.cuda.device_count())
        pieces = list(PIECES[part](recipe, size, experiment, settings, range(which, UNITS, number)))
        results = [piece.run() for piece in pieces]  # pyright: ignore[reportCallIssue]
        times = repeat(lambda: [piece.run() for piece in pieces], options.repeats, options.seconds, team)  # pyright: ignore[reportCallIssue]
        held = torch.cuda.max_memory_reserved() / 2**30 if usable_gpus()[0] else None
        return times, sum(results), sum(piece.seconds for piece in pieces), held

    done = [work(0)] if number == 1 else list(in_processes(work, range(number), number))
    times, results, seconds, held = zip(*done, strict=True)
    pressures = [each.pressure for each in times if each.pressure is not None]
    return {
        "seconds": [max(each) for each in zip(*(each.seconds for each in times), strict=True)],
        "cpu_seconds": [sum(each) for each in zip(*(each.cpu_seconds for each in times), strict=True)],
        "calls": times[0].calls,
        "pressure": max(pressures, default=None),
        "proof": [sum(results) / UNITS],
        "audio_seconds": sum(seconds),
        "waiting": None,
        "device_gigabytes": None if None in held else sum(held),
    }


def show_comparison(options):
    """Compare the first of some files with each of the others; 0."""
    if len(options.compare) < 2:
        raise UserError("--compare: expected two files or more, as -o writes them")
    (first, *others), names = map(read_results, options.compare), [path.stem for path in options.compare]
    shown = []
    for other, name in zip(others, names[1:], strict=False):
        shown.append(report_comparison(first, other, (names[0], name), *compare((first, other), (names[0], name))))
    print("\n".join(shown), end="")
    if options.output:
        with atomic_write(f"{options.output}.md") as stream:
            stream.write("\n".join(shown))
        plot([first, *others], names, f"{options.output}.png")
    return 0


def read_results(path):
    """The results in a file that -o wrote."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, ValueError):
        results = None
    if not isinstance(results, dict) or results.get("format") != 1 or "lines" not in results:
        raise UserError(f"{path}: expected results of this tool, as -o NAME writes them to NAME.json")
    return results


def run_on_cluster(options, arguments):
    """Run the same command as a job, and follow it: 0 where all was measured."""
    if not options.output:
        raise UserError("--cluster: expected -o NAME too, on a file system that all nodes share, to which the job writes")
    output = options.output.absolute()
    output.parent.mkdir(parents=True, exist_ok=True)
    site = load_site(None, [f"partition={options.partition}"] if options.partition else [])
    command = [os.path.abspath(__file__), *without(arguments, "--cluster", "--partition")]
    job = Job(
        f"{prefix_of(output)}benchmark",
        "",
        f"{output}.log",
        cpus=options.cores,
        gpus=options.gpus,
        hours=options.hours * site.time_factor,
        memory=MEMORY * site.memory_factor,
    )
    json_file = Path(f"{output}.json")
    before = json_file.stat().st_mtime_ns if json_file.exists() else None
    run_one_job(options.cluster, site, job, command)
    if not json_file.exists() or json_file.stat().st_mtime_ns == before:
        raise UserError(f"the job has left no {json_file}; what it printed is in {output}.log")
    results = read_results(json_file)
    return 1 if not results["complete"] or any("problem" in line for line in results["lines"].values()) else 0


def without(arguments, *flags):
    """Arguments without those flags, and their values."""
    kept, skip = [], False
    for argument in arguments:
        if skip or argument in flags:
            skip = not skip
        elif argument.partition("=")[0] not in flags:
            kept.append(argument)
    return kept


if __name__ == "__main__":
    exit_after(main)
