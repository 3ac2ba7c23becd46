"""Segments of a recording as files of their own."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pyspeech.audio.io import stream_source
from pyspeech.audio.raw import RawFormat
from pyspeech.audio.sources import open_source
from pyspeech.files import atomic_path

BLOCK = 10.0  # seconds


def write_segments(
    path: Path | str,
    segments: np.ndarray,
    folder: Path | str,
    stem: str,
    channel: int | None = None,
    start: float = 0.0,
    raw: RawFormat | None = None,
) -> list[Path]:
    """Write each segment as a WAV file of 16 bits at the recording's own rate, and list the files.

    A file is named as a segment of Kaldi: STEM-START-END.wav, the times in milliseconds, zero-padded.

    Args:
        path: The recording, as of `stream_audio`; so are channel and raw.
        segments: (n, 2) seconds from `start` on, in order, disjoint.
        folder: Where the files go; it is made.
        stem: What their names begin with.
        start: Seconds of the recording to skip.
    """
    import soundfile

    written = []
    with open_source(path, raw) as source:
        rate = source.sampling_rate
        samples = _Forward(stream_source(source, rate, channel, BLOCK, start, None))
        for begin, end in np.asarray(segments).reshape(-1, 2).tolist():
            target = Path(folder, f"{stem}-{round(begin * 1000):09d}-{round(end * 1000):09d}.wav")
            samples.drop(round(begin * rate))
            with atomic_path(target) as temporary:
                with soundfile.SoundFile(os.fsencode(temporary), "w", rate, 1, "PCM_16", format="WAV") as file:  # pyright: ignore[reportArgumentType]
                    for part in samples.take(round(end * rate)):
                        file.write(part)
            written.append(target)
    return written


class _Forward:
    """Blocks (n,) of samples, of which those up to a place are dropped or taken."""

    def __init__(self, blocks):
        self._blocks, self._rest, self._place = iter(blocks), np.zeros(0, np.float32), 0

    def drop(self, place):
        for _ in self.take(place):
            pass

    def take(self, place):
        while self._place < place:
            while not len(self._rest):
                block = next(self._blocks, None)
                if block is None:
                    return
                self._rest = block
            part, self._rest = np.split(self._rest, [place - self._place])
            self._place += len(part)
            yield part
