"""Hotwords and language models of the systems of egs/indic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.engine.artifacts import pattern_of
from pyspeech.errors import UserError
from steps.asr.corpus import languages_of, set_fields
from steps.asr.train import STRUCTURES

if TYPE_CHECKING:
    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.context import Context
    from pyspeech.engine.run import Experiment
    from pyspeech.text.arpa import Arpa


def check_context(conf: Any) -> None:
    """Raise UserError where the folder of context.lm lacks what a system needs."""
    folder = conf.context.lm
    for system in conf.systems if folder not in ("none", "train") else ():
        if not any(Path(folder).glob(_lm_files(system))):
            raise UserError(f"context.lm={folder}: no {_lm_files(system)} in it; expected a language model for {system}")


def context_inputs(conf: Any, system: str) -> list[str]:
    """Patterns of the files of hotwords and language models that the decoding with a system reads."""
    options = conf.context
    found = [pattern_of(options.hotwords)] if options.hotwords != "none" else []
    if options.lm not in ("none", "train"):
        found.append(f"{pattern_of(options.lm)}/{_lm_files(system)}")
    return found


def add_context(exp: Experiment, conf: Any, system: str) -> Callable[[Bundle], Context]:
    """A function that gives the Context of a model of the system; hotwords and language models are read here, once."""
    from pyspeech.asr.context import Context
    from pyspeech.asr.hotwords import read_hotwords

    options = conf.context
    hotwords = read_hotwords(options.hotwords) if options.hotwords != "none" else ()
    models = language_models(exp, conf, system)

    def context(bundle):
        own = {code: models[code] for code in bundle.model.languages if code in models}
        lm = models.get("all") or own or None
        weights = options if lm else replace(options, ilm_weight=0.0)
        phrases = _writable(exp, hotwords, bundle) if STRUCTURES[system]["structure"] == "monolingual" else hotwords
        return Context(bundle, phrases, lm, weights)

    return context


def language_models(exp: Experiment, conf: Any, system: str) -> dict[str, Arpa]:
    """{language code: its language model}, {"all": that of all languages} for vanilla; {} without. Of a folder, languages may
    lack one."""
    from pyspeech.text.arpa import read_arpa

    options = conf.context
    if options.lm == "none":
        return {}
    codes = ["all"] if _has_one(system) else languages_of(exp.dir / "corpus")
    if options.lm == "train":
        return {code: _estimated(exp, system, code, options.lm_order) for code in codes}
    files = {code: Path(options.lm) / f"{code}.arpa" for code in codes}
    found = {code: read_arpa(path) for code, path in files.items() if path.is_file()}
    if not found:
        raise UserError(f"context.lm={options.lm}: none of {', '.join(path.name for path in files.values())} is there")
    return found


def _has_one(system):
    """Whether a system has one language model for all languages."""
    return STRUCTURES[system]["structure"] == "vanilla"


def _lm_files(system):
    return "all.arpa" if _has_one(system) else "*.arpa"


def _writable(exp, hotwords, bundle):
    """The hotwords that the model of one language can write: others may be of the other languages."""
    from pyspeech.asr.hotwords import encode_hotwords

    [language] = bundle.model.languages
    left_out = encode_hotwords(hotwords, bundle.units[language], language, 1.0)[1]
    if hotwords:
        exp.log.info("%s: %d of %d hotwords", language, len(hotwords) - len(left_out), len(hotwords))
    return [hotword for hotword in hotwords if hotword.text not in left_out]


def _estimated(exp, system, code, order):
    """The model of the training transcripts of a language, or of all, over the symbols of the system's model."""
    from pyspeech.asr.checkpoint import load_model
    from pyspeech.asr.ngram import symbol_ngrams
    from pyspeech.text.normalize import normalize

    place = exp.dir / "models" / system
    units = load_model(place / code if STRUCTURES[system]["structure"] == "monolingual" else place).units
    fields = [supervision for _, supervision in set_fields(exp.dir / "corpus", "train")]
    texts = [normalize(own["text"], own["language"]) for own in fields if code in ("all", own["language"])]
    return symbol_ngrams(texts, units.get(code) or next(iter(units.values())), order)
