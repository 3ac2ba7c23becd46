"""Prune ranges: the reference symbols that each frame considers (Kuang et al. 2022, Pruned RNN-T, section 3.2).

A cheap lattice says where paths probably are; the joint network then sees only R symbols in a row at each frame, rows
s_begin .. s_begin + R - 1 of the lattice. At frame t, s_begin is where the R rows keep the most probability: that of
the paths that leave frame t by a blank in one of them, less that of those which came there from the row before, cut
off. Then the ranges are made to join up: they start at row 0, never go back, reach row S at the last frame, and move on
by at most R - 1 rows, so that two neighbours share a row and a path can pass from one to the other.
"""

import torch
from torch.nn import functional

from pyspeech.errors import UserError


def range_size(prune_range: int, lengths: torch.Tensor, token_lengths: torch.Tensor, rows: int) -> int:
    """R, the rows kept at a frame: `prune_range`, or as many as the utterance with the most symbols a frame needs.

    lengths (B,) frames and token_lengths (B,) symbols; never more than `rows` = S + 1. Where S > (R - 1) T no path
    would reach the end; such utterances are rare, and a wider range for their batch costs less than to lose them.
    Raises UserError where `prune_range` is below 2: with one row a frame no symbol can be emitted.
    """
    if prune_range < 2:
        raise UserError(f"transducer loss: prune_range={prune_range}; expected at least 2, to emit a symbol at a frame")
    needed = (torch.div(token_lengths + lengths - 1, lengths, rounding_mode="floor") + 1).max()
    return min(max(prune_range, int(needed)), rows)


def prune_ranges(
    px_occupation: torch.Tensor,
    py_occupation: torch.Tensor,
    lengths: torch.Tensor,
    token_lengths: torch.Tensor,
    prune_range: int,
) -> torch.Tensor:
    """Occupation px (B, S, T), py (B, S + 1, T) of `lattice.occupation` -> rows kept (B, T, R) int64, 0 .. S.

    R is `range_size`; rows past token_lengths (B,) appear where an utterance has fewer than R rows. Frames past
    lengths (B,) repeat the last range.
    """
    rows, num_frames = py_occupation.shape[1:]
    size = range_size(prune_range, lengths, token_lengths, rows)
    kept = py_occupation.unfold(1, size, 1).sum(dim=-1)  # (B, S + 2 - R, T)
    kept = kept - functional.pad(px_occupation, (0, 0, 1, 0))[:, : kept.shape[1]]
    frame = torch.arange(num_frames, device=kept.device)
    last = (token_lengths - size + 1).clamp(min=0)[:, None]
    begin = torch.where(frame < lengths[:, None] - 1, kept.argmax(dim=1), last)
    return _join(begin, size - 1)[:, :, None] + torch.arange(size, device=kept.device)


def _join(begin, step):
    """First rows (B, T) as wanted -> never going back, moving on by at most `step` rows a frame, from row 0 on."""
    slope = step * torch.arange(begin.shape[1], device=begin.device)
    begin = begin.flip(1).cummin(dim=1).values.flip(1)
    # Frame t has to be within `step` rows a frame of every later frame's first row.
    begin = (begin - slope).flip(1).cummax(dim=1).values.flip(1) + slope
    return torch.minimum(begin, slope)


def gather_encoded(encoded: torch.Tensor, ranges: torch.Tensor) -> torch.Tensor:
    """Encoder frames (B, T, D) for the ranges (B, T, R): a view (B, T, 1, D), the same frame for all its rows."""
    assert encoded.shape[:2] == ranges.shape[:2], (encoded.shape, ranges.shape)
    return encoded[:, :, None]


def gather_predicted(predicted: torch.Tensor, ranges: torch.Tensor) -> torch.Tensor:
    """Predictor rows (B, S + 1, D) that the ranges (B, T, R) keep: (B, T, R, D).

    As an embedding lookup, whose gradient adds up into (B, S + 1, D) directly.
    """
    batch, rows, size = predicted.shape
    offsets = rows * torch.arange(batch, device=ranges.device)
    return functional.embedding(ranges + offsets[:, None, None], predicted.reshape(batch * rows, size))
