"""The last stage of egs/indic: tables and plots; `exp` is the engine's Experiment."""
import json
from dataclasses import replace

from steps.asr import tables
from steps.asr.corpus import SETS, describe_corpus, languages_of, load_units
from steps.asr.figures import plot_confusion, plot_trade_off, plot_wer
from steps.asr.train import STRUCTURES, UNION
from steps.systems import read_scores
from steps.tables import markdown_table

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
    for scores in read_scores(exp.dir / "scores", conf.systems).values():
        models.update(scores)
    stopping = json.loads((exp.dir / "early_stopping.json").read_text()) if "multi_softmax_lid" in conf.systems else []
    results = {"corpus": describe_corpus(exp.dir / "corpus"), "models": models, "early_stopping": stopping,
               "parameters": parameters(exp, conf)}
    frame_ms = round(1000 * conf.features.frame_seconds)
    figures = exp.dir / "figures"
    plot_wer(results, figures / "wer.png")
    if stopping:
        plot_trade_off(stopping, figures / "trade_off.png", frame_ms)
    for model, scores in models.items():
        if "lid" in scores:
            plot_confusion(scores["lid"]["confusion"], figures / f"confusion_{model}.png", model)
    exp.publish(results, tables.report(results, corpus_note(conf, results["corpus"]), exp.command, frame_ms))


def corpus_note(conf, described):
    """What was recognised, with its limits, and how much of it there is."""
    rows = [[language, *(cell for name in SETS for cell in (
        (sets[name]["utterances"], f"{sets[name]['minutes']:.1f}") if name in sets else (0, 0)))]
            for language, sets in described.items()]
    table = markdown_table(["language", *(f"{name} {of}" for name in SETS for of in ("utterances", "min"))], rows)
    return NOTES.get(conf.corpus, f"Corpus {conf.corpus}.") + "\n\n" + table


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
        paper = tables.PAPER_TABLE_1
        if structure["structure"] in UNION:  # graphemes are distinct (section 5); one blank
            paper = dict.fromkeys(paper, sum(paper.values()) - len(paper) + 1)
        if structure["structure"] == "monolingual":
            own, paper = ({language: sizes[language] for language in list(sizes)[:1]} for sizes in (own, paper))
        counted[system] = {
            "run": parameter_count(replace(conf.model, features=conf.features.dim, **structure), own),
            "paper_size": parameter_count(TransducerConfig(**structure), paper) / 1e6}
    return counted
