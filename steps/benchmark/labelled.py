"""Folders of recordings with labels of speech, for benchmarks of speech detectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyspeech.errors import UserError


class LabelledRecording(NamedTuple):
    """A recording and its reference: rows (start, end, label) from its start to its end, in seconds."""

    path: str
    reference: list[tuple[float, float, str]]
    seconds: float

    @property
    def speech(self) -> np.ndarray:
        """Segments (n, 2) of speech, in seconds."""
        from pyspeech.sad.formats import SPEECH_LABELS
        from pyspeech.sad.segments import as_segments

        return as_segments([(start, end) for start, end, label in self.reference if label in SPEECH_LABELS])


def labelled(folder: str | Path) -> list[LabelledRecording]:
    """The labelled recordings of a folder, searched recursively; labels in any format that utils/score_sad.py reads.

    UserError where there are none.
    """
    from pyspeech.audio.recordings import find_recordings, recording_length
    from pyspeech.sad.labels import labels_of, read_labels
    from pyspeech.sad.timelines import lay_out

    recordings = find_recordings([str(folder)])
    found = labels_of(recordings, read_labels(folder))
    if not found:
        raise UserError(f"{folder}: no audio with labels of the same name in it")
    lengths = {one.name: recording_length(one) for one in recordings if one.name in found}
    return [
        LabelledRecording(str(one.path), lay_out(found[one.name], lengths[one.name]), lengths[one.name])
        for one in recordings
        if one.name in found
    ]


def in_noise(recordings: Sequence[LabelledRecording], noises: str | Path, snr: float, folder: Path) -> list[LabelledRecording]:
    """The recordings with noise, the same each time: a random piece of a random audio file of `noises`.

    They are written to `folder` as float WAV at their sampling rates. Recordings without speech stay as they are. UserError
    where there is no audio in `noises`.

    Args:
        snr: dB from the noise up to the labelled speech.
    """
    import soundfile

    from pyspeech.audio.io import find_audio, read_audio
    from pyspeech.audio.level import fit, mix
    from pyspeech.sad.segments import segments_to_frames

    paths = find_audio([noises])
    rng, heard = np.random.default_rng(0), []
    for number, one in enumerate(recordings):
        samples, rate = read_audio(one.path)
        noise, _ = read_audio(paths[rng.integers(len(paths))], rate)
        spoken = segments_to_frames(one.speech, len(samples), 1 / rate)
        path = folder / f"{number}.wav"
        soundfile.write(path, mix(samples, fit(noise, len(samples), rng), snr, spoken), rate, "FLOAT")
        heard.append(one._replace(path=str(path)))
    return heard
