"""Similarity of voices in egs/zerospeech by a speaker verification network (Resemblyzer), if installed.

A voice is the mean embedding of at most MOST recordings of a speaker: of the training set for those who speak, of the
test set for others.
"""

from __future__ import annotations

import logging
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.data.manifests import load_cuts
from steps.units.corpus import speaker_of

if TYPE_CHECKING:
    import numpy as np
    from lhotse.cut import Cut

    from pyspeech.engine.run import Experiment

MOST = 30  # recordings of a speaker


def add_similarity(
    measured: dict[str, Any],
    exp: Experiment,
    names: Mapping[tuple[str, str], str],
    test: Mapping[str, Cut],
    speakers: Sequence[str],
) -> None:
    """ "similarity": {"target", "other"} in each of measured["pairs"], in "conversions" and "originals", as `likeness`.

    measured: of steps.units.voices.score_synthesis; nothing is added without Resemblyzer. names: {(utterance, voice):
    file in wavs/}; test: {utterance: cut}; speakers: those who speak.
    """
    from tqdm import tqdm

    from pyspeech.audio.io import read_audio
    from pyspeech.data.cuts import read_samples
    from pyspeech.units.voices import RATE

    embed = load_embedder(exp.log)
    if embed is None:
        return
    spoken = [test[name] for name in sorted({utterance for utterance, _ in names})]
    voices = centroids(exp.dir / "corpus", embed, speakers, {speaker_of(cut) for cut in spoken})
    found, own = defaultdict(list), []
    for (utterance, voice), name in tqdm(sorted(names.items()), "similarity", disable=None):
        source, (samples, _) = speaker_of(test[utterance]), read_audio(exp.dir / "wavs" / name, RATE)
        found[source, voice].append(likeness(embed(samples), voice, source, speakers, voices))
    for cut in spoken:
        if speaker_of(cut) in speakers:
            own.append(likeness(embed(read_samples(cut, RATE)), speaker_of(cut), speaker_of(cut), speakers, voices))
    for entry in measured["pairs"]:
        entry["similarity"] = means(found[entry["source"], entry["target"]])
    measured["conversions"]["similarity"] = means(
        [value for (source, target), values in found.items() if source != target for value in values]
    )
    measured["originals"]["similarity"] = means(own)


def load_embedder(log: logging.Logger) -> Callable[[np.ndarray], np.ndarray | None] | None:
    """Load the embedder of pyspeech.units.voices; None, with a warning, also where Resemblyzer does not load."""
    from pyspeech.units import voices

    try:
        embed = voices.load_embedder()
    except Exception as error:  # what it needs may be of other versions than it was written for
        log.warning("Resemblyzer is installed but does not load: no similarity of voices (%s: %s)", type(error).__name__, error)
        return None
    if embed is None:
        log.info("no similarity of voices: Resemblyzer is not installed")
    return embed


def centroids(
    corpus: Path, embed: Callable[[np.ndarray], np.ndarray | None], speakers: Sequence[str], needed: Iterable[str]
) -> dict[str, np.ndarray | None]:
    """{speaker: (256,) or None}; the recordings are chosen by their names alone."""
    from pyspeech.data.cuts import read_samples
    from pyspeech.units.voices import RATE, centroid

    sets = {name: sorted(load_cuts(corpus, name), key=lambda cut: zlib.crc32(cut.id.encode())) for name in ("voice", "test")}
    found = {}
    for speaker in sorted({*speakers, *needed}):
        cuts = [cut for cut in sets["voice" if speaker in speakers else "test"] if speaker_of(cut) == speaker]
        found[speaker] = centroid(embed(read_samples(cut, RATE)) for cut in cuts[:MOST])
    return found


def likeness(
    embedding: np.ndarray | None, target: str, source: str, speakers: Sequence[str], voices: Mapping[str, np.ndarray | None]
) -> tuple[float | None, float | None]:
    """(cosine of an embedding and the voice `target`, and of it and the voice `source`, or the nearest other one of
    `speakers` where these are the same); None for what is not known."""
    others = [source] if source != target else [speaker for speaker in speakers if speaker != target]
    if embedding is None:
        return None, None
    to_target, *to_others = (
        None if voices.get(name) is None else float(embedding @ voices[name]) for name in [target, *others]
    )
    return to_target, max((value for value in to_others if value is not None), default=None)


def means(pairs: Sequence[tuple[float | None, float | None]]) -> dict[str, float | None]:
    """{"target", "other"}: of [(cosine or None, cosine or None), ...] the means of those that are known, or None."""
    columns = ([pair[place] for pair in pairs if pair[place] is not None] for place in (0, 1))
    target, other = (sum(column) / len(column) if column else None for column in columns)  # pyright: ignore[reportArgumentType, reportCallIssue]
    return {"target": target, "other": other}
