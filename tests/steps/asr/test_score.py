"""Scores of decoded test sets: whose language is predicted, and early stopping of all languages and of each."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from pyspeech.asr.config import EarlyStopping
from pyspeech.text.units import GraphemeUnits
from steps.asr.score import predicted_language, stop_early, stopped_early
from steps.asr.tables import stopping_note, table_7


def test_the_language_of_a_vanilla_model_is_that_of_the_script():
    texts = {"hi-IN": "एक लड़का", "mr-IN": "एक मुळा", "ta-IN": "ஒன்று"}
    union = GraphemeUnits.union({code: GraphemeUnits.build([text], language=code) for code, text in texts.items()})
    bundle = SimpleNamespace(units=dict.fromkeys(texts, union), model=SimpleNamespace(languages=list(texts)))
    for text, expected in (("एक", "hi-IN or mr-IN"), ("ळ", "mr-IN"), ("ஒன்", "ta-IN"), ("", "none")):
        fitting = union.language_of(union.encode(text))  # what a recognition says: None where several fit
        assert predicted_language(SimpleNamespace(text=text, language=fitting), bundle) == expected


def write_decoded(folder, frames):
    """What a system with language identification leaves. frames: {language: {utterance: [P(Hindi) of each frame]}}."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, utterances in frames.items():
        posteriors = {f"utterance {name}": np.log([[p, 1 - p] for p in values]) for name, values in utterances.items()}
        np.savez(folder / f"{language}.npz", languages=["hi-IN", "ta-IN"], **posteriors)
        lines = [
            {"id": name, "speaker": None, "ref": "x y", "hyp": "", "by_language": {"hi-IN": "x y", "ta-IN": "x"}}
            for name in utterances
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{language}.jsonl").write_text(text, encoding="utf-8")


def test_early_stopping_of_all_languages_and_of_each(tmp_path):
    """Two Hindi utterances and a Tamil one; every frame of the second Hindi one says Tamil."""
    frames = {"hi-IN": {"a": [0.9] * 4, "b": [0.2] * 4}, "ta-IN": {"c": [0.2] * 2}}  # P(Hindi)
    write_decoded(tmp_path, frames)
    never, soon = stopped_early(tmp_path, [EarlyStopping(), EarlyStopping("mean_p", 1, 0.1)])
    hindi = {"errors": 1, "words": 4, "t_avg": 2.0, "lid_accuracy": 0.5}
    tamil = {"errors": 1, "words": 2, "t_avg": 2.0, "lid_accuracy": 1.0}
    assert never["languages"] == {"hi-IN": hindi, "ta-IN": tamil}
    assert {name: never[name] for name in hindi} == {"errors": 2, "words": 6, "t_avg": 2.0, "lid_accuracy": 2 / 3}
    # one decoder from the third frame on: (4 + 2) / 4 of the Hindi ones, both to the end of the Tamil one
    assert soon["languages"]["hi-IN"] == {**hindi, "t_avg": 1.5} and soon["languages"]["ta-IN"] == tamil
    assert soon["t_avg"] == pytest.approx((1.5 + 1.5 + 2) / 3)
    assert stopped_early(tmp_path / "dev", [EarlyStopping(tau=math.inf)]) == [None]


@pytest.mark.parametrize("sets", [["test"], ["test", "dev"], ["dev"]])
def test_early_stopping_where_a_set_has_no_utterances(tmp_path, sets):
    """Without dev nothing is chosen; without a test set there is no entry, and no table."""
    for name in sets:
        write_decoded(tmp_path / "decoded" / "lid" / ("" if name == "test" else name), {"hi-IN": {"a": [0.9] * 4}})
    conf = SimpleNamespace(stop_after=[2], stop_below=[0.2])
    stop_early(SimpleNamespace(dir=tmp_path), conf, "lid")
    entries = json.loads((tmp_path / "early_stopping.json").read_text())
    assert (table_7(entries, ["hi-IN"], 60.0) is not None) == ("test" in sets)
    assert (stopping_note(entries) is not None) == (sets == ["test", "dev"])
