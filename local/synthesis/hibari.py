"""Synthetic speech by Hibari, a small neural network whose speech is harmonics and noise: hibari-tts (Apache-2.0).

One voice of American English, "heart", learnt from what Kokoro-82M says in its voice af_heart. Unlike Kokoro's, its vocoder is
a source and filters: for each frame of 12.5 ms the network gives F0 and three spectra, one that pulses of that F0 are filtered
by, one of noise, and one with phases of its own; their sum is inverted, as in Vocos (Siuzdak 2023). It is run by ONNX Runtime,
in a thirtieth of the length of the speech. It says what it is told in the International Phonetic Alphabet, here by eSpeak NG,
in Kokoro's symbols: any language, all but English with an accent.

The noise follows from a seed; no node of the network draws random numbers.
"""

import json
from collections.abc import Iterable, Mapping

import numpy as np

from local.synthesis import espeak
from local.synthesis.ipa import load_network, transcribe
from local.synthesis.kokoro import SYMBOLS
from local.synthesis.vocoders import istft, stft
from pyspeech.errors import UserError

RATE = 24000
N_FFT, HOP = 1200, 300
VOICES = ("heart",)
LONGEST = 400  # symbols of a text
LOUDEST = 7.0  # natural logarithm of a magnitude
LOWEST, HIGHEST = 40.0, 11000.0  # Hz: of F0 where there is voice, of harmonics
DATA = ("hibari-tts", "hibari_tts-0.2.1-py3-none-any.whl", "49f2abbbe451c988e7448b5afa08c8a56410535ebb855c0e7d174275df5ca1f3")


def model() -> dict[str, str]:
    """{name: path} of the network, its vocabulary, and eSpeak NG's library and data; downloaded into the cache (14 MB and
    eSpeak NG) where they are not there."""
    from pyspeech.fetch.download import fetch_pypi
    from pyspeech.fetch.unpack import unpack

    names = [f"hibari/assets/{name}" for name in ("hibari.onnx", "vocab.json")]
    network, vocabulary = (str(unpack(fetch_pypi(*DATA), names) / name) for name in names)
    library, data = espeak.library()
    return {"network": network, "vocabulary": vocabulary, "espeak": str(library), "espeak_data": str(data)}


def synthesize(
    utterances: Iterable[tuple[int, str, str]], where: Mapping[str, str] | None = None
) -> list[tuple[np.ndarray, int]]:
    """Speak a list of (seed, eSpeak NG's name of the language, text): list of (int16 array (N,), 24000).

    where: default `model()`. One thread. UserError in one line where a text has no sound or more than 400 symbols, the
    network cannot be loaded, or eSpeak NG fails.
    """
    utterances = list(utterances)
    where = where or model()
    with open(where["vocabulary"], encoding="utf-8") as stream:
        vocabulary = json.load(stream)
    library = where["espeak"], where["espeak_data"]
    written = transcribe([(language, text) for _, language, text in utterances], vocabulary, library, SYMBOLS)
    session = load_network(where["network"], "Hibari")
    found = []
    for (seed, language, text), symbols in zip(utterances, written, strict=True):
        if not symbols.strip() or len(symbols) > LONGEST:
            raise UserError(
                f"Hibari cannot speak the {language} text '{text[:60]}': {len(symbols)} symbols, expected 1 to {LONGEST}"
            )
        order = {
            "ids": np.array([[0, *(vocabulary[symbol] for symbol in symbols), 0]], dtype=np.int64),
            "speed": np.ones(1, dtype=np.float32),
        }
        told = session.run(["f0", "lh", "theta", "ln", "lr", "phi"], order)
        samples = vocode(np.random.default_rng(seed), *(np.asarray(values, dtype=np.float64)[0] for values in told))
        found.append((np.rint(np.clip(samples, -1.0, 1.0) * 32767).astype(np.int16), RATE))
    return found


def vocode(
    rng: np.random.Generator,
    f0: np.ndarray,
    filters: np.ndarray,
    turns: np.ndarray,
    noise: np.ndarray,
    free: np.ndarray,
    phases: np.ndarray,
) -> np.ndarray:
    """F0 in Hz (T,) and (601, T) each of: log-magnitudes of the filters and what turns the harmonics' phases, log-magnitudes
    of noise, log-magnitudes and phases of the third spectrum -> (300 T,) at 24 kHz."""
    harmonics = stft(pulses(f0), N_FFT, HOP)[: len(f0)].T / HOP  # each of magnitude 1: half the sum of a window
    random = rng.standard_normal(noise.shape) + 1j * rng.standard_normal(noise.shape)
    spectra = _magnitudes(filters) * np.exp(1j * np.pi * np.tanh(turns)) * harmonics
    spectra += _magnitudes(noise) * random + _magnitudes(free) * np.exp(1j * phases)
    return istft(spectra.T, len(f0) * HOP, N_FFT, HOP)


def _magnitudes(logarithms):
    return np.exp(np.minimum(logarithms, LOUDEST))


def pulses(f0: np.ndarray) -> np.ndarray:
    """F0 in Hz (T,) every 300 samples -> (300 T,): the sum of cosines of amplitude 1 at its multiples up to 11 kHz, 0 where it
    is below 40 Hz."""
    places = (np.arange(len(f0) * HOP) + 0.5) / HOP - 0.5
    each = np.interp(places, np.arange(len(f0)), f0)
    voiced = each > LOWEST
    each = np.maximum(each, LOWEST)
    half = np.pi * (np.cumsum(each) / RATE % 1.0)
    count = np.floor(HIGHEST / each) + 0.5
    narrow = np.abs(np.sin(half)) < 1e-3  # where the quotient of sines is its limit
    summed = np.where(narrow, count, np.sin(2 * count * half) / np.where(narrow, 1.0, 2 * np.sin(half)))
    return np.where(voiced, summed - 0.5, 0.0)
