"""A corpus of manifests, as toolkits read them, each recognised by its first entries:

    cuts     lhotse cuts (*.jsonl, *.jsonl.gz, *.json), recordings and supervisions inside, each a recording's channel
    lines    JSON lines of NeMo and AI4Bharat: {"audio_filepath": "a.wav", "duration": 2.5, "text": "...", "lang": "hi"},
             offset where an utterance is part of a file, speaker; also keys of others (FIELDS in manifest_lines.py)
    tables   *.tsv and *.csv with a header line that names such keys

    train_manifest.json, dev_manifest.json, test_manifest.json          a set each
    hi/train.json, ta_test_cuts.jsonl.gz, ...                            with languages, in folders or names
    corpus.json                                                         alone: test and dev are held out

The corpus is one manifest, or a folder with manifests up to three levels down. The set is what lines say (split), else the
name of the file or a folder; where nothing says any, all is for training. Where a language has no test set, 10 % of its
training utterances (at most 500) are held out as one, by speakers or by texts (local/splits.py); so is dev. The language is
what lines say (lang, language), else the name of the file or a folder, else languages=[...] of one. Of manifests beside
each other, one that is just `train` stands for its variants (train_small).

Audio is named absolutely or from the manifest's folder. What is no plain file of one channel (commands, transforms, a channel
of several) is copied as 16-bit WAV to out/audio. Checks and manifests: local/indic/transcribed.py.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from local.indic.languages import language_code
from local.indic.lengths import NO_LIMIT, LengthLimit
from local.indic.manifest_lines import SUFFIXES, Found, Manifest, probe, read_manifest
from local.indic.mucs import DEV_SHARE, GENERIC, SPLITS, name_words, split_of
from local.indic.sets import is_hidden, of_languages, with_distinct_ids, without_variants
from local.indic.transcribed import write_corpus
from local.splits import hold_out
from pyspeech.commands.terminal import some
from pyspeech.data.cut_files import copy_recording
from pyspeech.data.manifests import Utterance
from pyspeech.data.problems import report_problems
from pyspeech.engine.parts import Parts, file_state, in_parts
from pyspeech.errors import UserError
from pyspeech.text.tags import DEFAULT_TAGS

EXPECTED = (
    "lhotse cuts, JSON lines with audio_filepath and text, or tables with such a header, whose names say train and test; "
    "of recordings and supervisions, `lhotse cut simple` makes cuts"
)
LEVELS = ("*", "*/*", "*/*/*", "*/*/*/*")
PLAIN = GENERIC | {"manifest", "manifests", "cuts", "cut", "nemo", "lhotse", "json", "all"}  # words that tell no variant


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
    """Check the manifests of a corpus and write out/{train,dev,test}.jsonl.gz.

    corpus: a manifest, or a folder. languages: codes (hi-IN) or names of those to take, all where empty; one alone is that of
    utterances of which nothing says any. tags, problems, limit, and what is returned and raised, as
    `local.indic.transcribed.write_corpus`. Lines that are no use are problems, too. Ids are those of the manifests, else the
    names of audio files; where two manifests have one of the same, all begin with language and set (`with_distinct_ids`).
    """
    corpus, out = Path(corpus), Path(out).resolve()
    found, sets, name = Found(), {}, f"corpus={corpus}"
    for manifest in find_manifests(corpus, log):
        before = len(found.utterances)
        read_manifest(manifest, languages, out / "audio", limit, found)
        sets[manifest.path] = found.utterances[before:]
        log.info("%s: %d utterances in %s", manifest.split or "all sets", len(sets[manifest.path]), manifest.path)
    if found.silent:
        log.warning("%s: %d cuts without a supervision are left out", name, found.silent)
    failed = _failed_copies(found, log, parts)
    sets = {path: [one for one in several if one.audio not in failed] for path, several in sets.items()}
    if not any(sets.values()):
        report_problems(name, out, found.problems, len(found.problems), False, log)
    utterances = with_tests(with_distinct_ids(sets, "manifests", log), log)
    utterances = of_languages(utterances, languages, name, log, EXPECTED)
    return write_corpus(utterances, out, log, name, skip_bad, found.problems, DEV_SHARE, parts, tags, limit)


def find_manifests(corpus: Path, log: logging.Logger) -> list[Manifest]:
    """The Manifests of a corpus, sorted by path; UserError where there is none."""
    if not corpus.exists():
        raise UserError(f"corpus={corpus}: no such file or folder; expected {EXPECTED}")
    paths = [corpus]
    if corpus.is_dir():
        candidates = sorted(path for level in LEVELS for path in corpus.glob(level) if path.name.endswith(SUFFIXES))
        paths = [path for path in candidates if path.is_file() and not is_hidden(path.relative_to(corpus))]
    root = corpus if corpus.is_dir() else corpus.parent
    manifests, others, told = {}, [], {}
    for path in paths:
        kind = probe(path)
        if kind is None:
            others.append(str(path))
        else:
            names = (*path.relative_to(root).parts[:-1], _stem(path))
            manifests[path] = Manifest(path, kind[0], split_of(names), named_language((root.resolve().name, *names)))
            told[path] = kind[1]
    if not manifests:
        there = f" ({some(others)}: neither cuts nor lines with audio and text)" if others else ""
        raise UserError(f"corpus={corpus}: no manifest{there}; expected {EXPECTED}")
    if others:
        log.warning("not used, as they are neither cuts nor lines with audio and text: %s", some(others))
    return _used(manifests, told, log)


def _used(manifests, told, log):
    """The manifests that are not variants of others, and that say what set they are, where any does."""
    said = [path for path, one in manifests.items() if told[path] or one.split]
    for path in manifests.keys() - set(said) if said else ():
        log.warning("%s: not used, as neither its name nor a folder's says train, dev or test", path)

    def group(path):
        return path.parent, manifests[path].split, manifests[path].language

    def plain(path):
        words = set(name_words(_stem(path))) - PLAIN - set(SPLITS)
        return all(language_code(word) for word in words)

    return [manifests[path] for path in without_variants(said or manifests, group, plain, log)]


def _stem(path):
    return path.name[: -max(len(suffix) for suffix in SUFFIXES if path.name.endswith(suffix))]


def named_language(names: Sequence[str]) -> str | None:
    """Code of the known language that the last of some names says, as a whole or in a word of it; None where none does."""
    for name in reversed(names):
        words = [word for word in name_words(name) if word not in SPLITS and word not in PLAIN]
        known = language_code("-".join(words)) or next(filter(None, map(language_code, reversed(words))), None)
        if known:
            return known
    return None


def _failed_copies(found, log, parts):
    """Copy recordings; the paths of copies that cannot be made, each a problem of its own."""
    if found.copies:
        log.info("%d recordings are copied: commands, transforms, or a channel of several", len(found.copies))

    def copy(item):
        target, cut = item
        try:
            copy_recording(cut, target)
        except UserError as error:
            Path(target).unlink(missing_ok=True)  # an earlier one, so that a resumed stage tries again
            return str(error)
        return ""

    named = {Path(target).stem: (target, cut) for target, cut in found.copies.items()}
    made = in_parts(parts, "copies of recordings", copy, named, inputs=_inputs, files=_files, log=log)
    found.problems += [(f"recording {named[name][1].recording.id}", problem) for name, problem in made.items() if problem]
    return {named[name][0] for name, problem in made.items() if problem}


def _inputs(item):
    """Of a copy: its path, which says its recording, and the state of the files that this is in."""
    target, cut = item
    return target, [file_state(source.source) for source in cut.recording.sources if source.type == "file"]


def _files(item):
    return [Path(item[0])]


def with_tests(utterances: Sequence[Utterance], log: logging.Logger) -> list[Utterance]:
    """The utterances, some of training held out as a test set in languages without one."""
    lacking = {one.language for one in utterances} - {one.language for one in utterances if one.split == "test"}
    held = hold_out([one for one in utterances if one.language in lacking], DEV_SHARE, "test")
    if lacking:
        by_set = defaultdict(list)
        for one in held:
            by_set[one.split].append((one.language, one.speaker))
        heard = set(by_set["test"]) & set(by_set["train"])
        whose = (
            f"speakers that training has, in {', '.join(sorted({code for code, _ in heard}))}" if heard else "other speakers"
        )
        named = ", ".join(sorted(lacking))
        log.warning("no test set of %s: %d utterances are held out as one, of %s", named, len(by_set["test"]), whose)
    return [*held, *(one for one in utterances if one.language not in lacking)]
