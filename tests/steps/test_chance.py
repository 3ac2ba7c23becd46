"""Trainings that have learnt next to nothing: what chance makes by the scorers themselves, and what each recipe says."""

import json
import logging

import numpy as np
import pytest

from pyspeech.compat import save_checkpoint
from pyspeech.sad.scoring import score_pair
from pyspeech.spoof.scoring import eer_interval, equal_error_rate
from pyspeech.text.wer import score_utterances
from pyspeech.units import abx
from pyspeech.units.items import Item
from steps.asr import score as asr_score, tables as asr_tables
from steps.chance import MEASURES, chance_note, chance_section, collapse_note, warn, warn_of_training
from steps.sad import tables as sad_tables
from steps.spoof import tables as spoof_tables
from steps.units import tables as units_tables


def test_what_chance_makes_is_what_the_scorers_give():
    assert equal_error_rate(np.ones(7), np.ones(30))[0] == MEASURES["eer"][1]
    reference = [(0.0, 40.0, "NS"), (40.0, 50.0, "S"), (50.0, 100.0, "NS")]
    assert score_pair(reference, [(0.0, 100.0)], collar=0.0)["dcf"] == MEASURES["dcf"][1]
    assert score_pair(reference, [], collar=0.0)["dcf"] > MEASURES["dcf"][1]  # calling nothing speech costs more
    empty = score_utterances([("u1", "en-IN", "s", "two words", "", None), ("u2", "en-IN", "s", "one", "", None)])
    assert asr_tables.word_error_rate(empty["languages"]["en-IN"]) == MEASURES["wer"][1]
    items = [Item("file", place, place + 0.5, phone, ("p", "t"), "s") for place, phone in enumerate("aabb")]
    alike = abx.load_frames(items, {"file": np.ones((500, 3))}, 100)
    assert abx.error_rate(abx.score_cells(items, alike, "cosine", "within")) / 100 == MEASURES["abx"][1]


@pytest.mark.parametrize(
    "measure, near, clear", [("eer", 0.46, 0.44), ("dcf", 0.23, 0.22), ("wer", 1.3, 0.85), ("abx", 0.6, 0.4)]
)
def test_near_is_a_tenth_where_there_is_no_interval(measure, near, clear):
    text = chance_note("rnn", measure, near, "dev")
    assert text.startswith(f"rnn ended near chance: {MEASURES[measure][0]} {100 * near:.1f} % on dev, and ")
    assert text.endswith(f" {100 * MEASURES[measure][1]:.0f} %") and "\n" not in text
    assert chance_note("rnn", measure, clear, "dev") is None and chance_note("rnn", measure, None, "dev") is None


def test_an_interval_says_what_is_near(rng):
    few, many = rng.normal(0, 1, 12), rng.normal(0, 1, 3000)
    for genuine, fake, near in ((few + 0.3, few[::-1], True), (many + 0.3, many[::-1], False)):
        error = equal_error_rate(genuine, fake)[0]
        note = chance_note("none", "eer", error, "dev", eer_interval(genuine, fake))
        assert (note is not None) == near
        assert not near or "95 % interval" in note
    assert error > 0.4  # of so many, an interval tells even this from chance


def test_a_codebook_that_has_collapsed():
    assert collapse_note("trf128", 1, 128, "test") == (
        "trf128 ended near chance: 1 of 128 codes in use on test, so the units say nothing"
    )
    assert collapse_note("trf128", 3, 128, "test") is None and collapse_note("mfcc", None, 128, "test") is None


def test_notes_are_warnings_and_a_section(caplog):
    warn(logging.getLogger("stage"), [None, "x ended near chance: why"])
    assert caplog.record_tuples == [("stage", logging.WARNING, "x ended near chance: why")]
    assert chance_section(iter([None, "x ended", "y ended"])) == ["## Ended near chance", "- x ended.\n- y ended."]
    assert chance_section([None]) == []


def test_training_says_it_by_its_best_validation_or_its_codebook(tmp_path, caplog):
    def after(metrics, history, **options):
        save_checkpoint(tmp_path / "best.pt", {"metrics": metrics, "history": history})
        caplog.clear()
        warn_of_training(logging.getLogger("stage"), "x", tmp_path, **options)
        return [record.message for record in caplog.records]

    assert after({"eer": 0.47, "loss": 0.7}, [], where="adapt", measure="eer") == [
        "x ended near chance: EER 47.0 % on adapt, and a coin makes 50 %"
    ]
    assert not after({"eer": 0.3}, [], measure="eer") and not after({}, [], measure="eer")  # clear; no validation
    history = [{"train/perplexity": 90.0}, {"train/perplexity": 1.0449}, {"valid/loss": 1.0}]
    assert after({}, history, codes=128) == ["x ended near chance: 1.04 of 128 codes in use on train, so the units say nothing"]
    assert not after({}, history[:1], codes=128) and not after({}, history[2:], codes=128)


def lines_of(text):
    """The lines of RESULTS.md about trainings that ended near chance."""
    return [line for line in text.splitlines() if "ended near chance" in line]


def test_detection_says_it():
    def scores(dcf):
        return {"dev": {"0": {"dcf": dcf, "p_miss": 0.0, "p_fa": 1.0, "f1": 0.1, "precision": 0.1, "recall": 1.0}}}

    size = {"streams": 1, "simulated": 0, "minutes": 1.0, "speech": 0.1}
    corpus = {"name": "x", "simulated": False, "train": size, "dev": size}
    results = {"cnn": scores(0.05), "rnn": scores(0.249), "statistical": scores(0.3)}
    [line] = lines_of(sad_tables.report(results, ["dev"], [0.0], {}, [], 0.01, corpus, "run"))
    assert line.startswith("- RNN + HMM ended near chance: DCF 24.9 % on dev, and calling everything speech")


def test_recognition_says_it_of_each_language(tmp_path, caplog):
    folder = tmp_path / "decoded/monolingual"
    folder.mkdir(parents=True)
    (tmp_path / "scores").mkdir()
    for language, hypothesis in (("hi-IN", "एक दो"), ("ta-IN", "")):
        lines = [{"id": f"{language}-{index}", "speaker": "s", "ref": "एक दो", "hyp": hypothesis, "predicted": None,
                  "by_language": {}} for index in range(3)]  # fmt: skip
        (folder / f"{language}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    scored = asr_score.score_system(folder, "monolingual")
    text = asr_tables.report({"models": scored, "early_stopping": [], "parameters": {}}, "note", "run", 30)
    assert lines_of(text) == ["- Monolingual, ta-IN ended near chance: WER 100.0 % on test, and an empty text makes 100 %."]


def test_units_say_it():
    def entry(across, within, used, seed=1):
        abx_errors = None if within is None else {"across": across, "within": within}
        return {"seed": seed, "codes": 128, "abx": abx_errors, "bitrate": 50.0, "used": used}

    scores = {"trf128": [entry(20.0, 15.0, 120), entry(48.0, 40.0, 120, seed=2)], "conv128": [entry(None, 47.0, 90)],
              "trf64": [entry(None, None, 1)], "kmeans128": [entry(49.0, 49.0, 1)],
              "mfcc": [{"seed": None, "abx": None, "bitrate": None, "used": None}]}  # fmt: skip
    assert lines_of(units_tables.report(scores, "note", "run")) == [
        "- trf128, seed 2 ended near chance: ABX error 48.0 % on test (across speakers), and a coin makes 50 %.",
        "- conv128, seed 1 ended near chance: ABX error 47.0 % on test (within speakers), and a coin makes 50 %.",
        "- trf64, seed 1 ended near chance: 1 of 128 codes in use on test, so the units say nothing.",
    ]


def test_fake_audio_detection_says_it_by_dev_where_it_can():
    def found(error, interval):
        return {"eer": [error], "interval": interval, "cllr": [1.0], "attacks": {}, "conditions": {}}

    scores = {
        "none": {"seeds": [1], "sets": {"dev": found(0.1, [0.05, 0.2]), "eval": found(0.48, [0.4, 0.55])}},
        "rnm": {"seeds": [1], "sets": {"dev": found(0.41, [0.35, 0.51]), "eval": found(0.3, [0.2, 0.4])}},
        "pooled_rnm_sm": {"seeds": [1], "sets": {"eval": found(0.48, [0.42, 0.53])}},
        "rnm_sm": {"seeds": [1], "sets": {}},
    }
    text = spoof_tables.report(scores, [], "note", "run")
    assert lines_of(text) == [
        "- rnm ended near chance: EER 41.0 % (95 % interval 35.0 to 51.0) on dev, and a coin makes 50 %.",
        "- pooled_rnm_sm ended near chance: EER 48.0 % (95 % interval 42.0 to 53.0) on eval, and a coin makes 50 %.",
    ]
