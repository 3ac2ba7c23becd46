"""The last stages of egs/add2022: its figures and tables; `exp` is the engine's Experiment."""
from pyspeech.files import atomic_write, write_json
from steps import spoof_plots, spoof_results
from steps.spoof_corpus import load_cuts
from steps.spoof_score import difference, labels_of_set, read_seeds, scored_sets, shortcut_figures, system_figures

NOTES = {"mini": "Corpus mini: recordings of people from free packages, and fakes that vocoders and two speech synthesisers made of "
                 "them and of texts, all through the same recording chain (local/add_mini.py); the engines are those of "
                 "textbooks, so only the order of the systems means anything, if their intervals let it."}
COEFFICIENTS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)  # of Figure 2
COMPARED = (("none", "rnm_sm"), ("none", "rnm_sm_mc0.8"), ("rnm_sm", "rnm_sm_mc0.8"), ("pooled_rnm_sm", "pooled_rnm_sm_mc0.8"))
HISTOGRAMS = ("rnm_sm", "rnm_sm_mc0.8")  # the two panels of Figure 3


def report(exp, conf):
    """results.json, RESULTS.md and figures/ in the experiment folder."""
    scores = {system: system_figures(exp, conf, system) for system in conf.systems}
    differences = [found for first, second in COMPARED if {first, second} <= set(conf.systems)
                   for found in [difference(exp, conf, first, second, "eval")] if found]
    shortcuts = shortcut_figures(exp.dir / "corpus")
    write_json(exp.dir / "results.json", {"profile": exp.profile, "scores": scores, "differences": differences,
                                          "shortcuts": shortcuts})
    spoof_plots.plot_histograms(probabilities(exp, conf), exp.dir / "figures" / "histograms.png")
    spoof_plots.plot_det(kinds_of_scores(exp, conf), exp.dir / "figures" / "det.png")
    command = " ".join(["egs/add2022/run.py", f"--profile {exp.profile}", *exp.overrides])
    note = NOTES.get(conf.corpus, f"Corpus {conf.corpus}.") + "\n\n" + spoof_results.corpus_table(counts(exp.dir / "corpus"))
    remarks = [spoof_results.shortcut_note(shortcuts)] if shortcuts else []
    with atomic_write(exp.dir / "RESULTS.md") as stream:
        stream.write(spoof_results.report_text(scores, differences, note, command, remarks))
