"""Segment RNN (Heitkaemper et al. 2020, section 3, Figure 5): a GRU over short overlapping segments.

T frames are cut into M segments of L frames, S frames apart. The same bidirectional GRU and classifier see every segment
by itself, and the output at a segment's last frame stands for the whole segment. A frame counts as speech where any
segment that contains it does (`any_segment`).

`last_outputs` computes the GRU's part without cutting segments out. Three things make it exact and fast: a frame's input
projection is the same in all the segments that contain it, so it is computed once; a segment's first step starts from
h = 0 and needs no recurrent product; and the backward direction, read at the last frame, has made a single step. Steps 2 to
L are one matrix product each over the segments of the whole batch, on strided views. `last_outputs_plain` is the definition.
"""

from typing import TypeVar

import torch
from torch.nn import functional

Count = TypeVar("Count", int, torch.Tensor)


def num_segments(num_frames: Count, length: int, shift: int) -> Count:
    """Segments that cover `num_frames` frames (a number or a tensor of numbers > 0); the last may reach over the end."""
    beyond_first = num_frames - length + shift - 1
    return 1 + (beyond_first.clamp(min=0) if torch.is_tensor(beyond_first) else max(0, beyond_first)) // shift


def last_outputs_plain(features: torch.Tensor, gru: torch.nn.GRU, length: int, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Every segment through `gru`, one layer, bidirectional, batch_first: features (B, T, D), T > 0, continued with zeros.

    Returns the outputs at the segments' last frames, forward and backward direction: two of (B, M, H).
    """
    batch, num_frames, _ = features.shape
    count = num_segments(num_frames, length, shift)
    segments = _pad_frames(features, (count - 1) * shift + length).unfold(1, length, shift)  # (B, M, D, L)
    outputs, _ = gru(segments.reshape(batch * count, -1, length).transpose(1, 2))
    return outputs[:, -1].reshape(batch, count, 2, gru.hidden_size).unbind(2)


def last_outputs(features: torch.Tensor, gru: torch.nn.GRU, length: int, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What `last_outputs_plain` returns, up to rounding, for a fraction of the work."""
    batch, num_frames, size = features.shape
    count = num_segments(num_frames, length, shift)
    # All utterances in one row of frames, each padded to a multiple of the shift, so that one strided view gives the n-th
    # frames of all segments. The few segments that reach from one utterance into the next are dropped at the end.
    padded_count = -(-((count - 1) * shift + length) // shift)
    frames = _pad_frames(features, padded_count * shift).reshape(1, -1, size)
    frames = _pad_frames(frames, frames.shape[1] + length)[0]
    total = batch * padded_count

    def unfold_batch(states):  # (H, total) -> (B, M, H)
        return states.reshape(-1, batch, padded_count)[:, :, :count].permute(1, 2, 0)

    forward = _forward_direction(frames, gru, length, shift, total)
    backward = _backward_direction(frames[length - 1 :: shift][:total], gru)
    return unfold_batch(forward), unfold_batch(backward)


def any_segment(scores: torch.Tensor, length: int, shift: int, num_frames: int) -> torch.Tensor:
    """Segment scores (B, M), all > 0 -> frame scores (B, num_frames): the maximum over the segments with that frame."""
    batch, count = scores.shape
    # Every score at its segment's first frame; the zeros between lose against any score.
    spread = functional.pad(scores[:, :, None], (0, shift - 1)).reshape(batch, 1, count * shift)
    spread = functional.pad(spread, (length - 1, num_frames))
    return functional.max_pool1d(spread, length, stride=1)[:, 0, :num_frames]


def _pad_frames(features, num_frames):
    return functional.pad(features, (0, 0, 0, max(0, num_frames - features.shape[1])))


def _forward_direction(frames, gru, length, shift, count):
    """State after `length` steps from frames 0, shift, ... (count - 1) * shift: frames (N, D) -> (H, count).

    States are columns: the gates are then contiguous blocks of rows, which halves the time on a CPU.
    """
    size = gru.hidden_size
    gate_bias, candidate_bias = gru.bias_hh_l0[: 2 * size], gru.bias_hh_l0[2 * size :, None]
    gate_weight, candidate_weight = gru.weight_hh_l0[: 2 * size], gru.weight_hh_l0[2 * size :]
    gate_projection, candidate_projection = _project(frames, gru.weight_ih_l0, gru.bias_ih_l0, gate_bias)
    span = (count - 1) * shift + 1

    state = None
    for step in range(length):
        gate_input = gate_projection[:, step : step + span : shift]
        candidate_input = candidate_projection[:, step : step + span : shift]
        if state is None:
            gates, candidate = torch.sigmoid(gate_input), candidate_bias
        else:
            gates = torch.addmm(gate_input, gate_weight, state).sigmoid_()
            candidate = torch.addmm(candidate_bias, candidate_weight, state)
        reset, update = gates[:size], gates[size:]
        new = torch.addcmul(candidate_input, reset, candidate).tanh_()
        state = new - update * new if state is None else new + update * (state - new)
    return state


def _backward_direction(last_frames, gru):
    """A single step from h = 0, where the recurrent products are their biases: (count, D) -> (H, count)."""
    size = gru.hidden_size
    # The product with h = 0 keeps the weight in the graph: distributed training wants a gradient for every parameter.
    recurrent = torch.mv(gru.weight_hh_l0_reverse, last_frames.new_zeros(size)) + gru.bias_hh_l0_reverse
    gates, candidate = _project(last_frames, gru.weight_ih_l0_reverse, gru.bias_ih_l0_reverse, recurrent[: 2 * size])
    reset, update = gates.sigmoid_().chunk(2)
    new = torch.addcmul(candidate, reset, recurrent[2 * size :, None]).tanh_()
    return new - update * new


def _project(frames, weight, bias, gate_bias):
    """The inputs' part of both gates (2 H, N), with `gate_bias` added, and of the candidate (H, N)."""
    gate_rows = len(gate_bias)
    gates = torch.addmm((bias[:gate_rows] + gate_bias)[:, None], weight[:gate_rows], frames.t())
    return gates, torch.addmm(bias[gate_rows:, None], weight[gate_rows:], frames.t())
