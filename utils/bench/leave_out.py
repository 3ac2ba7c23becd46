#!/usr/bin/env python3
"""Measure how a detector of fake audio does on pages and families of engines that are left out of its training.

egs/add2022/run.py trains and scores one detector for each row, on a list with its own split. Three tables:
  pages      the pages of each of K folds are left out in turn
  families   the fakes of each of K folds of families are left out, with a K-th of the genuine speakers
  sizes      as pages, with fewer pages for training; every smaller set is part of the larger ones
Every row has the EER of each system, a mean over seeds, and the difference from the first system. The intervals, 95 %, are of
a bootstrap over pages, paired between systems. Weights are those of the last step: no set chooses them.

Rows are kept in --folder, so the same command goes on after a kill and prints what there is. Another setting needs another
folder.

examples:
  utils/bench/leave_out.py --corpus pages/ --folder here --set start_from=random train.max_steps=2000
  utils/bench/leave_out.py --corpus pages/ --folder here --tables pages --systems rnm_sm rnm_sm_mc0.8 --seeds 42 43 44
  utils/bench/leave_out.py --corpus pages/ --folder here --most 0     # only the tables
"""

__import__("sys").path.insert(0, __import__("os").path.realpath(__file__ + "/../../.."))
from pyspeech.launch import ensure_environment

ensure_environment()
import hashlib
import json
import logging
import sys
import time
from collections import Counter
from pathlib import Path

from pyspeech.commands.arguments import tool_parser, whole_number
from pyspeech.commands.terminal import exit_after
from pyspeech.errors import UserError

TABLES = ("pages", "families", "sizes")


def main(arguments=None):
    options = parser().parse_args(arguments)
    utterances = read_corpus(options.corpus)
    folder = options.folder.absolute()
    check_settings(folder, utterances, options)
    splits, made = make_splits(utterances, options), 0
    for seed in options.seeds:
        for system in options.systems:
            for split in splits:
                place = folder / "rows" / f"{split.name} {system} {seed}.json"
                if not place.exists() and (options.most is None or made < options.most):
                    make_row(place, split, system, seed, utterances, options)
                    made += 1
    print_tables(utterances, splits, read_rows(folder, splits, options), options)


def parser():
    parser = tool_parser(__doc__)
    parser.add_argument("--corpus", metavar="LIST", required=True, help="list with a column page, or a folder with lists")
    parser.add_argument("--folder", metavar="DIR", type=Path, required=True, help="keep rows and experiments in DIR")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), help="tables to make (default: all)")
    parser.add_argument("--folds", metavar="K", type=folds, default=5, help="folds of pages and of families (default: 5)")
    parser.add_argument(
        "--sizes",
        metavar="N",
        nargs="+",
        type=whole_number,
        default=[5, 10, 20, 40],
        help="pages for training in the table of sizes (default: 5 10 20 40)",
    )
    parser.add_argument(
        "--sized-folds", metavar="K", type=whole_number, help="folds of the table of sizes, the first ones (default: all)"
    )
    parser.add_argument(
        "--systems",
        nargs="+",
        metavar="NAME",
        default=["rnm_sm", "rnm_sm_mc0.8"],
        help="systems of egs/add2022 (default: rnm_sm rnm_sm_mc0.8, without and with McAdams anonymisation)",
    )
    parser.add_argument("--seeds", nargs="+", type=int, metavar="N", default=[42], help="random seeds (default: 42)")
    parser.add_argument("--profile", metavar="NAME", default="release", help="profile of the recipe (default: release)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="further options of the recipe")
    parser.add_argument(
        "--most",
        metavar="N",
        type=lambda text: whole_number(text, least=0),
        help="train at most N detectors now, then print the tables (default: all that are missing)",
    )
    return parser


def folds(text):
    return whole_number(text, least=2)


def read_corpus(corpus):
    """The labelled utterances of a corpus; UserError where they have no pages."""
    from local.add2022.labelled import as_utterances, find_utterances
    from steps.spoof.folds import page_of

    files, problems = find_utterances(Path(corpus).absolute(), logging.getLogger("pyspeech.bench"))
    if problems:
        raise UserError(f"{problems[0][0]}: {problems[0][1]}")
    found = [one for one in as_utterances(files) if one.text]
    lacking = [one.audio for one in found if not page_of(one)]
    if lacking:
        raise UserError(f"--corpus {corpus}: {lacking[0]} has no page; expected a column page")
    return found


def check_settings(folder, utterances, options):
    """Keep in `folder` what all its rows have in common; UserError where that is something else."""
    from pyspeech.files import write_json
    from steps.spoof.folds import family_of, page_of

    files = "\n".join(f"{one.audio} {one.text} {page_of(one)} {family_of(one)}" for one in utterances)
    wanted = {
        "files": hashlib.sha256(files.encode()).hexdigest(),
        "folds": options.folds,
        "profile": options.profile,
        "set": sorted(options.set),
    }
    path = folder / "settings.json"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_json(path, wanted)
    known = json.loads(path.read_text())
    other = [name for name in wanted if known.get(name) != wanted[name]]
    if other:
        raise UserError(
            f"--folder {folder}: its rows are of other {' and '.join(other)}; expected another folder, or an empty one"
        )


def make_splits(utterances, options):
    """The Splits of the tables, each once."""
    from steps.spoof.folds import family_splits, page_splits, smaller

    found = []
    if {"pages", "sizes"} & set(options.tables):
        found += page_splits(utterances, options.folds)
    if "families" in options.tables:
        found += family_splits(utterances, options.folds)
    if "sizes" in options.tables:
        sized = [split for split in found if split.kind == "pages"][: options.sized_folds]
        found += [smaller(split, utterances, size) for split in sized for size in sorted(set(options.sizes))]
    return found


def make_row(place, split, system, seed, utterances, options):
    """Train and score a detector by the recipe, and keep {utterance: score} of its eval set in `place`."""
    from local.add2022.labelled import as_utterances, find_utterances
    from pyspeech.files import write_json
    from pyspeech.spoof.score_files import read_scores
    from steps.benchmark.plans import finish, script_of
    from steps.spoof.folds import write_list

    folder, begun = options.folder.absolute(), time.monotonic()
    experiment, listed = folder / "experiments" / split.name, folder / "lists" / f"{split.name}.csv"
    listed.parent.mkdir(exist_ok=True)
    write_list(listed, utterances, split)
    given = [f"corpus={listed}", "kind=labelled", "report=false", f"seeds=[{seed}]", f"systems=[{system}]", "repeated=[]"]
    command = [sys.executable, script_of("add2022"), "--profile", options.profile, "--exp", experiment, "--jobs", "1"]
    for stages in (["--stop-stage", "backgrounds"], ["--stage", f"train_{system}", "--stop-stage", f"score_{system}"]):
        finish([*command, *stages, *given, *options.set])
    scores = read_scores(experiment / "scores" / system / str(seed) / "eval.txt")
    renamed = {one.audio: one.id for one in as_utterances(find_utterances(listed, logging.getLogger("pyspeech.bench"))[0])}
    found = {one.id: scores[renamed[one.audio]] for one in utterances if split.sets.get(one.id) == "eval"}
    place.parent.mkdir(exist_ok=True)
    write_json(place, {"seconds": time.monotonic() - begun, "scores": found})
    print(f"{place.stem}: {time.monotonic() - begun:.0f} s", flush=True)


def read_rows(folder, splits, options):
    """{(name of a split, system): [{utterance: score} of each seed]} of those that are there for all seeds."""
    found = {}
    for split in splits:
        for system in options.systems:
            places = [folder / "rows" / f"{split.name} {system} {seed}.json" for seed in options.seeds]
            if all(place.exists() for place in places):
                found[split.name, system] = [json.loads(place.read_text())["scores"] for place in places]
    return found


def print_tables(utterances, splits, rows, options):
    from pyspeech.report.tables import markdown_table

    systems = [name for name in options.systems if any(system == name for _, system in rows)]
    if not systems:
        print(f"--folder {options.folder}: no row is finished")
        return
    header = [column for name in systems for column in (name, "interval")]
    header += [column for name in systems[1:] for column in (f"{name} - {systems[0]}", "interval")]
    makers = {"pages": page_rows, "families": family_rows, "sizes": size_rows}
    for table in options.tables:
        first, cells = makers[table](utterances, splits, rows, systems)
        if cells:
            print(f"\n{table}: EER in %, mean over {len(options.seeds)} seed{'s' * (len(options.seeds) > 1)}\n")
            print(markdown_table([*first, *header], cells), end="")


def page_rows(utterances, splits, rows, systems):
    """(first columns, rows) of the table of pages."""
    from steps.spoof.folds import page_of

    cells, all_rates, pages = [], [], []
    for split in complete([split for split in splits if split.kind == "pages" and split.size is None], rows, systems):
        tested = [one for one in utterances if split.sets.get(one.id) == "eval"]
        found = {system: rates(tested, rows[split.name, system]) for system in systems}
        count = Counter(one.text for one in tested)
        cells.append([f"fold {split.fold}", len(split.held), count["genuine"], count["fake"], *shown(found, systems)])
        all_rates.append(found)
        for page in split.held:
            own = [one for one in tested if page_of(one) == page]
            if {one.text for one in own} == {"genuine", "fake"}:
                pages.append({system: rates(own, rows[split.name, system], draws=False) for system in systems})
    if cells:
        cells.append(["mean over folds", *[None] * 3, *shown(mean_of(all_rates), systems)])
        cells.append([f"mean over {len(pages)} pages with both classes", *[None] * 3, *shown(over_items(pages), systems)])
    return ["left out", "pages", "genuine", "fake"], cells


def family_rows(utterances, splits, rows, systems):
    """(first columns, rows) of the table of families."""
    from steps.spoof.folds import family_of, page_of

    cells, all_rates = [], []
    for split in complete([split for split in splits if split.kind == "families"], rows, systems):
        tested = [one for one in utterances if split.sets.get(one.id) == "eval"]
        for family in split.held:
            own = [one for one in tested if family_of(one) in ("", family)]
            fakes = [one for one in own if one.text == "fake"]
            found = {system: rates(own, rows[split.name, system]) for system in systems}
            cells.append([family, split.fold, len({page_of(one) for one in fakes}), len(fakes), *shown(found, systems)])
            all_rates.append(found)
    cells.sort(key=lambda row: row[0])
    if cells:
        cells.append(["mean over families", *[None] * 3, *shown(mean_of(all_rates), systems)])
    return ["family", "fold", "pages", "fakes"], cells


def size_rows(utterances, splits, rows, systems):
    """(first columns, rows) of the table of sizes: means over the folds that have all sizes."""
    of_pages = [split for split in splits if split.kind == "pages"]
    sized = {split.fold for split in of_pages if split.size is not None}
    lacking = {split.fold for split in of_pages if split not in complete(of_pages, rows, systems)}
    wanted = [split for split in of_pages if split.fold in sized - lacking]
    cells = []
    for size in sorted({split.size for split in wanted}, key=lambda size: (size is None, size)):
        found = []
        for split in (split for split in wanted if split.size == size):
            tested = [one for one in utterances if split.sets.get(one.id) == "eval"]
            found.append({system: rates(tested, rows[split.name, system]) for system in systems})
        cells.append(["all others" if size is None else size, len(found), *shown(mean_of(found), systems)])
    return ["pages for training", "folds"], cells


def complete(splits, rows, systems):
    """Select the splits whose rows of all systems are there."""
    return [split for split in splits if all((split.name, system) in rows for system in systems)]


def rates(utterances, scores, draws=True):
    """(EER, EERs of the draws of pages), both means over the seeds; scores: {utterance: score} of each seed."""
    import numpy as np

    from pyspeech.spoof.scoring import eer_draws, equal_error_rate
    from steps.spoof.folds import page_of

    kinds = [[one for one in utterances if one.text == kind] for kind in ("genuine", "fake")]
    pages = [[page_of(one) for one in some] for some in kinds]
    found = [[[of_seed[one.id] for one in some] for some in kinds] for of_seed in scores]
    drawn = np.mean([eer_draws(genuine, fake, pages) for genuine, fake in found], axis=0) if draws else None
    return float(np.mean([equal_error_rate(genuine, fake)[0] for genuine, fake in found])), drawn


def mean_of(found):
    """The mean over [{system: (EER, draws)}, ...], draw by draw."""
    import numpy as np

    shortest = min(len(drawn) for one in found for _, drawn in one.values())  # draws that lack a class are left out
    return {
        system: (
            float(np.mean([one[system][0] for one in found])),
            np.mean([one[system][1][:shortest] for one in found], axis=0),
        )
        for system in found[0]
    }


def over_items(found):
    """The mean over [{system: (EER, None)}, ...], with a bootstrap over these, paired between systems."""
    import numpy as np

    if not found:
        return {}
    chosen = np.random.default_rng(0).integers(len(found), size=(1000, len(found)))
    values = {system: np.array([one[system][0] for one in found]) for system in found[0]}
    return {system: (float(some.mean()), some[chosen].mean(axis=1)) for system, some in values.items()}


def shown(found, systems):
    """The cells of the systems, and of the differences from the first."""
    if not found:
        return [None] * (4 * len(systems) - 2)
    pairs = [found[system] for system in systems]
    pairs += [(eer - pairs[0][0], drawn - pairs[0][1]) for eer, drawn in pairs[1:]]
    return [cell for eer, drawn in pairs for cell in cells_of(eer, drawn)]


def cells_of(eer, drawn):
    import numpy as np

    from pyspeech.report.tables import bracketed, percent

    return percent(eer, 1), bracketed(np.percentile(drawn, [2.5, 97.5])) if len(drawn) else None


if __name__ == "__main__":
    exit_after(main)
