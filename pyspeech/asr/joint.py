"""The joint network (Joshi et al. 2021, section 4): projections of encoder and predictor, tanh, an output layer a head.

The paper's text has the whole joint network language specific; the sizes in its Table 6 have room for language specific
output layers alone, so the two projections are shared by the languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from pyspeech.asr.packing import PackingModule

if TYPE_CHECKING:
    from pyspeech.asr.config import TransducerConfig

IMPOSSIBLE = -1e30  # logit of a symbol that a head does not have


class Joint(PackingModule):
    """Joint network.

    config: TransducerConfig; sizes: symbols of each output layer: one for all of num_heads, or one each.
    """

    def __init__(self, config: TransducerConfig, sizes: Sequence[int], num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.sizes = num_heads, sizes
        self.encoder = torch.nn.Linear(config.encoder_size, config.joint)
        self.predictor = torch.nn.Linear(config.predictor_size, config.joint)
        self.outputs = torch.nn.ModuleList(OutputLayer(config.joint, size) for size in sizes)

    def head_logits(self, encoded: torch.Tensor, predicted: torch.Tensor, head: int) -> torch.Tensor:
        """Projected encoded and predicted, broadcastable (..., J) -> (..., V of the head)."""
        return self.outputs[head if len(self.outputs) > 1 else 0](torch.tanh(encoded + predicted))

    def logits(self, encoded: torch.Tensor, predicted: torch.Tensor, heads: Sequence[int] | None = None) -> torch.Tensor:
        """Projected encoded and predicted (L, N, J), row l by head l, or by heads[l] -> (L, N, Vmax).

        heads: a list of L numbers. Symbols that a head does not have are IMPOSSIBLE.
        """
        key = None if heads is None else tuple(int(head) for head in heads)
        weight, bias = self._packing.get(key, list(self.outputs.parameters()), lambda: self._pack(key))
        return torch.baddbmm(bias, torch.tanh(encoded + predicted), weight)

    def _pack(self, heads):
        """Weights (L, J, Vmax) and biases (L, 1, Vmax) of the output layers of `heads`."""
        heads = range(self.num_heads) if heads is None else heads
        numbers = [head if len(self.outputs) > 1 else 0 for head in heads]
        layers: list[OutputLayer] = [self.outputs[number] for number in numbers]  # pyright: ignore[reportAssignmentType]
        pad, widest = torch.nn.functional.pad, max(self.sizes)
        weight = torch.stack([pad(layer.weight.t(), (0, widest - layer.out_features)) for layer in layers])
        bias = torch.stack([pad(layer.bias, (0, widest - layer.out_features), value=IMPOSSIBLE) for layer in layers])
        return weight, bias[:, None]


class OutputLayer(torch.nn.Linear):
    """A type of its own, as dynamic quantisation of torch.nn.Linear has to leave it alone: its weights are packed."""
