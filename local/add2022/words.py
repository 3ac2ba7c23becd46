"""Letters, syllables and words of people, joined to utterances: more people for local/add2022/mini.py.

They are of the Debian packages klettres-data and ktuberling-data (GPL 2), games of KDE for children, one volunteer a language,
of 0.2 to 2 s each, mostly at 44.1 kHz, and the exclamations of local/add2022/games.py. Of a voice they are joined in a random
order until they are `LONGEST` long, each once.

Left out of those in local/voices.py are ktuberling in Catalan, whose voice is that of tuxpaint-ca, ktuberling in Lithuanian,
83 % of which an earlier detector called fake, and klettres in Dutch, a language of dev; of ktuberling in French,
the words at 8 kHz.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from local.add2022.games import HEDGEWARS, fetch_shouts
from local.synthesis.recording_chain import RATE, speech_bounds
from local.voices import fetch_clips, load_clip
from pyspeech.fetch.unpack import made_once

WORDS = (
    *(f"klettres-{language}" for language in "ar cs da de en en_GB es fr he hu it lt ml nb nds pt_BR ru tn uk".split()),
    *(f"ktuberling-{language}" for language in ["da", "de", "el", "en", "fr", "ru", "sl", "uk", "wa"]),
)
LONGEST = 5.0  # seconds of an utterance, or up to a word more
PAUSE = 0.08  # seconds kept before and after a word
OVERLAP = 0.04  # seconds in which one fades into the next, with the power of the noise between them as it is
SHORTEST = 0.15  # seconds of a word, after which it is taken for one
PEAK = 0.9


def fetch_words(names: Sequence[str]) -> dict[str, dict[str, list[Path]]]:
    """{voice: {voice: sorted paths of its joined utterances}} of some of WORDS and of HEDGEWARS, joined in the cache once:
    16 kHz FLAC."""
    found = fetch_clips([name for name in names if name in WORDS])
    found.update(fetch_shouts([name for name in names if name in HEDGEWARS]))
    return {voice: {voice: _join_once(voice, *clips)} for voice, clips in found.items()}


def _join_once(voice, folder, clips):
    import soundfile

    def write(target):
        for number, samples in enumerate(join(clips)):
            soundfile.write(str(target / f"{number:03d}.flac"), samples, RATE, subtype="PCM_16")

    return sorted(made_once(folder / f"joined-{voice}", write).glob("*.flac"))


def join(clips: Sequence[Path], seed: int = 0) -> list[np.ndarray]:
    """Paths of single words -> [(N,) at 16 kHz, ...]; those of a lower rate and those in which nothing is said are left out,
    and the last ones, which are not enough for an utterance."""
    import soundfile

    rng, joined, words = np.random.Generator(np.random.PCG64(seed)), [], []
    for path in [clips[index] for index in rng.permutation(len(clips))]:
        word = trim(load_clip(path, RATE)) if soundfile.info(str(path)).samplerate >= RATE else ()
        if len(word):
            words.append(word)
        if sum(map(len, words)) >= LONGEST * RATE:
            joined.append(functools.reduce(_append, words))
            words = []
    return [samples * PEAK / np.abs(samples).max() for samples in joined]


def trim(samples: np.ndarray) -> np.ndarray:
    """What is said in a clip, with PAUSE before and after it, as far as there is one: (N,); (0,) where that is not a word."""
    first, last = speech_bounds(samples)
    if last - first < SHORTEST * RATE:
        return samples[:0]
    pause = int(PAUSE * RATE)
    return samples[max(0, first - pause) : last + pause]


def _append(before, word):
    size = int(OVERLAP * RATE)
    fade = np.sin(np.linspace(0.0, np.pi / 2, size))
    return np.concatenate([before[:-size], before[-size:] * fade[::-1] + word[:size] * fade, word[size:]])
