"""Layers of the unit models (Tjandra et al. 2020, sections 2 to 4): Transformer, convolutions, positions; all masked.

Sequences are (B, T, D) with lengths (B,) int64; `mask` is (B, T) bool, true for the frames that exist. What stands behind an
utterance's end reaches none of its frames: attention leaves it out, and before each convolution it is set to zero, as is
what lies beyond the ends. So an utterance gives the same alone and in a batch. Normalisation is over the values of a frame,
for the same reason: statistics of a batch would depend on its padding.
"""

import math

import torch
from torch.nn import functional

from pyspeech.compat import full_precision

QUERIES_AT_ONCE = 1024  # frames that attend at once, out of training: bounds the memory for long recordings


def length_mask(lengths: torch.Tensor, size: int) -> torch.Tensor:
    """Make a mask from lengths (B,): (B, size) bool, true for the first `lengths` of each row."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def add_positions(sequence: torch.Tensor) -> torch.Tensor:
    """Sinusoidal positions (Vaswani et al. 2017, section 3.5) added to (B, T, D), D even: in fp32, also to bf16."""
    length, dim = sequence.shape[1:]
    rates = torch.exp(torch.arange(0, dim, 2, device=sequence.device) * (-math.log(10000.0) / dim))
    angles = torch.arange(length, device=sequence.device)[:, None] * rates
    return sequence + torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


class TransformerLayer(torch.nn.Module):
    """Self-attention and two linear layers, each on the normalised sum of what came before (equations 1-3, Figure 1)."""

    def __init__(self, dim: int, heads: int, feedforward: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.feedforward_norm = torch.nn.LayerNorm(dim), torch.nn.LayerNorm(dim)
        self.inputs, self.output = torch.nn.Linear(dim, 3 * dim), torch.nn.Linear(dim, dim)
        self.feedforward = torch.nn.Sequential(
            torch.nn.Linear(dim, feedforward), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(feedforward, dim)
        )
        self.dropout = torch.nn.Dropout(dropout)
        for layer in (self.inputs, self.output):
            torch.nn.init.xavier_uniform_(layer.weight)
            torch.nn.init.zeros_(layer.bias)

    def forward(self, sequence: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(B, T, D), mask (B, T) with at least one frame a row -> (B, T, D)."""
        sequence = sequence + self.dropout(self._attend(self.attention_norm(sequence), mask))
        return sequence + self.dropout(self.feedforward(self.feedforward_norm(sequence)))

    def _attend(self, sequence, mask):
        batch, length, dim = sequence.shape
        split = self.inputs(sequence).view(batch, length, 3, self.heads, dim // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)  # each (B, heads, T, D / heads)
        left_out = torch.zeros_like(mask, dtype=queries.dtype).masked_fill(~mask, -math.inf)[:, None, None]
        step = length if self.training else QUERIES_AT_ONCE
        parts = []
        for some in (queries / math.sqrt(dim // self.heads)).split(step, dim=2):
            weights = (some @ keys.transpose(2, 3) + left_out).softmax(dim=3)
            parts.append(self.dropout(weights) @ values)
        return self.output(torch.cat(parts, dim=2).transpose(1, 2).reshape(batch, length, dim))


class Convolution(torch.nn.Module):
    """Convolution over time of a masked sequence: an odd kernel, or of 4 frames with stride 2 where `halve`."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, halve: bool = False) -> None:
        super().__init__()
        padding = 1 if halve else kernel // 2
        self.conv = torch.nn.Conv1d(inputs, outputs, 4 if halve else kernel, stride=2 if halve else 1, padding=padding)

    def forward(self, sequence: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(B, T, inputs), mask (B, T) -> (B, T, outputs); where `halve`, T has to be even, and T / 2 frames result."""
        return self.conv((sequence * mask[:, :, None]).transpose(1, 2)).transpose(1, 2)


class ResidualConvolution(torch.nn.Module):
    """x + two convolutions of the normalised x, of three frames and of one."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)
        self.wide, self.narrow = Convolution(dim, dim, 3), torch.nn.Linear(dim, dim)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, sequence: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = functional.leaky_relu(self.wide(functional.leaky_relu(self.norm(sequence)), mask))
        return sequence + self.dropout(self.narrow(hidden))


class MultiscaleConvolution(torch.nn.Module):
    """Kernels of 1, 3, ... `widest` frames side by side, each with its share of the output (Figure 4)."""

    def __init__(self, inputs: int, outputs: int, widest: int) -> None:
        super().__init__()
        kernels = range(1, widest + 1, 2)
        shares = [outputs // len(kernels)] * len(kernels)
        shares[0] += outputs - sum(shares)
        self.convolutions = torch.nn.ModuleList(
            Convolution(inputs, share, kernel) for kernel, share in zip(kernels, shares, strict=True) if share
        )
        self.norm = torch.nn.LayerNorm(outputs)

    def forward(self, sequence: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        outputs = torch.cat([convolution(sequence, mask) for convolution in self.convolutions], dim=2)
        # CUDA's autocast normalises in fp32 by itself, that of a CPU in torch 1.13 refuses bf16.
        return functional.leaky_relu(self.norm(full_precision(outputs)))
