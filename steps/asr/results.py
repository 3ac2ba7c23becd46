"""The last stage of egs/indic: tables and plots; `exp` is the engine's Experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspeech.asr.registry import ENCODERS
from pyspeech.report.tables import markdown_table
from steps.asr import tables
from steps.asr.corpus import SETS, describe_corpus, languages_of, load_units
from steps.asr.figures import plot_confusion, plot_trade_off, plot_wer
from steps.asr.train import STRUCTURES, UNION
from steps.systems import if_used, read_scores

if TYPE_CHECKING:
    from pyspeech.engine.run import Experiment

LID = "multi_softmax_lid"  # the system whose decoders are stopped early
NOTES = {
    "mini": "Corpus mini: synthetic speech of eSpeak NG, a few hundred short utterances a language in random word order, "
    "simulated; the paper's figures beside ours are for thousands of hours of human speech, so only the order is "
    "comparable.",
    "prompts": "Corpus prompts: human voices reading telephone prompts and short descriptions, one voice a language in "
    "training and another in testing.",
}


def read_by_report(conf: Any) -> list[str]:
    """List what `report` reads, as patterns."""
    return ["corpus", "units", *(f"scores/{name}.json" for name in conf.systems), *if_used(LID, "early_stopping.json")(conf)]


def report(exp: Experiment, conf: Any) -> None:
    """Tables of the paper, and plots.

    results.json, RESULTS.md and figures/ in the experiment folder.
    """
    models = {}
    for scores in read_scores(exp.dir / "scores", conf.systems).values():
        models.update(scores)
    stopping = json.loads((exp.dir / "early_stopping.json").read_text()) if LID in conf.systems else []
    results = {
        "corpus": describe_corpus(exp.dir / "corpus"),
        "models": models,
        "early_stopping": stopping,
        "parameters": parameters(exp, conf),
    }
    frame_ms = round(1000 * conf.features.frame_seconds * ENCODERS[conf.model.encoder].subsampling)
    figures = exp.dir / "figures"
    plot_wer(results, figures / "wer.png")
    if stopping:
        plot_trade_off(stopping, figures / "trade_off.png", frame_ms)
    for model, scores in models.items():
        if "lid" in scores:
            plot_confusion(scores["lid"]["confusion"], figures / f"confusion_{model}.png", model)
    note = "\n\n".join(filter(None, [corpus_note(conf, results["corpus"]), additions_note(conf)]))
    exp.publish(results, tables.report(results, note, exp.command, frame_ms))


def corpus_note(conf: Any, described: Mapping[str, Any]) -> str:
    """Describe the corpus that was recognised: its limits, and its size."""
    rows = [
        [
            language,
            *(
                cell
                for name in SETS
                for cell in ((sets[name]["utterances"], f"{sets[name]['minutes']:.1f}") if name in sets else (0, 0))
            ),
        ]
        for language, sets in described.items()
    ]
    table = markdown_table(["language", *(f"{name} {of}" for name in SETS for of in ("utterances", "min"))], rows)
    missing = [language for language in tables.PAPER_LANGUAGES if language not in described]
    note = NOTES.get(conf.corpus, f"Corpus {conf.corpus}.")
    if 0 < len(missing) < len(tables.PAPER_LANGUAGES):
        note += f" It has no {', '.join(missing)}: the paper's figures of that and its averages are left out."
    return note + "\n\n" + table


def additions_note(conf: Any) -> str:
    """List what trainings and search had beyond the paper's; None where that is nothing."""
    speeds = ", ".join(f"{speed:g}" for speed in conf.data.speeds)
    added = [
        f"the weights of {conf.start_from} to begin with" if conf.start_from != "random" else None,
        f"a {conf.model.encoder} as encoder" if conf.model.encoder != "lstm" else None,
        f"dropout {conf.model.dropout:g}" if conf.model.dropout else None,
        f"copies of the training data at the speeds {speeds}" if speeds else None,
        f"voices of vocal tracts up to {conf.data.warp:g} times as short or long" if conf.data.warp > 1 else None,
        f"gains of up to {conf.data.channel_db:g} dB that differ over frequency" if conf.data.channel_db else None,
        "SpecAugment" if conf.data.augment else None,
        f"pauses before and behind {100 * conf.data.pauses:g} % of the utterances" if conf.data.pauses else None,
        f"noise under {100 * conf.data.noise:g} % of the utterances" if conf.data.noise else None,
        f"the mean of the {conf.train.average_best} best weights" if conf.train.average_best > 1 else None,
        "a bonus for each symbol in the search, chosen on dev" if conf.symbol_bonuses else None,
    ]
    added = "; ".join(filter(None, added))
    return added and f"With what the paper does not mention: {added}."


def parameters(exp: Experiment, conf: Any) -> dict[str, dict[str, float]]:
    """Table 6: {system: {"run": parameters of this run's model, "paper_size": millions at the paper's size}}."""
    from pyspeech.asr.config import TransducerConfig, parameter_count

    languages = languages_of(exp.dir / "corpus")
    counted = {}
    for system in conf.systems:
        structure = STRUCTURES[system]
        if system.endswith("_finetuned"):
            continue
        own = {
            language: entry.size
            for language, entry in load_units(exp.dir / "units", languages, structure["structure"] in UNION).items()
        }
        paper = tables.PAPER_TABLE_1
        if structure["structure"] in UNION:  # graphemes are distinct (section 5); one blank
            paper = dict.fromkeys(paper, sum(paper.values()) - len(paper) + 1)
        if structure["structure"] == "monolingual":
            own, paper = ({language: sizes[language] for language in list(sizes)[:1]} for sizes in (own, paper))
        counted[system] = {
            "run": parameter_count(replace(conf.model, features=conf.features.dim, **structure), own),
            "paper_size": parameter_count(TransducerConfig(**structure), paper) / 1e6,
        }
    return counted
