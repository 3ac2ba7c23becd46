"""A picture of what a detector found in a recording: spectrogram, speech, scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspeech.report.plots import new_figure, save

if TYPE_CHECKING:
    from pyspeech.audio.lhotse_audio import LhotseAudio
    from pyspeech.audio.raw import RawFormat
    from pyspeech.sad.detector import Speech

LONGEST = 600.0  # seconds that are drawn: more would not be seen
RATE = 8000
WINDOW, HOP = 256, 80  # samples
COLUMNS = 4000  # of the spectrogram at most


def draw_found(
    path: Path | str | LhotseAudio,
    found: Speech,
    target: Path | str,
    channel: int | None = None,
    start: float = 0.0,
    title: str = "",
    raw: RawFormat | None = None,
) -> None:
    """Write `target`, a PNG: the spectrogram of a recording's first ten minutes, the speech found and the frame scores.

    path, channel, start, raw: as of `pyspeech.audio.io.stream_audio`. found: Speech."""
    import numpy as np

    from pyspeech.audio.io import stream_audio

    seconds = min(found.duration, LONGEST)
    samples = np.concatenate([np.zeros(0), *stream_audio(path, RATE, channel, start=start, duration=seconds or None, raw=raw)])
    speech = found.segments
    figure, (picture, curve) = new_figure(12, 3.6, rows=2, heights=[3, 1])
    if len(samples) >= WINDOW:
        power = 10 * np.log10(_spectrogram(samples) + 1e-12)
        loud, quiet = np.quantile(power, [0.999, 0.05])
        picture.imshow(
            power.T,
            origin="lower",
            aspect="auto",
            extent=(0, seconds, 0, RATE / 2000),
            cmap="magma",
            vmin=max(quiet, loud - 80),
            vmax=loud,
        )
    for begin, end in speech[speech[:, 0] < seconds]:
        picture.axvspan(begin, min(end, seconds), ymin=0.94, color="#2ca02c", lw=0)
        curve.axvspan(begin, min(end, seconds), color="#2ca02c", alpha=0.25, lw=0)
    times = found.frame_offset + found.frame_shift * (np.arange(len(found.scores)) + 0.5)
    curve.plot(times, found.scores, lw=0.6, color="black")
    picture.set(ylabel="kHz", xticks=[], xlim=(0, max(seconds, 1e-3)), title=title)
    curve.set(ylabel="score", xlabel="seconds (speech found: green)", xlim=(0, max(seconds, 1e-3)))
    save(figure, target)


def _spectrogram(samples):
    """Power (T, F) of windows, no more than COLUMNS of them."""
    import numpy as np

    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[:: max(HOP, len(samples) // COLUMNS)]
    return np.square(np.abs(np.fft.rfft(frames * np.hanning(WINDOW), axis=1)))
