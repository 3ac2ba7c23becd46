"""Voices that come in packages."""

import numpy as np
import pytest
import soundfile

from local import voices


@pytest.mark.network
def test_prompts_of_the_studio_are_those_of_the_telephone():
    """The same words by the same person, which two decoders give."""
    found = voices.fetch_clips(["studio-ru", "asterisk-ru"])
    wide, narrow = ({path.name.split(".")[0]: path for path in found[voice][1]} for voice in ("studio-ru", "asterisk-ru"))
    assert wide["vm-intro"].name == "vm-intro.g722.wav" and soundfile.info(wide["vm-intro"]).samplerate == 16000
    intro, same, other = (
        np.fft.rfft(voices.load_clip(path, 8000), 2**18)
        for path in (wide["vm-intro"], narrow["vm-intro"], narrow["vm-goodbye"])
    )

    def likeness(spectrum):
        highest = np.abs(np.fft.irfft(intro * np.conj(spectrum))).max()
        return highest / np.sqrt(np.sum(np.fft.irfft(intro) ** 2) * np.sum(np.fft.irfft(spectrum) ** 2))

    assert likeness(same) > 0.5 > 0.2 > likeness(other)  # the telephone's has another frequency response
