"""The corpora of egs/indic: manifests, output symbols, statistics of the features.

corpus/{train,dev,test}.jsonl.gz   Lhotse cuts, one an utterance; supervision.language is a code such as hi-IN
units/<code>.json, units/union.json
features/stats.json, features/frames/{train,dev}, features/options.json
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspeech.errors import UserError
from pyspeech.files import write_json

if TYPE_CHECKING:
    from pyspeech.data.utterances import Utterances
    from pyspeech.engine.run import Experiment
    from pyspeech.text.units import Units

KINDS = ("mucs", "fleurs", "commonvoice", "cmu_indic", "kaldi", "manifests")  # layouts of a corpus
SETS = ("train", "dev", "test")


def prepare(exp: Experiment, conf: Any) -> None:
    """Corpus to Lhotse manifests, one cut an utterance."""
    out, log = exp.dir / "corpus", exp.log
    common = {"languages": conf.languages, "parts": exp.parts}
    if conf.corpus == "mini":
        from local.indic import mini

        mini.prepare(out, log, scale=conf.scale, **common)
    elif conf.corpus == "prompts":
        from local.indic import prompts

        prompts.prepare(out, log, scale=conf.scale, **common)
    else:
        prepare_given(exp, conf, **common)
    counts = describe_corpus(out)
    for language, by_set in counts.items():
        log.info(
            "%s: %s",
            language,
            ", ".join(f"{name} {by_set[name]['utterances']} utterances, {by_set[name]['minutes']:.1f} min" for name in by_set),
        )


def prepare_given(exp: Experiment, conf: Any, **common: Any) -> None:
    """A corpus that others made, to manifests."""
    from local.indic.lengths import LengthLimit

    given = {"skip_bad": conf.skip_bad, "tags": conf.tags, "limit": LengthLimit(conf.longest, conf.cut_longer), **common}
    place = conf.corpus, exp.dir / "corpus", exp.log
    if conf.kind == "manifests" or Path(conf.corpus).is_file():
        from local.indic import manifests

        manifests.prepare(*place, **given)
    elif conf.kind == "mucs":
        from local.indic import mucs

        mucs.prepare(*place, **given)
    elif conf.kind == "kaldi":
        from local.indic import kaldi

        kaldi.prepare(*place, **given)
    else:
        from local.indic import speech_corpora

        speech_corpora.prepare(*place, kind=conf.kind, **given)


def load_cuts(corpus: Path | str, name: str, language: str | None = None) -> list[Any]:
    """The cuts of a set as a list, of one language where one is given; empty where there is none."""
    from lhotse.serialization import deserialize_item

    from pyspeech.audio.moved import relocated

    return [
        deserialize_item(relocated(cut, corpus))
        for cut, supervision in set_fields(corpus, name)
        if language in (None, supervision["language"])
    ]


def set_fields(corpus: Path | str, name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(cut, its supervision) of each utterance of a set, as dicts, one at a time; none where the corpus lacks the set."""
    from pyspeech.data.utterances import read_lines, supervision_fields

    return map(supervision_fields, read_lines(Path(corpus) / f"{name}.jsonl.gz"))


def languages_of(corpus: Path | str) -> list[str]:
    """Codes of the languages with training data, sorted: all, as a corpus is prepared with those wanted alone."""
    found = sorted({supervision["language"] for _, supervision in set_fields(corpus, "train")})
    if not found:
        raise UserError(f"{corpus}: no training utterance in any language")
    return found


def describe_corpus(corpus: Path | str) -> dict[str, dict[str, dict[str, Any]]]:
    """{language: {set: {"utterances", "minutes", "words"}}}"""
    described = {}
    for name in SETS:
        for cut, supervision in set_fields(corpus, name):
            entry = described.setdefault(supervision["language"], {}).setdefault(
                name, {"utterances": 0, "minutes": 0.0, "words": 0}
            )
            entry["utterances"] += 1
            entry["minutes"] += cut["duration"] / 60
            entry["words"] += len(supervision["text"].split())
    return {language: described[language] for language in sorted(described)}


def make_units(exp: Experiment, conf: Any) -> None:
    """Output symbols of every language and their union.

    Units of every language from its training text, and their union for the systems with one output layer.
    """
    corpus, folder, log = exp.dir / "corpus", exp.dir / "units", exp.log
    from pyspeech.text.normalize import normalize
    from pyspeech.text.units import GraphemeUnits, SentencePieceUnits, save_units

    made, by_language = {}, {language: [] for language in languages_of(corpus)}
    for _, supervision in set_fields(corpus, "train"):
        by_language[supervision["language"]].append(normalize(supervision["text"], supervision["language"]))
    for language, texts in by_language.items():
        made[language] = (
            GraphemeUnits.build(texts, language=language)
            if conf.units == "grapheme"
            else SentencePieceUnits.train(texts, conf.pieces, language=language)
        )
        log.info("%s: %d symbols", language, made[language].size)
        save_units(folder / f"{language}.json", made[language])
    name_odd_characters(corpus, made, by_language, log)
    union = type(made[language]).union(made)
    log.info("union: %d symbols", union.size)
    save_units(folder / "union.json", union)


def name_odd_characters(
    corpus: Path | str, units: Mapping[str, Units], training: Mapping[str, Sequence[str]], log: logging.Logger
) -> None:
    """Warn of letters of other scripts and rare ones in the training texts of each language, and of characters of dev and
    test that they lack: no model puts these out."""
    from pyspeech.text.normalize import normalize
    from pyspeech.text.scripts import foreign_letters
    from pyspeech.text.tags import most

    for language, texts in training.items():
        counts = Counter(character for text in texts for character in text.replace(" ", ""))
        foreign = foreign_letters(counts)
        if foreign:
            log.warning("%s: letters of other scripts in training: %s", language, most(foreign))
        once = Counter({character: 1 for character, count in counts.items() if count == 1 and character not in foreign})
        if once:
            log.info("%s: characters that training has once: %s", language, " ".join(sorted(once)))
    for name in SETS[1:]:
        unknown, concerned, total = defaultdict(Counter), Counter(), Counter()
        for _, supervision in set_fields(corpus, name):
            language = supervision["language"]
            total[language] += 1
            if language in units:
                found = units[language].count_unknown([normalize(supervision["text"], language)])
                unknown[language] += found
                concerned[language] += bool(found)
        for language in sorted(unknown):
            if unknown[language]:
                where = f"{concerned[language]} of {total[language]} utterances"
                log.warning(
                    "%s: characters of %s that training lacks, in %s: %s", language, name, where, most(unknown[language])
                )


def load_units(folder: Path | str, languages: Iterable[str], union: bool = False) -> dict[str, Units]:
    """{language: units} of a stage `units`; with `union`, the same for all of them."""
    from pyspeech.text.units import load_units as load

    return {language: load(Path(folder) / f"{'union' if union else language}.json") for language in languages}


def compute_features(exp: Experiment, conf: Any) -> None:
    """Log-mel frames for all trainings, their mean and variance.

    Log-mel frames of train, its copies at other speeds, and dev, for all trainings: features/frames/{train,dev}, up to
    data.stored_gb; and features/stats.json, their mean and standard deviation over the training set as it is, all
    languages together. Goes on where it was killed.

    features/options.json are the options of the features: what is trained on them is out of date when one of them changes,
    be it one (such as stack_shift) that frames and statistics do not show.
    """
    import numpy as np

    from pyspeech.asr.dataset import compute_frames
    from pyspeech.features.frame_store import Rows, check_space, choose_rows, frame_bytes, write_stores

    corpus, out, num_bins, rate = exp.dir / "corpus", exp.dir / "features", conf.features.num_bins, conf.features.sampling_rate
    sets = {name: read_utterances(conf, corpus, name) for name in ("dev", "train")}
    seconds = np.concatenate([utterances.durations for utterances in sets.values()])
    frames = np.array([conf.features.log_mel_frames(samples) for samples in np.rint(seconds * rate).astype(int).tolist()])
    chosen = choose_rows(frames, num_bins, conf.data.stored_gb * 1e9)
    wanted, stored = frame_bytes(frames, num_bins), frame_bytes(frames[chosen], num_bins)
    check_space(out / "frames", stored, "data.stored_gb")
    exp.log.info(
        "frames of %d utterances take %.2f GB; %s",
        len(chosen),
        wanted / 1e9,
        "all are stored"
        if chosen.all()
        else f"{stored / 1e9:.2f} GB of them are stored (data.stored_gb), the others computed in each training",
    )

    def rows(name, stored, counted):
        return Rows(
            out / "frames" / name,
            lambda row: compute_frames(sets[name][row], conf.features),
            stored,
            np.arange(len(stored)) < counted,
        )

    dev = rows("dev", chosen[: len(sets["dev"])], 0)
    train = rows("train", chosen[len(sets["dev"]) :], sets["train"].originals)
    stats = write_stores({"dev": dev, "train": train}, num_bins, log=exp.log, parts=exp.parts)["train"]
    stats.save(out / "stats.json")  # pyright: ignore[reportOptionalMemberAccess]
    write_json(out / "options.json", asdict(conf.features))


def read_utterances(conf: Any, corpus: Path | str, name: str) -> Utterances:
    """The Utterances of a set, of the training set with its copies at other speeds: the rows of features/frames/<set>."""
    from pyspeech.data.utterances import Utterances

    return Utterances.read(Path(corpus) / f"{name}.jsonl.gz", conf.data.speeds if name == "train" else ())
