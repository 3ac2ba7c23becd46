"""Audio files that a preparation writes: what a mini corpus is made of, and mono copies of what others bring."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyspeech.audio.io import stream_audio
from pyspeech.data.manifests import Utterance
from pyspeech.engine.parts import Parts, file_state, fingerprint, in_parts
from pyspeech.files import atomic_path, is_temporary

READABLE = ("WAV", "WAVEX", "FLAC", "OGG", "MP3", "MPEG")


def write_audio(path: Path | str, samples: np.ndarray, rate: int) -> None:
    """Write samples (N,), int16 or floats of full scale 1 (clipped), as 16-bit audio of the kind that the ending says."""
    import soundfile

    if samples.dtype != np.int16:
        samples = np.rint(np.clip(samples, -1.0, 1.0) * 32767.0).astype(np.int16)
    with atomic_path(path) as temporary:
        soundfile.write(str(temporary), samples, rate, subtype="PCM_16")


def as_int16(samples: np.ndarray) -> np.ndarray:
    """Samples (N,) of full scale 1 as the 16-bit numbers that are read as these; those of 16-bit files do not change."""
    return np.clip(np.rint(samples * np.float32(32768)), -32768, 32767).astype(np.int16)


def copy_mono(path: Path | str, target: Path, rate: int) -> Path:
    """Copy audio of any kind and length to `target`: 16-bit WAV at `rate` Hz, channels mixed. Returns `target`."""
    import soundfile

    with atomic_path(target) as temporary:
        with soundfile.SoundFile(str(temporary), "w", rate, 1, "PCM_16", format="WAV") as stream:
            for block in stream_audio(path, rate):
                stream.write(np.clip(block, -1.0, 1.0))
    return target


def readable_copies(
    good: Sequence[tuple[Utterance, dict[str, Any]]], folder: Path, log: logging.Logger, parts: Parts | None = None
) -> list[tuple[Utterance, str, dict[str, Any]]]:
    """[(utterance, path, properties), ...] of [(utterance, properties), ...]: of its audio, or of a mono WAV copy of it in
    `folder`. Copied, by all cores of the stage, are files with several channels and formats that are not commonly read.
    """
    others = {
        fingerprint((_copied_as(utterance), folder)): (utterance, properties)
        for utterance, properties in good
        if properties["channels"] > 1 or properties["format"] not in READABLE
    }

    def target(one):
        return folder / f"{_copied_as(one[0])}.wav"

    def copy(one):
        import soundfile

        return soundfile.info(str(copy_mono(one[0].audio, target(one), one[1]["rate"]))).duration

    def inputs(one):
        return one, target(one), file_state(one[0].audio)

    copied = in_parts(parts, "copies", copy, others, inputs=inputs, files=lambda one: [target(one)], log=log)
    if others:
        log.info("%d files of several channels or unusual formats: mixed and copied to %s", len(others), folder)
    lengths = {target(one): copied[name] for name, one in others.items()}
    return [
        (one, str(target((one,))), {**properties, "duration": lengths[target((one,))]})
        if target((one,)) in lengths
        else (one, os.path.abspath(one.audio), properties)
        for one, properties in good
    ]


def _copied_as(utterance):
    """Name of the copy of an utterance's audio: its own, or one for all segments of a recording."""
    if utterance.segment is None:
        return safe_name(utterance.id)
    return f"{safe_name(utterance.segment.recording)}.{hashlib.md5(os.fsencode(utterance.audio)).hexdigest()[:8]}"


def safe_name(name: str) -> str:
    """A name that a file can have; other ones for other names."""
    safe = re.sub(r"[^\w.+-]+", "_", name).strip(".")
    return safe if safe == name else f"{safe}-{hashlib.md5(name.encode()).hexdigest()[:8]}"


def digest(paths: Iterable[Path]) -> str:
    """SHA-256 over the names and all samples of some 16-bit files, in the order of their paths; of whole ones alone, as a
    killed process leaves some that it has not ended."""
    import soundfile

    total = hashlib.sha256()
    for path in sorted(path for path in paths if not is_temporary(path.name)):
        samples, _ = soundfile.read(str(path), dtype="int16")
        total.update(path.name.encode() + samples.astype("<i2").tobytes())
    return total.hexdigest()
