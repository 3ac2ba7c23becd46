"""Folders of recordings with labels of speech, for benchmarks of speech detectors."""

from __future__ import annotations

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
