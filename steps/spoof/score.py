"""Scores of the detectors of egs/add2022 on dev, adapt, eval and the corpora to test on alone, and their error rates."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.engine.parts import in_parts
from pyspeech.engine.process import model_processes
from pyspeech.files import write_json
from pyspeech.spoof.scored_cuts import chunks, score_cuts
from steps.chance import warn
from steps.spoof.corpus import cuts_of_set, place_of_set
from steps.spoof.tables import chance_of
from steps.spoof.train import trained_on
from steps.systems import seeds_of

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from pyspeech.engine.run import Experiment
    from pyspeech.spoof.formats import Label
    from pyspeech.spoof.scoring import AsvRates

SETS = ("dev", "adapt", "eval")
COMPARED = (
    ("none", "rnm_sm"),
    ("none", "rnm_sm_mc0.8"),
    *(("rnm_sm", f"rnm_sm_mc{which}") for which in ("0.9", "0.8", "0.7", "0.6", "_any")),
    ("traindev_rnm_sm", "traindev_rnm_sm_mc0.8"),
    ("pooled_rnm_sm", "pooled_rnm_sm_mc0.8"),
)


def scored_sets(system: str, tests: Iterable[str] = ()) -> list[str]:
    """The sets that a system has not been trained on. tests: names of corpora to test on alone."""
    return [name for name in (*SETS, *tests) if name not in trained_on(system)]


def score_system(exp: Experiment, conf: Any, system: str) -> None:
    """scores/<system>/<seed>/<set>.txt, score files of calibrated log-likelihood ratios; scores/<system>.json, its
    figures, and the same on the screen. What training has scored to calibrate on is not scored again."""
    from pyspeech.compat import default_device
    from pyspeech.spoof.checkpoint import load_model
    from pyspeech.spoof.formats import write_scores
    from pyspeech.spoof.score_files import read_scores

    models = {seed: exp.dir / "models" / system / str(seed) for seed in seeds_of(conf, system)}
    detectors = {seed: load_model(folder, default_device()) for seed, folder in models.items()}
    sets = {name: cuts_of_set(exp, name) for name in scored_sets(system, conf.test)}
    kept = {
        (seed, name): read_scores(folder / f"{name}.txt") if (folder / f"{name}.txt").exists() else {}
        for seed, folder in models.items()
        for name in sets
    }
    parts = {
        part: (seed, name, cuts)
        for seed, name in kept
        for part, cuts in chunks([cut for cut in sets[name] if cut.id not in kept[seed, name]], f"{seed} {name}").items()
    }
    found = in_parts(
        exp.parts,
        "utterances",
        lambda part: score_cuts(detectors[part[0]].model, detectors[part[0]].crop, part[2]),
        parts,
        model_processes(),
        log=exp.log,
    )
    for (seed, name, cuts), scores in zip(parts.values(), found.values(), strict=True):
        kept[seed, name].update(zip((cut.id for cut in cuts), scores, strict=True))
    for seed in models:
        (exp.dir / "scores" / system / str(seed)).mkdir(parents=True, exist_ok=True)  # a corpus may have none of the sets
    for (seed, name), scores in kept.items():
        if sets[name]:
            write_scores(
                exp.dir / "scores" / system / str(seed) / f"{name}.txt",
                {cut.id: detectors[seed].calibration.log_likelihood_ratio(scores[cut.id]) for cut in sets[name]},
            )
    calibrations = [detector.calibration for detector in detectors.values()]
    figures = {**system_figures(exp, conf, system), "calibrations": [asdict(calibration) for calibration in calibrations]}
    write_json(exp.dir / "scores" / f"{system}.json", figures)
    warn(exp.log, [chance_of(system, figures)])
    for name, entry in figures["sets"].items():
        exp.log.info("%s, %s: EER %s %%", system, name, ", ".join(f"{100 * value:.2f}" for value in entry["eer"]))
        if "min_tdcf" in entry:
            exp.log.info("%s, %s: min t-DCF %s", system, name, ", ".join(f"{value:.4f}" for value in entry["min_tdcf"]))


def system_figures(exp: Experiment, conf: Any, system: str) -> dict[str, Any]:
    """Figures of a system as `steps.spoof.tables` describes them; sets without labels of both kinds are left out."""
    seeds = seeds_of(conf, system)
    sets = {}
    for name in scored_sets(system, conf.test):
        place = place_of_set(exp, name)
        labels = labels_of_set(*place)
        if of_both_kinds(labels):
            scores = read_seeds(exp, system, seeds, name)
            sets[name] = set_figures(scores, labels, asv_rates_of(*place, exp.log))
            if conf.corpus != "mini" or name in conf.test:  # mini's families are engines, and its languages voices
                sets[name].update(group_figures(scores, labels, load_cuts(*place)))
    return {"seeds": list(seeds), "sets": sets}


def set_figures(scores: Sequence[Mapping[str, float]], labels: Mapping[str, Label], asv: AsvRates | None) -> dict[str, Any]:
    """Figures of one set. scores: [{utterance: score} of each seed]; labels: {utterance: Label}; asv: AsvRates or None."""
    import numpy as np

    from pyspeech.spoof.scored_set import score_set
    from pyspeech.spoof.scoring import eer_draws

    found = [score_set(labels, of_seed, asv=asv, draws=1) for of_seed in scores]  # the interval is that of the mean
    draws = np.mean([eer_draws(*divide(of_seed, labels)) for of_seed in scores], axis=0)
    entry = {name: [one[name] for one in found] for name in ("eer", "cllr", "min_tdcf") if name in found[0]}
    entry.update(interval=np.percentile(draws, [2.5, 97.5]).tolist(), genuine=found[0]["genuine"], fake=found[0]["fake"])
    for kind in ("attacks", "conditions"):
        entry[kind] = {  # pyright: ignore[reportArgumentType]
            name: [one[kind][name]["eer"] for one in found]
            for name, values in found[0][kind].items()
            if values["eer"] is not None
        }
    return entry


def group_figures(scores: Sequence[Mapping[str, float]], labels: Mapping[str, Label], cuts: Sequence[Cut]) -> dict[str, Any]:
    """{"families", "languages", "pages": {name: [EER by each seed]}} of a set, of what its cuts say and is not the same in all:
    the fakes of a family against all genuine utterances, and all utterances of a language or a page. scores, labels: as for
    `set_figures`."""
    from pyspeech.spoof.formats import UNKNOWN, family_of, page_of
    from pyspeech.spoof.scoring import equal_error_rate

    cuts, found = [cut for cut in cuts if cut.id in labels], {}
    told = any("family" in (cut.supervisions[0].custom or {}) for cut in cuts)
    columns = {
        "families": [family_of(cut) if told else UNKNOWN for cut in cuts],
        "languages": [cut.supervisions[0].language for cut in cuts],
        "pages": [page_of(cut) for cut in cuts],
    }
    for kind, column in columns.items():
        members = {name: {} for name in sorted(set(column) - {UNKNOWN})}
        for cut, name in zip(cuts, column, strict=True):
            for one in members if kind == "families" and labels[cut.id].genuine else members.keys() & {name}:
                members[one][cut.id] = labels[cut.id]
        both = {name: some for name, some in members.items() if of_both_kinds(some)}
        if len(members) > 1 and both:
            found[kind] = {
                name: [float(equal_error_rate(*divide(of_seed, some))[0]) for of_seed in scores] for name, some in both.items()
            }
    return found


def of_both_kinds(labels: Mapping[str, Label]) -> bool:
    """True if there are labels of genuine and of fake utterances."""
    return {label.genuine for label in labels.values()} == {True, False}


def divide(scores: Mapping[str, float], labels: Mapping[str, Label]) -> tuple[list[float], list[float]]:
    """(scores of genuine, scores of fake) utterances, in the order of the labels."""
    return tuple([scores[name] for name, label in labels.items() if label.genuine == kind] for kind in (True, False))  # pyright: ignore[reportReturnType]


def compare_systems(exp: Experiment, conf: Any) -> None:
    """Paired differences between systems, on all fakes and on those of unseen engines.

    differences.json: `differences` of those pairs of COMPARED that are among the systems.
    """
    seeds = {system: seeds_of(conf, system) for system in conf.systems}
    pairs = [pair for pair in COMPARED if set(pair) <= set(seeds)]
    found = [one for name in ("eval", *conf.test) for one in differences(exp, seeds, pairs, name)]
    write_json(exp.dir / "differences.json", found)


def differences(
    exp: Experiment, seeds: Mapping[str, Sequence[int]], pairs: Sequence[tuple[str, str]], name: str
) -> list[dict[str, Any]]:
    """`difference` of each pair of systems on a set, and then on those of its fakes alone whose engines neither train nor
    dev has, where that leaves out some and not all. [] for a set without labels of both kinds."""
    every = labels_of_set(*place_of_set(exp, name))
    others = unseen_labels(exp.dir / "corpus", every)
    return [
        {"unseen": unseen, **difference(exp, seeds, pair, name, labels)}
        for unseen, labels in ((False, every), (True, others if len(others) < len(every) else {}))
        if of_both_kinds(labels)
        for pair in pairs
    ]


def difference(
    exp: Experiment, seeds: Mapping[str, Sequence[int]], pair: tuple[str, str], name: str, labels: Mapping[str, Label]
) -> dict[str, Any]:
    """EER of the second of two systems less that of the first, means over the seeds that both have, with a paired
    bootstrap's interval: the draws are of the same utterances for both, those of labels {utterance: Label}, of a set.
    seeds: {system: its seeds}."""
    import numpy as np

    from pyspeech.spoof.scoring import eer_draws, equal_error_rate

    shared = [seed for seed in seeds[pair[0]] if seed in seeds[pair[1]]]
    means, draws = [], []
    for system in pair:
        scores = read_seeds(exp, system, shared, name)
        means.append(float(np.mean([equal_error_rate(*divide(of_seed, labels))[0] for of_seed in scores])))
        draws.append(np.mean([eer_draws(*divide(of_seed, labels)) for of_seed in scores], axis=0))
    return {
        "systems": list(pair),
        "set": name,
        "seeds": shared,
        "first": means[0],
        "mean": means[1] - means[0],
        "interval": np.percentile(draws[1] - draws[0], [2.5, 97.5]).tolist(),
    }


def unseen_labels(corpus: Path, labels: Mapping[str, Label]) -> dict[str, Label]:
    """Select genuine utterances and those of engines (attacks) that neither train nor dev has. labels: {utterance: Label}."""
    from pyspeech.spoof.formats import label_of

    seen = {
        label_of(cut).attack
        for name in ("train", "dev")
        for cut in load_cuts(corpus, name)
        if cut.supervisions[0].text == "fake"
    }
    return {name: label for name, label in labels.items() if label.genuine or label.attack not in seen}


def labels_of_set(corpus: Path, name: str) -> dict[str, Label]:
    """{utterance: Label} of those utterances of a set whose label is known."""
    from pyspeech.spoof.formats import label_of

    return {cut.id: label_of(cut) for cut in load_cuts(corpus, name) if cut.supervisions[0].text}


def read_seeds(exp: Experiment, system: str, seeds: Iterable[int], name: str) -> list[dict[str, float]]:
    """[{utterance: score} of each seed] of a set."""
    from pyspeech.spoof.score_files import read_scores

    return [read_scores(exp.dir / "scores" / system / str(seed) / f"{name}.txt") for seed in seeds]


def asv_rates_of(corpus: Path, name: str, log: logging.Logger) -> AsvRates | None:
    """AsvRates of the scores of speaker verification that come with a set, or None; also, with a warning, where they are
    so bad that min t-DCF is not defined."""
    from pyspeech.errors import UserError
    from pyspeech.spoof.score_files import read_asv_scores
    from pyspeech.spoof.scoring import asv_rates, tandem_weights

    path = corpus / f"asv_scores_{name}.txt"
    if not path.exists():
        return None
    rates = asv_rates(read_asv_scores(path))
    try:
        tandem_weights(rates)
    except UserError as error:
        log.warning("%s: %s; min t-DCF is left out", path, error)
        return None
    return rates
