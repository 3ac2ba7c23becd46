"""The last stage of egs/indic: scores, early stopping, tables and plots; `exp` is the engine's Experiment."""
import math
from dataclasses import replace

from steps.asr import figures as asr_plots, tables as asr_results
from steps.asr.corpus import describe_corpus, languages_of, load_units
from steps.asr.decode import read_decoded, score_system
from steps.asr.train import STRUCTURES, UNION

PAPER_VOCABULARIES = {"en-IN": 133, "hi-IN": 59, "ta-IN": 97, "gu-IN": 123}  # Table 1
NOTES = {
    "mini": "Corpus mini: synthetic speech of eSpeak NG, a few hundred short utterances a language in random word order, "
            "simulated; the paper's figures beside ours are for thousands of hours of human speech, so only the order is "
            "comparable.",
    "prompts": "Corpus prompts: human voices reading telephone prompts and short descriptions, one voice a language in "
               "training and another in testing.",
}


def report(exp, conf):
    """results.json, RESULTS.md and figures/ in the experiment folder."""
    models = {}
    for system in conf.systems:
        models.update(score_system(exp.dir / "decoded" / system, system))
    results = {
        "corpus": describe_corpus(exp.dir / "corpus"), "models": models,
        "early_stopping": early_stopping(exp, conf) if "multi_softmax_lid" in conf.systems else [],
        "parameters": parameters(exp, conf),
    }
    frame_ms = round(1000 * conf.features.frame_seconds)
    figures = exp.dir / "figures"
    figures.mkdir(exist_ok=True)
    asr_plots.plot_wer(results, figures / "wer.png")
    if results["early_stopping"]:
        asr_plots.plot_trade_off(results["early_stopping"], figures / "trade_off.png", frame_ms)
    for model, scores in models.items():
        if "lid" in scores:
            asr_plots.plot_confusion(scores["lid"]["confusion"], figures / f"confusion_{model}.png", model)
    exp.publish(results, asr_results.report_text(results, corpus_note(conf, results["corpus"]), exp.command, frame_ms))


def corpus_note(conf, described):
    """What was recognised, with its limits, and how much of it there is."""
    lines = [NOTES.get(conf.corpus, f"Corpus {conf.corpus}."), "", "| language | " + " | ".join(
        f"{name} utterances | {name} min" for name in ("train", "dev", "test")) + " |", "|---|" + "---:|" * 6]
    for language, sets in described.items():
        cells = [str(cell) for name in ("train", "dev", "test") for cell in (
            (sets[name]["utterances"], f"{sets[name]['minutes']:.1f}") if name in sets else (0, "0"))]
        lines.append(f"| {language} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def early_stopping(exp, conf):
    """Table 7: an entry for every rule and setting, of the test set; "dev" in it is the same of dev, None without dev."""
    from pyspeech.transducer.config import STOPPING_RULES, EarlyStopping

    settings = [EarlyStopping()] + [EarlyStopping(rule, tau, threshold) for rule in STOPPING_RULES
                                    for tau in conf.stop_after for threshold in conf.stop_below]
    folder = exp.dir / "decoded" / "multi_softmax_lid"
    figures = zip(settings, stopped_early(folder, settings), stopped_early(folder / "dev", settings))
    return [{"rule": setting.rule, "tau_frames": None if math.isinf(setting.tau) else setting.tau,
             "threshold": None if math.isinf(setting.threshold) else setting.threshold, **test, "dev": dev}
            for setting, test, dev in figures]


def stopped_early(folder, settings):
    """Errors, words, T_avg and LID accuracy with each setting, from the posteriors that were decoded with; None for each
    where nothing was decoded.

    The search of a language does not depend on the others', so one decoding with all of them serves all settings.
    """
    import numpy as np

    from pyspeech.text.wer import score_utterances
    from pyspeech.transducer.early_stopping import overall_t_avg, run

    lines, log_posteriors, codes = [], [], []
    for language, entries in read_decoded(folder).items():
        with np.load(folder / f"{language}.npz") as stored:
            codes = stored["languages"].tolist()
            log_posteriors += [stored[f"utterance {line['id']}"] for line in entries]
        lines += [(line, language) for line in entries]
    entries = []
    for setting in settings if lines else []:
        stopped = run(log_posteriors, setting)
        utterances = [(line["id"], language, line["speaker"], line["ref"], line["by_language"][codes[chosen]], codes[chosen])
                      for (line, language), (chosen, _) in zip(lines, stopped)]
        average = score_utterances(utterances, resamples=1)["average"]
        correct = sum(utterance[1] == utterance[5] for utterance in utterances)
        entries.append({"errors": average["errors"], "words": average["words"],
                        "t_avg": overall_t_avg([t_avg for _, t_avg in stopped]), "lid_accuracy": correct / len(utterances)})
    return entries or [None] * len(settings)


def parameters(exp, conf):
    """Table 6: {system: {"run": parameters of this run's model, "paper_size": millions at the paper's size}}."""
    from pyspeech.transducer.config import TransducerConfig, parameter_count

    languages = languages_of(exp.dir / "corpus")
    counted = {}
    for system in conf.systems:
        structure = STRUCTURES[system]
        if system.endswith("_finetuned"):
            continue
        own = {language: entry.size for language, entry in load_units(
            exp.dir / "units", languages, structure["structure"] in UNION).items()}
        paper = PAPER_VOCABULARIES
        if structure["structure"] in UNION:  # graphemes are distinct (section 5); one blank
            paper = dict.fromkeys(paper, sum(paper.values()) - len(paper) + 1)
        if structure["structure"] == "monolingual":
            own, paper = ({language: sizes[language] for language in list(sizes)[:1]} for sizes in (own, paper))
        counted[system] = {
            "run": parameter_count(replace(conf.model, features=conf.features.dim, **structure), own),
            "paper_size": parameter_count(TransducerConfig(**structure), paper) / 1e6}
    return counted
