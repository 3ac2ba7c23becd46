"""Sound and pictures of a page: excerpts as small OGG files beside it, spectrograms within it.

Both together are limited: what would go beyond it is left out, and the page says so.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

LIMIT = 12 << 20  # bytes of all audio and pictures of a page
PICTURE_HEIGHT, PICTURE_WIDTH = 96, 900  # pixels, at most
WINDOW_SECONDS, LONGEST_HOP = 0.025, 0.01
RANGE_DB = 70.0
AUDIO = "audio"  # the folder beside the page
COMPRESSION = 0.6  # as soundfile scales it: about 32 kbit/s at 16 kHz


class Media:
    """The excerpts of a page in `folder`. used, left_out: bytes so far, and how many excerpts did not fit."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder, self.limit, self.used, self.left_out = Path(folder), limit, 0, 0

    def audio(self, samples: np.ndarray, rate: int) -> str | None:
        """Write samples, float (n,), as a file; its path from the page, or None where it would go beyond the limit.

        Files are named by what they hold: names of a corpus would not do as names of files everywhere."""
        import soundfile

        stream = io.BytesIO()
        # Vorbis takes a sixth of the time of Opus to write, at any rate; in blocks, as libsndfile keeps one on its stack.
        with soundfile.SoundFile(stream, "w", rate, 1, "VORBIS", format="OGG", compression_level=COMPRESSION) as sound:
            for first in range(0, len(samples), rate):
                sound.write(samples[first : first + rate].clip(-1, 1))
        data = stream.getvalue()
        if not self._fits(len(data)):
            return None
        name = f"{AUDIO}/{hashlib.blake2b(samples.astype('float32').tobytes(), digest_size=8).hexdigest()}.ogg"
        (self.folder / AUDIO).mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(data)
        return name

    def spectrogram(self, samples: np.ndarray, rate: int) -> str | None:
        """A spectrogram as a data: URI, 0 Hz at its bottom and half the rate at its top; None where it would not fit."""
        picture = _picture(samples, rate)
        data = "data:image/webp;base64," + base64.b64encode(picture).decode("ascii")
        return data if self._fits(len(data)) else None

    def _fits(self, size):
        if self.used + size > self.limit:
            self.left_out += 1
            return False
        self.used += size
        return True


def excerpt(path: Path | str, start: float, seconds: float) -> tuple[np.ndarray, int]:
    """Read a part of an audio file: samples, float32 (n,), mono, and their rate."""
    import soundfile

    with soundfile.SoundFile(path) as sound:
        sound.seek(min(int(start * sound.samplerate), sound.frames))
        samples = sound.read(int(seconds * sound.samplerate), dtype="float32", always_2d=True)
        return samples.mean(axis=1), sound.samplerate


def _picture(samples, rate):
    """A WebP of the levels in dB, in the colours of Matplotlib's magma."""
    import numpy as np
    from PIL import Image

    size = int(WINDOW_SECONDS * rate)
    samples = np.pad(samples, (0, max(0, size - len(samples))))
    hop = max(1, int(LONGEST_HOP * rate), len(samples) // PICTURE_WIDTH)
    frames = np.lib.stride_tricks.sliding_window_view(samples, size)[::hop]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(size), axis=1)))
    level = 10 * np.log10(_bands(power) + 1e-10)
    top = np.quantile(level, 0.999)
    index = ((level - top) / RANGE_DB + 1).clip(0, 1) * 255
    image = Image.fromarray(_colours()[index.astype(np.uint8).T[::-1]])
    stream = io.BytesIO()
    image.save(stream, "WEBP", quality=55, method=2)
    return stream.getvalue()


def _bands(power):
    """The mean of neighbouring bins, as many bands as a picture has rows."""
    import numpy as np

    borders = np.linspace(0, power.shape[1], min(PICTURE_HEIGHT, power.shape[1]) + 1).astype(int)
    return np.add.reduceat(power, borders[:-1], axis=1) / np.diff(borders)


@functools.cache
def _colours():
    import matplotlib
    import numpy as np

    return (matplotlib.colormaps["magma"](np.arange(256))[:, :3] * 255).astype(np.uint8)
