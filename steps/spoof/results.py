"""The last stages of egs/add2022: its figures and tables; `exp` is the engine's Experiment."""
import json

from steps.cuts import load_cuts
from steps.det_plot import plot_det
from steps.spoof import tables
from steps.spoof.corpus import development_cuts
from steps.spoof.figures import envelopes, plot_envelopes, plot_histograms
from steps.spoof.score import divide, labels_of_set, read_seeds, scored_sets
from steps.systems import read_scores

NOTES = {"mini": "Corpus mini: recordings of people from free packages, and fakes that vocoders and speech "
                 "synthesisers made of them and of texts, all through the same recording chain (local/add_mini.py); "
                 "training has engines of textbooks alone, so only the order of the systems means anything, if their "
                 "intervals let it."}
HISTOGRAMS = ("rnm_sm", "rnm_sm_mc0.8")  # the two panels of Figure 3


def report(exp, conf):
    """results.json, RESULTS.md and figures/ in the experiment folder."""
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
            plot_scores(divided, name, figures)
            break
    note = NOTES.get(conf.corpus, f"Corpus {conf.corpus}.") + "\n\n" + tables.corpus_table(counts(exp.dir / "corpus"))
    remarks = [tables.shortcut_note(shortcuts)] if shortcuts else []
    exp.publish({"scores": scores, "differences": compared, "shortcuts": shortcuts},
                tables.report(scores, compared, note, exp.command, remarks,
                              calibrated=bool(development_cuts(exp.dir / "corpus"))))


def plot_scores(divided, name, folder):
    """Figure 3 (histograms of probabilities) and detection error curves of a set: {system: (genuine, fake) scores}."""
    from pyspeech.spoofing.calibration import Calibration

    panels = [system for system in HISTOGRAMS if system in divided] or list(divided)[:2]
    probability = Calibration().probability  # the scores are calibrated
    plot_histograms({f"{system}, {name}": tuple(probability(scores) for scores in divided[system])
                     for system in panels}, folder / "histograms.png")
    plot_det({f"{system}, {name}": scores for system, scores in divided.items()}, folder / "det.png")


def divided_scores(exp, seeds, name):
    """{system: (scores of genuine, of fake)} of a set by each system's first seed; {} where labels are not known.

    seeds: {system: its seeds}.
    """
    import numpy as np

    labels = labels_of_set(exp.dir / "corpus", name)
    if {label.genuine for label in labels.values()} != {True, False}:
        return {}
    return {system: tuple(np.array(scores) for scores in divide(read_seeds(exp, system, own[:1], name)[0], labels))
            for system, own in seeds.items() if name in scored_sets(system)}


def counts(corpus):
    """{set: {"genuine": n, "fake": n, "minutes": m}} of the sets that are there."""
    found = {}
    for name in ("train", "dev", "adapt", "eval"):
        cuts = load_cuts(corpus, name)
        if cuts:
            texts = [cut.supervisions[0].text for cut in cuts]
            found[name] = {"genuine": texts.count("genuine"), "fake": texts.count("fake"),
                           "minutes": sum(cut.duration for cut in cuts) / 60}
    return found


def plot_vowel(exp):
    """Figure 2: envelopes of the vowel-like second of a genuine training utterance under each coefficient."""
    from pyspeech.cuts import read_samples

    cut = next(cut for cut in load_cuts(exp.dir / "corpus", "train") if cut.supervisions[0].text == "genuine")
    rate = 16000
    plot_envelopes(*envelopes(read_samples(cut, rate), rate=rate), exp.dir / "figures" / "envelopes.png")
