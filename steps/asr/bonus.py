"""The bonus for each symbol that the search adds, chosen on dev: models that have heard little leave symbols out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steps.asr.corpus import load_cuts

if TYPE_CHECKING:
    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.config import SearchConfig
    from pyspeech.engine.run import Experiment

MOST = 100  # utterances of each language that it is chosen on


def with_bonus(exp: Experiment, conf: Any, bundle: Bundle, languages: Sequence[str]) -> SearchConfig:
    """conf.search with that of conf.symbol_bonuses which makes the fewest word errors on dev; as it is where there is none.

    Models that need the language are told it, and so are those that identify it: that is as good, and quicker.
    """
    from pyspeech.data.cuts import read_samples
    from pyspeech.text.normalize import normalize

    if not conf.symbol_bonuses:
        return conf.search
    dev = []
    for language in languages:
        cuts = load_cuts(exp.dir / "corpus", "dev", language)
        cuts = cuts[:: -(-len(cuts) // MOST) or 1]
        samples = [read_samples(cut, bundle.fbank.sampling_rate) for cut in cuts]
        dev.append((language, [normalize(cut.supervisions[0].text or "", language) for cut in cuts], samples))
    if not any(samples for *_, samples in dev):
        exp.log.warning("symbol_bonuses: no dev utterances to choose one on; none is used")
        return conf.search
    errors = {}
    for bonus in sorted(conf.symbol_bonuses):
        search = replace(conf.search, symbol_bonus=bonus)
        counts = [word_errors(bundle, language, texts, samples, search) for language, texts, samples in dev]
        errors[bonus] = sum(counts)
    best = min(errors, key=lambda bonus: errors[bonus])
    tried = ", ".join(f"{bonus:g} ({count})" for bonus, count in errors.items())
    exp.log.info("symbol bonus %g has the fewest word errors on dev: %s", best, tried)
    return replace(conf.search, symbol_bonus=best)


def word_errors(bundle: Bundle, language: str, references: Sequence[str], samples: Sequence[Any], search: SearchConfig) -> int:
    """Word errors of the model of a bundle in utterances of a language, with normalised references."""
    import torch

    from pyspeech.asr.recognizer import recognize
    from pyspeech.text.wer import align, count_errors

    told = None if bundle.model.config.structure == "vanilla" else language
    with torch.inference_mode():
        results = recognize(bundle, samples, told, search)
    pairs = zip(references, results, strict=True)
    return sum(count_errors(align(text.split(), result.text.split()))["errors"] for text, result in pairs)


def search_of(conf: Any, bundle: Bundle) -> SearchConfig:
    """The search of a recipe with the model of a bundle: its options, and the bonus that was chosen when it was trained."""
    return replace(conf.search, symbol_bonus=bundle.search.symbol_bonus) if conf.symbol_bonuses else conf.search
