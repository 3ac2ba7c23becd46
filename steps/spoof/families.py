"""Detection of unseen engines: training without one family of engines at a time, or without several.

A family is what the corpus calls so, engines that have much in common; where it names none, each engine is one
(pyspeech.spoof.formats.family_of).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pyspeech.data.manifests import load_cuts
from pyspeech.engine.parts import in_parts
from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.spoof.scored_cuts import TOGETHER
from steps.spoof.score import read_seeds

if TYPE_CHECKING:
    from lhotse.cut import Cut
    from numpy.typing import ArrayLike

    from pyspeech.engine.run import Experiment
    from pyspeech.spoof.config import CropConfig

ALL = "all"


def families_left_out(conf: Any, corpus: Path, log: logging.Logger) -> list[str]:
    """The groups of families of conf.leave_out, joined by TOGETHER; `all` stands for each that train has, by itself. UserError
    for one that train does not have, or whose absence would leave no fakes."""
    from pyspeech.spoof.formats import family_of

    found = [family for family in dict.fromkeys(family_of(cut) for cut in load_cuts(corpus, "train")) if family != "-"]
    if conf.leave_out == [ALL] and not found:
        log.warning("leave_out=[all]: the labels of train do not say what made the fakes; none is left out")
    joined = [family for family in found if TOGETHER in family]
    if conf.leave_out and joined:
        raise UserError(
            f"leave_out: train has a family of engines called {joined[0]}; expected names without {TOGETHER}, "
            "which joins families"
        )
    wanted = sorted(found) if conf.leave_out == [ALL] else conf.leave_out
    unknown = [family for group in wanted for family in group.split(TOGETHER) if family not in found]
    if unknown:
        known = ", ".join(sorted(found)) or "none, as its labels do not name them"
        raise UserError(f"leave_out: {unknown[0]}; expected families of the fakes in train: {known}")
    everything = [group for group in wanted if len(group.split(TOGETHER)) == len(found)]
    if everything:
        raise UserError(f"leave_out: train has fakes of {everything[0]} alone; without these there is nothing to learn from")
    return wanted


def leave_out(exp: Experiment, conf: Any) -> None:
    """Train the last system without some families of engines; error rates on these.

    families.json: {family: {"genuine", "fake": utterances of eval, "engines": {engine: utterances}, "kind": of engines,
    "group": the families left out together, "steps": conf.left_out_steps, "trained": {"eer", "interval", "conditions":
    {condition: EER}} of the detector that has met it, "left_out": the same of one that has not}}, fractions, on eval.

    Both are conf.systems[-1] with the first seed, the other one trained for conf.left_out_steps of its steps. What has been
    trained stays in models/families, and a stage that was killed goes on there.
    """
    from pyspeech.training import distributed

    system, wanted = conf.systems[-1], families_left_out(conf, exp.dir / "corpus", exp.log)
    for group in wanted:
        train_without(exp, conf, system, group)
    if distributed.rank() == 0:
        cuts = [cut for cut in load_cuts(exp.dir / "corpus", "eval") if cut.supervisions[0].text]
        (met,) = read_seeds(exp, system, conf.seeds[:1], "eval") if cuts else [{}]
        parts = {family: (family, group) for group in wanted for family in group.split(TOGETHER)}
        found = in_parts(exp.parts, "families", lambda part: measured(exp, conf.data, system, *part, cuts, met), parts, 1)
        write_json(exp.dir / "families.json", {name: {**entry, "steps": conf.left_out_steps} for name, entry in found.items()})


def folder_name(system: str, group: str) -> str:
    return f"families/{system}/{quote(group, safe=f' {TOGETHER}')}"


def shortened(conf: Any, share: float) -> Any:
    """A configuration with so much of its training's length, of the steps between its validations and of its clean batches."""
    from steps.spoof.train import scaled

    found = copy(conf)
    found.train = replace(conf.train, **scaled(conf.train, share, "max_steps", "max_epochs", "valid_every"))
    found.data = replace(conf.data, clean_batches=round(share * conf.data.clean_batches))
    return found


def train_without(exp: Experiment, conf: Any, system: str, group: str) -> None:
    """The detector that has not met a group of families, unless it is there. Of several processes, all train it."""
    from pyspeech.training import distributed
    from steps.spoof.train import backgrounds_of, train_detector

    name = folder_name(system, group)
    if distributed.from_first(lambda: not (exp.dir / "models" / name / "model.pt").exists()):
        exp.log.info("%s without %s", system, group)
        shorter = shortened(conf, conf.left_out_steps)
        train_detector(exp, shorter, system, conf.seeds[0], backgrounds_of(exp, system), name, without=group)


def measured(
    exp: Experiment, crop: CropConfig, system: str, family: str, group: str, cuts: Sequence[Cut], met: Mapping[str, float]
) -> dict[str, Any]:
    """The entry of a family, left out with its group, in families.json. cuts: of eval; met: {id: score} of the detector
    that has met all families."""
    from collections import Counter

    from pyspeech.compat import default_device
    from pyspeech.spoof.checkpoint import load_model
    from pyspeech.spoof.formats import family_of, kind_of, label_of
    from pyspeech.spoof.scored_cuts import score_cuts

    genuine = [cut for cut in cuts if label_of(cut).genuine]
    fakes = [cut for cut in cuts if family_of(cut) == family]
    entry = {
        "genuine": len(genuine),
        "fake": len(fakes),
        "engines": dict(Counter(label_of(cut).attack for cut in fakes)),
        "kind": kind_of(fakes[0]) if fakes else "-",
        "group": group.split(TOGETHER),
    }
    if not (genuine and fakes):
        exp.log.info("%s: not measured: eval has none", family)
        return {**entry, "trained": None, "left_out": None}
    model = load_model(exp.dir / "models" / folder_name(system, group), default_device()).model
    entry["trained"] = error_rates(genuine, fakes, [met[cut.id] for cut in genuine + fakes])
    entry["left_out"] = error_rates(genuine, fakes, score_cuts(model, crop, genuine + fakes))
    exp.log.info(
        "%s: EER trained %.2f %%, left_out %.2f %%", family, *(100 * entry[kind]["eer"] for kind in ("trained", "left_out"))
    )
    return entry


def error_rates(genuine: list[Cut], fakes: list[Cut], scores: ArrayLike) -> dict[str, Any]:
    """{"eer", "interval": its 95 % bootstrap, "conditions": {condition: EER}} of cuts and the scores of all of them, genuine
    first; fractions."""
    import numpy as np

    from pyspeech.spoof.formats import label_of
    from pyspeech.spoof.scoring import eer_draws, equal_error_rate

    scores, condition = np.array(scores), np.array([label_of(cut).condition for cut in genuine + fakes])
    first = np.arange(len(scores)) < len(genuine)
    shared = sorted(set(condition[first]) & set(condition[~first]))
    interval = np.percentile(eer_draws(scores[first], scores[~first]), [2.5, 97.5]).tolist()
    return {
        "eer": equal_error_rate(scores[first], scores[~first])[0],
        "interval": interval,
        "conditions": {
            name: equal_error_rate(scores[first & (condition == name)], scores[~first & (condition == name)])[0]
            for name in shared
        },
    }
