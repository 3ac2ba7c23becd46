"""Checks of audio files as they came: readable, whole, not silent, of sane samples, long enough, of a usable rate."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from pyspeech.audio.headers import mended_header, promised_frames, unclaimed_seconds
from pyspeech.audio.io import FFMPEG_SUFFIXES, SNDFILE_SUFFIXES, stream_audio
from pyspeech.audio.level import STEP
from pyspeech.audio.lhotse_audio import LhotseAudio
from pyspeech.audio.sources import UNKNOWN_LENGTH
from pyspeech.data.manifests import Utterance, length_of
from pyspeech.data.problems import printable
from pyspeech.engine.parts import Parts, file_state, fingerprint, in_parts
from pyspeech.errors import UserError

AUDIO_SUFFIXES = SNDFILE_SUFFIXES + FFMPEG_SUFFIXES
LOUDEST = 1e6  # samples beyond are damaged, whatever scale a file of floats has
SHORTEST = 0.1  # seconds: less holds no word
OVERSHOOT = 0.5  # seconds by which a segment may end after its recording, and ends with it: as Kaldi's extract-segments has it
NOT_UTF8 = "its name is not UTF-8; rename it (convmv -f latin1 -t utf8)"
BLOCK = 1 << 14  # frames that are read at a time: the first ones of most files tell that they are not silent
CHUNK, THREADS = 512, 8  # files that a process checks at a time, and by how many threads
LOWEST_RATE = 4000  # Hz: less holds no speech that could be understood
ESTIMATED = 4 * 1152  # samples by which the length of an MP3 without a Xing header, an estimate, may be too large


def check_audio(path: Path | str | LhotseAudio, loudest: float = LOUDEST) -> dict[str, Any]:
    """Properties of an audio file (rate, channels, duration, format); UserError for one that is no use.

    That is: not readable, empty, truncated (less in it than its header says), silent (all samples equal, or channels of
    which nothing is left when they are mixed), or of samples that are not finite or beyond `loudest`. The format of a
    FLAC file whose header does not say its length, as it was piped, says so; the file is read to its end.
    """
    import soundfile

    try:
        with soundfile.SoundFile(os.fsencode(path)) as stream:  # as bytes: a name need not be valid UTF-8  # pyright: ignore[reportArgumentType]
            properties = {"rate": stream.samplerate, "channels": stream.channels, "format": stream.format}
            if stream.frames >= UNKNOWN_LENGTH:
                blocks = (block[:, None] for block in stream_audio(path, stream.samplerate))
                frames = _check_samples(path, blocks, stream.channels, loudest, to_the_end=True)
                return {**properties, "duration": frames / stream.samplerate, "format": f"{stream.format} of unknown length"}
            if stream.frames and mended_header(stream, str(path)):
                raise UserError(
                    f"{path}: a WAV above 4 GiB whose header says {stream.frames / stream.samplerate:.2f} s, there is more; "
                    "write it as RF64 or FLAC"
                )
            promised = promised_frames(stream, str(path)) or stream.frames
            margin = ESTIMATED if stream.format in ("MP3", "MPEG") else 0
            frames = _frames(stream, path, margin)
            if not promised:
                raise UserError(f"{path}: holds no samples")
            if frames < promised - margin - stream.samplerate // 100:
                raise UserError(
                    f"{path}: truncated: its header says {promised / stream.samplerate:.2f} s, there are less; copy it again"
                )
            if more := unclaimed_seconds(stream, str(path)):
                raise UserError(
                    f"{path}: its header says {promised / stream.samplerate:.2f} s, but {more:.2f} s more follow; "
                    "write it again"
                )
            _check_samples(
                path, _rewound(stream, path), stream.channels, loudest, to_the_end=stream.subtype in ("FLOAT", "DOUBLE")
            )  # others are finite and at most about 1
            return {**properties, "duration": frames / stream.samplerate}
    except (soundfile.LibsndfileError, OSError) as error:
        raise UserError(f"{path}: cannot be read as audio: {getattr(error, 'error_string', error)}") from None


def _check_samples(path, blocks, channels, loudest, to_the_end):
    """The number of frames in blocks (n, channels, or 1 where they are mixed already), read until one is heard or to
    the end; UserError for silence and for samples that are not finite or beyond `loudest`."""
    frames, low, high = 0, np.inf, -np.inf
    least = 0 if channels == 1 else STEP
    for block in filter(len, blocks):
        largest = np.abs(block).max()  # pyright: ignore[reportArgumentType, reportCallIssue]
        if not largest <= loudest:
            raise UserError(
                f"{path}: has samples that are not finite or beyond {loudest:g} (such as {largest:g}); expected -1 to 1"
            )
        mixed = block.mean(axis=1)  # pyright: ignore[reportAttributeAccessIssue]
        frames, low, high = frames + len(block), min(low, mixed.min()), max(high, mixed.max())
        if high - low > least and not to_the_end:
            break
    if high - low <= least:
        raise UserError(
            f"{path}: silent: "
            + (
                f"all its samples are {low:g}"
                if channels == 1
                else "its channels hold nothing, or cancel each other when mixed"
            )
        )
    return frames


def _blocks(path):
    """Yield the samples of an audio file, (n, channels) at a time, as far as they can be decoded."""
    import soundfile

    with soundfile.SoundFile(os.fsencode(path)) as stream:  # pyright: ignore[reportArgumentType]
        with contextlib.suppress(soundfile.LibsndfileError):
            while len(block := stream.read(BLOCK, dtype="float32", always_2d=True)):
                yield block


def _rewound(stream, path):
    """The samples of `stream`, the file at `path`, from the start; it is opened again where its codec cannot go back."""
    import soundfile

    try:
        stream.seek(0)
    except soundfile.LibsndfileError:
        return _blocks(path)
    return stream.blocks(BLOCK, dtype="float32", always_2d=True)


def _frames(stream, path, margin):
    """Frames that can be read: the last are tried, as a compressed file's header tells of those that were lost, too; where
    a codec cannot go there, all are read.

    margin: how many of the last ones may be missing from a file that is whole.
    """
    import soundfile

    start = max(0, stream.frames - 1 - margin)
    try:
        stream.seek(start)
        found = len(stream.read(margin + 1))
    except soundfile.LibsndfileError:
        return sum(map(len, _blocks(path)))
    return start + found if found else 0


def check_file(
    path: Path | str, check: Callable[[Path], dict[str, Any]] = check_audio, shortest: float = SHORTEST
) -> tuple[dict[str, Any] | None, str | None]:
    """(audio properties, None) or (None, what is wrong) of one audio file.

    check: path -> its properties, UserError for what is wrong. shortest: seconds.
    """
    path = Path(path)
    if printable(path) != str(path):
        return None, NOT_UTF8
    try:
        if not path.is_file():
            return None, "no such audio file"
        if path.stat().st_size == 0:
            return None, "the audio file is empty (0 bytes)"
        properties = check(path)
    except OSError as error:
        return None, f"cannot be read: {error.strerror}"
    except UserError as error:
        return None, str(error).removeprefix(str(path)).lstrip(": ")
    if properties["duration"] < shortest:
        return None, f"only {properties['duration']:.3f} s of audio"
    if properties["rate"] < LOWEST_RATE:
        return None, f"a sampling rate of {properties['rate']} Hz; expected at least {LOWEST_RATE}"
    return properties, None


def utterance_check() -> Callable[[Utterance], tuple[dict[str, Any] | None, str | None]]:
    """A function: utterance -> what `check_file` returns of its audio, and whether that is as long as its corpus says; of a
    segment, also whether it lies in its recording, which is looked at once for all of its segments that follow each other."""
    check_recording = lru_cache(maxsize=1024)(check_file)

    def check(utterance):
        segment = utterance.segment
        properties, problem = check_file(utterance.audio) if segment is None else check_recording(utterance.audio)
        if problem:
            return None, problem
        # Differences in nanoseconds, as `length_of` has them.
        length = length_of(utterance, properties["duration"])  # pyright: ignore[reportOptionalSubscript]
        if segment and round(segment.end - properties["duration"], 9) > OVERSHOOT:  # pyright: ignore[reportOptionalSubscript]
            return None, f"a segment to {segment.end:g} s; its recording ends at {properties['duration']:.2f} s"  # pyright: ignore[reportOptionalSubscript]
        if length < SHORTEST:
            return None, f"a segment of {length:.3f} s of audio"
        problem = wrong_length(length, utterance.stated, "its corpus")
        return (None, problem) if problem else (properties, None)

    return check


def wrong_length(seconds: float | None, stated: float | None, who: str) -> str | None:
    """What is wrong with audio of which `who` states another length; None where it does not, or nothing is known."""
    if seconds is None or stated is None or round(abs(seconds - stated), 9) <= OVERSHOOT:
        return None
    return f"{seconds:.2f} s of audio; {who} says {stated:g} s"


def _place(utterance):
    """Where a problem is: an audio file, and which segment of it."""
    return f"{utterance.audio}, {utterance.id}" if getattr(utterance, "segment", None) else utterance.audio


def check_utterances(
    utterances: Sequence[Any],
    check: Callable[[Any], tuple[dict[str, Any] | None, str | None]],
    log: logging.Logger,
    jobs: int | None = None,
    what: str = "audio files",
    parts: Parts | None = None,
) -> tuple[list[tuple[Any, dict[str, Any]]], list[tuple[str, str]]]:
    """([(utterance, audio properties), ...], [(audio path, what is wrong), ...]) of a list of Utterance, with progress.

    Anything that has an `audio`, a path, will do for one. check: utterance -> what `check_file` returns, of it and of who
    else is in the list. Called in `jobs` processes, by default one for each core of the stage, and there by threads: a core
    checks 2,500 files a second, and a file system that is far away takes its time for each. What an interrupted stage has
    checked is not read again, where the list and the file are the same. what: names these files among others of a stage.
    """
    log.info("checking %d %s", len(utterances), what)
    everything = fingerprint([getattr(one, "id", one.audio) for one in utterances])
    chunks = {f"{start:08d}": utterances[start : start + CHUNK] for start in range(0, len(utterances), CHUNK)}

    def by_threads(function, chunk):
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(function, chunk))

    found = in_parts(
        parts,
        what,
        lambda chunk: by_threads(check, chunk),
        chunks,
        jobs,
        inputs=lambda chunk: (everything, by_threads(lambda one: (one, file_state(one.audio)), chunk)),
        log=log,
    )
    good, problems = [], []
    for utterance, (properties, problem) in zip(
        utterances, (one for results in found.values() for one in results), strict=True
    ):
        if problem:
            problems.append((_place(utterance), problem))
        else:
            good.append((utterance, properties))
    return good, problems
