"""Hotwords and language models of the recipe's systems: from options to what a search gets."""

import gzip
import json
import logging
from types import SimpleNamespace

import pytest
from tiny_asr import GRAPHEMES, save_random_model

from pyspeech.asr.checkpoint import load_model
from pyspeech.asr.config import ContextConfig
from pyspeech.engine.artifacts import Artifacts
from pyspeech.errors import OptionError, UserError
from pyspeech.text.arpa import write_arpa
from steps.asr.context import add_context, check_context, language_models
from steps.asr.options import read_by_decoding


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exp")
    save_random_model(folder / "models" / "multi_softmax", "multi_softmax")
    save_random_model(folder / "models" / "vanilla", "vanilla")
    for code in GRAPHEMES:
        save_random_model(folder / "models" / "monolingual" / code, "monolingual", languages=[code])
    (folder / "corpus").mkdir()
    with gzip.open(folder / "corpus" / "train.jsonl.gz", "wt", encoding="utf-8") as stream:
        for number, (code, letters) in enumerate(GRAPHEMES.items()):
            supervision = {"id": str(number), "recording_id": "r", "start": 0, "duration": 1, "text": letters, "language": code}
            stream.write(json.dumps({"id": str(number), "duration": 1, "supervisions": [supervision]}) + "\n")
    return SimpleNamespace(dir=folder, log=logging.getLogger("test"))


def configured(**options):
    options = ContextConfig(**options)
    options.check()
    return SimpleNamespace(context=options, systems=["vanilla", "multi_softmax"])


def test_language_models_of_the_training_transcripts(experiment):
    conf = configured(lm="train", lm_order=2, ilm_weight=0.1)
    models = language_models(experiment, conf, "multi_softmax")
    assert list(models) == list(GRAPHEMES) and "B-क" in models["hi-IN"].words and "B-a" not in models["hi-IN"].words
    bundle = load_model(experiment.dir / "models" / "multi_softmax")
    found = add_context(experiment, conf, "multi_softmax")(bundle).search_context([0, 1, 2], 1)
    assert len(found.sources) == 1 and found.ilm_weights == {0: 0.1, 1: 0.1, 2: 0.1}
    union = language_models(experiment, conf, "vanilla")
    assert list(union) == ["all"] and {"B-क", "B-a"} <= set(union["all"].words)
    add_context(experiment, conf, "vanilla")(load_model(experiment.dir / "models" / "vanilla"))
    one = add_context(experiment, conf, "monolingual")(load_model(experiment.dir / "models" / "monolingual" / "hi-IN"))
    assert one.search_context([0], 1) is not None


def test_files_of_hotwords_and_language_models(experiment, tmp_path):
    trained = language_models(experiment, configured(lm="train"), "multi_softmax")
    write_arpa(tmp_path / "hi-IN.arpa", trained["hi-IN"])
    (tmp_path / "words.txt").write_text("कख\nab\n", encoding="utf-8")
    bundle = load_model(experiment.dir / "models" / "multi_softmax")
    conf = configured(lm=str(tmp_path), hotwords=str(tmp_path / "words.txt"), ilm_weight=0.2)
    found = add_context(experiment, conf, "multi_softmax")(bundle).search_context([0, 1, 2], 1)
    assert len(found.sources[0].starts) == 2 and found.ilm_weights == {1: 0.2}
    one, hotwords = load_model(experiment.dir / "models/monolingual/ta-IN"), configured(hotwords=conf.context.hotwords)
    assert add_context(experiment, hotwords, "monolingual")(one).search_context([0], 1) is None  # it can write none of them
    assert add_context(experiment, configured(), "multi_softmax")(bundle).search_context([0, 1, 2], 1) is None
    with pytest.raises(UserError, match="none of all.arpa is there"):
        add_context(experiment, conf, "vanilla")
    with pytest.raises(OptionError, match="ilm_weight=0.2: expected 0 without lm"):
        configured(ilm_weight=0.2)


def test_other_contents_of_the_files_make_the_decoding_stale(tmp_path):
    folder = tmp_path / "a {b,c} [d]"
    folder.mkdir()
    hotwords, own, union = folder / "words.txt", folder / "hi-IN.arpa", folder / "all.arpa"
    for path in (hotwords, own, union):
        path.write_text("one\n")
    conf, files = configured(hotwords=str(hotwords), lm=str(folder)), Artifacts(tmp_path / "exp")
    check_context(conf)
    for system, read in (("multi_softmax", [hotwords, own]), ("vanilla", [hotwords, union])):
        patterns = read_by_decoding(system)(conf)[2:]
        recorded = files.fingerprints(patterns)
        assert files.changes(recorded, patterns) == []
        for path in read:
            path.write_text("another\n")
            assert files.changes(recorded, patterns) == [(str(path), "has changed")]
            path.write_text("one\n")
            assert files.changes(recorded, patterns) == []
    (folder / "ta-IN.arpa").write_text("one\n")
    assert files.changes(recorded, patterns) == []  # vanilla does not read it
    assert read_by_decoding("onehot")(conf) == []
    assert read_by_decoding("vanilla")(configured(lm="train"))[2:] == []
    union.unlink()
    with pytest.raises(UserError, match=r"^context.lm=.*: no all.arpa in it; expected a language model for vanilla$"):
        check_context(conf)
