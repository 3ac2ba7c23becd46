"""The utterances of a Kaldi data directory, with audio that can be read in pieces.

A relative path of wav.scp is taken from the present folder or one above the data directory. Its commands are run, as Kaldi
does, and what they print, as what archives hold, is kept as 16-bit WAV.
"""

import hashlib
import logging
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspeech.audio.io import read_audio
from pyspeech.audio.rxfilenames import extracted, is_extended
from pyspeech.data.audio_checks import check_file
from pyspeech.data.audio_files import READABLE, as_int16, copy_mono, safe_name, write_audio
from pyspeech.data.manifests import Segment, Utterance
from pyspeech.errors import UserError
from pyspeech.kaldi.reading import read_data_dir
from pyspeech.kaldi.rules import speaker_order


def read_utterances(folder: Path, audio: Path, log: logging.Logger) -> tuple[list[Utterance], list[tuple[str, str]]]:
    """([Utterance, ...], [(recording, what is wrong), ...]) of a data directory that keeps the rules.

    Languages are as utt2lang has them, and the set is train. audio: folder for WAV files of recordings that are no files
    which all can read a part of. Utterances of recordings with a problem are not among them.
    """
    warning = speaker_order(folder)
    if warning:
        log.warning("%s", warning)
    segmented = (folder / "segments").is_file()
    places = {one.recording: one.audio for one in read_data_dir(folder)}
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        usable = pool.map(lambda place: _usable(*place, folder, audio, segmented), places.items())  # pyright: ignore[reportCallIssue]
        found = dict(zip(places, usable, strict=True))
    utterances = [
        Utterance(
            id=one.id,
            audio=found[one.recording][0],
            text=one.text,  # pyright: ignore[reportArgumentType]
            language=one.language,  # pyright: ignore[reportArgumentType]
            speaker=one.speaker,
            custom=one.custom,
            gender=one.gender,
            segment=Segment(one.recording, one.start, one.end) if segmented else None,  # pyright: ignore[reportArgumentType]
            stated=one.stated,
        )
        for one in read_data_dir(folder)
        if not found[one.recording][1]
    ]
    return utterances, [(f"{folder}/wav.scp, {name}", problem) for name, (_, problem) in found.items() if problem]


def _usable(recording, place, folder, audio, segmented):
    """(path of a recording's audio, what is wrong with it or None)."""
    target = audio / f"{safe_name(recording)}.{hashlib.md5(f'{folder.resolve()} {place}'.encode()).hexdigest()[:8]}.wav"
    place = located(place, folder)
    if is_extended(place):
        try:
            return str(target), None if target.exists() else _extract(place, target)
        except UserError as error:
            return None, str(error)
    if not segmented:
        return place, None  # whole files are looked at by who writes the manifest
    properties, problem = check_file(place)
    if problem:
        return None, f"{place}: {problem}"
    if properties["channels"] == 1 and properties["format"] in READABLE:  # pyright: ignore[reportOptionalSubscript]
        return place, None
    if not target.exists():
        copy_mono(place, target, properties["rate"])  # pyright: ignore[reportOptionalSubscript]
    return str(target), None


def _extract(place, target):
    """Keep what a command puts out, or an archive holds, as 16-bit WAV; what is wrong with it, as it would be with a file."""
    with extracted(place) as copied:
        _, problem = check_file(copied)
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
