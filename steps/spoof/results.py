"""The last stages of egs/add2022: its figures and tables; `exp` is the engine's Experiment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from pyspeech.report.det_plot import plot_det
from pyspeech.spoof.scored_cuts import choosing_cuts
from steps.spoof import tables
from steps.spoof.corpus import SETS, cuts_of_set
from steps.spoof.figures import envelopes, plot_envelopes, plot_histograms
from steps.spoof.score import divide, labels_of_set, of_both_kinds, read_seeds, scored_sets
from steps.systems import read_scores

if TYPE_CHECKING:
    import numpy as np

    from pyspeech.engine.run import Experiment

NOTES = {
    "mini": "Corpus mini: recordings of people from free packages, and fakes that vocoders and speech "
    "synthesisers made of them and of texts, all through the same recording chain (local/add2022/mini.py).",
    "public": "Corpus public: clips of public pages of speech synthesis and voice conversion (local/add2022/public.py).",
}
SEARCHED = 50  # genuine utterances, for the vowel of Figure 2
HISTOGRAMS = ("rnm_sm", "rnm_sm_mc0.8")  # the two panels of Figure 3, trained on Train+Dev. where that was done


def report(exp: Experiment, conf: Any) -> None:
    """Table 3, the histograms of Figure 3 and DET curves.

    results.json, RESULTS.md and figures/ in the experiment folder.
    """
    scores = read_scores(exp.dir / "scores", conf.systems)
    seeds = {system: entry["seeds"] for system, entry in scores.items()}
    compared = json.loads((exp.dir / "differences.json").read_text(encoding="utf-8"))
    check = exp.dir / "corpus" / "check.json"  # what a linear model makes of the files alone
    shortcuts = json.loads(check.read_text(encoding="utf-8")) if check.exists() else {}
    figures = exp.dir / "figures" / "scores"
    figures.mkdir(parents=True)  # empty where no set has labels
    for name in ("adapt", "eval", "dev"):  # the paper's Figure 3 is of the adaptation set
        divided = divided_scores(exp, seeds, name)
        if divided:
            calibrations = {system: entry["calibrations"][0] for system, entry in scores.items()}
            plot_scores(divided, calibrations, name, figures)
            break
    note = NOTES.get(conf.corpus, f"Corpus {conf.corpus}.") + "\n\n" + tables.corpus_table(counts(exp, conf.test))
    remarks = [tables.shortcut_note(shortcuts)] if shortcuts else []
    path = exp.dir / "backgrounds" / "sources.json"  # missing where nothing is trained with them
    sources = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    note += "\n\n" + tables.sources_note(sources) * bool(sources)
    families = json.loads((exp.dir / "families.json").read_text(encoding="utf-8")) if conf.leave_out else {}
    exp.publish(
        {"scores": scores, "differences": compared, "shortcuts": shortcuts, "families": families},
        tables.report(
            scores,
            compared,
            note,
            exp.command,
            remarks,
            families=families,
            calibrated=bool(choosing_cuts(exp.dir / "corpus", "dev")),
        ),
    )


def plot_scores(
    divided: Mapping[str, tuple[np.ndarray, np.ndarray]], calibrations: Mapping[str, dict[str, float]], name: str, folder: Path
) -> None:
    """Figure 3 (histograms of the networks' own probabilities) and detection error curves of a set.

    divided: {system: (genuine, fake) calibrated scores}; calibrations: {system: the fields of its Calibration}.
    """
    prefix = "traindev_" if all(f"traindev_{system}" in divided for system in HISTOGRAMS) else ""
    panels = [prefix + system for system in HISTOGRAMS if prefix + system in divided]
    plot_histograms(
        {  # pyright: ignore[reportArgumentType]
            f"{system}, {name}": tuple(own_probability(scores, calibrations[system]) for scores in divided[system])
            for system in panels or list(divided)[:2]
        },
        folder / "histograms.png",
    )
    plot_det({f"{system}, {name}": scores for system, scores in divided.items()}, folder / "det.png")


def own_probability(ratios: np.ndarray, calibration: Mapping[str, float]) -> np.ndarray:
    """Undo a calibration: the probability that the network itself gives, (n,) from 0 to 1.

    Calibrated scores (n,) were mean log odds of an utterance's windows; this is the logistic function of these.
    calibration: the fields of a Calibration.
    """
    from pyspeech.spoof.calibration import Calibration

    return Calibration().probability(Calibration(**calibration).score(ratios))


def divided_scores(exp: Experiment, seeds: Mapping[str, Sequence[int]], name: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{system: (scores of genuine, of fake)} of a set by each system's first seed; {} where labels are not known.

    seeds: {system: its seeds}.
    """
    import numpy as np

    labels = labels_of_set(exp.dir / "corpus", name)
    if not of_both_kinds(labels):
        return {}
    return {  # pyright: ignore[reportReturnType]
        system: tuple(np.array(scores) for scores in divide(read_seeds(exp, system, own[:1], name)[0], labels))
        for system, own in seeds.items()
        if name in scored_sets(system)
    }


def counts(exp: Experiment, tests: Iterable[str]) -> dict[str, dict[str, Any]]:
    """{set: {"genuine": n, "fake": n, "minutes": m}} of the sets that are there. tests: names of corpora to test on alone."""
    found = {}
    for name in (*SETS, *tests):
        cuts = cuts_of_set(exp, name)
        if cuts:
            texts = [cut.supervisions[0].text for cut in cuts]
            found[name] = {
                "genuine": texts.count("genuine"),
                "fake": texts.count("fake"),
                "minutes": sum(cut.duration for cut in cuts) / 60,
            }
    return found


def plot_vowel(exp: Experiment, conf: Any) -> None:
    """Spectral envelopes of a vowel under each McAdams coefficient (Figure 2).

    Figure 2: envelopes of an /a/ of a genuine training utterance under each coefficient.

    It is the most strongly voiced one of the first SEARCHED utterances that have one; where none has, as in a corpus without
    vowels, the loudest frame of the first utterance stands for it, and the figure says so.
    """
    from itertools import islice

    from pyspeech.data.cuts import read_samples
    from steps.spoof.vowels import RATE, SIZE, find_vowel

    genuine = (cut for cut in load_cuts(exp.dir / "corpus", "train") if cut.supervisions[0].text == "genuine")
    read = ((cut, read_samples(cut, RATE)) for cut in islice(genuine, SEARCHED))
    found = [(cut, samples, find_vowel(samples)) for cut, samples in read]
    vowels = [one for one in found if one[2]]
    if vowels:
        cut, samples, vowel = max(vowels, key=lambda one: one[2].strength)  # pyright: ignore[reportOptionalMemberAccess]
        samples = samples[vowel.start : vowel.start + SIZE]  # pyright: ignore[reportOptionalMemberAccess]
        title = (
            f"/a/ of {cut.id} at {vowel.start / RATE:.2f} s, {vowel.pitch:.0f} Hz, formants at "  # pyright: ignore[reportOptionalMemberAccess]
            + ", ".join(f"{frequency:.0f}" for frequency in vowel.formants)  # pyright: ignore[reportOptionalMemberAccess]
            + " Hz"
        )
    else:
        cut, samples, _ = found[0]
        title = f"no /a/ found; the loudest frame of {cut.id}"
    exp.log.info("Figure 2: %s", title)
    plot_envelopes(*envelopes(samples, rate=RATE), exp.dir / "figures" / "envelopes.png", title)
