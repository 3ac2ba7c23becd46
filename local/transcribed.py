"""Corpora of transcribed utterances: the checks and the manifests that all of them share.

A module of one corpus lists its utterances and calls `write_corpus`, which checks every audio file and transcript and
writes folder/{train,dev,test}.jsonl.gz: Lhotse CutSets, one cut an utterance and one supervision in it, with the text
as the corpus has it (pyspeech/text/normalize.py is applied where texts are used), the language's code, and the speaker
where the corpus tells. Audio stays where it is, at its own sampling rate; files with several channels, and formats that
are not commonly read, are mixed to mono WAV files in folder/mixed.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pyspeech.audio.io import stream_audio
from pyspeech.errors import UserError
from pyspeech.files import atomic_path, atomic_write
from pyspeech.text.normalize import normalize

SETS = ("train", "dev", "test")
READABLE = ("WAV", "WAVEX", "FLAC", "OGG", "MP3", "MPEG")
SHORTEST = 0.1  # seconds: less holds no word
FASTEST = 40  # characters per second: nobody speaks as fast
LOWEST_RATE = 4000  # Hz: less holds no speech that could be understood
TOLERATED, TOLERATED_SHARE = 10, 0.05
SHOWN = 20
SENTENCE_WORDS = 3  # texts of as many words on average are sentences


@dataclass(frozen=True)
class Utterance:
    """One transcribed audio file. id: unique in its corpus; text: as the corpus has it; split: train, dev or test;
    custom: what else its supervision says, a dict."""

    id: str
    audio: str
    text: str
    language: str
    speaker: str | None = None
    split: str = "train"
    custom: dict | None = field(default=None, hash=False)


def write_corpus(utterances, folder, log, name="corpus", skip_bad=False, problems=(), dev_share=0.0):
    """Check utterances and write the manifests of those that are good, in the order of language and id.

    name: what messages call the corpus. problems: [(file or utterance, what is wrong), ...] found so far. Problem
    utterances are left out and listed, in the log and in folder/problems.txt, as long as they are isolated: at most
    10 or 5 % of all. More stop the preparation, unless skip_bad; without a training and a test utterance it always
    stops. dev_share: of the training utterances that are good, to be held out as dev in languages without dev
    utterances. Returns {language: {set: number of utterances}}.
    """
    folder = Path(folder).resolve()
    utterances = sorted(utterances, key=lambda utterance: (utterance.language, utterance.id))
    _check_splits(utterances)
    shutil.rmtree(folder / "mixed", ignore_errors=True)
    log.info("checking the audio of %d utterances", len(utterances))
    good, found = check_utterances(utterances)
    report_problems(name, folder, [*problems, *found], len(good) + len(found) + len(problems), skip_bad, log)
    _check_languages(name, utterances, good, log)
    _remark_rates(good, log)
    if dev_share:
        good = _with_dev(good, dev_share)
    good = [(utterance, *readable_copy(utterance, properties, folder, log)) for utterance, properties in good]
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


def hold_out(utterances, share, split="dev", limit=500, seed=0):
    """The utterances, with about a `share` of each language's training utterances moved into another split.

    Which ones depends on their ids or texts and the seed alone, not on their order or on the other languages. Sentences
    are moved with all utterances of the same text, so that no text is on both sides; where the texts are words (fewer
    than 3 words on average, as with digits) or too few for that, each utterance is moved by itself. At most `limit`
    utterances a language, and never all.
    """
    train = [utterance for utterance in utterances if utterance.split == "train"]
    moved = set()
    for language in {utterance.language for utterance in train}:
        moved |= _chosen([utterance for utterance in train if utterance.language == language], share, limit, seed)
    return [replace(utterance, split=split) if utterance.id in moved else utterance for utterance in utterances]


def _chosen(utterances, share, limit, seed):
    wanted = min(max(1, round(share * len(utterances))), limit, len(utterances) - 1)
    by_text, by_id = defaultdict(list), {utterance.id: [utterance.id] for utterance in utterances}
    for utterance in utterances:
        by_text[normalize(utterance.text, utterance.language)].append(utterance.id)
    sentences = sum(len(text.split()) for text in by_text) >= SENTENCE_WORDS * len(by_text)
    return (_draw(by_text, wanted, seed) if sentences else set()) or _draw(by_id, wanted, seed)


def _draw(groups, wanted, seed):
    """Ids of at most `wanted` utterances in whole groups, by a hash of the groups' names."""
    drawn = set()
    for key in sorted(groups, key=lambda key: hashlib.md5(f"{seed} {key}".encode()).digest()):
        if len(drawn) + len(groups[key]) <= wanted:
            drawn |= set(groups[key])
    return drawn


# Checks


def check_utterances(utterances):
    """([(utterance, audio properties of local.fearless.check_audio), ...], [(utterance, what is wrong), ...])."""
    from tqdm import tqdm

    counts = Counter(utterance.id for utterance in utterances)
    good, problems = [], []
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        checks = pool.map(_check, utterances)
        for utterance, (properties, problem) in tqdm(zip(utterances, checks), "check", len(utterances), disable=None):
            if counts[utterance.id] > 1:
                problem = f"{counts[utterance.id]} utterances have the id {utterance.id}"
            if problem:
                problems.append((utterance.audio, problem))
            else:
                good.append((utterance, properties))
    return good, problems


def _check(utterance):
    """(audio properties, None) or (None, what is wrong) of one utterance."""
    characters = len(normalize(utterance.text, utterance.language))
    if not characters:
        return None, f"its transcript {utterance.text.strip()!r} has no word"
    properties, problem = check_file(utterance.audio)
    if properties and characters > FASTEST * properties["duration"]:
        return None, (
            f"a transcript of {characters} characters for {properties['duration']:.2f} s of audio; expected "
            f"at most {FASTEST} a second"
        )
    return properties, problem


def check_file(path):
    """(audio properties of local.fearless.check_audio, None) or (None, what is wrong) of one audio file."""
    from local.fearless import check_audio

    path = Path(path)
    if printable(path) != str(path):
        return None, "its name is not UTF-8; rename it"
    if not path.is_file():
        return None, "no such audio file"
    if path.stat().st_size == 0:
        return None, "the audio file is empty (0 bytes)"
    try:
        properties = check_audio(path)
    except UserError as error:
        return None, str(error).removeprefix(str(path)).lstrip(": ")
    if properties["duration"] < SHORTEST:
        return None, f"only {properties['duration']:.3f} s of audio"
    if properties["rate"] < LOWEST_RATE:
        return None, f"a sampling rate of {properties['rate']} Hz; expected at least {LOWEST_RATE}"
    return properties, None


def printable(path):
    """A path, or text with one in it, whose bytes that are not UTF-8 are written as \\xe9."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _check_splits(utterances):
    for utterance in utterances:
        if utterance.split not in SETS:
            raise UserError(f"utterance {utterance.id}: split '{utterance.split}'; expected {', '.join(SETS)}")


def report_problems(name, folder, problems, total, skip_bad, log):
    """List problems in the log and in folder/problems.txt; UserError where they are more than isolated ones."""
    listing = Path(folder) / "problems.txt"
    if not problems:
        listing.unlink(missing_ok=True)
        return
    lines = [printable(f"{place}: {problem}") for place, problem in problems]
    with atomic_write(listing) as stream:
        stream.write("\n".join(lines) + "\n")
    shown = "\n".join("  " + line for line in lines[:SHOWN])
    more = f"\n  ... all in {listing}" if len(lines) > SHOWN else ""
    if skip_bad or len(lines) <= TOLERATED and 2 * len(lines) <= total or len(lines) <= TOLERATED_SHARE * total:
        log.warning(
            "%s: left out %d of %d utterances that have problems (list: %s)\n%s%s",
            name,
            len(lines),
            total,
            listing,
            shown,
            more,
        )
        return
    raise UserError(
        f"{name}: {len(lines)} of {total} utterances have problems (list: {listing}); mend them, or "
        f"skip_bad=true leaves them out\n{shown}{more}"
    )


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


# Writing


def readable_copy(utterance, properties, folder, log):
    """(path, properties) of the utterance's audio, or of a mono WAV copy of it."""
    if properties["channels"] == 1 and properties["format"] in READABLE:
        return os.path.abspath(utterance.audio), properties
    import soundfile

    target = folder / "mixed" / utterance.language / f"{safe_name(utterance.id)}.wav"
    with atomic_path(target) as temporary:
        with soundfile.SoundFile(str(temporary), "w", properties["rate"], 1, "PCM_16", format="WAV") as stream:
            for block in stream_audio(utterance.audio, properties["rate"]):
                stream.write(np.clip(block, -1.0, 1.0))
    log.info(
        "%s: %d channel(s), %s: mixed and copied to %s", utterance.audio, properties["channels"], properties["format"], target
    )
    return str(target), soundfile.info(str(target)).__dict__ | {"rate": properties["rate"]}


def safe_name(name):
    """A name that a file can have; other ones for other names."""
    safe = re.sub(r"[^\w.+-]+", "_", name).strip(".")
    return safe if safe == name else f"{safe}-{hashlib.md5(name.encode()).hexdigest()[:8]}"


def write_manifest(path, rows):
    """Write a CutSet, without the time of day in it, so that the same corpus gives the same bytes; none for no rows."""
    if not rows:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
        for utterance, audio, properties in rows:
            line = json.dumps(_cut(utterance, audio, properties).to_dict(), ensure_ascii=False)
            stream.write((line + "\n").encode("utf-8"))


def _cut(utterance, audio, properties):
    from lhotse import AudioSource, MonoCut, Recording, SupervisionSegment

    frames = round(properties["duration"] * properties["rate"])
    recording = Recording(
        id=utterance.id,
        sources=[AudioSource(type="file", channels=[0], source=audio)],
        sampling_rate=properties["rate"],
        num_samples=frames,
        duration=frames / properties["rate"],
    )
    supervision = SupervisionSegment(
        id=utterance.id,
        recording_id=utterance.id,
        start=0.0,
        duration=recording.duration,
        channel=0,
        text=utterance.text,
        language=utterance.language,
        speaker=utterance.speaker,
        custom=utterance.custom,
    )
    return MonoCut(
        id=utterance.id, start=0.0, duration=recording.duration, channel=0, recording=recording, supervisions=[supervision]
    )


# Languages


def choose_codes(there, wanted, name):
    """Those of the codes `there` that are wanted (codes or names of languages), all where `wanted` is empty; UserError,
    in which the corpus is called `name`, for one that is not there."""
    wanted = [language_code(language) or language for language in wanted]
    absent = [language for language in wanted if language not in there]
    if absent:
        raise UserError(f"{name}: languages: there is no {', '.join(absent)}; there are {', '.join(there)}")
    return [language for language in there if language in wanted or not wanted]


NAMES = {
    "assamese": "as",
    "bengali": "bn",
    "bangla": "bn",
    "bodo": "brx",
    "dogri": "doi",
    "english": "en",
    "gujarati": "gu",
    "hindi": "hi",
    "kannada": "kn",
    "kashmiri": "ks",
    "konkani": "kok",
    "maithili": "mai",
    "malayalam": "ml",
    "manipuri": "mni",
    "marathi": "mr",
    "nepali": "ne",
    "odia": "or",
    "oriya": "or",
    "panjabi": "pa",
    "punjabi": "pa",
    "sanskrit": "sa",
    "santali": "sat",
    "sindhi": "sd",
    "tamil": "ta",
    "telugu": "te",
    "urdu": "ur",
}
ELSEWHERE = {
    "arabic": "ar",
    "bulgarian": "bg",
    "catalan": "ca",
    "chinese": "zh",
    "czech": "cs",
    "danish": "da",
    "dutch": "nl",
    "farsi": "fa",
    "finnish": "fi",
    "french": "fr",
    "german": "de",
    "greek": "el",
    "hebrew": "he",
    "hungarian": "hu",
    "indonesian": "id",
    "italian": "it",
    "japanese": "ja",
    "korean": "ko",
    "mandarin": "zh",
    "norwegian": "no",
    "persian": "fa",
    "polish": "pl",
    "portuguese": "pt",
    "romanian": "ro",
    "russian": "ru",
    "spanish": "es",
    "swahili": "sw",
    "swedish": "sv",
    "thai": "th",
    "turkish": "tr",
    "ukrainian": "uk",
    "vietnamese": "vi",
}
INDIAN = set(NAMES.values())


def language_code(name):
    """The code that a folder's name or an option stands for; None where it names no language.

    "Gujarati", "gu", "gu-in" and "GU_IN" are gu-IN; languages of India (English among them) get the region IN where
    none is given, others get none.
    """
    words = [word for word in re.split(r"[^a-z]+", name.lower()) if word]
    for word in words:
        if word in NAMES:
            return f"{NAMES[word]}-IN"
        if word in ELSEWHERE:
            return ELSEWHERE[word]
    if not words or words[0] not in INDIAN | set(ELSEWHERE.values()):
        return None
    if len(words) == 1:
        return f"{words[0]}-IN" if words[0] in INDIAN else words[0]
    return f"{words[0]}-{words[1].upper()}" if len(words) == 2 and len(words[1]) == 2 else None
