"""Outputs of `pyspeech detect`: text, frame scores, a picture, files of the segments."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.commands.arguments import channel_of, raw_format
from pyspeech.commands.terminal import shown_name, speed
from pyspeech.files import atomic_write

if TYPE_CHECKING:
    from pyspeech.audio.recordings import Recording
    from pyspeech.sad.detector import Detector, Speech

NAMELESS = ("fearless", "audacity", "textgrid")  # formats whose text does not name the recording


@dataclass
class Done:
    """Result for one recording, or all so far: text for the screen; seconds of audio, of speech in it, and of computing."""

    text: str = ""
    audio: float = 0.0
    speech: float = 0.0
    computing: float = 0.0
    count: int = 1


def process(recording: Recording, detect: Detector, options: argparse.Namespace, several: bool) -> Done:
    """Detect the speech in one recording and write what the options ask for; several: recordings go to the screen."""
    from pyspeech.audio.recordings import stream_recording
    from pyspeech.sad.segments import total

    begin = time.perf_counter()
    channel = channel_of(recording, options)
    blocks = stream_recording(recording, detect.sampling_rate, channel, block_seconds=60.0, raw=raw_format(options))
    found = detect.detect_blocks(blocks, "standard input" if recording.path == "-" else str(recording.path))
    text = _text(recording, found, channel or 0, options)
    if options.output:
        _write(recording, found, text, options)
    elif options.format in NAMELESS and several:
        text = f"# {shown_name(recording)}\n{text}"
    if options.plot:
        _draw(recording, found, channel, options)
    if options.cut:
        _cut(recording, found, channel, options)
    return Done("" if options.output else text, found.duration, total(found.segments), time.perf_counter() - begin)


def summary(done: Done) -> str:
    return (
        f"{done.count} recording{'s' if done.count > 1 else ''}: {done.audio:.2f} s of audio, {done.speech:.2f} s "
        f"({done.speech / max(done.audio, 1e-9):.1%}) speech; {speed(done.audio, done.computing, 5)}"
    )


def _text(recording, found, channel, options):
    from pyspeech.sad.formats import WITH_CHANNEL, render

    scores = found.scores if options.scores and options.format == "json" else None
    name = shown_name(recording)
    if options.channel == "all" and options.format in WITH_CHANNEL:
        name = name.removesuffix(channel_suffix(channel))
    return render(options.format, name, found.segments, found.duration, found.frame_shift, scores, channel, found.frame_offset)


def channel_suffix(channel: int | None) -> str:
    """Suffix that tells the names of a recording's channels apart."""
    return f"_ch{channel}"


def output_file(recording: Recording, options: argparse.Namespace) -> Path:
    """Path of a recording's text, with -o."""
    from pyspeech.audio.recordings import file_stem
    from pyspeech.sad.formats import FORMATS

    if options.single:
        return Path(options.output)
    return Path(options.output, file_stem(recording) + FORMATS[options.format][1])


def _write(recording, found, text, options):
    target = output_file(recording, options)
    with atomic_write(target) as stream:
        stream.write(text)
    if options.scores and options.format != "json":
        from pyspeech.audio.recordings import file_stem

        stem = target.stem if options.single else file_stem(recording)
        save_scores(target.with_name(f"{stem}.{'scores.csv' if options.score_format == 'csv' else 'npy'}"), found)


def save_scores(path: Path, found: Speech) -> None:
    """Write the frame scores: as a NumPy array, or as CSV with the times of the frames."""
    import numpy as np

    if path.suffix == ".npy":
        with atomic_write(path, "wb") as stream:
            np.save(stream, found.scores.astype(np.float32))
        return
    with atomic_write(path) as stream:
        stream.write("start,score\n")
        for frame, score in enumerate(found.scores.tolist()):
            stream.write(f"{found.frame_offset + frame * found.frame_shift:.3f},{score:.6g}\n")


def _draw(recording, found, channel, options):
    from pyspeech.audio.recordings import file_stem
    from pyspeech.sad.picture import draw_found

    target, title = Path(options.plot, file_stem(recording) + ".png"), shown_name(recording)
    draw_found(recording.path, found, target, channel, recording.start, title, raw_format(options))


def _cut(recording, found, channel, options):
    from pyspeech.audio.cutting import write_segments
    from pyspeech.audio.recordings import file_stem

    stem = file_stem(recording)
    write_segments(recording.path, found.segments, options.cut, stem, channel, recording.start, raw_format(options))
