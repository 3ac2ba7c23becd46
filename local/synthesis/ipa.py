"""Texts in the International Phonetic Alphabet, by eSpeak NG, for the networks that are told what to say in it; and their
ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from local.synthesis import espeak
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

MARKS = {"–": "—", "-": "—", "·": ";"}  # of punctuation


def transcribe(
    texts: Sequence[tuple[str, str]],
    vocabulary: Collection[str],
    where: tuple[Path | str, Path | str] | None,
    spelling: Mapping[str, str] | None = None,
) -> list[str]:
    """Symbols of a network's vocabulary for a list of (language, text): list of str.

    eSpeak NG leaves punctuation out, so that it is given what stands between marks. where: its library and data.
    spelling: {what eSpeak NG writes: the network's symbol for it}, where they differ.
    """
    pieces = [(number, language, *piece) for number, (language, text) in enumerate(texts) for piece in split(text, language)]
    found = [""] * len(texts)
    said = {}
    for language in sorted({language for language, _ in texts}):
        chosen = sorted({words for _, of, words, _ in pieces if of == language and words})
        said.update(
            zip(((language, words) for words in chosen), espeak.transcribe(chosen, language, where, ipa=True), strict=True)
        )
    for number, language, words, mark in pieces:
        spoken = " ".join(filter(None, (symbols_of(word, vocabulary, spelling) for word in said.get((language, words), ()))))
        if spoken:  # a mark without words before it says nothing
            found[number] += spoken + (mark if mark in vocabulary else "." * bool(mark)) + " "
    return [symbols.strip() for symbols in found]


def split(text: str, language: str) -> list[tuple[str, str]]:
    """A text at its marks of punctuation: list of (words, mark or "")."""
    if language == "el":  # where the semicolon asks and the raised dot divides
        text = re.sub(r"[;\u037e]", "?", text)
    pieces = re.split(r"\s*([,.;:!?…·\u0387]+(?=[\s\"'”»)]|$)|[—–]|(?<=\s)-(?=\s))", text)
    marks = [MARKS.get(mark[:1].replace("\u0387", "·"), mark[:1]) for mark in pieces[1::2]] + [""]
    return [(words.strip(), mark) for words, mark in zip(pieces[::2], marks, strict=False)]


def symbols_of(word: Iterable[str], vocabulary: Collection[str], spelling: Mapping[str, str] | None = None) -> str:
    """A word as eSpeak NG writes it, list of phonemes in IPA, in symbols of the vocabulary; the others are dropped."""
    spoken = ""
    for phoneme in word:
        phoneme = re.sub(r"\(.*?\)", "", phoneme)  # "(en)": read by the rules of another language
        for written, symbol in (spelling or {}).items():
            phoneme = phoneme.replace(written, symbol)
        spoken += "".join(symbol for symbol in phoneme if symbol in vocabulary)
    return spoken


def load_network(path: Path | str, name: str, seed: int | None = None) -> InferenceSession:
    """An ONNX Runtime session of one thread. name: of the engine, for what is said where the package is missing or the
    network damaged (UserError). seed: of the random numbers that its nodes draw."""
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError(
            f"{name} needs the package onnxruntime ({error}); run ./path.sh to bring the environment up to date"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if seed is not None:
        onnxruntime.set_seed(seed)
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its kinds are private to onnxruntime
        raise UserError(
            f"{path}: ONNX Runtime cannot load it ({(str(error).splitlines() or ['damaged'])[0]}); "
            f"remove it and run the same command again"
        ) from None
