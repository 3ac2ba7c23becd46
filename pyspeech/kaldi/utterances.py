"""The utterances of a Kaldi data directory, with audio that can be read in pieces.

A relative path of wav.scp is taken from the present folder or one above the data directory. Its commands are run, as Kaldi
does, and what they print, as what archives hold, is kept as 16-bit WAV. It is made again each time: what a command prints
may have changed.
"""

import hashlib
import logging
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pyspeech.audio.io import read_audio
from pyspeech.audio.rxfilenames import extracted, file_of, is_command, is_extended
from pyspeech.data.audio_checks import check_file, wrong_length
from pyspeech.data.audio_files import READABLE, as_int16, copy_mono, safe_name, write_audio
from pyspeech.data.manifests import Segment, Utterance
from pyspeech.engine.parts import Parts, file_state, in_parts
from pyspeech.errors import UserError
from pyspeech.kaldi.reading import read_data_dir
from pyspeech.kaldi.rules import speaker_order

RECO2DUR = "reco2dur"  # which states lengths of recordings


class _Copy(NamedTuple):
    """What is to be a WAV file: an entry of wav.scp, the path of the WAV, and the Hz of a file of several channels or of an
    unusual format; None for a command or an archive. stated: its seconds, by reco2dur."""

    place: str
    target: Path
    rate: int | None
    stated: float | None


def read_utterances(
    folder: Path, audio: Path, log: logging.Logger, parts: Parts | None = None
) -> tuple[list[Utterance], list[tuple[str, str]]]:
    """([Utterance, ...], [(recording, what is wrong), ...]) of a data directory that keeps the rules.

    Languages are as utt2lang has them, and the set is train. audio: folder for WAV files of recordings that are no files
    which all can read a part of; parts: of a stage, which makes these once. Utterances of recordings with a problem are not
    among them.
    """
    warning = speaker_order(folder)
    if warning:
        log.warning("%s", warning)
    segmented = (folder / "segments").is_file()
    recordings = {}
    for one in read_data_dir(folder):
        recordings.setdefault(one.recording, one)
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        usable = pool.map(lambda one: _usable(one, folder, audio, segmented), recordings.values())
        found = dict(zip(recordings, usable, strict=True))
    found = _copied(found, log, parts)
    utterances = [
        Utterance(
            id=one.id,
            audio=found[one.recording][0],  # pyright: ignore[reportArgumentType]
            text=one.text,  # pyright: ignore[reportArgumentType]
            language=one.language,  # pyright: ignore[reportArgumentType]
            speaker=one.speaker,
            custom=one.custom,
            gender=one.gender,
            segment=Segment(one.recording, one.start, one.end) if segmented else None,  # pyright: ignore[reportArgumentType]
            stated=one.recording_stated if one.stated is None and not segmented else one.stated,
        )
        for one in read_data_dir(folder)
        if not found[one.recording][1]
    ]
    return utterances, [(f"{folder}/wav.scp, {name}", problem) for name, (_, problem) in found.items() if problem]


def _usable(one, folder, audio, segmented):
    """(path of the audio of a recording or its _Copy, what is wrong with it or None); one: its first KaldiUtterance."""
    source = hashlib.md5(f"{folder.resolve()} {one.audio}".encode()).hexdigest()[:8]
    target = audio / f"{safe_name(one.recording)}.{source}.wav"
    place = located(one.audio, folder)
    problem = None if segmented else wrong_length(one.stated, one.recording_stated, RECO2DUR)
    if problem:
        return None, f"{place}: utt2dur says {problem}"
    if is_extended(place):
        return _Copy(place, target, None, one.recording_stated), None
    if not segmented:
        return place, None  # whole files are looked at by who writes the manifest
    properties, problem = check_file(place)
    problem = problem or wrong_length(properties["duration"], one.recording_stated, RECO2DUR)  # pyright: ignore[reportOptionalSubscript]
    if problem:
        return None, f"{place}: {problem}"
    if properties["channels"] == 1 and properties["format"] in READABLE:  # pyright: ignore[reportOptionalSubscript]
        return place, None
    return _Copy(place, target, properties["rate"], None), None  # pyright: ignore[reportOptionalSubscript]


def _copied(found, log, parts):
    """`found`, {recording: what `_usable` says}, with the copies made, by all cores of the stage, and their paths in it."""
    copies = {one.target.stem: one for one, _ in found.values() if isinstance(one, _Copy)}
    problems = in_parts(parts, "recordings", _make, copies, inputs=_inputs, files=lambda copy: [copy.target], log=log)
    return {
        name: (str(one.target), problems[one.target.stem]) if isinstance(one, _Copy) else (one, problem)
        for name, (one, problem) in found.items()
    }


def _make(copy):
    """Write a copy; what is wrong with it, or None."""
    problem = None
    try:
        if copy.rate is None:
            problem = _extract(copy.place, copy.target, copy.stated)
        else:
            copy_mono(copy.place, copy.target, copy.rate)
    except UserError as error:
        problem = str(error)
    if problem:
        copy.target.unlink(missing_ok=True)  # an earlier one, so that a resumed stage tries again
    return problem


def _inputs(copy):
    """What a copy depends on. Of a command it is not known: what a killed stage has of it stays."""
    return copy, None if is_command(copy.place) else file_state(file_of(copy.place))


def _extract(place, target, stated):
    """Keep what a command puts out, or an archive holds, as 16-bit WAV; what is wrong with it, as it would be with a file."""
    with extracted(place) as copied:
        properties, problem = check_file(copied)
        problem = problem or wrong_length(properties["duration"], stated, RECO2DUR)  # pyright: ignore[reportOptionalSubscript]
        if problem:
            return f"{place}: {problem}"
        samples, rate = read_audio(copied)
        write_audio(target, as_int16(samples), rate)


def located(place: str, folder: Path) -> str:
    """Entry of wav.scp, with a relative path taken from the first of these folders that has it: the current one, the data
    directory, its parents."""
    match = re.fullmatch(r"(.*?)(:\d+)?", place, re.DOTALL)
    if place.endswith("|") or os.path.isabs(place) or match is None:
        return place
    for base in (Path(), folder, *folder.absolute().parents):
        if (base / match[1]).is_file():
            return str(base / match[1]) + (match[2] or "")
    return place
