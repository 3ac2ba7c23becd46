"""Table 3 of Li et al. 2022 and what goes with it: ours, with the paper's figures beside. Plain data in, Markdown out.

scores: {system: {"seeds": [seed, ...], "sets": {set: {"eer": [fraction of each seed], "interval": [low, high] of their
mean, "cllr": [...], "attacks": {attack: [...]}, "conditions": {condition: [...]}, "genuine": n, "fake": n, "min_tdcf":
[...] where there are scores of speaker verification, "families", "languages", "pages": as "attacks", where the corpus tells
them}}, "calibrations": [of each seed, {"slope", "offset"}]}}
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspeech.report.tables import bracketed, decimals, markdown_table, percent, report_text, spread
from steps.chance import chance_note, chance_section

# Augmentations, and the paper's EER in % on the adaptation and the validation set, of systems trained on Train+Dev.
AUGMENTED = {
    "rnm": ("R+N+M", 3.83, 33.40),
    "rnm_sm": ("R+N+M+SM", 4.67, 33.27),
    "rnm_sm_mc0.9": ("R+N+M+SM+MC (0.9)", 3.62, 32.22),
    "rnm_sm_mc0.8": ("R+N+M+SM+MC (0.8)", 5.07, 30.32),
    "rnm_sm_mc0.7": ("R+N+M+SM+MC (0.7)", 6.38, 31.08),
    "rnm_sm_mc0.6": ("R+N+M+SM+MC (0.6)", 6.08, 32.53),
}
# Training data, augmentations, and the paper's figures; None: it has none.
TABLE_3 = {
    "none": ("Train", "none", None, None),
    **{name: ("Train", *row) for name, row in AUGMENTED.items()},
    "rnm_sm_mc_any": ("Train", "R+N+M+SM+MC (0.6 to 0.9)", None, None),
    **{f"traindev_{name}": ("Train+Dev.", *row) for name, row in AUGMENTED.items()},
    "pooled_rnm_sm": ("Train+Dev.+Adp.", "R+N+M+SM", None, 31.88),
    "pooled_rnm_sm_mc0.8": ("Train+Dev.+Adp.", "R+N+M+SM+MC (0.8)", None, 26.25),
}
CLEAN = "clean"  # the condition
SETS = {"dev": "Dev.", "adapt": "Adp.", "eval": "Eval."}  # others have the names that the option `test` gives them
GROUPS = {"attacks": "attack", "conditions": "condition", "families": "family", "languages": "language", "pages": "page"}
AVERAGED = ("families", "languages", "pages")  # with a row of means, in which each counts the same


def table_3(scores: Mapping[str, Any]) -> str:
    """EER in % of every system on every set it was not trained on; with several seeds their mean and standard deviation.

    The paper's figures of Train+Dev. stand beside our systems that are trained on these, or where there are none beside
    those that are trained on Train."""
    shown = sets_of(scores)
    rows = []
    for system in systems_of(scores):
        data, augmentations, *paper = TABLE_3[system]
        adapt, validation = (None, None) if f"traindev_{system}" in scores else paper
        cells = [spread(scores[system]["sets"].get(name, {}).get("eer"), scale=100) for name in shown]
        rows.append([data, augmentations, *cells, len(scores[system]["seeds"]), decimals(adapt), decimals(validation)])
    header = ["Training data", "Augmentations", *map(title, shown), "seeds", "paper: Adp.", "Val."]
    return markdown_table(header, rows)


def interval_table(scores: Mapping[str, Any]) -> str:
    """Mean EER in % with its 95 % interval, Cllr, and min t-DCF where there is one, of each system and set."""
    shown = sets_of(scores)
    rows = []
    for system in systems_of(scores):
        cells = [interval_cell(scores[system]["sets"].get(name)) for name in shown]
        rows.append([named(system), *cells])
    tandem = {name for entry in scores.values() for name, figures in entry["sets"].items() if "min_tdcf" in figures}
    header = [f"{title(name)}: EER, Cllr" + ", min t-DCF" * (name in tandem) for name in shown]
    return markdown_table(["Augmentations", *header], rows)


def interval_cell(entry: Mapping[str, Any] | None) -> str | None:
    """ "EER [low, high], Cllr[, min t-DCF]" of a system's entry of a set; None where it has none."""
    if entry is None:
        return None
    error, cllr, *tandem = (statistics.mean(entry[name]) for name in ("eer", "cllr", "min_tdcf") if name in entry)
    return f"{percent(error)} {bracketed(entry['interval'])}, {cllr:.2f}" + "".join(f", {cost:.3f}" for cost in tandem)


def detail_table(scores: Mapping[str, Any], name: str, kind: str) -> str | None:
    """EER in % of a set by attack, condition and so on (a kind of GROUPS), a column a system; None where the set has fewer than
    two of them."""
    sets = {system: scores[system]["sets"][name] for system in systems_of(scores) if name in scores[system]["sets"]}
    columns = [entry.get(kind, {}) for entry in sets.values()]
    found = sorted({key for column in columns for key in column})
    if len(found) < 2:
        return None
    rows = [[key, *(mean_percent(column.get(key)) for column in columns)] for key in found]
    if kind in AVERAGED:
        rows.append(["mean", *(mean_percent([statistics.mean(values) for values in column.values()]) for column in columns)])
    return markdown_table([GROUPS[kind], *sets], rows)


def corpus_table(counts: Mapping[str, Mapping[str, Any]]) -> str:
    """Size of each set. counts: {set: {"genuine", "fake", "minutes"}}."""
    rows = [[name, sizes["genuine"], sizes["fake"], f"{sizes['minutes']:.1f}"] for name, sizes in counts.items()]
    return markdown_table(["set", "genuine", "fake", "minutes"], rows)


def sources_note(sources: Mapping[str, str]) -> str:
    """Describe what augmentation mixes with speech. sources: {kind: of what}."""
    return "Heard with the speech in training: " + "; ".join(f"{kind}, {text}" for kind, text in sources.items()) + "."


def shortcut_note(shortcuts: Mapping[str, Any]) -> str:
    """Report the EER of a linear model that sees the files alone.

    shortcuts: {"files": {set: EER}, "mel": {set: EER}}, and where the corpus tells pages "pages": {"files", "mel": {"over",
    "within": EER, "pages": number}}.
    """

    def listed(kind):
        return ", ".join(f"{title(name)} {percent(value, 1)} %" for name, value in shortcuts[kind].items())

    pages = " ".join(
        f"Of the {what}, fitted on other utterances of all pages: {percent(rates['over'], 1)} % over pages, "
        f"{percent(rates['within'], 1)} % within the {rates['pages']} of both classes."
        for what, rates in zip(("files", "energies"), shortcuts.get("pages", {}).values(), strict=False)
        if rates
    )
    return (
        "## Is it the files that give the class away?\n\nEER of a linear model trained on statistics of each file (length, "
        f"level, noise floor, bandwidth, silence at its ends, number format): {listed('files')}; 50 % is nothing. On the "
        f"mean and deviation of log-mel energies: {listed('mel')}." + f" {pages}" * bool(pages)
    )


def difference_note(difference: Mapping[str, Any]) -> str:
    """One line for {"systems": [a, b], "set", "seeds", "unseen", "first", "mean", "interval"}: the EER of b less that of
    a, over the same utterances."""
    first, second = difference["systems"]
    low, high = (100 * value for value in difference["interval"])
    fakes = " (of the fakes, engines alone that train and dev do not have)" if difference["unseen"] else ""
    seeds = f"{len(difference['seeds'])} seed{'s' if len(difference['seeds']) > 1 else ''}"
    return (
        f"{title(difference['set'])}{fakes}, {seeds}: EER of {first} {percent(difference['first'])} %, of {second} "
        f"{100 * difference['mean']:+.2f} points, 95 % interval {low:+.2f} to {high:+.2f}."
    )


def choice_note(scores: Mapping[str, Any]) -> str:
    """Say which set has chosen the weights of the systems, and which data the paper's figures are for."""
    data = {TABLE_3[system][0] for system in scores}
    said = ["Dev. chooses the weights of what is trained on Train."] if "Train" in data else []
    if "Train+Dev." in data:
        said.append("Adp. chooses those of Train+Dev., where it has labels, and so is no independent test of them.")
    else:
        said.append("The paper's first rows are trained on Train+Dev.")
    if "Train+Dev.+Adp." in data:
        said.append("What is trained on all sets stops after a fixed number of steps.")
    return " ".join([*said, "The paper's figures are for ADD 2022, whose validation set is not public."])


def families_table(families: Mapping[str, Any]) -> str:
    """EER in % on eval's fakes of each family, of a detector that was trained with it and of one that was not, on clean
    utterances too where eval has others; the means of each kind of families.

    families: {family: entry}, see steps/spoof/families.py."""
    measured = {family: entry for family, entry in families.items() if entry["left_out"]}
    clean = any(set(entry["left_out"]["conditions"]) > {CLEAN} for entry in measured.values())
    grouped = any(len(entry["group"]) > 1 for entry in families.values())
    rows = [
        [
            family,
            ", ".join(f"{engine} {count}" for engine, count in sorted(entry["engines"].items())),
            *(
                f"{percent(entry[kind]['eer'])} {bracketed(entry[kind]['interval'])}" if entry[kind] else None
                for kind in ("trained", "left_out")
            ),
            *[_clean(entry)] * clean,
            *[_company(family, entry)] * grouped,
        ]
        for family, entry in families.items()
    ]
    for kind in dict.fromkeys(entry["kind"] for entry in measured.values() if entry["kind"] != "-"):
        entries = [entry for entry in measured.values() if entry["kind"] == kind]
        means = [percent(statistics.mean(entry[name]["eer"] for entry in entries)) for name in ("trained", "left_out")]
        cleans = [entry["left_out"]["conditions"][CLEAN] for entry in entries if CLEAN in entry["left_out"]["conditions"]]
        rows.append([f"mean: {kind}", None, *means, *[mean_percent(cleans)] * clean, *[None] * grouped])
    header = [
        "family",
        "fakes in eval",
        "EER, met in training",
        "EER, left out",
        *["left out, clean"] * clean,
        *["left out with"] * grouped,
    ]
    return markdown_table(header, rows)


def _clean(entry):
    """A family's EER in % on clean utterances of a detector that has not met it; None where there are none."""
    return percent(entry["left_out"]["conditions"].get(CLEAN)) if entry["left_out"] else None


def _company(family, entry):
    """The other families that were left out of the same training; None for none."""
    return ", ".join(name for name in entry["group"] if name != family) or None


def families_note(system: str, families: Mapping[str, Any]) -> str:
    """Explain the two columns of `families_table`."""
    shares = {entry["steps"] for entry in families.values()} - {1.0}
    shorter = f", in {percent(shares.pop(), 0)} % of the steps" if shares else ""
    return (
        f"{system}, its first seed, and the same trained and calibrated without the fakes of a family of engines, or of "
        f"several{shorter}. 95 % intervals, bootstrap over the utterances."
    )


def chance_of(system: str, entry: Mapping[str, Any]) -> str | None:
    """A note on a system that cannot be told from chance, by the first set that it was scored on: dev, if it was."""
    name = next((name for name in (*SETS, *entry["sets"]) if name in entry["sets"]), None)
    if name is None:
        return None
    found = entry["sets"][name]
    return chance_note(system, "eer", statistics.mean(found["eer"]), name, found["interval"])


def names() -> dict[str, str]:
    """{system: its name in the tables}."""
    return {system: named(system) for system in TABLE_3}


def named(system: str) -> str:
    """The augmentations of a system, and its training data where that is not Train alone."""
    data, augmentations, *_ = TABLE_3[system]
    return augmentations if data == "Train" else f"{data}: {augmentations}"


def systems_of(scores: Mapping[str, Any]) -> list[str]:
    return [system for system in TABLE_3 if system in scores]


def sets_of(scores: Mapping[str, Any]) -> list[str]:
    """The sets that have been scored, those of the corpus first."""
    found = dict.fromkeys(name for entry in scores.values() for name in entry["sets"])
    return sorted(found, key=lambda name: list(SETS).index(name) if name in SETS else len(SETS))


def title(name: str) -> str:
    """Name of a set in tables."""
    return SETS.get(name, name)


def mean_percent(values: Sequence[float] | None) -> str | None:
    return percent(statistics.mean(values)) if values else None


def report(
    scores: Mapping[str, Any],
    differences: Sequence[Mapping[str, Any]],
    note: str,
    command: str,
    remarks: Iterable[str] = (),
    calibrated: bool = True,
    families: Mapping[str, Any] | None = None,
) -> str:
    """RESULTS.md. calibrated: whether there was a dev set to calibrate on. families: of `families_table`."""
    parts = [
        "## Table 3: EER in %",
        table_3(scores),
        "R: reverberation, N: noise, M: music, SM: masks on the spectrogram, MC: anonymisation with a McAdams "
        "coefficient. With several seeds: mean ± standard deviation. " + choice_note(scores),
    ]
    parts += chance_section(chance_of(system, scores[system]) for system in systems_of(scores))
    parts += [difference_note(one) for one in differences]
    parts += [
        "## 95 % intervals, and Cllr in bits",
        interval_table(scores),
        "Bootstrap over the utterances; with several seeds of the mean of their error rates. "
        + (
            "Cllr after calibration on dev"
            + ", or on the set that has chosen the weights" * any(TABLE_3[system][0] == "Train+Dev." for system in scores)
            + "."
            if calibrated
            else "Cllr of the scores as they are: the corpus has no dev set to calibrate them on."
        ),
    ]
    for name in sets_of(scores):
        for kind in GROUPS:
            table = detail_table(scores, name, kind)
            if table:
                parts += [f"## {title(name)} EER in % by {GROUPS[kind]}", table]
    if families:
        parts += ["## Engines left out of training", families_table(families), families_note(systems_of(scores)[-1], families)]
    return report_text("Fake audio detection", note, command, [*parts, *remarks])
