"""Forced alignment: the times of the words and symbols of a given text, from the most probable path of a transducer.

A path goes through the lattice of pyspeech/asr/lattice.py, with the maximum in place of the sum (Viterbi). It puts
symbol s + 1 out in the frame that it is in after s symbols; several symbols may share a frame. A streaming transducer
puts a symbol out when it has heard enough of it, so its times are later than the sounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from pyspeech.asr.aligned import Alignment
from pyspeech.asr.config import language_among
from pyspeech.asr.hypotheses import Hypothesis, Word, words_of
from pyspeech.errors import UserError
from pyspeech.features.fbank import fbank, stack
from pyspeech.text.normalize import normalize
from pyspeech.text.tags import Tags, most

if TYPE_CHECKING:
    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.networks import Transducer

LARGEST = 50_000_000  # frames x symbols: an hour of computing in the paper's sizes, and half a gigabyte
SLAB = 2**22  # values of the joint network computed at once
BLOCK = 1000  # frames encoded at once
SHOWN = 60  # characters of a text in a message


def align(
    bundle: Bundle, samples: np.ndarray | torch.Tensor, text: str, language: str | None = None, name: str = "recording"
) -> Alignment:
    """Align a text with the recording in which it is said.

    Args:
        bundle: A model with its units and features.
        samples: (N,) float from -1 to 1 at the model's sampling rate.
        text: What is said, in any spelling that the normaliser takes; tags such as <noise> are dropped.
        language: Code; None takes, of the languages that have all characters of the text, the one that makes it most
            probable.
        name: Of the recording.

    Raises:
        UserError: where there are no samples, where no language has all characters, and for texts and recordings that
            are too long.
    """
    if len(samples) == 0:
        raise UserError(f"{name}: no samples")
    model = bundle.model
    codes = model.languages if language is None else [language_among(language, model.languages)]
    tokens, duration = _tokens(bundle, text, codes), len(samples) / bundle.fbank.sampling_rate
    features = stack(fbank(samples, bundle.fbank), bundle.fbank)
    most_symbols = max(map(len, tokens.values()))
    if len(features) * most_symbols > LARGEST:
        raise UserError(
            f"{name}: {len(features)} frames and {most_symbols} symbols are too many to align at once; cut the recording at "
            "pauses, with pyspeech detect --cut, and its text with it"
        )
    found, encoded = [], None
    for code in tokens if model.num_heads > 1 else list(tokens)[:1]:
        if encoded is None or model.config.structure == "onehot":
            encoded = _encode(bundle, features, code)
        found.append((code, *best_path(_columns(model, encoded, tokens[code], model.head_of(code)))))
    code, frames, log_probs, score = max(found, key=lambda one: one[-1])
    units, hypothesis = bundle.units[code], Hypothesis(tokens[code], score, frames, log_probs)
    symbols = _symbols(hypothesis, units, bundle.frame_seconds, duration)
    return Alignment(
        name,
        units.decode(tokens[code]),
        units.language_of(tokens[code]) if len(codes) > 1 and model.num_heads == 1 else code,
        _words(hypothesis, symbols, units),
        symbols,
        score,
        hypothesis.confidence,
        duration,
    )


def best_path(columns: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[list[int], list[float], float]:
    """Find the most probable path through a lattice; in case of a tie, symbols come late.

    Args:
        columns: For each of T frames px (S,) and py (S + 1,), the log probabilities of the next symbol and of blank.

    Returns:
        The frame of each of the S symbols, its log probability there, and the log probability of the path.
    """
    scores, origins, arcs = None, [], []
    for px, py in columns:
        if scores is None:
            scores = np.full(len(py), -np.inf)
            scores[0] = 0.0
        climb = np.concatenate([[0.0], np.cumsum(px, dtype=np.float64)])
        # Entering at s' and leaving at s costs climb[s] - climb[s']: the best s' up to each s is a running maximum.
        entered = scores - climb
        highest = np.maximum.accumulate(entered)
        origins.append(np.maximum.accumulate(np.where(entered == highest, np.arange(len(py)), 0)).astype(np.int32))
        arcs.append(px.astype(np.float32))
        scores = highest + climb + py
    if scores is None:
        raise ValueError("a lattice without frames")
    frames, log_probs, place = [0] * (len(scores) - 1), [0.0] * (len(scores) - 1), len(scores) - 1
    for frame in range(len(origins) - 1, -1, -1):
        for symbol in range(int(origins[frame][place]), place):
            frames[symbol], log_probs[symbol] = frame, float(arcs[frame][symbol])
        place = int(origins[frame][place])
    return frames, log_probs, float(scores[-1])


def _tokens(bundle, text, codes):
    """{code: symbols of the text} for the languages that have all its characters."""
    text = Tags().drop(text)
    tokens, unknown = {}, {}
    for code in codes:
        spelt = normalize(text, code)
        unknown[code] = bundle.units[code].count_unknown([spelt])
        if not unknown[code]:
            tokens[code] = bundle.units[code].encode(spelt)
    if tokens:
        return tokens
    code = min(unknown, key=lambda code: len(unknown[code]))
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    nearest = ", its nearest language" if len(codes) > 1 else ""
    raise UserError(
        f"text '{shown}': the model has no symbols for {most(unknown[code])} in {code}{nearest}; expected characters of its "
        "training texts: spell these in another way, or leave them out"
    )


@torch.inference_mode()
def _encode(bundle: Bundle, features: torch.Tensor, code: str) -> torch.Tensor:
    """Projected encoder frames (T, J) of features (F, dim)."""
    model, state, parts = bundle.model, None, []
    parameter = next(model.parameters())
    languages = torch.tensor([model.languages.index(code)], device=parameter.device)
    for start in range(0, len(features), BLOCK):
        block = features[None, start : start + BLOCK]
        if bundle.stats is not None:
            block = bundle.stats.apply(block)
        block = block.to(device=parameter.device, dtype=parameter.dtype)
        lengths = torch.tensor([block.shape[1]], device=parameter.device)
        last = start + BLOCK >= len(features)
        encoded, lengths, state = model.encode(block, lengths, state, languages, last)
        parts.append(model.project_encoded(encoded[0, : int(lengths)]))
    return torch.cat(parts)


@torch.inference_mode()
def _columns(model: Transducer, encoded: torch.Tensor, tokens: list[int], head: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """px (S,) and py (S + 1,) of each frame of encoded (T, J)."""
    symbols = torch.tensor([tokens], dtype=torch.int64, device=encoded.device)
    predicted = model.predict_sequence(symbols, head)[0][0]  # (S + 1, J)
    widest = max(predicted.shape[1], model.vocabulary_sizes[head])
    for frames in encoded.split(max(1, SLAB // (len(predicted) * widest))):
        log_probs = model.head_logits(frames[:, None], predicted, head).double().log_softmax(dim=-1)
        py = log_probs[:, :, 0].cpu().numpy()
        px = log_probs[:, :-1].gather(2, symbols[:, :, None].expand(len(frames), -1, 1))[:, :, 0].cpu().numpy()
        yield from zip(px, py, strict=True)


def _symbols(hypothesis, units, frame_seconds, duration):
    """[Word, ...] of the symbols; those of a frame share its time evenly, of the last one what the audio has of it."""
    symbols = []
    for token, frame, log_prob in zip(hypothesis.tokens, hypothesis.frames, hypothesis.log_probs, strict=True):
        symbols.append(Word(units.symbols[token], float(frame), frame + 1.0, math.exp(log_prob)))
    for _, group in itertools.groupby(symbols, key=lambda symbol: symbol.start):
        group = list(group)
        for place, symbol in enumerate(group):
            frame = symbol.start
            first, last = frame * frame_seconds, min((frame + 1) * frame_seconds, duration)
            symbol.start = first + place / len(group) * (last - first)
            symbol.end = first + (place + 1) / len(group) * (last - first)
    return symbols


def _words(hypothesis, symbols, units):
    """[Word, ...] from the start of a word's first symbol to the end of its last."""
    numbers = list(range(len(symbols)))  # in place of frames: the times of words are then places of symbols
    words = words_of(replace(hypothesis, frames=numbers), units, 1)
    return [replace(word, start=symbols[int(word.start)].start, end=symbols[int(word.end) - 1].end) for word in words]
