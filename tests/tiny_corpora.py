"""Small made-up corpora in the official layouts, for tests of whole recipes; no network, no recordings."""
from pathlib import Path

import numpy as np
import soundfile

RATE = 8000


def voiced(seconds, rng, rate=RATE):
    """Something with the makings of speech: a gliding pulse train through two formants, in syllables. (N,) float64."""
    from scipy.signal import lfilter

    time = np.arange(int(seconds * rate)) / rate
    pitch = rng.uniform(90, 220) * (1 + 0.1 * np.sin(2 * np.pi * rng.uniform(0.3, 1.0) * time))
    pulses = np.diff(np.floor(np.cumsum(pitch / rate)), prepend=0.0)
    signal = pulses
    for formant in rng.uniform((400, 1000), (800, 2200)):
        radius = np.exp(-np.pi * 120 / rate)
        signal = lfilter([1.0], [1.0, -2 * radius * np.cos(2 * np.pi * formant / rate), radius ** 2], signal)
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * rng.uniform(3, 5) * time + rng.uniform(0, 6))
    return signal * syllables / (np.abs(signal).max() + 1e-9)


def radio_stream(seconds, rng):
    """A stream of transmissions in noise: samples (N,), speech segments [(start, end)] in seconds."""
    samples = 0.01 * rng.standard_normal(int(seconds * RATE))
    segments, position = [], rng.uniform(0.5, 2.0)
    while True:
        length = round(rng.uniform(0.8, 3.0), 2)
        if position + length > seconds - 0.5:
            return samples, segments
        start = round(position, 2)
        speech = rng.uniform(0.1, 0.5) * voiced(length, rng)
        first = int(start * RATE)
        samples[first:first + len(speech)] += speech
        segments.append((start, round(start + length, 2)))
        position = start + length + rng.uniform(1.0, 4.0)


def write_label(path, recording, segments, seconds):
    """A Fearless Steps reference label file: 12 tab-separated columns, contiguous."""
    lines, position = [], 0.0
    for start, end in segments:
        lines += [(position, start, "NS"), (start, end, "S")]
        position = end
    lines.append((position, seconds, "NS"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{recording}\t0\t{start}\t{end}\t{label}\tmanual" + "\tX" * 6 + "\n"
                            for start, end, label in lines if end > start))


def make_fearless(folder, sizes=None, seconds=30.0, seed=0):
    """A Fearless Steps phase 2 folder with `sizes` = {"Train": n, "Dev": n, "Eval": n} streams. Returns the folder."""
    rng = np.random.default_rng(seed)
    folder = Path(folder)
    for split, count in (sizes or {"Train": 3, "Dev": 2, "Eval": 2}).items():
        for number in range(1, count + 1):
            name = f"FS02_{split.lower()}_{number:03d}"
            samples, segments = radio_stream(seconds, rng)
            audio = folder / "Audio" / "Streams" / split / f"{name}.wav"
            audio.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(audio, samples, RATE, subtype="PCM_16")
            write_label(folder / "Transcripts" / "SAD" / split / f"{name}.txt", name, segments, seconds)
    return folder
