"""Transducer recognition of audio in a given or identified language (Joshi et al. 2021, section 4.2).

`bundle` is what `pyspeech.asr.checkpoint.load_model` gives: .model, .units {language: units}, .fbank
(FbankConfig), .stats (GlobalStats or None). Audio is samples (N,) float from -1 to 1 at bundle.fbank.sampling_rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from pyspeech.asr.config import EarlyStopping, SearchConfig
from pyspeech.asr.context import check_lists
from pyspeech.asr.early_stopping import EarlyStopper
from pyspeech.asr.hypotheses import words_of
from pyspeech.asr.search import BeamSearch
from pyspeech.errors import UserError
from pyspeech.features.fbank import fbank, stack

if TYPE_CHECKING:
    from pyspeech.asr.checkpoint import Bundle
    from pyspeech.asr.context import Context, Phrases

BLOCK = 1000  # frames (30 s) encoded at once: hours fit in memory
BATCH = 16  # utterances decoded at once


@dataclass
class Alternative:
    """Entry of an n-best list: text, natural log of its probability (with a context, the sum of all scores), geometric mean of
    its symbols' probabilities."""

    text: str
    score: float
    confidence: float


@dataclass
class Recognition:
    """Recognition result of an utterance."""

    text: str
    language: str  # code; None where the symbols of a vanilla model fit no or several languages
    confidence: float  # geometric mean of the symbols' probabilities, 0 to 1; 0 for an empty text
    words: list  # [Word, ...]
    nbest: list  # [Alternative, ...] in that language, best first; the first is the text above
    start: float  # seconds, of the utterance in its stream
    seconds: float  # length of the utterance
    t_avg: float  # decoders that ran, on average over the frames (equation 2)
    lid: dict = field(default_factory=dict)  # mean posterior of each language; {} where the language was given
    by_language: dict = field(default_factory=dict)  # text of each decoder, as far as it ran
    lid_log_posteriors: object = None  # (T, languages) numpy, of each frame; None where the language was given
    final: bool = True  # False: the utterance goes on

    def moved(self, seconds: float) -> Recognition:
        """The same so many seconds later in its stream."""
        words = [replace(word, start=word.start + seconds, end=word.end + seconds) for word in self.words]
        return replace(self, words=words, start=self.start + seconds)


def recognize(
    bundle: Bundle,
    samples_list: Sequence[np.ndarray | torch.Tensor],
    language: str | None = None,
    search: SearchConfig | None = None,
    early_stopping: EarlyStopping | None = None,
    context: Context | None = None,
    hotwords: Sequence[Phrases | None] | None = None,
) -> list[Recognition]:
    """Recognize utterances: a list of samples (N,) -> [Recognition, ...] in the same order.

    language: code; None to choose it by language identification (multi-softmax with LID), by the symbols' script
    (vanilla), or as there is one (monolingual). search: SearchConfig, None: the model's; early_stopping: EarlyStopping.
    context: Context; hotwords: with a context, for each utterance phrases beside those of the context.
    """
    results: list = [None] * len(samples_list)
    order = sorted(range(len(samples_list)), key=lambda index: -len(samples_list[index]))
    if hotwords is not None:
        check_lists(hotwords, len(samples_list))
    for first in range(0, len(order), BATCH):
        batch = order[first : first + BATCH]
        features = [stack(fbank(samples_list[index], bundle.fbank), bundle.fbank) for index in batch]
        own = None if hotwords is None else [hotwords[index] for index in batch]
        decoder = Decoder(bundle, len(batch), language, search, early_stopping, context, own)
        lengths = torch.tensor([len(item) for item in features])
        features = torch.nn.utils.rnn.pad_sequence(features, batch_first=True)
        for start in range(0, features.shape[1], BLOCK):
            last = start + BLOCK >= features.shape[1]
            decoder.add(features[:, start : start + BLOCK], (lengths - start).clamp(0, BLOCK), last)
        for row, index in enumerate(batch):
            results[index] = decoder.result(row)
    return results


class Decoder:
    """Encoder, language identification, early stopping and search over a batch, whose features come in chunks."""

    def __init__(
        self,
        bundle: Bundle,
        batch: int,
        language: str | None = None,
        search: SearchConfig | None = None,
        early_stopping: EarlyStopping | None = None,
        context: Context | None = None,
        hotwords: Sequence[Phrases | None] | None = None,
    ) -> None:
        self.bundle, self.model = bundle, bundle.model
        model = self.model
        self.language = language if language is not None or len(model.languages) > 1 else model.languages[0]
        heads = range(model.num_heads) if self.language is None else [model.head_of(self.language)]
        if self.language is None and model.num_heads > 1 and model.lid is None:
            raise UserError("this model cannot tell the language; give one of " + ", ".join(model.languages))
        self.stopper = EarlyStopper(batch, len(heads), early_stopping) if len(heads) > 1 else None
        found = None if context is None else context.search_context(heads, batch, hotwords)
        self.beam = BeamSearch(model, batch, heads, search or bundle.search, found)
        self.num_frames = np.zeros(batch, dtype=np.int64)
        self.posteriors = [np.zeros((batch, 0, len(heads)))]
        self.state = None
        parameter = next(model.parameters())
        self._like = {"device": parameter.device, "dtype": parameter.dtype}

    @torch.inference_mode()
    def add(self, features: torch.Tensor, lengths: torch.Tensor | None = None, last: bool = False) -> None:
        """The next T frames (B, T, dim), not normalised; lengths (B,): how many count, all where None; last: none follow."""
        batch, total, _ = features.shape
        lengths = torch.full((batch,), total) if lengths is None else lengths
        if self.bundle.stats is not None:
            features = self.bundle.stats.apply(features)
        features = features.to(**self._like)
        languages = None
        if self.language is not None:
            languages = torch.full((batch,), self.model.languages.index(self.language), device=features.device)
        lengths = lengths.to(features.device)
        encoded, lengths, self.state = self.model.encode(features, lengths, self.state, languages, last)
        if encoded.shape[1] == 0:  # the encoder holds them back
            return
        lengths = lengths.cpu()
        active = None
        if self.stopper:
            self.posteriors.append(self.model.lid_log_posteriors(encoded).double().cpu().numpy())
            active = torch.from_numpy(self.stopper.add(self.posteriors[-1], lengths.numpy()))
        self.beam.add(encoded, lengths, active)
        self.num_frames += lengths.numpy()

    def best_head(self, row: int = 0) -> int:
        """Choose the decoder that gives the result of utterance `row`."""
        return int(self.stopper.best()[row]) if self.stopper else 0

    def last_frame(self, row: int = 0) -> int | None:
        """Frame of the last symbol of utterance `row`; None where it has none."""
        return self.beam.last_frame(row, self.best_head(row))

    def result(self, row: int = 0, start: float = 0.0, final: bool = True) -> Recognition:
        """The Recognition of utterance `row` as far as it is decoded; start: seconds before it in its stream."""
        head, shift = self.best_head(row), self.bundle.frame_seconds
        hypotheses = self.beam.nbest_of(row, head)
        language, units = self._language_of(hypotheses[0].tokens, head)
        alternatives = {}
        for item in hypotheses:
            text = units.decode(item.tokens)
            alternatives.setdefault(text, Alternative(text, item.score, item.confidence))
        nbest = list(alternatives.values())
        words = words_of(hypotheses[0], units, shift)
        for word in words:
            word.start, word.end = word.start + start, word.end + start
        result = Recognition(
            nbest[0].text,
            language,
            nbest[0].confidence,
            words,
            nbest,
            start,
            int(self.num_frames[row]) * shift,
            float(self.num_frames[row] > 0),
            final=final,
        )
        if self.stopper:
            codes = self.model.languages
            result.t_avg = float(self.stopper.t_avg()[row])
            result.lid = dict(zip(codes, self.stopper.mean_posteriors[row].tolist(), strict=True))
            result.lid_log_posteriors = np.concatenate(self.posteriors, axis=1)[row, : self.num_frames[row]]
            result.by_language = {
                code: self.bundle.units[code].decode(self.beam.best(row, index).tokens) for index, code in enumerate(codes)
            }
        return result

    def _language_of(self, tokens, head):
        """(language code or None, units) of symbols that decoder `head` put out."""
        codes = self.model.languages
        if self.language is not None:
            return self.language, self.bundle.units[self.language]
        if self.stopper:
            return codes[head], self.bundle.units[codes[head]]
        units = self.bundle.units[codes[0]]  # vanilla: the union, the same for all
        return units.language_of(tokens), units
