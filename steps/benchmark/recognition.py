"""Sets of a corpus of egs/indic, for benchmarks of recognition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def read_set(
    corpus: str | Path, name: str, languages: Collection[str], sampling_rate: int
) -> list[tuple[str, str, str, np.ndarray]]:
    """[(id, language, normalised text, samples (N,) at `sampling_rate`), ...] of the utterances of a set in some languages, in
    the order of the languages."""
    from pyspeech.data.cuts import read_samples

    found = [
        (cut.id, language, text, read_samples(cut, sampling_rate)) for cut, language, text in _labelled(corpus, name, languages)
    ]
    return sorted(found, key=lambda one: one[1])


def texts_of(corpus: str | Path, name: str, languages: Collection[str]) -> dict[str, list[str]]:
    """{language: [normalised text, ...]} of a set, for each of the languages."""
    found = {language: [] for language in languages}
    for _, language, text in _labelled(corpus, name, languages):
        found[language].append(text)
    return found


def wer_cell(average: Mapping[str, Any]) -> str:
    """The WER in % with its 95 % interval, of the "average" of `pyspeech.text.wer.score_utterances`."""
    from pyspeech.report.tables import bracketed, percent

    return f"{percent(average['errors'] / average['words'], 1)} {bracketed(average['ci'])}"


def _labelled(corpus, name, languages):
    from pyspeech.data.manifests import load_cuts
    from pyspeech.text.normalize import normalize

    for cut in load_cuts(corpus, name):
        said = cut.supervisions[0]
        if said.language in languages:
            yield cut, said.language, normalize(said.text or "", said.language)
