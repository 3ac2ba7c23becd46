"""ZeroSpeech 2019, "TTS without T" (track 2019 of ZeroSpeech 2020): the layout as distributed to Lhotse manifests.

https://download.zerospeech.com (registration): english (development) and surprise (Indonesian), 16 kHz mono WAV, each

    english/train/unit/S015_0361841101.wav              unit discovery: many speakers
    english/train/voice/V001_0000000047.wav             the voices to speak with (two in English, one in Indonesian)
    english/train/parallel/{source,voice}/*.wav         the same sentences by both; optional, not used here, as in the paper
    english/test/S002_0379088085.wav                    sentences, and snippets of single triphones, from 0.095 s on
    english/synthesis.txt                               `S002_0379088085 V002`: test sentences and the voice for each

That tree, the speaker before the first underscore, and the lists' lines are certain: the challenge's evaluation and
several published systems read them. Its bitrate_filelist.txt (`S002_0379088085.txt 4.891375`) came with the evaluation
program, in share/2019/english. Its ABX task is compiled, 2019/ABXTasks/byCtxt_acSpkr.abx, for English alone
(pyspeech/units/abx_task.py reads it); an .item file, wherever one lies, does as well. vads.txt, the times of speech in
each file, is not used.

Nothing depends on more than the folders' names, unit, voice, parallel and test, in upper or lower case: they are found
wherever they lie, with train above them or without; what is above that is the language's name; lists and .item files
are taken from the language's folder, or from elsewhere in the corpus unless a folder there names another language.

Checked are the audio (pyspeech/data/audio_checks.py) and each line of the lists; written are {unit,voice,test}.jsonl.gz and the
lists (local/zerospeech/lists.py).
"""

import contextlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from local.zerospeech.lists import write_alignment, write_bitrate_filelist, write_items, write_synthesis
from pyspeech.audio.headers import promised_frames
from pyspeech.data.audio_checks import check_audio, check_file, check_utterances
from pyspeech.data.audio_files import readable_copies
from pyspeech.data.manifests import Utterance, clear, write_manifest
from pyspeech.data.problems import report_problems
from pyspeech.engine.parts import Parts
from pyspeech.errors import UserError
from pyspeech.units.challenge import EXPECTED, SETS, Language, find_languages, list_sets
from pyspeech.units.submission import RATE, printable

DEVELOPMENT = "english"


def prepare(
    corpus: str | Path,
    out: str | Path,
    log: logging.Logger,
    *,
    language: str | None = None,
    skip_bad: bool = False,
    parts: Parts | None = None,
) -> dict[str, Any]:
    """Check one language of the corpus and write its manifests and lists into `out`.

    corpus: the folder of one language or any above it. language: name of its folder; None or "" takes the only one,
    or english. Written are {unit,voice,test}.jsonl.gz (Lhotse cuts, an utterance each, with its speaker),
    bitrate_filelist (with the durations of the corpus's own; all test utterances where it has none), and, where the
    corpus has them, abx.item, synthesis.txt (`utterance voice`) and alignment.ctm (phones, of alignment*.ctm).
    Audio with problems is named; isolated files are left out and listed in out/problems.txt, more stop unless
    skip_bad (`pyspeech.data.problems.report_problems`). Test utterances may be silent, or as short as one sample at
    16 kHz. Returns {"language", "unit", "voice", "test": numbers of utterances, "items": lines of abx.item}.
    UserError in one line for a corpus that cannot be used.
    """
    corpus, out = Path(corpus), Path(out).resolve()
    name, found = choose_language(find_languages(corpus), language, corpus, log)
    sets = list_sets(found, name)
    if not found.audio["voice"]:
        log.warning(
            "%s: no folder voice; the voices to speak with are %d speakers of the unit discovery set",
            found.folder,
            len({utterance.speaker for utterance in sets["voice"]}),
        )
    if found.audio["parallel"]:
        log.info("%s: %d parallel utterances are not used", found.folder, len(found.audio["parallel"]))
    good, problems, total = check_sets(sets, log, parts)
    report_problems(f"corpus={corpus}", out, problems, total, skip_bad, log)
    used = []
    for part in SETS:
        if not good[part]:
            raise UserError(f"corpus={corpus}: no usable {part} utterance in {found.folder}; see {out / 'problems.txt'}")
        rows = readable_copies(good[part], out / "mixed" / part, log, parts)
        used += [Path(path) for _, path, _ in rows]
        write_manifest(out / f"{part}.jsonl.gz", rows)
        _remark(part, good[part], log)
    clear(out, (), "mixed", keep=used)
    test = {utterance.id: properties["duration"] for utterance, properties in good["test"]}
    known = set(test) & {utterance.id for part in ("unit", "voice") for utterance, _ in good[part]}
    if known:
        log.warning("%d test utterances are trained on as well (%s, ...)", len(known), min(known))
    write_bitrate_filelist(found, out, test, log)
    write_synthesis(found, out, test, {utterance.speaker for utterance, _ in good["voice"]}, log)  # pyright: ignore[reportArgumentType]
    write_alignment(found, out, test, log)
    items = write_items(found, out, test, log)
    return {"language": name, **{part: len(good[part]) for part in SETS}, "items": items}


def choose_language(
    languages: Mapping[str, Language], wanted: str | None, corpus: Path, log: logging.Logger
) -> tuple[str, Language]:
    """(name, Language) of the wanted one; UserError where there is none or it lacks a set."""
    folded = {name.casefold(): name for name in languages}
    if wanted and wanted.casefold() not in folded:
        raise UserError(f"corpus={corpus}: language={wanted} is not there; there is {', '.join(languages)}")
    name = folded.get((wanted or DEVELOPMENT).casefold())
    if name is None:
        if len(languages) > 1:
            raise UserError(f"corpus={corpus}: several languages, {', '.join(languages)}; choose one with language=NAME")
        name = next(iter(languages))
    if not wanted and len(languages) > 1:
        log.info(
            "corpus=%s: taking %s; there is also %s (language=NAME)",
            corpus,
            name,
            ", ".join(other for other in languages if other != name),
        )
    found = languages[name]
    missing = [part for part in ("unit", "test") if not found.audio[part]]
    if missing:
        raise UserError(f"corpus={corpus}: no audio in a folder {' or '.join(missing)} of {found.folder}; expected {EXPECTED}")
    return name, found


def check_sets(
    sets: Mapping[str, Sequence[Utterance]], log: logging.Logger, parts: Parts | None
) -> tuple[dict[str, list[tuple[Utterance, dict[str, Any]]]], list[tuple[str, str]], int]:
    """({set: [(utterance, audio properties), ...]}, [(file, what is wrong), ...], number of files)."""
    everything = {(utterance.audio, utterance.split): utterance for utterances in sets.values() for utterance in utterances}
    counts = Counter((utterance.split, utterance.id) for utterance in everything.values())

    def check(utterance):
        if utterance.split == "test":
            properties, problem = check_file(utterance.audio, _check_test_audio, 0.0)
        else:
            properties, problem = check_file(utterance.audio)
        same = counts[utterance.split, utterance.id]
        return properties, problem or (f"{same} files of the name {utterance.id}" if same > 1 else None)

    good, problems = check_utterances(list(everything.values()), check, log, parts=parts)
    checked = {(utterance.audio, utterance.split): properties for utterance, properties in good}
    good = {
        part: [
            (utterance, checked[utterance.audio, utterance.split])
            for utterance in utterances
            if (utterance.audio, utterance.split) in checked
        ]
        for part, utterances in sets.items()
    }
    return good, [(printable(path), problem) for path, problem in problems], len(everything)


def _check_test_audio(path):
    """Properties of a test utterance, which may be silent, or as short as a sample; UserError as `check_audio`."""
    properties = _silence(path) or check_audio(path)
    if properties["duration"] < 1 / RATE:
        raise UserError(f"{path}: only {properties['duration']:.3f} s of audio, less than a sample at {RATE} Hz")
    return properties


def _silence(path):
    """Properties of a whole audio file all of whose samples are equal, which is no fault of a test utterance; or None."""
    import soundfile

    with contextlib.suppress(soundfile.LibsndfileError), soundfile.SoundFile(str(path)) as stream:
        if stream.frames > 60 * stream.samplerate:
            return None
        samples = stream.read(always_2d=True)
        if len(samples) and len(samples) >= promised_frames(stream, str(path)) and not np.ptp(samples, axis=0).any():
            return {
                "rate": stream.samplerate,
                "channels": stream.channels,
                "format": stream.format,
                "duration": len(samples) / stream.samplerate,
            }
    return None


def _remark(part, rows, log):
    speakers = {utterance.speaker for utterance, _ in rows}
    if len(speakers) == 1 and part == "unit":
        log.warning("unit: a single speaker, %s; expected many, named before the underscore as S015_0361841101 is", *speakers)
    rates = Counter(properties["rate"] for _, properties in rows)
    log.info(
        "%s: %d utterances of %d speakers, %.1f min, at %s",
        part,
        len(rows),
        len(speakers),
        sum(properties["duration"] for _, properties in rows) / 60,
        ", ".join(f"{rate} Hz" for rate in sorted(rates)),
    )
