"""The tables of the multilingual recipe: arithmetic, the paper's figures, any languages and models; the plots."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pyspeech.asr.config import DataConfig, TransducerConfig
from pyspeech.text.wer import score_utterances
from steps.asr import figures
from steps.asr.results import additions_note, corpus_note
from steps.asr.tables import (
    PAPER_LANGUAGES,
    PAPER_TABLE_2,
    PAPER_TABLE_3,
    PAPER_TABLE_4,
    PAPER_TABLE_5,
    PAPER_TABLE_6,
    PAPER_TABLE_7,
    average_error_rate,
    cheapest_setting,
    confusion_matrix,
    languages_of,
    one_row,
    report,
    stopping_note,
    table_5,
    table_6,
    table_7,
    tables,
    undecided_note,
    wer_table,
    word_error_rate,
)


def model(errors, words, accuracy=None):
    """Scores from {code: errors} and {code: words}."""
    scores = {
        "languages": {
            code: {
                "errors": errors[code],
                "words": words[code],
                "sub": errors[code],
                "del": 0,
                "ins": 0,
                "utterances": 10,
                "ci": None,
            }
            for code in errors
        }
    }
    if accuracy:
        confusion = {code: {code: 1} for code in accuracy}
        scores["lid"] = {"accuracy": accuracy, "undecided": dict.fromkeys(accuracy, 0.0), "confusion": confusion}
    return scores


def cells(table):
    """The rows of a Markdown table below its head, as {first cell: other cells}."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row[0]: row[1:] for row in rows[2:]}


def head(table):
    return [cell.strip() for cell in table.splitlines()[0].strip("|").split("|")]


WORDS = dict(zip(PAPER_LANGUAGES, (1000, 1000, 500, 250), strict=True))
FOUR = {
    name: model(dict(zip(PAPER_LANGUAGES, errors, strict=True)), WORDS)
    for name, errors in {
        "monolingual": (200, 100, 150, 50),
        "vanilla": (300, 200, 200, 50),
        "multi_softmax": (180, 110, 120, 40),
    }.items()
}


def test_table_2_pools_errors_and_words():
    table = wer_table({"models": FOUR}, PAPER_TABLE_2)
    assert head(table) == ["Model", *PAPER_LANGUAGES, "Avg.", "WERR", "paper: en-IN", *PAPER_LANGUAGES[1:], "Avg.", "WERR"]
    rows = cells(table)
    # 500, 750 and 450 errors over 2750 words.
    assert rows["Monolingual"][:6] == ["20.00", "10.00", "30.00", "20.00", "18.18", "0.00"]
    assert rows["Multilingual Vanilla"][4:6] == ["27.27", "-50.00"]
    assert rows["Multi-softmax"] == [
        "18.00",
        "11.00",
        "24.00",
        "16.00",
        "16.36",
        "10.00",
        "23.35",
        "17.20",
        "31.18",
        "23.86",
        "22.86",
        "4.65",
    ]
    assert list(rows) == ["Monolingual", "Multilingual Vanilla", "Multi-softmax"]


def test_paper_columns_only_for_its_languages():
    some = {"hi-IN": 10, "te-IN": 20, "mr-IN": 5}
    scores = {"monolingual": model(some, dict.fromkeys(some, 100)), "onehot": model(some, dict.fromkeys(some, 50))}
    table = wer_table({"models": scores}, PAPER_TABLE_2)
    assert head(table) == ["Model", "hi-IN", "mr-IN", "te-IN", "Avg.", "WERR", "paper: hi-IN"]
    assert cells(table)["Multilingual Onehot"] == ["20.00", "10.00", "40.00", "23.33", "-100.00", "18.88"]
    other = {"es": 1, "fr": 2}
    scores = model(other, dict.fromkeys(other, 10))
    table = wer_table({"models": {"vanilla": scores, "onehot": scores}}, PAPER_TABLE_2)
    assert head(table) == ["Model", "es", "fr", "Avg.", "WERR"]
    # All of the paper's languages and one more: its average is over fewer languages than ours.
    five = model({**dict.fromkeys(PAPER_LANGUAGES, 1), "te-IN": 1}, {**WORDS, "te-IN": 10})
    assert head(wer_table({"models": {"vanilla": five, "onehot": five}}, PAPER_TABLE_2))[-4:] == [
        "paper: en-IN",
        "hi-IN",
        "ta-IN",
        "gu-IN",
    ]


def test_missing_models_languages_and_words_leave_gaps():
    partly = model({"en-IN": 10}, {"en-IN": 100})
    silent = model({"en-IN": 3, "hi-IN": 0}, {"en-IN": 0, "hi-IN": 0})
    results = {
        "models": {
            "onehot": partly,
            "multi_softmax": model({"en-IN": 1, "hi-IN": 1}, {"en-IN": 9, "hi-IN": 1}),
            "multi_softmax_lsp": silent,
        }
    }
    rows = cells(wer_table(results, PAPER_TABLE_2))
    assert rows["Multilingual Onehot"][:4] == ["10.00", "–", "–", "–"]  # no average over fewer languages
    assert rows["Multi-softmax"][:4] == ["11.11", "100.00", "20.00", "–"]  # no monolingual models to compare with
    assert rows["Multi-softmax LSP"][:4] == ["–", "–", "–", "–"]
    assert average_error_rate(partly, ["en-IN"]) == 0.1 and average_error_rate(partly, []) is None
    assert wer_table({"models": {"monolingual": partly}}, PAPER_TABLE_3) is None
    assert tables({"models": {"monolingual": partly}}, 30) == {}
    assert "# Multilingual" in report({"models": {"monolingual": partly}}, "Note.", "run.py", 30)


def test_table_5_is_the_mean_of_the_languages():
    accuracy = dict(zip(PAPER_LANGUAGES, (0.887, 0.862, 0.904, 0.855), strict=True))  # the paper's vanilla row
    results = {"models": {"vanilla": model(dict.fromkeys(PAPER_LANGUAGES, 1), WORDS, accuracy), "onehot": FOUR["monolingual"]}}
    assert cells(table_5(results)) == {"Multilingual Vanilla": ["88.7", "86.2", "90.4", "85.5", "87.7"] * 2}
    assert table_5({"models": FOUR}) is None


def test_languages_of_one_script_are_not_decided():
    """Hindi and Marathi in Devanagari: what a hypothesis's script leaves open is no error, and no average either."""
    scores = model({"hi-IN": 1, "mr-IN": 1, "ta-IN": 1}, {"hi-IN": 9, "mr-IN": 9, "ta-IN": 9})
    scores["lid"] = {"accuracy": {"hi-IN": 0.5, "mr-IN": None, "ta-IN": 1.0}, "confusion": {}}
    scores["lid"]["undecided"] = {"hi-IN": 0.6, "mr-IN": 1.0, "ta-IN": 0.0}
    results = {"models": {"vanilla": scores}}
    rows = rows_of(table_5(results))
    assert rows[0][:5] == ["Model", "hi-IN", "ta-IN", "mr-IN", "Avg."]
    assert rows[2][:5] == ["Multilingual Vanilla", "50.0 (60.0 undecided)", "100.0", "– (100.0 undecided)", "–"]
    assert undecided_note(results).startswith("Of hi-IN, mr-IN, which share their script")
    assert one_row("vanilla", scores).endswith("LID: languages of one script are not decided")
    scores["lid"]["undecided"] = dict.fromkeys(scores["lid"]["undecided"], 0.0)
    assert not undecided_note(results)


def test_notes_say_what_is_missing_and_what_is_added():
    described = {code: {"train": {"utterances": 1, "minutes": 1.0}} for code in ("hi-IN", "ta-IN", "gu-IN", "mr-IN")}
    note = corpus_note(SimpleNamespace(corpus="/data/MUCS"), described)
    assert "It has no en-IN: the paper's figures of that and its averages are left out." in note and "| mr-IN" in note
    assert "It has no" not in corpus_note(SimpleNamespace(corpus="prompts"), {"es": described["mr-IN"]})

    def additions(start_from="random", bonuses=(), model=None, data=None, best=1):
        return additions_note(
            SimpleNamespace(
                start_from=start_from,
                symbol_bonuses=bonuses,
                model=TransducerConfig(**model or {}),
                data=DataConfig(**{"augment": False, **(data or {})}),
                train=SimpleNamespace(average_best=best),
            )
        )

    assert not additions()
    assert additions("/x") == "With what the paper does not mention: the weights of /x to begin with."
    assert additions(model={"dropout": 0.1}, data={"speeds": [0.9, 1.1], "augment": True}, best=5).endswith(
        ": dropout 0.1; copies of the training data at the speeds 0.9, 1.1; SpecAugment; the mean of the 5 best weights."
    )
    assert additions(data={"warp": 1.3, "channel_db": 10.0}).endswith(
        "voices of vocal tracts up to 1.3 times as short or long; gains of up to 10 dB that differ over frequency."
    )
    assert additions(data={"pauses": 0.5}, bonuses=[0, 0.3]).endswith(
        ": pauses before and behind 50 % of the utterances; a bonus for each symbol in the search, chosen on dev."
    )


def test_table_6_in_millions():
    table = table_6({"multi_softmax": {"run": 1234567, "paper_size": 68.549}, "monolingual": {"run": 999499}})
    assert head(table) == ["# of parameters", "Mono.", "MS"]
    assert cells(table) == {"This run": ["0.999", "1.235"], "Paper's size": ["–", "68.55"], "Paper": ["67.98", "68.55"]}
    assert table_6({}) is None


def stop(rule, tau, threshold, errors, t_avg, accuracy=0.9):
    figures = {"errors": errors, "words": 1000, "t_avg": t_avg, "lid_accuracy": accuracy}
    hindi = {**figures, "words": 500}
    return {"rule": rule, "tau_frames": tau, "threshold": threshold, **figures, "languages": {"hi-IN": hindi}}


EARLY = [
    stop("sum_logp", None, None, 200, 4.0),
    stop("sum_logp", 30, 0.5, 209, 1.8),
    stop("mean_p", 30, 0.5, 211, 1.2),
    stop("mean_p", 20, 0.5, 205, 2.5, 0.876),
]


def rows_of(table):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]


def test_table_7_names_the_rule_and_finds_the_papers_settings():
    rows = rows_of(table_7(EARLY, ["hi-IN"], 30))
    assert rows[0][:7] == ["Rule", "tau", "tau ms", "s_th", "WER", "T_avg", "LID"]
    assert rows[0][7:] == ["hi-IN: WER", "T_avg", "LID", "paper: WER", "T_avg", "LID"]
    assert rows[2][:7] == ["no early stopping", "∞", "∞", "∞", "20.00", "4.00", "90.0"]
    assert rows[2][7:] == ["40.00", "4.00", "90.0", "21.84", "4", "92.4"]  # the paper's beside those of the same language
    assert rows[3][:7] == ["sum of log P (equation 1)", "30", "900", "0.5", "20.90", "1.80", "90.0"]
    assert rows[3][7:] == ["41.80", "1.80", "90.0", "23.14", "1.72", "90"]
    assert rows[5][4:] == ["20.50", "2.50", "87.6", "41.00", "2.50", "87.6", "–", "–", "–"]
    long = rows_of(table_7([stop("sum_logp", 1000, 0.2, 1, 1)], ["hi-IN"], 30))
    assert long[2][1:3] == ["1000", "30000"] and long[2][10:] == ["21.97", "3.96", "92.1"]
    assert "paper" not in table_7(EARLY, ["es", "fr"], 30) and table_7([], ["hi-IN"], 30) is None
    twice_as_long = rows_of(table_7([{**EARLY[1], "tau_frames": 15}], ["hi-IN"], 60))  # frames; the same time
    assert twice_as_long[2][4:] == rows[3][4:]
    infinite = [{**EARLY[0], "tau_frames": math.inf, "threshold": 0.2}]
    assert "| no early stopping |   ∞ |      ∞ |  0.2 |" in table_7(infinite, ["es"], 30)


def with_dev(tests, devs):
    """Entries of Table 7 as a run has them: figures of the test set with those of dev."""
    return [
        {**test, "dev": {name: dev[name] for name in ("errors", "words", "t_avg", "lid_accuracy")}}
        for test, dev in zip(tests, devs, strict=True)
    ]


def test_cheapest_setting_within_a_point_of_dev():
    tests = [{**entry, "errors": 300 + number, "t_avg": 3.0} for number, entry in enumerate(EARLY)]  # do not count
    entries = with_dev(tests, EARLY)
    assert cheapest_setting(entries) == (entries[1], entries[0])  # 20.9 %; the one with T_avg 1.2 has 21.1 %
    assert cheapest_setting(entries, points=0.02) == (entries[2], entries[0])
    assert stopping_note(entries) == (
        "Chosen on dev, as the lowest T_avg within one point of WER: sum of log P (equation 1), tau 30, s_th 0.5 (WER 20.90 "
        "against 20.00, T_avg 1.80). On the test set: WER 30.10 against 30.00, T_avg 3.00."
    )
    for nothing in (entries[1:], [], [{**entry, "dev": None} for entry in EARLY]):
        assert cheapest_setting(nothing) is None and stopping_note(nothing) is None


def test_confusions_keep_unspoken_predictions_last():
    spoken, predicted, counts = confusion_matrix({"ta-IN": {"none": 2, "ta-IN": 1}, "en-IN": {"en-IN": 3, "fr": 1}})
    assert spoken == ["en-IN", "ta-IN"] and predicted == ["en-IN", "ta-IN", "fr", "none"]
    assert counts == [[3, 0, 1, 0], [0, 1, 0, 2]]


def test_one_row_is_one_line_with_the_paper_where_comparable():
    line = one_row("multi_softmax", FOUR["multi_softmax"])
    assert line == (
        "Multi-softmax: WER % (paper) en-IN 18.00 (23.35), hi-IN 11.00 (17.20), ta-IN 24.00 (31.18), "
        "gu-IN 16.00 (23.86), Avg. 16.36 (22.86)"
    )
    scores = {**model({"es": 1}, {"es": 8}, {"es": 0.5}), "average": {"ci": [0.1, 0.2]}}
    assert one_row("multi_softmax_lid", scores) == (
        "Multi-softmax LID: WER % es 12.50, Avg. 12.50, 95 % interval 10.00 to 20.00; LID accuracy 50.0 %"
    )


def test_figures_of_the_paper_agree_with_each_other():
    """Guards the constants against slips: WERR follows from the averages, averages lie within their languages, ..."""
    for table in (PAPER_TABLE_2, PAPER_TABLE_3, PAPER_TABLE_4):
        baseline = next(iter(table.values()))[4]
        for *by_language, average, werr in table.values():
            assert 100 * (baseline - average) / baseline == pytest.approx(werr, abs=0.04)
            assert min(by_language) < average < max(by_language)
    # Word-weighted: one set of four shares of words explains all eleven averages.
    rows = np.array([row for table in (PAPER_TABLE_2, PAPER_TABLE_3, PAPER_TABLE_4) for row in table.values()])
    weights, *_ = np.linalg.lstsq(rows[:, :4], rows[:, 4], rcond=None)
    assert weights.sum() == pytest.approx(1, abs=0.02) and (weights > 0).all()
    assert rows[:, :4] @ weights == pytest.approx(rows[:, 4], abs=0.25)
    assert PAPER_TABLE_2["vanilla"][:5] == PAPER_TABLE_4["vanilla"][:5]
    assert PAPER_TABLE_2["monolingual"] == PAPER_TABLE_3["monolingual"]
    assert sum(PAPER_TABLE_5["vanilla"][:4]) / 4 == pytest.approx(PAPER_TABLE_5["vanilla"][4], abs=0.05)
    assert PAPER_TABLE_6["multi_softmax_lid"] / PAPER_TABLE_6["vanilla"] == pytest.approx(1.016, abs=0.001)
    assert 1 - PAPER_TABLE_7[30, 0.5][1] / PAPER_TABLE_7[math.inf, math.inf][1] == pytest.approx(0.57)


@pytest.fixture
def recognised(rng):
    """Real scores of made-up hypotheses: two models with LID, three languages."""

    def scores(error_rate, lid_rate):
        items = []
        for code in ("en-IN", "hi-IN", "es"):
            for number in range(20):
                ref = rng.choice(list("abcd"), 5)
                hyp = np.where(rng.random(5) < error_rate, "x", ref)
                predicted = code if rng.random() < lid_rate else None
                items.append((f"{code}-{number}", code, None, " ".join(ref), " ".join(hyp), predicted))
        return score_utterances(items, resamples=100)

    return {
        "models": {"vanilla": scores(0.4, 0.7), "multi_softmax_lid": scores(0.2, 0.9)},
        "early_stopping": with_dev(EARLY, EARLY),
        "parameters": {"vanilla": {"run": 10, "paper_size": 1.0}},
    }


def test_report_from_scores_survives_json(recognised):
    text = report(recognised, "A note on the corpus.", "egs/indic/run.py", 30)
    assert text == report(
        json.loads(json.dumps(recognised, allow_nan=False, sort_keys=True)), "A note on the corpus.", "egs/indic/run.py", 30
    )
    assert [number for number in range(2, 8) if f"## Table {number}:" in text] == [2, 4, 5, 6, 7]
    assert languages_of(recognised) == ["en-IN", "hi-IN", "es"]
    assert "Made by `egs/indic/run.py`." in text and "A note on the corpus." in text
    assert stopping_note(recognised["early_stopping"]) in text and "None" not in text and "nan" not in text
    low, high = recognised["models"]["vanilla"]["average"]["ci"]
    assert f"[{100 * low:.1f}, {100 * high:.1f}]" in text
    assert text.count("Languages confused") == 2 and "none" in text


def test_plots_are_drawn_and_the_same_each_time(recognised, tmp_path):
    for name in ("first", "second"):
        figures.plot_trade_off(recognised["early_stopping"], tmp_path / name / "trade_off.png", 30)
        figures.plot_wer(recognised, tmp_path / name / "wer.png")
        figures.plot_confusion(recognised["models"]["vanilla"]["lid"]["confusion"], tmp_path / name / "lid.png")
    for first in Path(tmp_path / "first").iterdir():
        assert first.read_bytes() == (tmp_path / "second" / first.name).read_bytes()
        assert first.read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "first").iterdir())) == 3


def test_plots_show_every_setting_and_model(recognised, monkeypatch):
    """What reaches the axes, not what a picture looks like."""
    saved = []
    monkeypatch.setattr(figures, "save", lambda figure, path: saved.append(figure))
    figures.plot_trade_off(EARLY, "x", 30)
    points = {
        (round(float(x), 6), round(float(y), 6))
        for line in saved[0].axes[0].lines
        for x, y in zip(*map(np.atleast_1d, line.get_data()), strict=True)
    }
    assert {(1.8, 20.9), (1.2, 21.1), (2.5, 20.5), (4.0, 20.0)} <= points
    figures.plot_wer(recognised, "x")
    heights = [bar.get_height() for bar in saved[1].axes[0].patches]
    rates = [
        100 * word_error_rate(entry)
        for name in ("vanilla", "multi_softmax_lid")
        for entry in [
            *(recognised["models"][name]["languages"][code] for code in languages_of(recognised)),
            recognised["models"][name]["average"],
        ]
    ]
    assert heights == pytest.approx(rates)
    figures.plot_confusion(recognised["models"]["vanilla"]["lid"]["confusion"], "x")
    shares = np.asarray(saved[2].axes[0].images[0].get_array())
    assert shares.shape == (3, 4) and shares.sum(axis=1) == pytest.approx([100] * 3)
