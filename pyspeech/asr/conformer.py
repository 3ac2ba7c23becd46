"""A Conformer encoder for streams (Gulati et al. 2020, section 2, Figure 1), with attention in chunks.

A frame attends to its chunk and to `left` frames before that, and the convolution is causal. In training the size of the
chunks is drawn for each batch, so that one model serves any (Zhang et al. 2020, "Unified streaming and non-streaming two-pass
end-to-end model for speech recognition": causal convolution, dynamic chunk training).

What differs from Gulati et al.: layer normalisation for batch normalisation in the convolution module, whose statistics padding
would change; a learned bias for each distance between frames (Raffel et al. 2020, section 2.1, without buckets) for the
relative encoding of positions; and no convolution that subsamples, as the features are stacked frames. From Zhang et al.:
chunks are of 1 to `chunk` frames, never a whole utterance, and the frames before them are limited.

B rows, T frames, D encoder size, H heads, d values a head, K kernel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from pyspeech.compat import full_precision

if TYPE_CHECKING:
    from pyspeech.asr.config import TransducerConfig


class ConformerEncoder(torch.nn.Module):
    """An Encoder (pyspeech.asr.registry); frames come out as their chunk is complete.

    heads: of the attention. chunk, left: frames, see above. kernel: frames of the convolution. expansion: size of the hidden
    layer of the feed-forward modules, in encoder sizes. The attribute `chunk` of a trained encoder may be set lower.

    state: inputs held back (B, less than chunk, I), how many of them count (B,), which of the last `left` frames count
    (B, left) bool, and of each block its keys and values (B, left, 2 H d) and inputs of its convolution (B, K - 1, D).
    """

    input_layer = ("embed.weight", "embed.bias")

    def __init__(
        self, config: TransducerConfig, inputs: int, heads: int, chunk: int, left: int, kernel: int, expansion: int
    ) -> None:
        super().__init__()
        self.chunk, self.longest, self.left, self.size = chunk, chunk, left, config.encoder_size
        self.embed = torch.nn.Linear(inputs, self.size)
        distances = left + 2 * chunk - 1  # from a frame to those that it may attend to
        self.blocks = torch.nn.ModuleList(
            Block(self.size, heads, distances, kernel, expansion * self.size, config.dropout)
            for _ in range(config.encoder_layers)
        )

    def start(self, inputs: torch.Tensor) -> Any:
        rows = len(inputs)
        unseen = inputs.new_zeros(rows, self.left, dtype=torch.bool)
        counts = inputs.new_zeros(rows, dtype=torch.int64)
        return inputs[:, :0], counts, unseen, [block.start(inputs, self.left) for block in self.blocks]  # pyright: ignore[reportCallIssue]

    def forward(
        self, inputs: torch.Tensor, lengths: torch.Tensor, state: Any, last: bool
    ) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """See Encoder. A frame out for each frame in, which depends on frames up to the last of its chunk."""
        held, counts, seen, caches = state
        inputs, counts = torch.cat([held, inputs], dim=1), counts + lengths
        chunk = int(torch.randint(self.chunk, ())) + 1 if self.training else self.chunk
        total = inputs.shape[1] if last else inputs.shape[1] // chunk * chunk
        held, waiting = inputs[:, total:], (counts - total).clamp(min=0)
        counts = counts.clamp(max=total)
        if total == 0 or len(inputs) == 0:
            return inputs.new_zeros(len(inputs), total, self.size), counts, (held, waiting, seen, caches)
        frames = torch.arange(total, device=inputs.device)
        inside = frames < counts[:, None]
        encoded = self.embed(inputs[:, :total].masked_fill(~inside[:, :, None], 0.0))
        seen = torch.cat([seen, inside], dim=1)
        keys = torch.arange(-self.left, total, device=inputs.device)
        begin = (frames // chunk * chunk)[:, None]  # of each frame's chunk
        mask = (keys >= begin - self.left) & (keys < begin + chunk) & seen[:, None]  # (B, T, left + T)
        distances = (frames[:, None] - keys + self.longest - 1).clamp(0, self.left + 2 * self.longest - 2)
        after = []
        for block, cache in zip(self.blocks, caches, strict=True):
            encoded, cache = block(encoded, mask, distances, cache)
            after.append(cache)
        return encoded, counts, (held, waiting, seen[:, total:], after)


class Block(torch.nn.Module):
    """Feed forward, attention, convolution, feed forward, each added to its input; then layer normalisation (section 2.4)."""

    def __init__(self, size: int, heads: int, distances: int, kernel: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.feed_forward = torch.nn.ModuleList(_feed_forward(size, hidden, dropout) for _ in range(2))
        self.attention = Attention(size, heads, distances, dropout)
        self.convolution = Convolution(size, kernel, dropout)
        self.norm = Norm(size)

    def start(self, inputs: torch.Tensor, left: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The caches before the first frame."""
        memory = inputs.new_zeros(len(inputs), left, 2 * self.attention.inner)
        return memory, inputs.new_zeros(len(inputs), self.convolution.past, self.convolution.size)

    def forward(
        self, frames: torch.Tensor, mask: torch.Tensor, distances: torch.Tensor, cache: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """frames (B, T, D), mask (B, T, left + T) and distances (T, left + T) of the keys -> the same shape, caches."""
        frames = frames + self.feed_forward[0](frames) / 2
        attended, memory = self.attention(frames, mask, distances, cache[0])
        frames = frames + attended
        convolved, past = self.convolution(frames, cache[1])
        frames = frames + convolved
        return self.norm(frames + self.feed_forward[1](frames) / 2), (memory, past)


class Norm(torch.nn.LayerNorm):
    """Layer normalisation, in bf16's stead in fp32: torch 1.13 mixes no types on the CPU."""

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return super().forward(full_precision(frames))


def _feed_forward(size, hidden, dropout):
    """Section 2.3."""
    return torch.nn.Sequential(
        Norm(size),
        torch.nn.Linear(size, hidden),
        torch.nn.SiLU(),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(hidden, size),
        torch.nn.Dropout(dropout),
    )


class Attention(torch.nn.Module):
    """Self-attention of several heads, with a bias for each distance (section 2.1)."""

    def __init__(self, size: int, heads: int, distances: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.head_size = heads, math.ceil(size / heads)
        self.inner = heads * self.head_size
        self.norm = Norm(size)
        self.query, self.memory = torch.nn.Linear(size, self.inner), torch.nn.Linear(size, 2 * self.inner)
        self.bias = torch.nn.Parameter(torch.zeros(distances, heads))
        self.leave, self.dropout = torch.nn.Linear(self.inner, size), torch.nn.Dropout(dropout)

    def forward(
        self, frames: torch.Tensor, mask: torch.Tensor, distances: torch.Tensor, memory: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows, total, _ = frames.shape
        frames = self.norm(frames)
        memory = torch.cat([memory, self.memory(frames)], dim=1)
        query = self.query(frames).reshape(rows, total, self.heads, self.head_size).transpose(1, 2)
        keys, values = memory.reshape(rows, -1, 2, self.heads, self.head_size).permute(2, 0, 3, 1, 4)
        scores = query @ keys.transpose(2, 3) / math.sqrt(self.head_size)  # (B, H, T, left + T)
        scores = scores + functional.embedding(distances, self.bias).permute(2, 0, 1)
        scores = scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min)  # finite: a row behind its end sees nothing
        attended = self.dropout(scores.softmax(dim=3)) @ values
        attended = self.leave(attended.transpose(1, 2).reshape(rows, total, self.inner))
        return self.dropout(attended), memory[:, total:]


class Convolution(torch.nn.Module):
    """Gated, then depthwise over the past `kernel` frames (section 2.2)."""

    def __init__(self, size: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.size, self.past = size, kernel - 1
        self.norm, self.enter = Norm(size), torch.nn.Linear(size, 2 * size)
        self.depthwise = torch.nn.Conv1d(size, size, kernel, groups=size)
        self.inner_norm, self.leave = Norm(size), torch.nn.Linear(size, size)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, frames: torch.Tensor, past: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gated = torch.cat([past, functional.glu(self.enter(self.norm(frames)), dim=2)], dim=1)
        convolved = self.depthwise(gated.transpose(1, 2)).transpose(1, 2)
        convolved = self.leave(functional.silu(self.inner_norm(convolved)))
        return self.dropout(convolved), gated[:, frames.shape[1] :]
