"""Corpora of transcribed utterances: the checks and the manifests that all of them share.

A module of one corpus lists its utterances and calls `write_corpus`, which checks every audio file
(pyspeech/data/audio_checks.py) and transcript and writes folder/{train,dev,test}.jsonl.gz: Lhotse CutSets, one cut an utterance
and one supervision in it, with the text as the corpus has it but for tags (pyspeech/text/normalize.py is applied where
texts are used), the language's code, and the speaker where the corpus tells. Audio stays where it is, at its own sampling rate;
files with several channels, and formats that are not commonly read, are mixed to mono WAV files in folder/mixed.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from local.indic.lengths import NO_LIMIT, LengthLimit, limit_lengths
from local.splits import hold_out
from pyspeech.data.audio_checks import check_utterances, utterance_check
from pyspeech.data.audio_files import readable_copies
from pyspeech.data.manifests import Utterance, clear, length_of, write_manifest
from pyspeech.data.problems import report_problems
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.text.normalize import normalize
from pyspeech.text.tags import DEFAULT_TAGS, Tags, most

SETS = ("train", "dev", "test")
FASTEST = 40  # characters per second: nobody speaks as fast


def write_corpus(
    utterances: Iterable[Utterance],
    folder: Path | str,
    log: logging.Logger,
    name: str = "corpus",
    skip_bad: bool = False,
    problems: Sequence[tuple[Path | str, str]] = (),
    dev_share: float = 0.0,
    parts: Parts | None = None,
    tags: Sequence[str] = DEFAULT_TAGS,
    limit: LengthLimit = NO_LIMIT,
) -> dict[str, dict[str, int]]:
    """Check utterances and write the manifests of those that are good, in the order of language and id.

    name: what messages call the corpus. problems: [(file or utterance, what is wrong), ...] found so far. Problem
    utterances are left out and listed, in the log and in folder/problems.txt, as long as they are isolated: at most
    10 or 5 % of all. More stop the preparation, unless skip_bad; without a training and a test utterance it always
    stops. dev_share: of the training utterances that are good, to be held out as dev in languages without dev
    utterances. tags: of the texts, to be dropped (pyspeech/text/tags.py). limit: to the length of train and dev utterances.
    Returns {language: {set: number of utterances}}.
    """
    folder = Path(folder).resolve()
    utterances = sorted(utterances, key=lambda utterance: (utterance.language, utterance.id))
    _check_splits(utterances)
    utterances = without_tags(utterances, tags, log)
    good, found = check_utterances(utterances, _checker(utterances, Tags(tags)), log, parts=parts)
    report_problems(name, folder, [*problems, *found], len(good) + len(found) + len(problems), skip_bad, log)
    if dev_share:
        good = _with_dev(good, dev_share)
    good = limit_lengths(good, limit, name, folder, log, parts)  # pyright: ignore[reportArgumentType]
    _check_languages(name, utterances, good, log)
    _remark_rates(good, log)
    mixed, by_language = folder / "mixed", defaultdict(list)
    for utterance, properties in good:
        by_language[utterance.language].append((utterance, properties))  # pyright: ignore[reportOptionalMemberAccess]
    good = [row for language, rows in by_language.items() for row in readable_copies(rows, mixed / language, log, parts)]
    clear(folder, (), "mixed", keep=[Path(path) for _, path, _ in good])
    counts = defaultdict(dict)
    for split in SETS:
        chosen = [item for item in good if item[0].split == split]
        write_manifest(folder / f"{split}.jsonl.gz", chosen)
        for language, count in Counter(item[0].language for item in chosen).items():
            counts[language][split] = count
    return dict(counts)


def _with_dev(good, share):
    """The checked utterances, some moved to dev in languages without any."""
    have = {utterance.language for utterance, _ in good if utterance.split == "dev"}
    moved = {
        utterance.id: utterance
        for utterance in hold_out([utterance for utterance, _ in good if utterance.language not in have], share)
    }
    return [(moved.get(utterance.id, utterance), properties) for utterance, properties in good]


def without_tags(utterances: Iterable[Utterance], tags: Sequence[str], log: logging.Logger) -> list[Utterance]:
    """The utterances without the tags in their texts; where nothing else is in a text, it stays, for the checks to name."""
    marks, cleaned = Tags(tags), []
    for utterance in utterances:
        text = marks.drop(utterance.text)
        keeps = text == utterance.text or not normalize(text, utterance.language)
        cleaned.append(utterance if keeps else replace(utterance, text=text))
    if marks.dropped:
        log.info("tags in transcripts, dropped: %s", most(marks.dropped))
    if marks.left:
        log.warning("looks like tags, taken for words: %s; add to tags= what is not said", most(marks.left))
    return cleaned


# Checks


def _checker(utterances, tags):
    """utterance -> (audio properties, None) or (None, what is wrong), for `check_utterances`."""
    counts = Counter(utterance.id for utterance in utterances)
    check_audio = utterance_check()

    def check(utterance):
        if counts[utterance.id] > 1:
            return None, f"{counts[utterance.id]} utterances have the id {utterance.id}"
        characters = len(normalize(tags.drop(utterance.text), utterance.language))
        if not characters:
            return None, f"its transcript {utterance.text.strip()!r} has no word"
        properties, problem = check_audio(utterance)
        seconds = length_of(utterance, properties["duration"]) if properties else 0.0
        if properties and characters > FASTEST * seconds:
            return None, (
                f"a transcript of {characters} characters for {seconds:.2f} s of audio; expected at most {FASTEST} a second"
            )
        return properties, problem

    return check


def _check_splits(utterances):
    for utterance in utterances:
        if utterance.split not in SETS:
            raise UserError(f"utterance {utterance.id}: split '{utterance.split}'; expected {', '.join(SETS)}")


def _check_languages(name, utterances, good, log):
    """Warn of languages that have no good utterance to train or test with; UserError where none has one."""
    languages = sorted({utterance.language for utterance in utterances})
    for split, purpose in (("train", "training"), ("test", "test")):
        there = {utterance.language for utterance, _ in good if utterance.split == split}
        if not there:
            raise UserError(f"{name}: no usable {purpose} utterance in any language ({', '.join(languages) or 'none'})")
        if len(there) < len(languages):
            log.warning(
                "%s: no usable %s utterance in %s",
                name,
                purpose,
                ", ".join(language for language in languages if language not in there),
            )


def _remark_rates(good, log):
    rates = defaultdict(Counter)
    for utterance, properties in good:
        rates[utterance.language][properties["rate"]] += 1
    for language, counts in rates.items():
        log.info(
            "%s: sampling rates %s", language, ", ".join(f"{rate} Hz ({count} files)" for rate, count in sorted(counts.items()))
        )
