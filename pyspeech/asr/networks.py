"""Streaming multilingual RNN transducers (Joshi et al. 2021, sections 3 and 4, Figures 1 and 2).

    features -> encoder -> projection -+
                                       + -> tanh -> output layer of the head -> logits
     symbols -> predictor -> projection +

A head is an output layer with its vocabulary (0 is the blank) and its embedding of the predictor's input symbols:

    monolingual     one head
    vanilla         one head over the union of the languages' symbols
    onehot          as vanilla, with the language, one-hot, appended to the inputs of encoder and predictor; the heads,
                    one for each language, differ in that input alone
    multi_softmax   a head for each language; with `lsp` a prediction network for each language; with `lid` language
                    identification on the encoder

B utterances, T encoder frames, S symbols, D encoder size, P predictor size, J joint size, V symbols of a head, L heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from pyspeech.asr.encoder import LidHead
from pyspeech.asr.joint import Joint
from pyspeech.asr.predictor import Predictor
from pyspeech.asr.registry import ENCODERS
from pyspeech.errors import UserError

if TYPE_CHECKING:
    from pyspeech.asr.config import TransducerConfig


class Transducer(torch.nn.Module):
    """RNN transducer.

    config: TransducerConfig; vocabularies: {language code: V}, for vanilla and onehot the union's V for each.

    Attributes: config, languages (codes in order), num_heads, vocabulary_sizes (of each head).
    """

    def __init__(self, config: TransducerConfig, vocabularies: Mapping[str, int]) -> None:
        super().__init__()
        config.check()
        config.check_vocabularies(vocabularies)
        entry = ENCODERS[config.encoder]
        config = replace(config, encoder_options=entry.all_options(config))  # so that files of models say them all
        self.config, self.vocabularies = config, dict(vocabularies)
        self.languages = list(vocabularies)
        onehot = config.structure == "onehot"
        self.num_heads = len(vocabularies) if config.structure in ("onehot", "multi_softmax") else 1
        self.vocabulary_sizes = list(vocabularies.values())[: self.num_heads]
        sizes = self.vocabulary_sizes if config.structure == "multi_softmax" else self.vocabulary_sizes[:1]
        self.encoder = entry.build(config, config.features + (self.num_heads if onehot else 0))
        self.predictor = Predictor(config, sizes, self.num_heads, onehot)
        self.joint = Joint(config, sizes, self.num_heads)
        self.lid = LidHead(config, len(self.languages)) if config.lid else None
        # For the pruned loss, in training alone.
        self.simple_am_outputs = torch.nn.ModuleList(torch.nn.Linear(config.encoder_size, size) for size in sizes)
        self.simple_lm_outputs = torch.nn.ModuleList(torch.nn.Linear(config.predictor_size, size) for size in sizes)

    def head_of(self, language: str) -> int:
        """The head for a language code; UserError for a language that the model does not know."""
        if language not in self.languages:
            raise UserError(f"language {language}: the model knows {', '.join(self.languages)}")
        return self.languages.index(language) if self.num_heads > 1 else 0

    def encode(
        self,
        features: torch.Tensor,
        lengths: torch.Tensor,
        state: Any = None,
        languages: torch.Tensor | None = None,
        last: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """Encode utterances, or the next frames of each.

        features    (B, T, F); frames behind an utterance's end may hold anything
        lengths     (B,) int64, frames of each; of an utterance that has ended none
        state       what `encode` returned for the frames before, to be carried as it is; None at the start
        languages   (B,) int64, index into `self.languages`: for onehot, which needs it, and no other
        last        no more frames follow; otherwise an encoder may hold some back, for the next call
        Returns encoded (B, T', D), lengths (B,), how many of its frames count, and the state, for the next call.
        """
        if features.shape[2] != self.config.features:
            raise UserError(f"features of {features.shape[2]} values a frame: the model expects {self.config.features}")
        if self.config.structure == "onehot":
            if languages is None:
                raise UserError("a onehot model has to be told the language: one of " + ", ".join(self.languages))
            onehot = torch.nn.functional.one_hot(languages, self.num_heads).to(features.dtype)
            features = torch.cat([features, onehot[:, None].expand(-1, features.shape[1], -1)], dim=2)
        return self.encoder(features, lengths, self.encoder.start(features) if state is None else state, last)

    def project_encoded(self, encoded: torch.Tensor) -> torch.Tensor:
        """(..., D) -> (..., J), ready for `logits` and `head_logits`."""
        return self.joint.encoder(encoded)

    def predictor_start(self, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The predictor's state before the start symbol (the blank): two tensors (layers, rows, P)."""
        return self.predictor.start(rows)

    def predict(
        self, tokens: torch.Tensor, heads: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """The predictor's next step in a search over rows of any heads.

        tokens (R,) int64, heads (R,) int64, state of R rows along dimension 1
        Returns projected predictions (R, J) and the new state.
        """
        predicted, state = self.predictor.step(tokens, heads, state)
        return self.joint.predictor(predicted), state

    def predict_sequence(self, tokens: torch.Tensor, head: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Predictions for whole references: tokens (B, S) int64 of one head, padded with any symbols.

        Returns projected (B, S + 1, J), for `head_logits`, and as they are (B, S + 1, P), for `simple_lm`; entry s
        follows the start symbol and the first s tokens.
        """
        predicted = self.predictor.sequence(tokens, head)
        return self.joint.predictor(predicted), predicted

    def logits(self, encoded: torch.Tensor, predicted: torch.Tensor, heads: Sequence[int] | None = None) -> torch.Tensor:
        """Compute all heads at once: projected encoded and predicted (L, N, J), row l by head l -> (L, N, Vmax).

        heads: a list of heads, one a row, where not all of them take part. Symbols that a head lacks have logit -1e30.
        """
        return self.joint.logits(encoded, predicted, heads)

    def head_logits(self, encoded: torch.Tensor, predicted: torch.Tensor, head: int) -> torch.Tensor:
        """Compute one head: projected encoded and predicted, broadcastable (..., J) -> (..., V)."""
        return self.joint.head_logits(encoded, predicted, head)

    def simple_am(self, encoded: torch.Tensor, head: int) -> torch.Tensor:
        """Logits of the encoder alone, for the pruned loss: (B, T, D) -> (B, T, V)."""
        return self.simple_am_outputs[head if len(self.simple_am_outputs) > 1 else 0](encoded)

    def simple_lm(self, predicted: torch.Tensor, head: int) -> torch.Tensor:
        """Logits of the predictor alone, for the pruned loss: (B, S + 1, P), not projected -> (B, S + 1, V)."""
        return self.simple_lm_outputs[head if len(self.simple_lm_outputs) > 1 else 0](predicted)

    def lid_log_posteriors(self, encoded: torch.Tensor) -> torch.Tensor:
        """Log posteriors of the languages for every frame: (..., D) -> (..., languages); UserError without `lid`."""
        if self.lid is None:
            raise UserError("the model has no language identification: it was trained with lid=false")
        return self.lid(encoded)
