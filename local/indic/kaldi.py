"""A corpus of Kaldi data directories: what a Kaldi recipe has in data/ (https://kaldi-asr.org/doc/data_prep.html).

    data/train, data/dev, data/test                  one language, or several by utt2lang
    data/hi/train, ...; data/train_hi, ...           a folder of known language above them or in their names

Folders with utt2spk, up to three levels down, are sets where their name or one above says train, dev or test (eval); the
others are left alone. Where one of several beside each other is just `train`, it stands for all that add to the word
(train_sp). Rules and tables: pyspeech/kaldi/rules.py; what breaks a rule stops, and Kaldi's fix_data_dir.sh mends
most of it. Needed are utt2spk, spk2utt, wav.scp and text; segments, utt2lang and spk2gender are used where there are any,
and the extra tables of pyspeech/kaldi/writing.py.

A relative path of wav.scp is taken from the present folder or one above the data directory. Its commands are run, as Kaldi
does, and what they say, as what archives hold, is kept as 16-bit WAV in out/audio: an utterance is read often, and parts
of it. A segment that ends up to 0.5 s after its recording ends with it (as extract-segments has it), one that ends later
is a problem of its own.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from local.indic.languages import language_code, utterance_language
from local.indic.lengths import NO_LIMIT, LengthLimit
from local.indic.mucs import DEV_SHARE, GENERIC, SPLITS, split_of
from local.indic.sets import is_hidden, of_languages, with_distinct_ids, without_variants
from local.indic.transcribed import write_corpus
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.kaldi.reading import require_sound
from pyspeech.kaldi.utterances import read_utterances
from pyspeech.text.tags import DEFAULT_TAGS

EXPECTED = "data directories (with utt2spk, spk2utt, wav.scp and text) in folders train and test, and dev if there is one"


@dataclass(frozen=True)
class DataDir:
    """A data directory with the split, and the language if any, that its path names."""

    path: Path
    split: str
    language: str | None


def prepare(
    corpus: str | Path,
    out: str | Path,
    log: logging.Logger,
    *,
    languages: Sequence[str] = (),
    tags: Sequence[str] = DEFAULT_TAGS,
    limit: LengthLimit = NO_LIMIT,
    skip_bad: bool = False,
    parts: Parts | None = None,
) -> dict[str, dict[str, int]]:
    """Check the data directories of a corpus and write out/{train,dev,test}.jsonl.gz.

    corpus: the folder that they are in. languages: codes (hi-IN) or names of those to take, all where empty; one alone is
    that of utterances of which neither utt2lang nor a folder says any. tags, problems, dev sets, and what is returned and
    raised, as `local.indic.mucs.prepare`. Ids are those of the data directories; where two of these have one of the same, all
    begin with language and split.
    """
    corpus, out = Path(corpus), Path(out).resolve()
    sets, problems = {}, []
    for part in find_data_dirs(corpus, log):
        require_sound(part.path)
        if not (part.path / "text").is_file():
            raise UserError(f"{part.path}: no text; expected a Kaldi data directory with the words of each utterance")
        found, wrong = read_utterances(part.path, out / "audio", log, parts)
        sets[part.path] = [
            replace(one, language=_language(one, part, languages), split=part.split) for one in found if one.text
        ]
        problems += wrong + [(f"{part.path}/text, {one.id}", "no text") for one in found if not one.text]
        log.info("%s: %d utterances in %s", part.split, len(found), part.path)
    everything = [one for several in sets.values() for one in several]
    used = {one.language for one in of_languages(everything, languages, f"corpus={corpus}", log, EXPECTED)}
    sets = {path: [one for one in several if one.language in used] for path, several in sets.items()}
    utterances = with_distinct_ids(sets, "data directories", log)
    return write_corpus(utterances, out, log, f"corpus={corpus}", skip_bad, problems, DEV_SHARE, parts, tags, limit)


def find_data_dirs(corpus: Path, log: logging.Logger) -> list[DataDir]:
    """The DataDirs of a corpus, sorted by path; UserError where there is none."""
    if not corpus.is_dir() or (corpus / "utt2spk").is_file():
        found = "is a data directory itself" if corpus.is_dir() else "no such folder"
        raise UserError(f"corpus={corpus}: {found}; expected the folder of {EXPECTED}")
    folders = []
    for pattern in ("*", "*/*", "*/*/*"):
        found = {path.parent for path in corpus.glob(f"{pattern}/utt2spk") if not is_hidden(path.relative_to(corpus))}
        folders += sorted(folder for folder in found if not set(folder.parents) & set(folders))
    parts = {}
    for folder in sorted(folders):
        names = folder.relative_to(corpus).parts
        split = split_of(names)
        if split is None:
            log.warning("%s: not used, as no folder's name says train, dev or test", folder)
        else:
            parts[folder] = DataDir(folder, split, folder_language(names))
    if not parts:
        raise UserError(f"corpus={corpus}: no Kaldi data directory in it; expected {EXPECTED}")

    def group(folder):
        return folder.parent, parts[folder].split, parts[folder].language

    return [parts[folder] for folder in without_variants(parts, group, lambda folder: folder.name.lower() in SPLITS, log)]


def folder_language(names: Sequence[str]) -> str | None:
    """Code of the language that folder names say: the last known one, else a name above the last, as it is; or None."""
    said = [re.split(r"[\W_\d]+", name.lower()) for name in names]
    known = [language_code("-".join(word for word in words if word not in SPLITS)) for words in said]
    others = [name.lower() for name, words in zip(names[:-1], said, strict=False) if not {*words} & {*SPLITS, *GENERIC}]
    return next((code for code in reversed(known) if code), others[-1] if others else None)


def _language(utterance, part, languages):
    language = utterance_language(utterance.language, part.language, languages)
    if language is None:
        raise UserError(
            f"{part.path}: neither utt2lang nor a folder's name says which language it is; add utt2lang, or say it: "
            "languages=[hi]"
        )
    return language
