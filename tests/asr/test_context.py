"""Hotwords and language models in recognizers: streams, batches, languages, lists for each utterance, and mistakes."""

import contextlib
import io
import json
import pickle
import re
import sys

import numpy as np
import pytest
from tiny_asr import babble, save_random_model

from pyspeech.asr.api import Recognizer
from pyspeech.asr.checkpoint import load_model
from pyspeech.asr.config import ContextWeights
from pyspeech.asr.context import Context
from pyspeech.asr.hotwords import Hotword
from pyspeech.asr.ngram import symbol_ngrams
from pyspeech.asr.recognizer import recognize
from pyspeech.asr.streaming import StreamingRecognizer
from pyspeech.commands import train_lm, transcribe
from pyspeech.errors import UserError
from pyspeech.text.arpa import read_arpa, write_arpa

TEXTS = {"en-IN": ["ab cab", "dead"], "hi-IN": ["कख गघ", "घक कख"], "ta-IN": ["அஆ இஈ", "ஈஅ"]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {
        "lid": save_random_model(folder / "lid", "multi_softmax", lid=True),
        "vanilla": save_random_model(folder / "vanilla", "vanilla"),
    }


@pytest.fixture(scope="module")
def bundle(folders):
    bundle = load_model(folders["lid"])
    bundle.model.double()  # so that batches and streams differ by little
    return bundle


@pytest.fixture(scope="module")
def context(bundle):
    lm = {code: symbol_ngrams(TEXTS[code], bundle.units[code], 3) for code in ("hi-IN", "ta-IN")}
    return Context(bundle, ["कख", "घक", ("dead", 4.0), "அஆ"], lm, ContextWeights(2.0, 0.5, 0.3))


def assert_same(one, other):
    assert [item.text for item in one.nbest] == [item.text for item in other.nbest]
    np.testing.assert_allclose([item.score for item in one.nbest], [item.score for item in other.nbest], atol=1e-6)
    assert (one.language, one.by_language) == (other.language, other.by_language)


def test_streamed_and_batched_equal_each_alone(bundle, context):
    utterances = [babble(seconds, seed=seed) for seed, seconds in enumerate((1.5, 0.9, 2.1))]
    lists = [None, ["ab", "गघ"], [("இஈ", 3.0), "ஈ"]]
    together = recognize(bundle, utterances, context=context, hotwords=lists)
    plain = recognize(bundle, utterances)
    for samples, own, result, without in zip(utterances, lists, together, plain, strict=True):
        assert_same(recognize(bundle, [samples], context=context, hotwords=[own])[0], result)
        stream = StreamingRecognizer(bundle, context=context, hotwords=own, chunk_frames=7)
        for start in range(0, len(samples), 3000):
            stream.add(samples[start : start + 3000])
        assert_same(stream.finish(), result)
        assert result.by_language != without.by_language
    assert_same(recognize(bundle, utterances[:1], context=context)[0], together[0])


def test_a_recognizer_finds_hotwords_and_a_list_is_of_one_utterance_alone(folders):
    samples, phrase = babble(2), "कखग घक"
    plain = Recognizer.load(folders["lid"], "hi", device="cpu", beam=8, vad=False)
    eager = Recognizer.load(folders["lid"], "hi", device="cpu", beam=8, vad=False, hotwords=[(phrase, 30.0)])
    (expected,), without = eager.recognize([samples]), plain.transcribe([samples, samples], 16000)
    assert phrase in expected.text and phrase not in without[0].text and 0 < expected.confidence < 1
    first, second = plain.transcribe([samples, samples], 16000, hotwords=[None, [(phrase, 30.0)]])
    assert (first.text, second.text) == (without[0].text, expected.text)
    assert plain.transcribe(samples, 16000, hotwords=[(phrase, 30.0)]).text == expected.text
    assert plain.transcribe(samples, 16000).text == without[0].text
    (final,) = [result for result, _ in plain.segments([samples], [(phrase, 30.0)]) if result.final]
    assert phrase in final.text


def test_a_context_can_be_pickled(bundle, context):
    samples = babble(1)
    context = pickle.loads(pickle.dumps(context))
    assert recognize(bundle, [samples], context=context)[0].nbest == recognize(bundle, [samples], context=context)[0].nbest


def test_hotwords_that_no_language_can_write_are_named(bundle, caplog):
    Context(bundle, ["ab", "xyz", Hotword("кот")])
    (record,) = caplog.records
    assert record.getMessage() == "hotwords xyz, кот: the model lacks characters of them; 2 of 3 phrases are left out"
    with pytest.raises(UserError, match="hotwords xyz: the model lacks characters of them; expected phrases in en-IN, hi-IN"):
        Context(bundle, ["xyz"])
    with pytest.raises(UserError, match="hotwords ab: the model lacks characters"):
        Context(bundle, ["ab"], language="hi-IN")
    with pytest.raises(UserError, match="expected a list of 2 lists of phrases"):
        recognize(bundle, [babble(1)] * 2, context=Context(bundle), hotwords=["ab"])


def test_hotwords_of_other_languages_than_the_one_searched(bundle, caplog):
    """A Context for all languages also serves searches in one that cannot write its phrases."""
    samples, context = babble(1), Context(bundle, ["कख", ("घक", 3.0)])
    (found,), (plain,) = (recognize(bundle, [samples], "ta-IN", context=own) for own in (context, None))
    assert_same(found, plain)
    (found,) = recognize(bundle, [samples], "ta-IN", context=context, hotwords=[["ab"]])
    assert_same(found, plain)
    assert not caplog.records
    with pytest.raises(UserError, match="hotwords कख, घक: the model lacks characters of them; expected phrases in ta-IN$"):
        Context(bundle, ["कख", "घक"], language="ta-IN")


def test_language_models_that_do_not_fit_are_refused(bundle, folders, tmp_path):
    arpa = symbol_ngrams(TEXTS["hi-IN"], bundle.units["hi-IN"], 2)
    vanilla = load_model(folders["vanilla"])
    for found, options, message in (
        (
            bundle,
            {"lm": arpa},
            "language model: of which language of en-IN, hi-IN, ta-IN. Give it with the file, as en-IN=FILE",
        ),
        (bundle, {"lm": {"ta": arpa}}, "its 1-grams are not the symbols of the model .first: B-क"),
        (bundle, {"lm": {"gu": arpa}}, "language gu: the model knows en-IN"),
        (bundle, {"lm": {"hi-IN": "one.arpa", "hi": "two.arpa"}}, "hi=two.arpa: a second one for hi-IN, beside one.arpa"),
        (bundle, {"lm": {"hi": "one.arpa"}, "language": "ta-IN"}, "hi=one.arpa: without effect, as the language is ta-IN"),
        (vanilla, {"lm": {"hi": arpa}}, "one vocabulary for en-IN, hi-IN, ta-IN; give one for all"),
        (bundle, {"lm": tmp_path / "none.arpa", "language": "hi-IN"}, "none.arpa: cannot be read"),
        (bundle, {"weights": ContextWeights(ilm_weight=0.1)}, "ilm_weight=0.1: expected 0 without lm"),
        (bundle, {"weights": ContextWeights(hotwords_score=0)}, "hotwords_score=0: expected a number above 0"),
        (bundle, {"lm": {"hi": arpa}, "weights": ContextWeights(lm_weight=-1)}, "lm_weight=-1: expected at least 0"),
    ):
        with pytest.raises(UserError, match=message):
            Context(found, **options)
    assert Context(bundle, lm=arpa, language="hi-IN").search_context([0], 3) is None  # English has none
    assert Context(bundle, lm=arpa, language="hi-IN").search_context([1], 3) is not None


def test_the_commands(folders, tmp_path, capsys, monkeypatch):
    """train-lm and transcribe do what the API does; wrong options are one line."""
    import soundfile

    soundfile.write(tmp_path / "a.wav", babble(2), 16000)
    (tmp_path / "hi.txt").write_text("\n".join(TEXTS["hi-IN"] * 3 + ["कx"]), encoding="utf-8")
    (tmp_path / "words.txt").write_text("कखग घक\t9\n", encoding="utf-8")
    model = ["--model", str(folders["lid"])]
    made = str(tmp_path / "hi.arpa")
    train_lm.main([str(tmp_path / "hi.txt"), *model, "--language", "hi", "--order", "3", "-o", made])
    output = capsys.readouterr()
    assert output.out.startswith(f"{made}: 7 sentences; 10 1-grams, ")
    units = load_model(folders["lid"]).units["hi-IN"]
    expected = symbol_ngrams([*TEXTS["hi-IN"] * 3, "कx"], units, 3)
    write_arpa(tmp_path / "expected.arpa", expected)
    assert read_arpa(made).orders[2].words.tolist() == read_arpa(tmp_path / "expected.arpa").orders[2].words.tolist()
    options = [
        "--hotwords",
        str(tmp_path / "words.txt"),
        "--lm",
        f"hi-IN={made}",
        "--lm-weight",
        "0.6",
        "--symbol-bonus",
        "0.3",
        "--ilm-weight",
        "0.2",
    ]
    assert transcribe.main([str(tmp_path / "a.wav"), *model, "--language", "hi", *options]) == 0
    recognizer = Recognizer.load(
        folders["lid"],
        "hi",
        hotwords=tmp_path / "words.txt",
        lm={"hi": made},
        lm_weight=0.6,
        symbol_bonus=0.3,
        ilm_weight=0.2,
        device="cpu",
    )
    assert capsys.readouterr().out == f"a\t{recognizer.transcribe(tmp_path / 'a.wav').text}\n"
    for wrong, message in (
        (["--lm-weight", "0.5"], "--lm-weight: without effect; add --lm FILE"),
        (["--hotwords", "none.txt"], "--hotwords none.txt: no such file"),
        (["--lm", "hi-IN=none.arpa"], "--lm none.arpa: no such file"),
        (["--lm", made, "--lm", f"hi={made}"], "a second one; expected one for each language"),
        (["--lm", f"hi-IN={made}", "--lm", f"hi={made}"], "a second one for hi-IN"),
        (["--lm", f"hi-IN={made}", "--language", "ta"], "without effect, as the language is ta-IN"),
        (["--lm", made], "of which language"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            transcribe.main([str(tmp_path / "a.wav"), *model, *wrong])
    tags = "कख [laughter] गघ\n<noise> घक\n[noise]\n"
    for name, text in (("tags", tags), ("plain", "कख गघ\nघक\n")):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
        train_lm.main([str(tmp_path / f"{name}.txt"), *model, "--language", "hi", "-o", str(tmp_path / f"{name}.arpa")])
    assert (tmp_path / "tags.arpa").read_bytes() == (tmp_path / "plain.arpa").read_bytes()
    assert "tags.arpa: 2 sentences; " in capsys.readouterr().out
    for content in ("कख गघ\nघक\n".encode(), b"\xe0\n"):  # standard input, in any locale
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "latin1"))
        with (
            contextlib.nullcontext() if content[-2:] != b"\xe0\n" else pytest.raises(UserError, match="standard input: .* text")
        ):
            train_lm.main(["-", "-", *model, "--language", "hi", "-o", str(tmp_path / "input.arpa")])
        assert not sys.stdin.buffer.closed
    assert (tmp_path / "input.arpa").read_bytes() == (tmp_path / "plain.arpa").read_bytes()
    assert "input.arpa: 2 sentences; " in capsys.readouterr().out
    about = {"recording_id": "r", "start": 0, "duration": 1, "channel": 0, "text": "कख गघ"}
    languages = ["hi", "HI_in", "hi-IN", None, "ta", "gu"]  # of the manifest's utterances
    lines = [json.dumps({**about, "id": str(number), "language": code}) for number, code in enumerate(languages)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    train_lm.main([str(tmp_path / "a.jsonl"), *model, "--language", "hi", "-o", str(tmp_path / "a.arpa")])
    assert "a.arpa: 4 sentences; " in capsys.readouterr().out
    with pytest.raises(UserError, match="--language: the model has a vocabulary for each of en-IN, hi-IN, ta-IN"):
        train_lm.main([str(tmp_path / "hi.txt"), *model, "-o", made])
