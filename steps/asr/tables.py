"""Tables 2 to 7 of Joshi et al. 2021: ours, with the paper's figures beside where they are for the same languages.

Plain data in, Markdown out. Every function takes any set of languages and any subset of the models:

results = {"models": {model: {"languages": {code: {"errors", "words", "sub", "del", "ins", "utterances", "ci"}},
                              "average": the same, "lid": {"accuracy": {code: fraction or None}, "undecided": {code: fraction},
                                                           "confusion": {...}}}},
           "early_stopping": [{"rule", "tau_frames", "threshold", "errors", "words", "t_avg", "lid_accuracy",
                               "languages": {code: {"errors", "words", "t_avg", "lid_accuracy"}}, "dev": the same}],
           "parameters": {model: {"run": number of parameters, "paper_size": millions of parameters}}}

A model's entry is what pyspeech.text.wer.score_utterances returns ("average", for its interval, and "lid" may be
missing). A tau or threshold of None or infinity stops nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspeech.asr.stopping import cheapest_setting, setting
from pyspeech.report.tables import bracketed, decimals, markdown_table, percent, report_text
from steps.chance import chance_note, chance_section

MODELS = {
    "monolingual": "Monolingual",
    "vanilla": "Multilingual Vanilla",
    "onehot": "Multilingual Onehot",
    "multi_softmax": "Multi-softmax",
    "multi_softmax_lsp": "Multi-softmax LSP",
    "onehot_finetuned": "Onehot finetuning",
    "multi_softmax_finetuned": "Multi-softmax finetuning",
    "multi_softmax_lid": "Multi-softmax LID",
    "multi_softmax_lid_oracle": "Multi-softmax LID Oracle",
}
# Errors, units and interval in the scores of a rate.
INTERVALS = {"WER": ("errors", "words", "ci"), "CER": ("character_errors", "characters", "cer_ci")}
PAPER_TABLE_1 = {"en-IN": 133, "hi-IN": 59, "ta-IN": 97, "gu-IN": 123}  # graphemes
PAPER_LANGUAGES = tuple(PAPER_TABLE_1)
# WER in %: the four languages, their average, WERR against the first model of the table.
PAPER_TABLE_2 = {
    "monolingual": (24.67, 16.2, 32.92, 27.33, 23.97, 0),
    "vanilla": (35.21, 22.94, 48.56, 28.83, 32.45, -35.35),
    "onehot": (25.88, 18.88, 41.92, 27.9, 26.7, -11.37),
    "multi_softmax": (23.35, 17.2, 31.18, 23.86, 22.86, 4.65),
    "multi_softmax_lsp": (23.46, 16.84, 30.3, 24.28, 22.73, 5.17),
}
PAPER_TABLE_3 = {
    "monolingual": (24.67, 16.2, 32.92, 27.33, 23.97, 0),
    "onehot_finetuned": (23.65, 16.64, 31.36, 26.01, 23.24, 3.05),
    "multi_softmax_finetuned": (21.93, 15, 28.45, 22.66, 21.04, 12.22),
}
PAPER_TABLE_4 = {
    "vanilla": (35.21, 22.94, 48.56, 28.83, 32.45, 0),
    "multi_softmax_lid": (28.92, 20.26, 35.83, 31.55, 27.95, 13.86),
    "multi_softmax_lid_oracle": (25, 18.71, 33, 25.30, 24.45, 24.65),
}
# LID accuracy in %: the four languages and their average.
PAPER_TABLE_5 = {"vanilla": (88.7, 86.2, 90.4, 85.5, 87.7), "multi_softmax_lid": (94, 90.2, 95.8, 83.1, 90.09)}
# Millions of parameters, and the paper's short names.
PAPER_TABLE_6 = {
    "monolingual": 67.98,
    "vanilla": 68.95,
    "onehot": 68.98,
    "multi_softmax": 68.55,
    "multi_softmax_lsp": 118.94,
    "multi_softmax_lid": 70.08,
}
SHORT = {
    "monolingual": "Mono.",
    "vanilla": "Vanilla",
    "onehot": "Onehot",
    "multi_softmax": "MS",
    "multi_softmax_lsp": "MS LSP",
    "multi_softmax_lid": "MS LID",
}
# tau in frames (the head of the paper's table says ms, its text 30 frames or 900 ms), s_th: WER in %, T_avg, LID in %.
PAPER_TABLE_7 = {
    (math.inf, math.inf): (21.84, 4, 92.4),
    (1000, 0.2): (21.97, 3.96, 92.1),
    (100, 0.2): (22.59, 2.92, 91.3),
    (30, 0.2): (25.73, 1.52, 86),
    (30, 0.5): (23.14, 1.72, 90),
    (10, 0.2): (25.83, 1.04, 85.7),
}
PAPER_TABLE_7_LANGUAGE = "hi-IN"
PAPER_FRAME_MS = 30
RULES = {"sum_logp": "sum of log P (equation 1)", "mean_logp": "mean log P", "mean_p": "mean P"}
TITLES = {
    2: "Table 2: WER in %, the language known",
    3: "Table 3: WER in %, monolingual from scratch and from multilingual models",
    4: "Table 4: WER in %, the language not known",
    5: "Table 5: LID accuracy in %",
    6: "Table 6: parameters in millions",
    7: "Table 7: trade-off between WER and T_avg",
}
NOTES = {
    2: "Avg. pools errors and words of all languages; WERR is the relative reduction against the monolingual models.",
    3: "The finetuned models begin with what Table 2's models have learnt.",
    4: "WERR against the vanilla model. Oracle: the output of the decoder of the known language.",
    5: "Share of utterances whose predicted language is right; Avg. is the mean of the languages, which gives the "
    "paper's 87.7 (its 90.09 is 90.78 by the same rule).",
    6: "Paper's size: the same structure with the paper's layers and vocabularies, counted. Its figures for the "
    "vanilla and the onehot model need a larger union of symbols than its vocabularies have.",
    7: "T_avg: decoders active per frame, from 1 to the number of languages. First the figures of all languages together; "
    "the paper's are of Hindi alone, and so are those beside them. tau is in encoder frames; the paper's are of 30 ms (its "
    "text: 30 frames are 900 ms; its table says ms), and its figures stand beside the same time.",
}


def names() -> dict[str, str]:
    """{model: its name in the tables}."""
    return MODELS


def languages_of(results: Mapping[str, Any]) -> list[str]:
    """Codes of all languages that any model has scores for, in order."""
    return in_order({code for scores in results["models"].values() for code in scores["languages"]}, PAPER_LANGUAGES)


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Sort `names`: those of `known` in its order, then the others by name."""
    return [name for name in known if name in names] + sorted(set(names) - set(known))


def word_error_rate(counts: Mapping[str, Any] | None) -> float | None:
    """WER as a fraction of {"errors", "words"}; None without words or for None."""
    return counts["errors"] / counts["words"] if counts and counts["words"] else None


def average_error_rate(scores: Mapping[str, Any], languages: Sequence[str]) -> float | None:
    """Word-weighted WER over all `languages`; None where the model lacks one of them."""
    entries = [scores["languages"].get(code) for code in languages]
    if not entries or None in entries:
        return None
    return word_error_rate({name: sum(entry[name] for entry in entries) for name in ("errors", "words")})


def wer_table(results: Mapping[str, Any], paper: Mapping[str, Sequence[float]]) -> str | None:
    """Table 2, 3 or 4: `paper` is PAPER_TABLE_2, _3 or _4, whose first model is the baseline of the WERR.

    None where no model other than the baseline is there.
    """
    from pyspeech.text.wer import relative_reduction

    baseline = next(iter(paper))
    present = [model for model in paper if model in results["models"]]
    if not set(present) - {baseline}:
        return None
    languages = languages_of(results)
    averages = {model: average_error_rate(results["models"][model], languages) for model in present}
    rows = []
    for model in present:
        by_language = results["models"][model]["languages"]
        rates = [word_error_rate(by_language.get(code)) for code in languages] + [averages[model]]
        werr = relative_reduction(averages.get(baseline), averages[model])
        rows.append(
            [
                MODELS[model],
                *map(percent, rates),
                percent(werr),
                *_paper_cells(paper[model], languages, averages=("Avg.", "WERR")),
            ]
        )
    header = ["Model", *languages, "Avg.", "WERR", *_paper_header(languages, ("Avg.", "WERR"))]
    return markdown_table(header, rows)


def table_5(results: Mapping[str, Any]) -> str | None:
    """Table 5: LID accuracy, the language mean as average. None where no model predicts languages."""
    languages = languages_of(results)
    rows = []
    for model in in_order(results["models"], MODELS):
        scores = results["models"][model]
        if "lid" in scores:
            rows.append(
                [
                    MODELS.get(model, model),
                    *(_accuracy(scores["lid"], code) for code in languages),
                    percent(mean_accuracy(scores["lid"], languages), 1),
                    *_paper_cells(PAPER_TABLE_5.get(model), languages, averages=("Avg.",), form="g"),
                ]
            )
    return markdown_table(["Model", *languages, "Avg.", *_paper_header(languages, ("Avg.",))], rows) if rows else None


def mean_accuracy(lid: Mapping[str, Any], languages: Sequence[str]) -> float | None:
    """The mean over the languages; None where one of them is missing or has utterances that nothing decides about."""
    accuracy = [lid["accuracy"].get(code) for code in languages]
    return None if None in accuracy or any(lid["undecided"].values()) else sum(accuracy) / len(accuracy)


def undecided_note(results: Mapping[str, Any]) -> str | None:
    """List languages that a model without language identification cannot tell apart; None where it tells all."""
    codes = {
        code
        for scores in results["models"].values()
        if "lid" in scores
        for code, share in scores["lid"]["undecided"].items()
        if share
    }
    return (
        None
        if not codes
        else (
            f"Of {', '.join(in_order(codes, PAPER_LANGUAGES))}, which share their script with another language, some "
            "hypotheses fit several languages alike: undecided, in % of the utterances, and not in the accuracy."
        )
    )


def table_6(parameters: Mapping[str, Mapping[str, float]]) -> str | None:
    """Table 6: millions of parameters of the models of this run, of their structure at the paper's size, the paper's.

    `parameters`: {model: {"run": number, "paper_size": millions}}, either may be missing. None where there are none.
    """
    models = [model for model in PAPER_TABLE_6 if model in parameters]
    if not models:
        return None
    run = [parameters[model].get("run") for model in models]
    paper_size = [parameters[model].get("paper_size") for model in models]
    rows = [
        ["This run", *(None if value is None else f"{value / 1e6:.3f}" for value in run)],
        ["Paper's size", *map(decimals, paper_size)],
        ["Paper", *(decimals(PAPER_TABLE_6[model]) for model in models)],
    ]
    return markdown_table(["# of parameters", *(SHORT[model] for model in models)], rows)


def table_7(early_stopping: Sequence[dict[str, Any]], languages: Sequence[str], frame_ms: float) -> str | None:
    """Table 7: a row for each setting: the figures of all languages together; where there is Hindi, its own, and beside them
    the paper's, which are of Hindi, where it has the same setting, tau compared as a time.

    None where there are no settings.
    """
    if not early_stopping:
        return None
    with_paper = PAPER_TABLE_7_LANGUAGE in languages
    rows = []
    for entry in early_stopping:
        tau, threshold = setting(entry)
        stops = math.isfinite(tau) and math.isfinite(threshold)
        cells = [
            RULES.get(entry["rule"], entry["rule"]) if stops else "no early stopping",
            _number(tau),
            _number(tau * frame_ms),
            _number(threshold),
            *_stopping_cells(entry),
        ]
        paper = PAPER_TABLE_7.get((tau * frame_ms / PAPER_FRAME_MS, threshold) if stops else (math.inf, math.inf), (None,) * 3)
        if with_paper:
            cells += _stopping_cells(entry["languages"][PAPER_TABLE_7_LANGUAGE]) + [decimals(value, "g") for value in paper]
        rows.append(cells)
    header = ["Rule", "tau", "tau ms", "s_th"]
    for title in ["", f"{PAPER_TABLE_7_LANGUAGE}: ", "paper: "] if with_paper else [""]:
        header += [f"{title}WER", "T_avg", "LID"]
    return markdown_table(header, rows)


def _stopping_cells(entry):
    return [percent(word_error_rate(entry)), f"{entry['t_avg']:.2f}", percent(entry["lid_accuracy"], 1)]


def stopping_note(early_stopping: Sequence[dict[str, Any]]) -> str | None:
    """The setting that dev chooses, and what it does on the test set; None without dev."""
    chosen = cheapest_setting(early_stopping)
    if chosen is None:
        return None
    best, without = chosen
    tau, threshold = setting(best)
    name = RULES.get(best["rule"], best["rule"])
    rule = "none" if math.inf in (tau, threshold) else f"{name}, tau {_number(tau)}, s_th {_number(threshold)}"
    on_dev, on_test = (
        f"WER {percent(word_error_rate(with_it))} against {percent(word_error_rate(without_it))}, T_avg {with_it['t_avg']:.2f}"
        for with_it, without_it in ((best["dev"], without["dev"]), (best, without))
    )
    return f"Chosen on dev, as the lowest T_avg within one point of WER: {rule} ({on_dev}). On the test set: {on_test}."


def interval_table(results: Mapping[str, Any], rate: str = "WER") -> str:
    """WER or CER with its 95 % interval, in %, for every model, language and the average."""
    languages = languages_of(results)
    rows = []
    for model in in_order(results["models"], MODELS):
        scores = results["models"][model]
        average = scores.get("average") if all(code in scores["languages"] for code in languages) else None
        rows.append(
            [
                MODELS.get(model, model),
                *(_with_interval(scores["languages"].get(code), rate) for code in languages),
                _with_interval(average, rate),
            ]
        )
    return markdown_table(["Model", *languages, "Avg."], rows)


def confusion_table(confusion: Mapping[str, Mapping[str, int]]) -> str:
    """Rows: languages spoken; columns: predicted; in utterances. `confusion`: {code: {predicted code: count}}."""
    spoken, predicted, counts = confusion_matrix(confusion)
    return markdown_table(["spoken \\ predicted", *predicted], [[code, *row] for code, row in zip(spoken, counts, strict=True)])


def confusion_matrix(confusion: Mapping[str, Mapping[str, int]]) -> tuple[list[str], list[str], list[list[int]]]:
    """(spoken codes, predicted codes, counts as rows): first the languages that are spoken, then others, as "none"."""
    spoken = in_order(confusion, PAPER_LANGUAGES)
    predicted = in_order({*confusion, *(code for row in confusion.values() for code in row)}, spoken)
    return spoken, predicted, [[confusion[code].get(column, 0) for column in predicted] for code in spoken]


def one_row(model: str, scores: Mapping[str, Any]) -> str:
    """One line of a model's figures, to print as soon as it is scored; in brackets the paper's, where comparable."""
    languages = languages_of({"models": {model: scores}})
    paper = next((table[model] for table in (PAPER_TABLE_2, PAPER_TABLE_3, PAPER_TABLE_4) if model in table), None)
    figures = _paper_figures(paper, languages, ("Avg.", "WERR"))
    cells = [f"{code} {_text(word_error_rate(scores['languages'][code]), figures.get(code))}" for code in languages]
    cells.append(f"Avg. {_text(average_error_rate(scores, languages), figures.get('Avg.'))}")
    interval = scores.get("average", {}).get("ci")
    line = f"{MODELS.get(model, model)}: WER %{' (paper)' if figures else ''} " + ", ".join(cells)
    if interval:
        line += f", 95 % interval {percent(interval[0])} to {percent(interval[1])}"
    if "lid" in scores:
        accuracy = percent(mean_accuracy(scores["lid"], languages), 1)
        line += f"; LID accuracy {accuracy} %" if accuracy else "; LID: languages of one script are not decided"
    return line


def chance_notes(model: str, scores: Mapping[str, Any]) -> list[str | None]:
    """A note for each language of a model that recognises next to nothing of it."""
    return [
        chance_note(f"{MODELS.get(model, model)}, {code}", "wer", word_error_rate(entry), "test")
        for code, entry in scores["languages"].items()
    ]


def tables(results: Mapping[str, Any], frame_ms: float) -> dict[int, str]:
    """{number of the table: Markdown} of those tables of the paper that `results` has models for."""
    made = {
        2: wer_table(results, PAPER_TABLE_2),
        3: wer_table(results, PAPER_TABLE_3),
        4: wer_table(results, PAPER_TABLE_4),
        5: table_5(results),
        6: table_6(results.get("parameters", {})),
        7: table_7(results.get("early_stopping", []), languages_of(results), frame_ms),
    }
    return {number: table for number, table in made.items() if table}


def report(results: Mapping[str, Any], corpus_note: str, command: str, frame_ms: float) -> str:
    """RESULTS.md: the tables with notes, intervals, confusions. `corpus_note`: what was recognised, with its limits."""
    parts = []
    for number, table in tables(results, frame_ms).items():
        parts += [f"## {TITLES[number]}", table, NOTES[number]]
        note = {5: undecided_note(results), 7: stopping_note(results["early_stopping"])}.get(number)
        if note:
            parts.append(note)
    parts += chance_section(note for model, scores in results["models"].items() for note in chance_notes(model, scores))
    for rate in INTERVALS:
        parts += [f"## 95 % confidence intervals of the {rate}, in %", interval_table(results, rate)]
    for model in in_order(results["models"], MODELS):
        if "lid" in results["models"][model]:
            parts += [
                f"## Languages confused by {MODELS.get(model, model)}, in utterances",
                confusion_table(results["models"][model]["lid"]["confusion"]),
            ]
    return report_text("Multilingual speech recognition", corpus_note, command, parts)


def _paper_figures(row, languages, averages):
    """{column: the paper's figure} of what is comparable: its languages; its averages where all languages are its."""
    if row is None:
        return {}
    figures = dict(zip((*PAPER_LANGUAGES, *averages), row, strict=False))
    shown = [code for code in languages if code in PAPER_LANGUAGES]
    return {name: figures[name] for name in shown + _paper_averages(languages, averages)}


def _paper_averages(languages, averages):
    return list(averages) if set(languages) == set(PAPER_LANGUAGES) else []


def _paper_header(languages, averages):
    names = [code for code in languages if code in PAPER_LANGUAGES] + _paper_averages(languages, averages)
    return [f"paper: {name}" if place == 0 else name for place, name in enumerate(names)]


def _paper_cells(row, languages, averages, form=".2f"):
    if row is None:
        return [None] * len(_paper_header(languages, averages))
    return [format(value, form) for value in _paper_figures(row, languages, averages).values()]


def _accuracy(lid, code):
    """ "96.0", or with utterances that are not decided "96.0 (40.0 undecided)"."""
    share = lid["undecided"].get(code)
    return (percent(lid["accuracy"].get(code), 1) or "–") + (f" ({percent(share, 1)} undecided)" if share else "")


def _with_interval(entry, name):
    errors, units, interval = INTERVALS[name]
    if not entry or not entry.get(units):  # character errors are not in what older versions scored
        return None
    return percent(entry[errors] / entry[units]) + (f" {bracketed(entry[interval])}" if entry.get(interval) else "")  # pyright: ignore[reportOptionalOperand]


def _text(rate, paper):
    return ("–" if rate is None else percent(rate)) + ("" if paper is None else f" ({paper:.2f})")  # pyright: ignore[reportOptionalOperand]


def _number(value):
    return "∞" if math.isinf(value) else f"{value:g}"
