"""Lhotse cuts as all tasks use them: one cut is one utterance, or one stream; its samples, its supervision, batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pyspeech.audio.io import stream_audio
from pyspeech.audio.rxfilenames import is_command, is_extended
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from lhotse import SupervisionSegment
    from lhotse.cut import Cut

Item = TypeVar("Item")
DURATION_JITTER = 0.1  # durations count up to this fraction more or less, so that batches differ from epoch to epoch


def read_samples(cut: Cut, sampling_rate: int) -> np.ndarray:
    """Samples of a cut (N,) float32 at `sampling_rate`; UserError that names the file where it cannot be read.

    A plain piece of an audio file is read as transcription reads its files, and resampled by the same means; what lhotse
    has to make from one (another speed, a mix, padding), lhotse makes. Several channels become their mean.
    """
    path = plain_file(cut)
    if path is not None:
        if not is_extended(path) and not os.path.exists(path):
            raise UserError(
                f"{cut.id}: no such audio file: {path}; where the corpus was moved, prepare it again (--stage prepare --force)"
            )
        blocks = stream_audio(path, sampling_rate, _channel(cut), start=cut.start, duration=cut.duration)
        return np.concatenate([np.zeros(0, np.float32), *blocks])
    try:
        audio = cut.resample(sampling_rate).load_audio()
    except Exception as error:  # lhotse and its backends raise nearly every kind
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{cut.id}: cannot read its audio ({_source(cut)}): {reason}; check the file, or prepare the corpus again"
        ) from error
    return np.ascontiguousarray(audio.mean(axis=0), dtype=np.float32)


def plain_file(cut: Any) -> str | None:
    """The path of the file that a cut is a piece of, as it is, or the command that puts it out; None for what needs lhotse:
    also for a file whose name would be taken for a command."""
    recording = getattr(cut, "recording", None)
    if recording is None or len(recording.sources) != 1 or not all(map(_only_resamples, recording.transforms or [])):
        return None
    if not isinstance(cut.channel, int) and sorted(cut.channel) != sorted(recording.channel_ids):
        return None
    source = recording.sources[0]
    if source.type == "file" and is_command(source.source):
        return None
    return {"file": source.source, "command": f"{source.source} |"}.get(source.type)


def _channel(cut):
    """The channel of a plain piece of a file that has several; None for their mean, or the only one."""
    return cut.channel if isinstance(cut.channel, int) and cut.recording.num_channels > 1 else None


def _only_resamples(transform):
    """Of a recording that lhotse is to resample; its file has the rate that it has."""
    name = transform["name"] if isinstance(transform, dict) else type(transform).__name__
    return name == "Resample"


def _source(cut):
    sources = getattr(getattr(cut, "recording", None), "sources", None) or []
    return ", ".join(str(source.source) for source in sources if source.type == "file") or "no file of its own"


def supervision_of(cut: Cut) -> SupervisionSegment:
    """The one supervision of an utterance; UserError where there is none or more."""
    if len(cut.supervisions) != 1:
        raise UserError(f"{cut.id}: {len(cut.supervisions)} supervisions; expected one utterance with its text in each cut")
    return cut.supervisions[0]


def split_batches(
    cuts: Iterable[Item], batch_seconds: float, max_utterances: int, duration: Callable[[Any], float] = lambda cut: cut.duration
) -> list[list[Item]]:
    """Cut a list of cuts, or of what has a `duration`, into runs, each as long as its padded seconds and number allow: a
    list of lists."""
    batches, longest = [], 0.0
    for cut in cuts:
        longest = max(longest, duration(cut))
        if batches and len(batches[-1]) < max_utterances and longest * (len(batches[-1]) + 1) <= batch_seconds:
            batches[-1].append(cut)
        else:
            batches.append([cut])
            longest = duration(cut)
    return batches
