"""The symbol bonus that dev chooses."""

import logging
from types import SimpleNamespace

import kaldialign
import pytest
from tiny_asr import babble, save_random_model
from tiny_audio import write_audio

from pyspeech.asr.api import Recognizer
from pyspeech.asr.checkpoint import load_model
from pyspeech.asr.config import SearchConfig
from pyspeech.data.manifests import Utterance, write_manifest
from steps.asr.bonus import search_of, with_bonus

TEXTS = {"hi-IN": ["क ख", "गघ क", "ख"], "ta-IN": ["அ ஆ"]}
BONUSES = [4.0, 0.0, 0.5, 2.0]


@pytest.fixture(scope="module", params=["vanilla", "multi_softmax"])
def experiment(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exp")
    save_random_model(folder / "model", request.param, lid=request.param == "multi_softmax")
    rows = []
    for language, texts in TEXTS.items():
        for number, text in enumerate(texts):
            name = f"{language}-{number}"
            path = str(write_audio(folder / f"{name}.wav", samples=babble(0.6, seed=number)))
            rows.append((Utterance(name, path, text, language), path, {"rate": 16000, "duration": 0.6}))
    write_manifest(folder / "corpus/dev.jsonl.gz", rows)
    return SimpleNamespace(dir=folder, log=logging.getLogger("bonus"), told=request.param != "vanilla")


def options(bonuses, bonus=0.0):
    return SimpleNamespace(symbol_bonuses=bonuses, search=SearchConfig(beam=2, symbol_bonus=bonus))


def word_errors(experiment, bonus):
    errors = 0
    for language, texts in TEXTS.items():
        told = language if experiment.told else None
        recognizer = Recognizer.load(experiment.dir / "model", told, beam=2, symbol_bonus=bonus, device="cpu")
        found = recognizer.recognize([babble(0.6, seed=number) for number in range(len(texts))])
        pairs = zip(texts, found, strict=True)
        errors += sum(kaldialign.edit_distance(text.split(), result.text.split())["total"] for text, result in pairs)
    return errors


def test_the_one_with_the_fewest_word_errors_on_dev(experiment, caplog):
    caplog.set_level(logging.INFO)
    found = with_bonus(experiment, options(BONUSES), load_model(experiment.dir / "model"), list(TEXTS))
    errors = {bonus: word_errors(experiment, bonus) for bonus in sorted(BONUSES)}
    assert len(set(errors.values())) > 1
    assert found == SearchConfig(beam=2, symbol_bonus=min(errors, key=lambda bonus: (errors[bonus], bonus)))
    assert ", ".join(f"{bonus:g} ({count})" for bonus, count in errors.items()) in caplog.text


def test_none_without_values_and_without_dev(experiment, caplog):
    bundle = load_model(experiment.dir / "model")
    assert with_bonus(experiment, options([], 0.3), bundle, list(TEXTS)) == SearchConfig(beam=2, symbol_bonus=0.3)
    assert with_bonus(experiment, options(BONUSES), bundle, ["en-IN"]) == SearchConfig(beam=2)
    assert "no dev utterances to choose one on" in caplog.text


def test_decoding_uses_that_of_the_model(experiment):
    bundle = load_model(experiment.dir / "model")
    bundle.search = SearchConfig(beam=9, symbol_bonus=0.5)
    assert search_of(options(BONUSES), bundle) == SearchConfig(beam=2, symbol_bonus=0.5)
    assert search_of(options([], 0.3), bundle) == SearchConfig(beam=2, symbol_bonus=0.3)
