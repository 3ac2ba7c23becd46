"""Checks of what there is to judge in a recording: too short, without speech, or in telephone bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pyspeech.audio.level import Watched
from pyspeech.audio.silence import SilenceCutter
from pyspeech.errors import UserError
from pyspeech.speech import Listener

SHORTEST = 0.5  # seconds of sound; scores of less are chance
CERTAIN = 2.0  # seconds of sound from which a score says what it says
# Above the bundled detector's threshold (-0.32): where its scores of ever shorter recordings go. Logistic regression of cuts of
# 0.5, 0.7, 1 and 1.4 s of the page clips has slopes of 0.49, 0.55, 0.61, 0.88 and offsets of 0.38, 0.45, 0.32, 0.15; the square
# root and this point make 0.5, 0.59, 0.71, 0.84 and 0.49, 0.4, 0.29, 0.16.
NEUTRAL = 1.3
# Below that threshold: where genuine begins over the telephone. Through a simulated telephone (300 to 3,400 Hz, mu-law), 9 %
# of 87 genuine page clips are below the threshold, 5 % below one that is 0.2 lower; with six corpora 6.7 and 5.2, at 0.3 4.7.
TELEPHONE_STEP = 0.3
PAUSE = 0.05  # seconds; longer digital silence is no sound
FRAME = 512  # samples of a spectrum
TELEPHONE = 4250.0  # Hz; what was sampled at 8 kHz has nothing above it
# dB of the power above that against all: of 400 clips of speech the lowest is -52; of 8 kHz in 16 bit at -40 dBFS, -63.
NOTHING = -55.0
SHORT, NARROW = "short", "nothing above 4 kHz"  # what a score is to be read with


class Heard:
    """The blocks of a recording, float (n,) at `rate` Hz, as they come; then what was in them.

    sound: seconds, without digital silence. narrow: whether it has the telephone's band. speech: whether there is any.
    """

    def __init__(self, blocks: Iterable[np.ndarray], rate: int) -> None:
        self.watched, self.rate = Watched(blocks), rate
        self._cutter, self._listener = SilenceCutter(round(PAUSE * rate)), Listener(rate)
        self._samples, self._high, self._power = 0, 0.0, 0.0

    def __iter__(self) -> Iterator[np.ndarray]:
        for block in self.watched:
            self._hear(self._cutter.add(block))
            yield block
        self._hear(self._cutter.finish())
        self._listener.finish()

    def _hear(self, stretches):
        for _, samples in stretches:
            self._samples += len(samples)
            self._listener.add(samples)
            frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
            power = np.square(np.abs(np.fft.rfft(frames * np.hanning(FRAME), axis=1))).sum(axis=0)
            self._power += power[2:].sum()  # without an offset of the recorder
            self._high += power[round(TELEPHONE / self.rate * FRAME) :].sum()

    @property
    def sound(self) -> float:
        return self._samples / self.rate

    @property
    def narrow(self) -> bool:
        return self.rate > 2 * TELEPHONE and bool(self._high < 10 ** (NOTHING / 10) * self._power)

    @property
    def speech(self) -> bool:
        return self._listener.heard

    def check(self, name: str) -> None:
        """Raise UserError, with the name of the recording, where there is too little to judge."""
        if self.sound < SHORTEST:
            raise UserError(
                f"{name}: {self.sound:.2f} s of sound; expected at least {SHORTEST} s (--force or force=True judges it anyway)"
            )
        if not self.speech:
            raise UserError(f"{name}: no speech found; there is nothing to judge (--force or force=True judges it anyway)")

    def notes(self) -> tuple[str, ...]:
        """Notes with which a score should be read."""
        return (SHORT,) * (self.sound < CERTAIN) + (NARROW,) * self.narrow

    def calibrated(self, scores: np.ndarray, neutral: float) -> np.ndarray:
        """Scores as calibration of recordings as short as this gives them: sqrt(seconds / CERTAIN) of their distance from
        `neutral`, where a score says nothing, is left."""
        return neutral + min(1.0, self.sound / CERTAIN) ** 0.5 * (scores - neutral)
