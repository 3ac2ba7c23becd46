"""Presence of speech in audio, by the bundled speech detector, for tasks that need speech."""

from __future__ import annotations

import functools

import numpy as np

# All of 460 clips of genuine and fake speech of up to 2.7 s have a frame above it; none of eight noises and tones of 5 s has.
THRESHOLD = 0.2


class Listener:
    """Listen to audio that comes in until there is speech in it.

    rate: Hz of the samples. `heard`: whether there has been speech.
    """

    def __init__(self, rate: int) -> None:
        import soxr

        from pyspeech.sad.streaming import NetworkDecider

        self.heard = False
        self._decider = NetworkDecider(*_network())  # pyright: ignore[reportArgumentType]
        self._resampler = soxr.ResampleStream(rate, self._decider.sampling_rate, 1, dtype="float32")

    def add(self, samples: np.ndarray) -> None:
        """Add samples (n,), float."""
        if not self.heard:
            self._look(self._decider.add(self._resampler.resample_chunk(np.asarray(samples, np.float32))))

    def finish(self) -> None:
        """Process the end of the audio."""
        if not self.heard:
            self._look(self._decider.add(self._resampler.resample_chunk(np.zeros(0, np.float32), last=True)))
            self._look(self._decider.finish())

    def _look(self, decided):
        decisions, _ = decided
        self.heard = self.heard or bool(decisions.any())


@functools.cache
def _network():
    """What scores, and the operating point."""
    from pyspeech.sad.detector import choose_system

    return choose_system(None, None, THRESHOLD, None)
