"""A corpus of seconds: genuine utterances are noise of the whole band, fake ones lack what is above 5 kHz."""

import numpy as np
import soundfile

RATE = 16000


def sound(kind, seconds, rng, rate=RATE):
    """float64 (N,): syllables of noise."""
    size = round(seconds * rate)
    spectrum = np.fft.rfft(rng.standard_normal(size))
    if kind == "fake":
        spectrum[np.fft.rfftfreq(size, 1 / rate) > 5000] *= 0.1
    envelope = 0.6 - 0.4 * np.cos(2 * np.pi * 4 * np.arange(size) / rate)
    return 0.1 * envelope * np.fft.irfft(spectrum, size)


def write_corpus(folder, count, seed=0, shortest=0.3, longest=1.5):
    """`count` utterances in turn fake (attack A01, A02), fake, genuine, as a CutSet over WAV files in `folder`."""
    from lhotse import CutSet, MonoCut, Recording, SupervisionSegment

    folder.mkdir(parents=True, exist_ok=True)
    rng, cuts = np.random.default_rng(seed), []
    for index in range(count):
        kind, name = ("fake", "fake", "genuine")[index % 3], f"u{seed}_{index}"
        path = folder / f"{name}.wav"
        soundfile.write(path, sound(kind, rng.uniform(shortest, longest), rng), RATE)
        recording = Recording.from_file(path)
        custom = {"attack": f"A0{index % 3 + 1}" if kind == "fake" else "-", "condition": ("clean", "noise")[index % 2]}
        supervision = SupervisionSegment(
            name, recording.id, 0, recording.duration, text=kind, speaker=f"s{index % 4}", custom=custom
        )
        cuts.append(MonoCut(name, 0, recording.duration, 0, supervisions=[supervision], recording=recording))
    return CutSet.from_cuts(cuts)
