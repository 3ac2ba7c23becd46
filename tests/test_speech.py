"""Whether there is speech in audio at all."""

import numpy as np
import pytest
from tiny_voice import voice

from pyspeech.speech import Listener

NOISE = np.random.default_rng(0).standard_normal(80000)


@pytest.mark.parametrize(
    "samples, expected",
    [
        (voice(0.5), True),
        (0.002 * voice(3), True),
        (np.concatenate([0.01 * NOISE, voice(2)]), True),
        (0.05 * NOISE, False),
        (0.1 * np.sin(0.2 * np.arange(80000)), False),
        (np.zeros(80000), False),
        (np.zeros(0), False),
    ],
    ids=["half a second", "faint", "behind noise", "noise", "tone", "silence", "nothing"],
)
def test_speech_is_heard(samples, expected):
    for blocks in ([samples], np.array_split(samples, 9)):
        listener = Listener(16000)
        for block in blocks:
            listener.add(block)
        listener.finish()
        assert listener.heard is expected
