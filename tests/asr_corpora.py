"""Cuts for the tests of the transducers' data: of files, and of durations alone."""

import numpy as np

LANGUAGES = {"en-IN": 60, "hi-IN": 30, "ta-IN": 10}


def make_cut(name, recording, language, text, start=0.0, duration=None):
    from lhotse import MonoCut, SupervisionSegment

    duration = recording.duration if duration is None else duration
    supervision = SupervisionSegment(name, recording.id, 0, duration, text=text, language=language, speaker="s")
    return MonoCut(name, start, duration, 0, supervisions=[supervision], recording=recording)


def fake_cuts(language, count, seed, shortest=1.0, longest=9.0):
    """Cuts without audio: what a sampler sees."""
    from lhotse import Recording

    cuts = []
    for index, duration in enumerate(np.random.RandomState(seed).uniform(shortest, longest, count).round(2)):
        name = f"{language}-{index:03d}"
        recording = Recording(name, [], 16000, round(duration * 16000), float(duration))
        cuts.append(make_cut(name, recording, language, "a"))
    return cuts


def unequal_cuts():
    return [cut for seed, (language, count) in enumerate(LANGUAGES.items()) for cut in fake_cuts(language, count, seed)]
