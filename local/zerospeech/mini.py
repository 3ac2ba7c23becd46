"""A small corpus of real voices for egs/zerospeech: two people who speak Czech, two who speak Dutch, in a game.

The dialogues of the two fish of "Fish Fillets" (Debian packages fillets-ng-data-cs and -nl; texts in the scripts of
fillets-ng-data; GPL-2). Speakers are named as in the track of 2019: V001 and V002 are the small and the big fish in
Czech, V003 and V004 in Dutch. Texts are in the manifests for scoring alone.

    wavs/<speaker>_<level>_<id>.flac   16 kHz
    unit.jsonl.gz      unit discovery: all training utterances
    voice.jsonl.gz     the voices to speak with: the same, as each voice is a target
    test.jsonl.gz      utterances whose texts are in no training set; a sentence that both voices say is never in both
    abx.item           triphones of the test utterances, "#file onset offset #phone prev-phone next-phone speaker"
    bitrate_filelist   names of the test utterances
    alignment.ctm      the phones of all utterances, "name 1 start duration phone", seconds

Clips are left out as in `local.voices.usable_clips` (texts with digits or signs; under 0.4 s, over 12 s; characters per
second not within 0.5 to 1.8 of the voice's median), and where eSpeak NG reads a part of the text as another language.

The times of phones are made here: phonemes of the text by eSpeak NG, aligned by monophone models that are trained on
all clips of the language, test included (pyspeech.units.alignment). On eSpeak NG's own Czech speech, whose times are
known, half of the boundaries are within 10 ms. An item is a phone with both its neighbours, without a pause between
them; kept are triphones that every voice of the language has, in contexts that have two of them or more.

Limits: an automatic alignment with the dictionary's pronunciation, not the speaker's; two voices a language, so that
"across speakers" is one pair of them; acted dialogue, with shouting and laughing in places. The Czech voices are far
apart, further than most men and women: the small fish has twice the pitch of the big one, and its spectrum fits best
when it is compressed by about 1.4; so errors of ABX across speakers are high for all features, MFCC among them. Czech
is band-limited to 7.3 kHz, Dutch to 2.6 kHz. Dutch is spoken fast, about four in ten of its aligned phones are as short
as the models allow, texts often do not fit and few items are left: take Dutch as speech to discover units in, and its
ABX for no measure. All test speakers are training speakers.
"""

import logging
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from local import voices
from local.splits import share_of, share_of_words
from local.synthesis.espeak import phonemes
from local.zerospeech.lists import ITEM_HEADER
from pyspeech.data.audio_files import write_audio
from pyspeech.data.manifests import Utterance, clear, write_manifest
from pyspeech.engine.parts import Parts, in_parts
from pyspeech.errors import UserError
from pyspeech.fetch.download import fetch_debian
from pyspeech.fetch.unpack import unpack
from pyspeech.files import atomic_write

RATE = 16000
TASK = 50  # clips that a process converts at a time
SETS = ("unit", "voice", "test")
# language -> voices, with their names as speakers
SPEAKERS = {
    "cs": {"fillets-cs-small": "V001", "fillets-cs-big": "V002"},
    "nl": {"fillets-nl-small": "V003", "fillets-nl-big": "V004"},
}
BANDS = {"cs": 16000, "nl": 6000}  # sampling rate for the alignment: above half of it there is only noise
HELD_OUT = 0.35  # share of the texts that are tested on
MOST_TOKENS = 8  # of a triphone and speaker in abx.item
LONGEST_ITEM = 1.0  # seconds
MOST_SHORTEST = 0.5  # share of an utterance's phones as short as the models allow: more is no alignment
_DIALOG = re.compile(
    r'dialogId\("([^"]+)",\s*"([^"]*)",\s*"(?:[^"\\]|\\.)*"\)\s*'
    r'(?:--[^\n]*\s*)*dialogStr\("((?:[^"\\]|\\.)*)"\)'
)


def prepare(
    out: str | Path,
    log: logging.Logger,
    *,
    scale: float = 1.0,
    languages: Sequence[str] = ("cs",),
    jobs: int | None = None,
    clips: dict | None = None,
    where: Any = None,
    parts: Parts | None = None,
) -> dict[str, int]:
    """Make the corpus in the folder `out`: the files listed on top; manifests are written when all else is there.

    scale: share of the training clips, at most 1; of the test clips it is the square root, for ABX needs pairs.
    languages: of "cs", "nl"; with both, the phones of abx.item begin with "cs:" or "nl:", so that none are compared
    across languages. jobs: processes, by default the cores of the stage. clips: {voice: [(path, text)]}, default
    `find_clips()`, which downloads up to 142 MB into the cache once. where: as for `local.synthesis.espeak.synthesize`. A
    stage that was killed goes on with the clips that are missing (pyspeech.engine.parts). Returns {set: number of utterances,
    "items": lines of abx.item}; no such file where there is none. UserError where packages cannot be had, for an unknown
    language, and for a scale that leaves no utterance in a set.
    """
    out = Path(out).resolve()
    for language in languages:
        if language not in SPEAKERS:
            raise UserError(f"language '{language}'; expected some of {', '.join(SPEAKERS)}")
    clips = clips or find_clips(languages)
    rows, segments, items, chosen = [], {}, [], {}
    for language in languages:
        chosen[language] = choose(clips, language, scale, log, where)
        for split in ("train", "test"):
            if split not in {one.split for one in chosen[language][0]}:
                raise UserError(f"scale={scale}: no {split} utterance of {language} is left; expected a larger share")
    clear(out, SETS, "wavs", keep=[audio_path(out, one) for utterances, _ in chosen.values() for one in utterances])
    for language, (utterances, transcripts) in chosen.items():
        converted, features = convert(utterances, out, jobs, log, parts)
        found = align(converted, features, transcripts, log)
        tested = {one.id: one.speaker for one, _ in converted if one.split == "test"}
        prefix = f"{language}:" if len(languages) > 1 else ""
        items += triphone_items({name: found[name] for name in tested if found[name]}, tested, prefix)  # pyright: ignore[reportArgumentType]
        rows += converted
        segments.update(found)
    return _write(out, rows, segments, items, log)


def choose(
    clips: Mapping[str, Sequence[tuple[Path, str]]], language: str, scale: float, log: logging.Logger, where: Any = None
) -> tuple[list[Utterance], dict[str, Any]]:
    """(utterances of a language with the paths of the clips, {id: words as lists of phonemes})."""
    chosen = []
    for voice, speaker in SPEAKERS[language].items():
        usable = voices.usable_clips(clips[voice], language)
        log.info("%s, %s: %d of %d clips are usable", speaker, voice, len(usable), len(clips[voice]))
        for path, text in usable:
            split = split_of(text)
            if share_of(f"{voice} {path.parts[-3]} {path.name}") < (scale if split == "train" else math.sqrt(scale)):
                name = f"{speaker}_{path.parts[-3]}_{path.stem}"
                chosen.append(Utterance(name, str(path), text, language, speaker, split))
    words = dict(zip([one.id for one in chosen], phonemes([one.text for one in chosen], language, where), strict=True))
    return [one for one in chosen if words[one.id]], words


def split_of(text: str) -> str:
    """train or test, by the words of the text alone."""
    return "test" if share_of_words(text) < HELD_OUT else "train"


def audio_path(out: Path, one: Utterance) -> Path:
    return out / "wavs" / f"{one.id}.flac"


def convert(
    utterances: Sequence[Utterance], out: Path, jobs: int | None, log: logging.Logger, parts: Parts | None
) -> tuple[list[tuple[Utterance, dict[str, Any]]], dict[str, np.ndarray]]:
    """Write clips as mono 16-bit FLAC at 16 kHz: ([(utterance, audio properties)], {id: features (T, 39) float32})."""
    from pyspeech.features.config import MfccConfig
    from pyspeech.features.mfcc import compute_features

    def one_clip(one):
        samples = voices.load_clip(one.audio, RATE)
        write_audio(audio_path(out, one), samples, RATE)
        config = MfccConfig(sampling_rate=BANDS[one.language], normalise="none")
        return len(samples), compute_features(voices.load_clip(one.audio, config.sampling_rate), config).numpy()

    tasks = {utterances[start].id: utterances[start : start + TASK] for start in range(0, len(utterances), TASK)}
    found = in_parts(
        parts,
        "clips",
        lambda some: [one_clip(one) for one in some],
        tasks,
        jobs,
        files=lambda some: [audio_path(out, one) for one in some],
        log=log,
    )
    converted = list(zip(utterances, sum(found.values(), []), strict=True))
    rows = [(one, {"rate": RATE, "duration": length / RATE}) for one, (length, _) in converted]
    return rows, {one.id: features for one, (_, features) in converted}


def align(
    rows: Sequence[tuple[Utterance, dict[str, Any]]],
    features: Mapping[str, np.ndarray],
    transcripts: Mapping[str, Any],
    log: logging.Logger,
) -> dict[str, list[tuple[str, float, float]] | None]:
    """Phones with their times: {id: [(phone, start, end), ...] in seconds, or None where the text does not fit}."""
    from pyspeech.features.config import MfccConfig
    from pyspeech.units.alignment import SILENCE, STATES, Aligner

    config = MfccConfig()
    moments = {}
    for speaker in {one.speaker for one, _ in rows}:
        frames = np.concatenate([features[one.id] for one, _ in rows if one.speaker == speaker])
        moments[speaker] = frames.mean(axis=0), frames.std(axis=0) + 1e-6
    normalised = [(features[one.id] - moments[one.speaker][0]) / moments[one.speaker][1] for one, _ in rows]
    words = [transcripts[one.id] for one, _ in rows]
    found = Aligner.train(normalised, words, progress=log.info).align_all(normalised, words)
    # An edge between two frames lies half-way between the middles of their windows.
    later = (config.window_ms - config.shift_ms) / 2000.0
    times = {}
    for (one, audio), segments in zip(rows, found, strict=True):
        lengths = [end - first for phone, first, end in segments or [] if phone != SILENCE]
        if not lengths or np.mean(np.array(lengths) == STATES) > MOST_SHORTEST:
            log.info("%s: its text does not fit, no phones are taken from it", one.id)
            times[one.id] = None
            continue
        ends = [end * config.frame_seconds + later for _, _, end in segments[:-1]] + [audio["duration"]]  # pyright: ignore[reportOptionalSubscript]
        phones = [phone for phone, _, _ in segments or []]
        times[one.id] = list(zip(phones, [0.0, *ends[:-1]], ends, strict=True))
    return times


def triphone_items(
    segments: Mapping[str, Sequence[tuple[str, float, float]]],
    speakers: Mapping[str, str | None],
    prefix: str = "",
    most: int = MOST_TOKENS,
) -> list[tuple[str, float, float, str, str, str, str]]:
    """Rows of abx.item: sorted list of (file, onset, offset, phone, previous, next, speaker), times in seconds.

    segments: {file: [(phone, start, end), ...]}; speakers: {file: name}. Kept: triphones of all speakers, at most
    `most` of a speaker, in contexts with two such triphones or more.
    """
    from pyspeech.units.alignment import SILENCE

    tokens = defaultdict(lambda: defaultdict(list))  # (previous, phone, next) -> speaker -> items
    for name, phones in segments.items():
        for (before, onset, _), (phone, _, _), (after, _, offset) in zip(phones, phones[1:], phones[2:], strict=False):
            if SILENCE not in (before, phone, after) and offset - onset <= LONGEST_ITEM:
                tokens[before, phone, after][speakers[name]].append((name, onset, offset))
    everyone = set(speakers.values())
    shared = {key: own for key, own in tokens.items() if set(own) == everyone}
    contexts = defaultdict(int)
    for before, _, after in shared:
        contexts[before, after] += 1
    items = []
    for (before, phone, after), own in shared.items():
        if contexts[before, after] >= 2:
            for speaker, found in own.items():
                some = sorted(found, key=lambda item: share_of(f"{item[0]} {item[1]:.4f}"))[:most]
                items += [(*item, prefix + phone, prefix + before, prefix + after, speaker) for item in some]
    return sorted(items)


def _write(out, rows, segments, items, log):
    with atomic_write(out / "alignment.ctm") as stream:
        for name, phones in sorted(segments.items()):
            stream.writelines(f"{name} 1 {start:.4f} {end - start:.4f} {phone}\n" for phone, start, end in phones or ())
    (out / "abx.item").unlink(missing_ok=True)
    if items:
        with atomic_write(out / "abx.item") as stream:
            stream.write(ITEM_HEADER + "\n")
            stream.writelines(f"{name} {onset:.4f} {offset:.4f} {' '.join(rest)}\n" for name, onset, offset, *rest in items)
    else:
        log.warning("no phones in one context by all voices: there will be no ABX; a larger scale has more utterances")
    rows = sorted(rows, key=lambda row: row[0].id)
    parts = {
        part: [(one, str(audio_path(out, one)), audio) for one, audio in rows if (one.split == "test") == (part == "test")]
        for part in SETS
    }
    with atomic_write(out / "bitrate_filelist") as stream:
        stream.writelines(f"{one.id}\n" for one, _, _ in parts["test"])
    for part, chosen in parts.items():
        minutes = defaultdict(float)
        for one, _, audio in chosen:
            minutes[one.speaker] += audio["duration"] / 60.0
        log.info(
            "%s: %d utterances, minutes: %s",
            part,
            len(chosen),
            ", ".join(f"{speaker} {value:.1f}" for speaker, value in sorted(minutes.items())),
        )
        write_manifest(out / f"{part}.jsonl.gz", chosen)
    log.info("abx.item: %d items", len(items))
    return {**{part: len(chosen) for part, chosen in parts.items()}, "items": len(items)}


def find_clips(languages: Iterable[str]) -> dict[str, list[tuple[Path, str]]]:
    """{voice: [(path, text)]} of the packages, downloaded where they are not in the cache."""
    (archive,) = fetch_debian([voices.FILLETS_DATA]).values()
    found = {}
    for language in languages:
        texts = read_scripts(unpack(archive, [f"usr/share/games/fillets-ng/script/*_{language}.lua"]), language)
        for voice, (_, paths) in voices.fetch_clips(SPEAKERS[language]).items():
            font = f"font_{voice.rsplit('-', 1)[-1]}"
            clips = [(path, texts.get((_level(path), path.stem, font))) for path in paths]
            found[voice] = [(path, text) for path, text in clips if text]
    return found


def _level(path):
    """Folder of the script for sound/<level>/<language>/<id>.ogg and sound/share/<any>/<language>/<id>.ogg."""
    return "share" if path.parts[-4] == "share" else path.parts[-3]


def read_scripts(folder: Path, language: str) -> dict[tuple[str, str, str], str]:
    """{(level, id, font): text} of the dialogues in script/<level>/*_<language>.lua; font tells the character."""
    texts = {}
    for path in sorted(folder.rglob(f"*_{language}.lua")):
        for name, font, text in _DIALOG.findall(path.read_text(encoding="utf-8", errors="replace")):
            texts[path.parent.name, name, font] = re.sub(r"\\(.)", r"\1", text)
    return texts
