"""What a detector makes of engines that it has never met: trained without one family of them at a time.

A family is what the corpus calls so, engines that have much in common; where it names none, each engine is one
(pyspeech.spoofing.formats.family_of).
"""
from urllib.parse import quote

from pyspeech.errors import UserError
from pyspeech.files import write_json
from pyspeech.parts import in_parts
from steps.cuts import load_cuts
from steps.spoof.score import read_seeds

ALL = "all"


def families_left_out(conf, corpus, log):
    """The families of conf.leave_out, in the order of the corpus; `all` stands for each that train has. UserError for one
    that train does not have, or whose absence would leave no fakes."""
    from pyspeech.spoofing.formats import family_of

    found = [family for family in dict.fromkeys(family_of(cut) for cut in load_cuts(corpus, "train")) if family != "-"]
    if conf.leave_out == [ALL] and not found:
        log.warning("leave_out=[all]: the labels of train do not say what made the fakes; none is left out")
    wanted = sorted(found) if conf.leave_out == [ALL] else conf.leave_out
    unknown = [family for family in wanted if family not in found]
    if unknown:
        known = ", ".join(sorted(found)) or "none, as its labels do not name them"
        raise UserError(f"leave_out: {unknown[0]}; expected families of the fakes in train: {known}")
    if wanted and len(found) < 2:
        raise UserError(f"leave_out: train has fakes of {found[0]} alone, and nothing to learn from without it")
    return wanted


def leave_out(exp, conf):
    """families.json: {family: {"genuine", "fake": utterances of eval, "engines": {engine: utterances}, "kind": of engines,
    "trained": {"eer", "interval", "conditions": {condition: EER}} of the detector that has met it, "left_out": the same of
    one that has not}}, fractions, on eval.

    Both are conf.systems[-1] with the first seed. What has been trained stays in models/families, and a stage that was killed
    goes on there.
    """
    from pyspeech.training import distributed

    system, wanted = conf.systems[-1], families_left_out(conf, exp.dir / "corpus", exp.log)
    for family in wanted:
        train_without(exp, conf, system, family)
    if distributed.rank() == 0:
        cuts = [cut for cut in load_cuts(exp.dir / "corpus", "eval") if cut.supervisions[0].text]
        (met,) = read_seeds(exp, system, conf.seeds[:1], "eval") if cuts else [{}]
        parts = {family: family for family in wanted}
        found = in_parts("families", lambda family: measured(exp, conf.data, system, family, cuts, met), parts, 1)
        write_json(exp.dir / "families.json", found)


def folder_name(system, family):
    return f"families/{system}/{quote(family, safe=' ')}"


def train_without(exp, conf, system, family):
    """The detector that has not met a family, unless it is there. Of several processes, all train it."""
    from pyspeech.training import distributed
    from steps.spoof.train import backgrounds_of, train_detector

    name = folder_name(system, family)
    if distributed.from_first(lambda: not (exp.dir / "models" / name / "model.pt").exists()):
        exp.log.info("%s without %s", system, family)
        train_detector(exp, conf, system, conf.seeds[0], backgrounds_of(exp, system), name, without=family)


def measured(exp, crop, system, family, cuts, met):
    """The entry of a family in families.json. cuts: of eval; met: {id: score} of the detector that has met all families."""
    from collections import Counter

    from pyspeech.compat import default_device
    from pyspeech.spoofing.checkpoint import load_model
    from pyspeech.spoofing.formats import family_of, kind_of, label_of
    from steps.spoof.train import score_cuts

    genuine = [cut for cut in cuts if label_of(cut).genuine]
    fakes = [cut for cut in cuts if family_of(cut) == family]
    entry = {"genuine": len(genuine), "fake": len(fakes), "engines": dict(Counter(label_of(cut).attack for cut in fakes)),
             "kind": kind_of(fakes[0]) if fakes else "-"}
    if not (genuine and fakes):
        exp.log.info("%s: not measured: eval has none", family)
        return {**entry, "trained": None, "left_out": None}
    model = load_model(exp.dir / "models" / folder_name(system, family), default_device()).model
    entry["trained"] = error_rates(genuine, fakes, [met[cut.id] for cut in genuine + fakes])
    entry["left_out"] = error_rates(genuine, fakes, score_cuts(model, crop, genuine + fakes))
    exp.log.info("%s: EER trained %.2f %%, left_out %.2f %%", family,
                 *(100 * entry[kind]["eer"] for kind in ("trained", "left_out")))
    return entry


def error_rates(genuine, fakes, scores):
    """{"eer", "interval": its 95 % bootstrap, "conditions": {condition: EER}} of cuts and the scores of all of them, genuine
    first; fractions."""
    import numpy as np

    from pyspeech.spoofing.formats import label_of
    from pyspeech.spoofing.scoring import eer_draws, equal_error_rate

    scores, condition = np.array(scores), np.array([label_of(cut).condition for cut in genuine + fakes])
    first = np.arange(len(scores)) < len(genuine)
    shared = sorted(set(condition[first]) & set(condition[~first]))
    interval = np.percentile(eer_draws(scores[first], scores[~first]), [2.5, 97.5]).tolist()
    return {"eer": equal_error_rate(scores[first], scores[~first])[0], "interval": interval,
            "conditions": {name: equal_error_rate(scores[first & (condition == name)], scores[~first & (condition == name)])[0]
                           for name in shared}}
