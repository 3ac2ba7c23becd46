"""A small made-up corpus in the layout of ZeroSpeech 2019, for tests; no network, no recordings."""

from pathlib import Path

import numpy as np
import soundfile

RATE = 16000
PHONES = {"a": (750, 1200), "i": (300, 2300), "u": (320, 800), "e": (500, 1800), "o": (480, 950)}  # two formants, Hz
CONTEXT = ("m", "n")  # what all snippets stand between
VOICES = {"V001": (110, 1.0), "V002": (210, 1.17)}  # pitch in Hz, factor of the formants
UNIT_SPEAKERS = {"S001": (95, 0.95), "S004": (180, 1.12), "S015": (140, 1.03)}
TEST_SPEAKERS = {"S002": (120, 1.01), "S003": (200, 1.15), "S030": (160, 1.08)}


def phone_sound(phone, seconds, speaker, rng):
    """A vowel of a speaker (pitch, factor of the formants): pulses through two resonances; samples (N,) float64."""
    from scipy.signal import lfilter

    pitch, factor = speaker
    glide = pitch * rng.uniform(0.95, 1.05) * np.linspace(1.05, 0.95, int(seconds * RATE))
    signal = np.diff(np.floor(np.cumsum(glide / RATE)), prepend=0.0)
    for formant in PHONES[phone]:
        angle, radius = 2 * np.pi * formant * factor * rng.uniform(0.97, 1.03) / RATE, np.exp(-np.pi * 90 / RATE)
        signal = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], signal)
    return 0.3 * signal / (np.abs(signal).max() + 1e-9) + 0.002 * rng.standard_normal(len(signal))


def sentence(speaker, rng, phones=7):
    """Vowels and hisses in a row, about a second: samples (N,) float64."""
    parts = []
    for phone in rng.choice(list(PHONES), phones):
        parts += [
            phone_sound(str(phone), rng.uniform(0.08, 0.14), speaker, rng),
            0.03 * rng.standard_normal(int(rng.uniform(0.02, 0.05) * RATE)),
        ]
    return np.concatenate(parts)


def make_zerospeech(folder, languages=("english",), utterances=6, snippets=2, seed=0):
    """Write folder/<language>/... as the challenge has it and return the folder.

    2 voices and 3 unit speakers with `utterances` sentences each; 3 test speakers with 2 sentences and `snippets` of
    each of 3 phones each; one snippet is 0.095 s long, another one digital silence. triphone.item lists the snippets,
    bitrate_filelist.txt and synthesis.txt the sentences.
    """
    rng = np.random.default_rng(seed)
    for language in languages:
        root = Path(folder) / language
        number = iter(range(1, 10000))

        def write(place, speaker, samples, root=root, number=number):
            name = f"{speaker}_{next(number):010d}"
            path = root / place / f"{name}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(str(path), samples, RATE, "PCM_16")
            return name

        for place, speakers in (("train/voice", VOICES), ("train/unit", UNIT_SPEAKERS)):
            for speaker, sound in speakers.items():
                for _ in range(utterances):
                    write(place, speaker, sentence(sound, rng))
        write("train/parallel/source", "S001", sentence(UNIT_SPEAKERS["S001"], rng))
        write("train/parallel/voice", "V001", sentence(VOICES["V001"], rng))
        sentences, items = [], []
        for speaker, sound in TEST_SPEAKERS.items():
            sentences += [
                (write("test", speaker, samples), len(samples) / RATE) for samples in (sentence(sound, rng) for _ in range(2))
            ]
            for place in range(3 * snippets):
                phone = "aiu"[place % 3]
                samples = phone_sound(phone, 0.095 if not items else rng.uniform(0.1, 0.25), sound, rng)
                name = write("test", speaker, np.zeros(len(samples)) if len(items) == 4 else samples)
                items.append(f"{name} 0.0000 {len(samples) / RATE:.4f} {phone} {' '.join(CONTEXT)} {speaker}\n")
        lists = {
            "triphone.item": ["#file onset offset #phone prev-phone next-phone speaker\n", *items],
            "bitrate_filelist.txt": [f"{name}.txt {seconds:.6f}\n" for name, seconds in sentences],
            "synthesis.txt": [f"{name} {list(VOICES)[place % 2]}\n" for place, (name, _) in enumerate(sentences)],
        }
        for name, lines in lists.items():
            (root / name).write_text("".join(lines), encoding="utf-8")
    return Path(folder)
