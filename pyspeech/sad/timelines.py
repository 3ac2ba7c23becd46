"""Contiguous references, as the official scorer wants them, from labels that mark speech alone.

Non-speech lasts to the end of the recording. That end is, in this order: what the regions of a UEM file say, the length of
the audio, the length that the labels or the hypothesis tell, or else the last segment of both, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from pyspeech.audio.recordings import find_recordings, recording_length
from pyspeech.commands.terminal import some
from pyspeech.sad.formats import NONSPEECH_LABELS, SPEECH_LABELS, UNSCORED_LABELS
from pyspeech.sad.label_files import read_uem
from pyspeech.sad.labels import Labels, labels_of, pair
from pyspeech.sad.segments import complement, union

UNSCORED = UNSCORED_LABELS[0]
SLIVER = 0.01  # seconds; less than this behind the last label is rounding, not non-speech
TOLERANCE = 0.5  # seconds that labels may go beyond the end of the audio without a warning


class ScoredTime:
    """Scored time of each recording.

    references: {recording: Labels}; those that a UEM file does not name are taken out. warn: called with lines. uem, audio:
    as of `pyspeech.sad.scoring.score_files`.
    """

    def __init__(
        self,
        references: dict[str, Labels],
        warn: Callable[[str], object],
        uem: Path | str | None = None,
        audio: Path | str | None = None,
    ) -> None:
        self._warn, self._uem = warn, uem
        self._lengths = _audio_lengths(audio, references) if audio else {}
        self._endless = []  # recordings of which nothing tells how long they are
        self._regions, self._unnamed = {}, {}
        if uem:
            self._take_regions(read_uem(uem), references)

    def _take_regions(self, regions, references):
        pairs = pair({name: labels.names for name, labels in references.items()}, {name: (name,) for name in regions})
        self._regions = {name: regions[other] for name, other in pairs.items()}
        self._unnamed = {name: regions[name] for name in regions.keys() - set(pairs.values())}
        if missing := sorted(references.keys() - pairs.keys()):
            self._warn(f"{self._uem}: has no region of {some(missing)}; not scored")
        for name in missing:
            del references[name]

    def without_speech(self, reference: Path) -> dict[str, Labels]:
        """The recordings that the UEM file names and the references do not: {recording: Labels without rows}.

        One file of references may leave out those without speech; a folder has a file for each, so that they are not scored.
        """
        if not self._unnamed:
            return {}
        named = some(sorted(self._unnamed))
        if not reference.is_file():
            self._warn(f"{self._uem}: not scored, because there is no reference: {named}")
            return {}
        self._warn(f"{reference}: has nothing of {named} of {self._uem}; scored as without speech")
        self._regions.update(self._unnamed)
        return {name: Labels([], Path(str(self._uem)), None, False, (name,)) for name in self._unnamed}

    def timeline(self, name: str, labels: Labels, hypothesis: Labels | None) -> list[tuple[float, float, str]]:
        """Return the reference of a recording as `score_pair` takes it; official ones are as written without a UEM file."""
        regions, length = self._regions.get(name), self._lengths.get(name)
        if labels.whole and regions is None:
            return labels.rows
        last = max((end for _, end, _ in labels.rows), default=0.0)
        if length is not None and last > length + TOLERANCE:
            self._warn(f"{labels.path}: has labels up to {last:g} s, but {name} ends at {length:g} s")
        if labels.whole:
            return lay_out(labels, last, regions)
        if regions is not None:
            return lay_out(labels, regions[-1, 1] if len(regions) else 0.0, regions)
        return lay_out(labels, self._told_end(name, labels, hypothesis, last) if length is None else length)

    def _told_end(self, name, labels, hypothesis, last):
        told = [one.length for one in (labels, hypothesis) if one and one.length is not None]
        if told:
            return max(told[0], last)
        self._endless.append(name)
        return max([last, *hypothesis.speech[-1:, 1].tolist()] if hypothesis else [last])

    def finish(self) -> None:
        """Warn of recordings of which nothing tells the length."""
        if self._endless:
            self._warn(
                f"nothing tells how long {some(self._endless)} {'are' if len(self._endless) > 1 else 'is'}: scored to the "
                "last segment; --uem or --audio would tell"
            )


def _audio_lengths(audio, references):
    """{recording: seconds} of the references that have audio."""
    recordings = find_recordings([audio])
    found = labels_of(recordings, references)
    names = {id(labels): name for name, labels in references.items()}
    return {names[id(found[one.name])]: recording_length(one) for one in recordings if one.name in found}


def lay_out(labels: Labels, end: float, regions: np.ndarray | None = None) -> list[tuple[float, float, str]]:
    """Lay labels out as a contiguous reference.

    end: seconds. regions: (n, 2) seconds, outside of which nothing is scored; without them, less than SLIVER behind the last
    label is left out. Returns (start, end, label) from 0 to `end`: S, NS, and nonScorable for other labels. Speech goes
    before those, and what no row covers is NS, but not scored where the labels are whole.
    """
    last = max((stop for _, stop, _ in labels.rows), default=0.0)
    if regions is None and 0.0 < end - last < SLIVER:
        end = last
    unscored = [(start, stop) for start, stop, label in labels.rows if label not in SPEECH_LABELS + NONSPEECH_LABELS]
    if labels.whole:
        unscored += complement([(labels.rows[0][0], labels.rows[-1][1])], end).tolist()
    outside = np.zeros((0, 2)) if regions is None else complement(regions, end)
    speech = _without(labels.speech, outside, end)
    unscored = _without(union([*unscored, *outside.tolist()]), speech, end)
    nonspeech = complement([*speech.tolist(), *unscored.tolist()], end)
    kinds = ((speech, "S"), (nonspeech, "NS"), (unscored, UNSCORED))
    rows = sorted((start, stop, label) for segments, label in kinds for start, stop in segments.tolist())
    return rows or [(0.0, float(end), UNSCORED)]


def _without(segments, others, end):
    """The time up to `end` in segments (n, 2) that is not in others (m, 2)."""
    return complement([*complement(segments, end).tolist(), *others.tolist()], end)
