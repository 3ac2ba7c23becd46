"""The prediction network: embedding, then LSTM layers with layer normalisation (Joshi et al. 2021, sections 4, 4.1, 5).

Embeddings belong to a head (a language's output layer); the LSTM layers are shared by all heads, or, for language
specific prediction (LSP), each head has its own. The start symbol is the blank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from pyspeech.asr.encoder import initialise_lstm, run_lstm
from pyspeech.asr.packing import PackingModule

if TYPE_CHECKING:
    from pyspeech.asr.config import TransducerConfig


class Predictor(PackingModule):
    """Prediction network.

    config: TransducerConfig; sizes: rows of each embedding table: one for all of num_heads, or one each.

    onehot: the head's number is appended to the input, one-hot.
    """

    def __init__(self, config: TransducerConfig, sizes: Sequence[int], num_heads: int, onehot: bool = False) -> None:
        super().__init__()
        self.num_heads, self.onehot = num_heads, onehot
        self.layers, self.size = config.predictor_layers, config.predictor_size
        self.embeddings = torch.nn.ModuleList(torch.nn.Embedding(size, config.embedding) for size in sizes)
        inputs = config.embedding + (num_heads if onehot else 0)
        networks = num_heads if config.lsp else 1
        self.networks = torch.nn.ModuleList(PredictorNetwork(config, inputs) for _ in range(networks))

    def start(self, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The state before the first symbol: two tensors (layers, rows, P) of zeros."""
        zeros = self.embeddings[0].weight.new_zeros(self.layers, rows, self.size)  # pyright: ignore[reportCallIssue]
        return zeros, zeros.clone()

    def sequence(self, tokens: torch.Tensor, head: int) -> torch.Tensor:
        """Predict a whole sequence: tokens (B, S) of one head, without a start symbol -> (B, S + 1, P): after the start
        symbol, and after each token."""
        tokens = torch.nn.functional.pad(tokens, (1, 0))
        embedded = self.embeddings[head if len(self.embeddings) > 1 else 0](tokens)
        if self.onehot:
            embedded = self._append(embedded, tokens.new_full(tokens.shape, head))
        network = self.networks[head if len(self.networks) > 1 else 0]
        return network(embedded, self._zeros(embedded))[0]

    def step(
        self, tokens: torch.Tensor, heads: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Predict one step: tokens (R,), heads (R,), state of R rows -> (R, P), state; each row by its own head, in any
        order."""
        weights: list[torch.Tensor] = [layer.weight for layer in self.embeddings]  # pyright: ignore[reportAssignmentType]
        table, offsets = self._packing.get("table", weights, self._pack)
        rows = tokens if len(self.embeddings) == 1 else tokens + offsets[heads]
        embedded = torch.nn.functional.embedding(rows, table)
        if self.onehot:
            embedded = self._append(embedded, heads)
        if len(self.networks) == 1:
            outputs, state = self.networks[0](embedded[:, None], state)
            return outputs[:, 0], state
        return self._step_by_head(embedded, heads, state)  # pyright: ignore[reportReturnType]

    def _step_by_head(self, embedded, heads, state):
        """One network after the other, each on its own rows."""
        present = heads.unique().tolist()
        if len(present) == 1:
            outputs, state = self.networks[present[0]](embedded[:, None], state)
            return outputs[:, 0], state
        places, outputs, states = [], [embedded.new_zeros(0, self.size)], [self.start(0)]
        for head in present:
            rows = (heads == head).nonzero()[:, 0]
            output, new = self.networks[head](embedded[rows, None], tuple(part[:, rows] for part in state))
            places.append(rows)
            outputs.append(output[:, 0])
            states.append(new)
        back = torch.cat(places).argsort() if places else heads
        return torch.cat(outputs)[back], tuple(torch.cat(parts, dim=1)[:, back] for parts in zip(*states, strict=True))

    def _pack(self):
        """All tables in one, and where each head's begins in it."""
        layers: list[torch.nn.Embedding] = list(self.embeddings)  # pyright: ignore[reportAssignmentType]
        sizes = [layer.num_embeddings for layer in layers]
        offsets = torch.tensor([sum(sizes[:index]) for index in range(len(sizes))], device=layers[0].weight.device)
        table = layers[0].weight if len(sizes) == 1 else torch.cat([layer.weight for layer in layers])
        return table, offsets

    def _append(self, embedded, heads):
        return torch.cat([embedded, torch.nn.functional.one_hot(heads, self.num_heads).to(embedded.dtype)], dim=-1)

    def _zeros(self, embedded):
        zeros = embedded.new_zeros(self.layers, len(embedded), self.size)
        return zeros, zeros


class PredictorNetwork(torch.nn.Module):
    """LSTM layers, each followed by layer normalisation; dropout between them."""

    def __init__(self, config: TransducerConfig, inputs: int) -> None:
        super().__init__()
        sizes = [inputs] + [config.predictor_size] * config.predictor_layers
        self.lstms = torch.nn.ModuleList(torch.nn.LSTM(size, config.predictor_size, batch_first=True) for size in sizes[:-1])
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(config.predictor_size) for _ in sizes[:-1])
        self.dropout = config.dropout
        for lstm in self.lstms:
            initialise_lstm(lstm)  # pyright: ignore[reportArgumentType]

    def forward(
        self, inputs: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """inputs (R, S, I), state two tensors (layers, R, P) -> outputs (R, S, P), state."""
        states = []
        for layer, (lstm, norm) in enumerate(zip(self.lstms, self.norms, strict=True)):
            if layer:
                inputs = torch.nn.functional.dropout(inputs, self.dropout, self.training)
            before = tuple(part[layer : layer + 1] for part in state)
            inputs, new = run_lstm(lstm, inputs, before)  # pyright: ignore[reportArgumentType]
            inputs = norm(inputs)
            states.append(new)
        return inputs, tuple(torch.cat(parts) for parts in zip(*states, strict=True))  # pyright: ignore[reportReturnType]
