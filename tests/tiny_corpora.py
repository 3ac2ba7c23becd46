"""Small made-up corpora in the official layouts, for tests of whole recipes; no network, no recordings."""

from pathlib import Path

import numpy as np
import soundfile

RATE = 8000


def voiced(seconds, rng, rate=RATE):
    """Something with the makings of speech: a gliding pulse train through two formants, in syllables. (N,) float64."""
    from scipy.signal import lfilter

    time = np.arange(int(seconds * rate)) / rate
    pitch = rng.uniform(90, 220) * (1 + 0.15 * np.sin(2 * np.pi * rng.uniform(2.0, 4.0) * time))
    pulses = np.diff(np.floor(np.cumsum(pitch / rate)), prepend=0.0)
    signal = pulses
    for formant in rng.uniform((400, 1000), (800, 2200)):
        radius = np.exp(-np.pi * 120 / rate)
        signal = lfilter([1.0], [1.0, -2 * radius * np.cos(2 * np.pi * formant / rate), radius**2], signal)
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
        samples[first : first + len(speech)] += speech
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
    path.write_text(
        "".join(
            f"{recording}\t0\t{start}\t{end}\t{label}\tmanual" + "\tX" * 6 + "\n" for start, end, label in lines if end > start
        )
    )


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


WORDS = {  # and the two formants (Hz) that each is told by
    "Hindi": {"एक": (300, 900), "दो": (500, 1500), "तीन": (700, 2200)},
    "Tamil": {"ஒன்று": (350, 1900), "இரண்டு": (600, 1000), "மூன்று": (800, 2500)},
}


def spoken(words, rate, rng):
    """Each word a pulse train through its two formants, 0.25 s, with pauses: samples (N,) float64."""
    from scipy.signal import lfilter

    parts = [np.zeros(rate // 10)]
    for formants in words:
        pulses = np.diff(np.floor(np.arange(rate // 4) * rng.uniform(90, 220) / rate), prepend=0.0)
        for formant in formants:
            radius = np.exp(-np.pi * 80 / rate)
            pulses = lfilter([1.0], [1.0, -2 * radius * np.cos(2 * np.pi * formant / rate), radius**2], pulses)
        parts += [0.3 * pulses / np.abs(pulses).max(), np.zeros(rate // 20)]
    samples = np.concatenate(parts)
    return samples + 0.001 * rng.standard_normal(len(samples))


def make_mucs(folder, train=12, test=4, seed=0):
    """A MUCS 2021 folder of two languages, words in place of sentences, at several rates. Returns the folder.

    Its flaws: an empty file, a line without audio, audio without a line, one stereo file.
    """
    rng = np.random.default_rng(seed)
    folder = Path(folder)
    for language, lexicon in WORDS.items():
        for split, count in (("train", train), ("test", test)):
            lines = [f"{language}_{split}_none {next(iter(lexicon))}", f"{language}_{split}_empty {next(iter(lexicon))}"]
            audio = folder / language / split / "audio"
            audio.mkdir(parents=True)
            (audio / f"{language}_{split}_empty.wav").write_bytes(b"")
            for number in range(count):
                words = [str(word) for word in rng.choice(list(lexicon), rng.integers(1, 4))]
                rate = int(rng.choice([8000, 11025, 16000]))
                samples = spoken([lexicon[word] for word in words], rate, rng)
                name = f"{language}_{split}_{number:02d}"
                soundfile.write(audio / f"{name}.wav", np.stack([samples, samples], 1) if number == 0 else samples, rate)
                lines.append(f"{name} {' '.join(words)}")
            soundfile.write(audio / f"{language}_{split}_extra.wav", samples, rate)
            (audio.parent / "transcription.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
